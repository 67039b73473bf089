package mapreduce.harness.ltrace.record;

import java.nio.charset.StandardCharsets;

/** Where one thread writes its spans: no other touches its chunk, so nothing is locked. */
final class Lane {

  private static final ThreadLocal<Lane> LANES = new ThreadLocal<>();

  private final int thread = (int) Thread.currentThread().getId();
  private final byte[] name = Thread.currentThread().getName().getBytes(StandardCharsets.UTF_8);
  private int at;
  private int end;

  /** Records and compressed bytes of the intermediate files that this thread has closed. */
  long records;

  long bytes;

  /** The same of files between the passes of a merge, which are read again and deleted. */
  long betweenRecords;

  long betweenBytes;

  /** Whether the passes of a merge run that are not its last. */
  boolean between;

  /** Place of a span that waits for the size of its file, or 0. */
  int writing;

  static Lane mine() {
    Lane lane = LANES.get();
    if (lane == null) {
      lane = new Lane();
      LANES.set(lane);
    }
    return lane;
  }

  /** Place of {@code slots} empty slots in a row, or 0: there are none. */
  int take(SpanFile file, int slots) {
    int place = at;
    if (end - place < slots * SpanFile.SLOT) {
      place = file.chunk(thread, name);
      if (place == 0) {
        return 0;
      }
      end = place - SpanFile.CHUNK_HEAD + SpanFile.CHUNK;
    }
    at = place + slots * SpanFile.SLOT;
    return place;
  }

  /** Forget the files that were closed. */
  void forget() {
    records = 0;
    bytes = 0;
    betweenRecords = 0;
    betweenBytes = 0;
    between = false;
  }

  /** A file is closed. */
  void closed(long recordsWritten, long compressed) {
    if (between) {
      betweenRecords += recordsWritten;
      betweenBytes += compressed;
    } else {
      records += recordsWritten;
      bytes += compressed;
    }
  }
}
