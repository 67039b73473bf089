package mapreduce.harness.gpu;

import java.io.IOException;
import java.nio.ByteBuffer;
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
 * GpuSbs INPUT OUTPUT: side-by-side stereo video to depth video.
 *
 * <p>Input: files of whole frames, {@code gpu.width} x {@code gpu.height} RGB, left view in the
 * left half. Output: a grey frame of half the width for each, in the order of the input. {@code
 * kernels/sbs.h} defines every byte of it.
 */
public final class GpuSbs extends Configured implements Tool {
  static final String WIDTH = "gpu.width";
  static final String HEIGHT = "gpu.height";
  static final String SHIFTS = "gpu.shifts";
  static final String RADIUS = "gpu.radius";

  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new GpuSbs(), arguments));
  }

  /** Bytes of a frame. */
  static long frameBytes(Configuration conf) {
    return 3L * conf.getInt(WIDTH, 640) * conf.getInt(HEIGHT, 180);
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println("usage: GpuSbs [-D gpu.width=N ...] INPUT OUTPUT");
      return 2;
    }
    Configuration conf = getConf();
    conf.setLong(Records.BYTES, frameBytes(conf));
    Job job = Job.getInstance(conf, "gpu-sbs");
    Jobs.inOrder(job, arguments);
    job.getConfiguration().setLong(RangePartitioner.NUMBERS, Records.count(job));
    job.setJarByClass(GpuSbs.class);
    job.setMapperClass(DepthMapper.class);
    job.setReducerClass(Writer.class);
    return job.waitForCompletion(true) ? 0 : 1;
  }

  /** Depth frames of a block of frames. */
  public static final class DepthMapper extends BlockMapper<LongWritable, BytesWritable> {
    private final LongWritable number = new LongWritable();
    private final BytesWritable frame = new BytesWritable();
    private ByteBuffer depths;
    private byte[] depth;
    private int width;
    private int height;
    private int shifts;
    private int radius;

    @Override
    void prepare(OpenDevice device, long frames, Context context) throws IOException {
      Configuration conf = context.getConfiguration();
      width = conf.getInt(WIDTH, 640);
      height = conf.getInt(HEIGHT, 180);
      shifts = conf.getInt(SHIFTS, 16);
      radius = conf.getInt(RADIUS, 2);
      depth = new byte[width / 2 * height];
      depths = device.buffer(frames * depth.length);
    }

    @Override
    void work(OpenDevice device, ByteBuffer block, long frames, long first, Context context)
        throws IOException, InterruptedException {
      long out = frames * depth.length;
      device.work(
          block,
          block.position(),
          (d, ns) -> Native.sbs(d, frames, width, height, shifts, radius, ns),
          depths,
          out);
      depths.clear();
      for (long i = 0; i < frames; i++) {
        depths.get(depth);
        number.set(first + i);
        frame.set(depth, 0, depth.length);
        context.write(number, frame);
      }
    }
  }

  /** Writes frames as they come, which is in order. */
  public static final class Writer
      extends Reducer<LongWritable, BytesWritable, NullWritable, BytesWritable> {
    @Override
    protected void reduce(LongWritable number, Iterable<BytesWritable> frames, Context context)
        throws IOException, InterruptedException {
      for (BytesWritable frame : frames) {
        context.write(NullWritable.get(), frame);
      }
    }
  }
}
