package mapreduce.harness.ltrace.record;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;

/**
 * A memory-mapped file that grows by pieces.
 *
 * <p>What is written survives the death of the process. All of the mapping exists from the start,
 * the file only as far as {@link #reserve} has written zeros: a touch beyond would be a signal, and
 * so would be one where the disk has no block left. Zeros that cannot be written are an exception.
 */
final class GrowingFile {

  // Not the channel's write: that one closes the file when its thread is interrupted, as Hadoop's
  // fetchers and spill threads are.
  private final RandomAccessFile file;
  private final byte[] zeros;
  private long length;

  /** The mapping; touch it up to the reserved length only. */
  final MappedByteBuffer bytes;

  /**
   * Make the file again, empty.
   *
   * @param most bytes that it may ever hold
   * @param piece bytes that {@link #reserve} writes at once
   */
  GrowingFile(File path, int most, int piece) throws IOException {
    file = new RandomAccessFile(path, "rw");
    file.setLength(0);
    bytes = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, most);
    bytes.order(ByteOrder.LITTLE_ENDIAN);
    file.setLength(0); // the mapping has made it as long as itself
    zeros = new byte[piece];
  }

  /** Give the next {@code count} bytes blocks on the disk, a piece at most. */
  synchronized void reserve(int count) throws IOException {
    file.seek(length);
    file.write(zeros, 0, count);
    length += count;
  }

  /** Bytes reserved so far. */
  synchronized long length() {
    return length;
  }

  /** Bytes that may still be reserved. */
  synchronized long room() {
    return bytes.capacity() - length;
  }

  /** Cut the file; nothing beyond may be touched any more. */
  synchronized void cut(long end) throws IOException {
    file.setLength(end);
  }
}
