package mapreduce.harness.jobs.generate;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Bytes that grow at their end. */
public final class Buffer {
  private static final VarHandle LITTLE =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle BIG =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

  private byte[] bytes;
  private int size;

  public Buffer(int room) {
    this.bytes = new byte[Math.max(room, Long.BYTES)];
  }

  /**
   * The bytes; those behind {@link #size} are no part of them. Another array after the next one
   * that is appended.
   */
  public byte[] bytes() {
    return bytes;
  }

  public int size() {
    return size;
  }

  public void clear() {
    size = 0;
  }

  public void put(int value) {
    room(1);
    bytes[size++] = (byte) value;
  }

  public void put(byte[] source, int from, int count) {
    room(count);
    System.arraycopy(source, from, bytes, size, count);
    size += count;
  }

  /** Characters of ASCII. */
  public void put(String ascii) {
    byte[] source = ascii.getBytes(StandardCharsets.US_ASCII);
    put(source, 0, source.length);
  }

  /**
   * The first {@code count} bytes (8 at most) of a number, its lowest byte first: a short word in
   * one step.
   */
  public void putWord(long packed, int count) {
    room(Long.BYTES);
    LITTLE.set(bytes, size, packed);
    size += count;
  }

  /** Eight bytes, the lowest first, as C and NumPy have them on most machines. */
  public void putLittleLong(long value) {
    putWord(value, Long.BYTES);
  }

  /** Eight bytes, the highest first, as Java's and Hadoop's streams have them. */
  public void putDouble(double value) {
    room(Double.BYTES);
    BIG.set(bytes, size, Double.doubleToRawLongBits(value));
    size += Double.BYTES;
  }

  /** A number from 0 up in decimal digits, with zeros before it until there are {@code width}. */
  public void putDecimal(long value, int width) {
    if (value < 0) {
      throw new IllegalArgumentException("a number below 0: " + value);
    }
    int digits = 1;
    for (long rest = value / 10; rest > 0; rest /= 10) {
      digits++;
    }
    digits = Math.max(digits, width);
    room(digits);
    long rest = value;
    for (int at = size + digits - 1; at >= size; at--) {
      bytes[at] = (byte) ('0' + rest % 10);
      rest /= 10;
    }
    size += digits;
  }

  private void room(int more) {
    if (bytes.length - size < more) {
      bytes =
          Arrays.copyOf(
              bytes,
              Math.max(Math.addExact(size, more), (int) Math.min(2L * bytes.length, 1 << 30)));
    }
  }
}
