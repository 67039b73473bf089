package mapreduce.harness.gpu;

import mapreduce.harness.jobs.generate.Buffer;
import mapreduce.harness.jobs.generate.Content;
import mapreduce.harness.jobs.generate.Draws;
import org.apache.hadoop.conf.Configuration;

/** Generated records of one size, from whole numbers mixed of the seed and the record's number. */
abstract class RawRecords implements Content {
  private static final long GOLDEN = 0x9E3779B97F4A7C15L;

  private byte[] record;

  @Override
  public final void open(Configuration conf, long seed) {
    record = new byte[prepare(conf, Draws.mix(seed ^ 0x6A09E667F3BCC908L))];
  }

  /** Read the properties; returns the bytes of a record. */
  abstract int prepare(Configuration conf, long seed);

  @Override
  public final void write(long number, Buffer out) {
    fill(record, number);
    out.put(record, 0, record.length);
  }

  /** Set all bytes of the record with this number. */
  abstract void fill(byte[] record, long number);

  static long mix(long seed, long number) {
    return Draws.mix(seed + (number + 1) * GOLDEN);
  }

  static void putFloat(byte[] record, int at, float value) {
    int bits = Float.floatToRawIntBits(value);
    record[at] = (byte) bits;
    record[at + 1] = (byte) (bits >> 8);
    record[at + 2] = (byte) (bits >> 16);
    record[at + 3] = (byte) (bits >> 24);
  }
}
