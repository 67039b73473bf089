package org.apache.hadoop.examples.terasort;

import mapreduce.harness.jobs.generate.Buffer;
import mapreduce.harness.jobs.generate.Content;
import org.apache.hadoop.conf.Configuration;

/**
 * The rows of TeraGen, which follow from their numbers alone: what a job takes longer to start for
 * than to write.
 *
 * <p>In Hadoop's package, where alone its numbers and its rows can be had.
 */
public final class TeraRows implements Content {
  private static final int ROW_BYTES = 100;

  private final byte[] row = new byte[ROW_BYTES];
  private Unsigned16 random;
  private long next;

  /** Rows have no seed, as TeraGen's have none. */
  @Override
  public void open(Configuration conf, long seed) {}

  @Override
  public void write(long number, Buffer out) {
    Unsigned16 rowNumber = new Unsigned16(number);
    if (random == null || number != next) {
      random = Random16.skipAhead(rowNumber);
    }
    Random16.nextRand(random);
    GenSort.generateRecord(row, random, rowNumber);
    out.put(row, 0, ROW_BYTES);
    next = number + 1;
  }
}
