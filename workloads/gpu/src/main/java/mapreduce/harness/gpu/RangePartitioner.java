package mapreduce.harness.gpu;

import org.apache.hadoop.conf.Configurable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.mapreduce.Partitioner;

/**
 * Even ranges of numbers, in order: the files of the reduces, one after the other, hold all in
 * order.
 */
public final class RangePartitioner extends Partitioner<LongWritable, BytesWritable>
    implements Configurable {
  /** Property: the numbers are below it. */
  static final String NUMBERS = "gpu.numbers";

  private Configuration conf;
  private long numbers;

  @Override
  public void setConf(Configuration newConf) {
    conf = newConf;
    numbers = newConf.getLong(NUMBERS, 1);
  }

  @Override
  public Configuration getConf() {
    return conf;
  }

  @Override
  public int getPartition(LongWritable number, BytesWritable value, int reduces) {
    return (int) (number.get() * reduces / numbers);
  }
}
