package mapreduce.harness.gpu;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.Reducer;

/** The tasks of an iteration of K-means. */
final class KMeansTasks {
  private KMeansTasks() {}

  /** Points of one block at one centre: how many, and the sums of their coordinates. */
  public static final class Sums implements Writable {
    private long count;
    private double[] sums = {};

    /** Take a row of the device's results: sums, then the count. */
    void take(ByteBuffer row, int dimensions) {
      if (sums.length != dimensions) {
        sums = new double[dimensions];
      }
      for (int j = 0; j < dimensions; j++) {
        sums[j] = row.getDouble();
      }
      count = (long) row.getDouble();
    }

    @Override
    public void write(DataOutput out) throws IOException {
      out.writeLong(count);
      out.writeInt(sums.length);
      for (double sum : sums) {
        out.writeDouble(sum);
      }
    }

    @Override
    public void readFields(DataInput in) throws IOException {
      count = in.readLong();
      sums = new double[in.readInt()];
      for (int j = 0; j < sums.length; j++) {
        sums[j] = in.readDouble();
      }
    }
  }

  /** Sums for every centre from each block, also where a centre has no points there. */
  public static final class NearestMapper extends BlockMapper<IntWritable, Sums> {
    private final IntWritable number = new IntWritable();
    private final Sums sums = new Sums();
    private ByteBuffer centres;
    private ByteBuffer results;
    private int dimensions;
    private int k;

    @Override
    void prepare(OpenDevice device, long points, Context context) throws IOException {
      Centres cached = Centres.cached(context);
      k = cached.count();
      dimensions = cached.dimensions();
      centres = device.buffer((long) k * dimensions * Float.BYTES);
      cached.copyTo(centres.asFloatBuffer());
      results = device.buffer(((long) k * (dimensions + 1) + 1) * Double.BYTES);
    }

    @Override
    void work(OpenDevice device, ByteBuffer block, long points, long first, Context context)
        throws IOException, InterruptedException {
      device.work(
          block,
          block.position(),
          (d, ns) -> Native.kmeans(d, points, dimensions, centres, k, ns),
          results,
          results.capacity());
      results.clear();
      long bad = results.getLong(results.capacity() - Long.BYTES);
      if (bad >= 0) {
        throw new IOException(
            place(first + bad, context)
                + " has a coordinate that is NaN, infinite or too large for a distance");
      }
      for (int c = 0; c < k; c++) {
        sums.take(results, dimensions);
        number.set(c);
        context.write(number, sums);
      }
    }
  }

  /** Means, as lines of text. */
  public static final class MeanReducer extends Reducer<IntWritable, Sums, NullWritable, Text> {
    private final Text line = new Text();
    private Centres before;

    @Override
    protected void setup(Context context) throws IOException {
      before = Centres.cached(context);
    }

    @Override
    protected void reduce(IntWritable centre, Iterable<Sums> parts, Context context)
        throws IOException, InterruptedException {
      long count = 0;
      double[] total = new double[before.dimensions()];
      for (Sums part : parts) {
        count += part.count;
        for (int j = 0; j < total.length; j++) {
          total[j] += part.sums[j];
        }
      }
      float[] mean = before.get(centre.get()).clone();
      for (int j = 0; count > 0 && j < mean.length; j++) {
        mean[j] = (float) (total[j] / count);
      }
      int iteration = context.getConfiguration().getInt(GpuKMeans.ITERATION, 0);
      line.set(Centres.line(centre.get(), count, iteration, mean));
      context.write(NullWritable.get(), line);
    }
  }
}
