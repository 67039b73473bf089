package mapreduce.harness.ltrace.record;

import java.io.IOException;
import java.nio.MappedByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * The file {@code ltrace.units}: a head, then the durations of units of records, one after another.
 *
 * <p>A duration is a number of 32 ns: 16 bits where it is below 0x8000, else 31 bits in two words
 * of which the first has its top bit set. It is 1 at least: a word of 0 was never written.
 */
final class UnitFile {

  private static final int PIECE = 1 << 16;
  private static final int MOST = 1 << 28; // 134 million units, or half of that
  private static final int HEAD = 16;

  private final GrowingFile file;
  private final MappedByteBuffer bytes;
  private long reserved;
  private int end = HEAD;

  UnitFile() throws IOException {
    file = new GrowingFile(Settings.file("ltrace.units"), MOST, PIECE);
    bytes = file.bytes;
    grow();
    bytes.put(0, "LTUNITS1".getBytes(StandardCharsets.US_ASCII));
    bytes.putInt(8, Settings.UNIT);
  }

  private void grow() throws IOException {
    if (reserved + PIECE > MOST) {
      throw new IOException("ltrace.units is full");
    }
    file.reserve(PIECE);
    reserved += PIECE;
  }

  /** Append a unit of so many nanoseconds; 68 s at most are recorded. */
  void write(long durationNs) throws IOException {
    if (end + 4 > reserved) {
      grow();
    }
    long value = Math.min(Math.max(1, durationNs >> 5), Integer.MAX_VALUE);
    if (value < 0x8000) {
      bytes.putShort(end, (short) value);
      end += 2;
    } else {
      bytes.putShort(end + 2, (short) value);
      bytes.putShort(end, (short) (0x8000 | value >> 16));
      end += 4;
    }
  }

  /** Bytes written, the head among them. */
  long size() {
    return end;
  }

  /** Cut what was reserved and not written. */
  void cut() throws IOException {
    file.cut(end);
  }
}
