package mapreduce.harness.gpu;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * GpuMatmul INPUT OUTPUT: product of two matrices, tile by tile.
 *
 * <p>A record of the input is a pair of tiles, A(i,q) then B(q,j), each {@code gpu.tile} squared
 * little-endian floats. Record number p belongs to the result's tile p / inner, which are numbered
 * row by row, and to q = p mod inner, for {@code gpu.inner}. The output has, for each tile of the
 * result in order, 16 bytes: its row, its column, the number of products in it, the CRC-32 of what
 * follows (little-endian), then its floats.
 */
public final class GpuMatmul extends Configured implements Tool {
  static final String TILE = "gpu.tile";
  static final String INNER = "gpu.inner";
  static final String REPEATS = "gpu.repeats";
  static final String COLUMNS = "gpu.columns";

  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new GpuMatmul(), arguments));
  }

  /** Bytes of a pair of tiles. */
  static long pairBytes(Configuration conf) {
    long tile = conf.getInt(TILE, 128);
    return 2 * tile * tile * Float.BYTES;
  }

  /**
   * Columns of tiles in a result of so many tiles: the largest divisor that is no more than the
   * rows.
   */
  static long columns(long tiles) {
    long columns = (long) Math.sqrt((double) tiles);
    while (tiles % columns != 0) {
      columns--;
    }
    return columns;
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println("usage: GpuMatmul [-D gpu.tile=N ...] INPUT OUTPUT");
      return 2;
    }
    Configuration conf = getConf();
    conf.setLong(Records.BYTES, pairBytes(conf));
    Job job = Job.getInstance(conf, "gpu-matmul");
    Jobs.inOrder(job, arguments);
    int inner = Jobs.positive(job, INNER, 4);
    long pairs = Records.count(job);
    if (pairs % inner != 0) {
      throw new IOException(
          arguments[0]
              + " has "
              + pairs
              + " pairs of tiles, which is not a whole number of sums of "
              + inner
              + " products");
    }
    job.getConfiguration().setLong(RangePartitioner.NUMBERS, pairs / inner);
    job.getConfiguration().setLong(COLUMNS, columns(pairs / inner));
    job.setJarByClass(GpuMatmul.class);
    job.setMapperClass(ProductMapper.class);
    job.setReducerClass(Adder.class);
    return job.waitForCompletion(true) ? 0 : 1;
  }

  /** Products of a block of pairs. */
  public static final class ProductMapper extends BlockMapper<LongWritable, BytesWritable> {
    private final LongWritable number = new LongWritable();
    private final BytesWritable value = new BytesWritable();
    private ByteBuffer products;
    private byte[] product;
    private int tile;
    private int inner;
    private int repeats;

    @Override
    void prepare(OpenDevice device, long pairs, Context context) throws IOException {
      Configuration conf = context.getConfiguration();
      tile = conf.getInt(TILE, 128);
      inner = conf.getInt(INNER, 4);
      repeats = conf.getInt(REPEATS, 1);
      product = new byte[tile * tile * Float.BYTES];
      products = device.buffer(pairs * product.length);
    }

    @Override
    void work(OpenDevice device, ByteBuffer block, long pairs, long first, Context context)
        throws IOException, InterruptedException {
      long out = pairs * product.length;
      device.work(
          block,
          block.position(),
          (d, ns) -> Native.matmul(d, pairs, tile, repeats, ns),
          products,
          out);
      products.clear();
      for (long i = 0; i < pairs; i++) {
        products.get(product);
        number.set((first + i) / inner);
        value.set(product, 0, product.length);
        context.write(number, value);
      }
    }
  }

  /** Adds the products of a tile. */
  public static final class Adder
      extends Reducer<LongWritable, BytesWritable, NullWritable, BytesWritable> {
    private static final int HEAD = 16;

    @Override
    protected void reduce(LongWritable number, Iterable<BytesWritable> products, Context context)
        throws IOException, InterruptedException {
      Configuration conf = context.getConfiguration();
      int tile = conf.getInt(TILE, 128);
      long columns = conf.getLong(COLUMNS, 1);
      double[] sums =
          new double[tile * tile]; // in double: the order of the products does not show in a float
      int count = 0;
      for (BytesWritable product : products) {
        ByteBuffer floats =
            ByteBuffer.wrap(product.getBytes(), 0, product.getLength())
                .order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < sums.length; i++) {
          sums[i] += floats.getFloat();
        }
        count++;
      }
      if (count != conf.getInt(INNER, 4)) {
        throw new IOException(
            "tile " + number + " has " + count + " products, not " + conf.getInt(INNER, 4));
      }
      ByteBuffer out =
          ByteBuffer.allocate(HEAD + sums.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
      out.putInt((int) (number.get() / columns))
          .putInt((int) (number.get() % columns))
          .putInt(count)
          .putInt(0);
      for (double sum : sums) {
        out.putFloat((float) sum);
      }
      CRC32 check = new CRC32();
      check.update(out.array(), HEAD, out.capacity() - HEAD);
      out.putInt(HEAD - Integer.BYTES, (int) check.getValue());
      context.write(NullWritable.get(), new BytesWritable(out.array()));
    }
  }
}
