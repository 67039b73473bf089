package mapreduce.harness.jobs.generate;

import org.apache.hadoop.conf.Configuration;

/**
 * Lines that tell maps their shares of something that is not there yet: number of the share, its
 * first record, and how many it has, in twenty digits each. {@code shares.records} are dealt out
 * evenly to {@code shares.parts}.
 */
public final class Shares implements Content {
  private static final int DIGITS = 20;

  private long records;
  private int parts;

  @Override
  public void open(Configuration conf, long seed) {
    records = conf.getLong("shares.records", 0);
    parts = conf.getInt("shares.parts", 0);
    if (parts < 1 || records < parts) {
      throw new IllegalArgumentException(records + " records for " + parts + " shares");
    }
  }

  @Override
  public void write(long number, Buffer out) {
    Range share = Range.of(records, parts, (int) number);
    out.putDecimal(number, DIGITS);
    out.put(' ');
    out.putDecimal(share.first(), DIGITS);
    out.put(' ');
    out.putDecimal(share.count(), DIGITS);
    out.put('\n');
  }
}
