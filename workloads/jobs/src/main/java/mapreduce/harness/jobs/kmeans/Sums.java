package mapreduce.harness.jobs.kmeans;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.WritableUtils;

/** Points, added up: how many, and the sum of their coordinates. */
public final class Sums implements Writable {
  private long points;
  private double[] sums = {};

  /** One point, whose array is kept. */
  void set(double[] point) {
    points = 1;
    sums = point;
  }

  void clear() {
    points = 0;
    sums = new double[0];
  }

  void add(Sums others) {
    if (points == 0) {
      sums = others.sums.clone();
    } else {
      for (int d = 0; d < sums.length; d++) {
        sums[d] += others.sums[d];
      }
    }
    points += others.points;
  }

  long points() {
    return points;
  }

  double[] mean() {
    double[] mean = new double[sums.length];
    for (int d = 0; d < mean.length; d++) {
      mean[d] = sums[d] / points;
    }
    return mean;
  }

  @Override
  public void write(DataOutput out) throws IOException {
    WritableUtils.writeVLong(out, points);
    WritableUtils.writeVInt(out, sums.length);
    for (double sum : sums) {
      out.writeDouble(sum);
    }
  }

  @Override
  public void readFields(DataInput in) throws IOException {
    points = WritableUtils.readVLong(in);
    int count = WritableUtils.readVInt(in);
    if (sums.length != count) {
      sums = new double[count];
    }
    for (int d = 0; d < count; d++) {
      sums[d] = in.readDouble();
    }
  }
}
