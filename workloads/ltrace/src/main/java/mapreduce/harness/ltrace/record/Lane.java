package mapreduce.harness.ltrace.record;

import java.nio.charset.StandardCharsets;

/** Where one thread writes its spans: no other touches its chunk, so nothing is locked. */
final class Lane {

  private static final ThreadLocal<Lane> LANES = new ThreadLocal<>();

  private final int thread = (int) Thread.currentThread().getId();
  private final byte[] name = Thread.currentThread().getName().getBytes(StandardCharsets.UTF_8);
  private int nextSlot; // place in the file
  private int chunkEnd;

  /** Records and compressed bytes of the intermediate files that this thread has closed. */
  long records;

  long bytes;

  /** The same of files between the passes of a merge, which are read again and deleted. */
  long betweenRecords;

  long betweenBytes;

  /** Whether the passes of a merge run that are not its last. */
  boolean isBetweenPasses;

  /** Place of a span that waits for the size of its file, or 0. */
  int slotAwaitingSize;

  /** The lane of this thread. */
  static Lane current() {
    Lane lane = LANES.get();
    if (lane == null) {
      lane = new Lane();
      LANES.set(lane);
    }
    return lane;
  }

  /** Place of {@code slots} empty slots in a row, or 0: there are none. */
  int take(SpanFile file, int slots) {
    int place = nextSlot;
    if (chunkEnd - place < slots * SpanFile.SLOT) {
      place = file.chunk(thread, name);
      if (place == 0) {
        return 0;
      }
      chunkEnd = place - SpanFile.CHUNK_HEAD + SpanFile.CHUNK;
    }
    nextSlot = place + slots * SpanFile.SLOT;
    return place;
  }

  /** Count closed files from 0 again. */
  void resetFiles() {
    records = 0;
    bytes = 0;
    betweenRecords = 0;
    betweenBytes = 0;
    isBetweenPasses = false;
  }

  /** This thread has closed a file. */
  void addFile(long recordsWritten, long compressedBytes) {
    if (isBetweenPasses) {
      betweenRecords += recordsWritten;
      betweenBytes += compressedBytes;
    } else {
      records += recordsWritten;
      bytes += compressedBytes;
    }
  }
}
