package mapreduce.harness.jobs.generate;

import org.apache.hadoop.conf.Configuration;

/** Lines that hold nothing but their numbers, in twenty digits: for jobs that are told only which map they are. */
public final class Numbers implements Content {
  @Override
  public void open(Configuration conf, long seed) {}

  @Override
  public void write(long number, Buffer out) {
    out.putDecimal(number, 20);
    out.put('\n');
  }
}
