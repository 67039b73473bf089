package mapreduce.harness.jobs.generate;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.InputSplit;

/** The records of one file: a split that holds nothing but their numbers. */
public final class Range extends InputSplit implements Writable {
  private long first;
  private long count;

  /** For {@link #readFields}. */
  public Range() {}

  private Range(long first, long count) {
    this.first = first;
    this.count = count;
  }

  /**
   * Part {@code part} of {@code parts} that differ by one record at most, the larger ones first.
   */
  public static Range of(long records, int parts, int part) {
    long size = records / parts;
    long rest = records % parts;
    return new Range(part * size + Math.min(part, rest), size + (part < rest ? 1 : 0));
  }

  public long first() {
    return first;
  }

  public long count() {
    return count;
  }

  /**
   * Larger splits become maps of lower numbers, and so files of lower numbers; equal ones keep
   * their order.
   */
  @Override
  public long getLength() {
    return count;
  }

  @Override
  public String[] getLocations() {
    return new String[0];
  }

  @Override
  public void write(DataOutput out) throws IOException {
    out.writeLong(first);
    out.writeLong(count);
  }

  @Override
  public void readFields(DataInput in) throws IOException {
    first = in.readLong();
    count = in.readLong();
  }
}
