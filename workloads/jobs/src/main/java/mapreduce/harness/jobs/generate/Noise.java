package mapreduce.harness.jobs.generate;

import org.apache.hadoop.conf.Configuration;

/**
 * Records of {@code noise.bytes} bytes (a multiple of 8), each byte by chance: nothing compresses
 * them.
 */
public final class Noise implements Content {
  public static final String BYTES = "noise.bytes";

  private final Draws draws = new Draws();
  private long seed;
  private int words;

  @Override
  public void open(Configuration conf, long seed) {
    int bytes = conf.getInt(BYTES, 0);
    if (bytes < Long.BYTES || bytes % Long.BYTES != 0) {
      throw new IllegalArgumentException(
          BYTES + " is " + bytes + ": it is a multiple of 8, and 8 or more");
    }
    this.seed = seed;
    this.words = bytes / Long.BYTES;
  }

  @Override
  public void write(long number, Buffer out) {
    draws.at(seed, number);
    for (int word = 0; word < words; word++) {
      out.putLittleLong(draws.next());
    }
  }
}
