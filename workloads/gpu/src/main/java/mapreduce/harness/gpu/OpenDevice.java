package mapreduce.harness.gpu;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import mapreduce.harness.ltrace.record.Trace;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskInputOutputContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A task's device: open from its first block to its last; counts what it does, and reports it as spans.
 *
 * <p>CUDA's events time the three steps of a block, which run without the host between them. A span of the host cannot
 * begin and end inside that call, so the steps' spans are reported one after the other behind it: each has the step's
 * amount of bytes, and {@link Device} has its time.
 */
final class OpenDevice implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(OpenDevice.class);
  private static final long RATE_BYTES = 16 << 20;

  private final TaskInputOutputContext<?, ?, ?, ?> context;
  private final boolean pinned;
  private final List<ByteBuffer> buffers = new ArrayList<>();
  private final double[] ns = new double[3];
  private final long handle;

  private OpenDevice(TaskInputOutputContext<?, ?, ?, ?> context, long handle) {
    this.context = context;
    this.handle = handle;
    this.pinned = context.getConfiguration().getBoolean("gpu.pinned", false);
  }

  static OpenDevice open(TaskInputOutputContext<?, ?, ?, ?> context) throws IOException {
    Configuration conf = context.getConfiguration();
    long span = Trace.begin("gpu.open");
    try {
      int devices = Library.choose(conf.get("gpu.device", "any"));
      int threads = conf.getInt("gpu.threads", 1);
      long[] handle = new long[1];
      double[] took = new double[1];
      check(Native.open(ordinal(context, devices), threads, conf.getLong("gpu.memory", 0), handle, took));
      OpenDevice device = new OpenDevice(context, handle[0]);
      device.count(Device.OPEN_NS, took[0]);
      device.introduce(threads);
      return device;
    } finally {
      Trace.end(span, 0);
    }
  }

  /** Tasks spread over the devices that YARN lets them see. */
  private static int ordinal(TaskAttemptContext context, int devices) {
    return context.getTaskAttemptID().getTaskID().getId() % devices;
  }

  private void introduce(int threads) throws IOException {
    boolean cuda = Native.isCuda();
    String name = Native.name(handle).replaceAll("[^ -~]|\"", "?");
    count(cuda ? Device.DEVICE_CUDA : Device.DEVICE_CPU, 1);
    if (cuda) {
      LOG.info("gpu: device=cuda name=\"{}\" pinned={}", name, pinned);
    } else {
      LOG.info("gpu: device=cpu name=\"{}\" threads={}", name, threads);
    }
    long limit = context.getConfiguration().getLong("gpu.memory", 0);
    double[] rate = new double[1];
    check(Native.memoryRate(handle, limit == 0 ? RATE_BYTES : Math.min(RATE_BYTES, Math.max(limit / 2, 1024)), rate));
    count(Device.MEM_READ_BPS, rate[0]);
  }

  /** Memory that the device copies from and to, in its byte order; freed with the device. */
  ByteBuffer buffer(long bytes) throws IOException {
    if (bytes > Integer.MAX_VALUE - 4096) {
      throw new DeviceException(bytes + " bytes are too much for one block", "ask for a smaller gpu.block");
    }
    ByteBuffer made = Native.allocate(handle, bytes, pinned);
    if (made == null) {
      throw new DeviceException(Native.text(), "ask for a smaller gpu.block");
    }
    buffers.add(made);
    return made.order(ByteOrder.nativeOrder());
  }

  /** Sums and counts for each centre; answers the number of the first point that cannot be compared, or -1. */
  long kmeans(ByteBuffer points, long n, int dimensions, ByteBuffer centres, int k, ByteBuffer out) throws IOException {
    long[] bad = new long[1];
    check(Native.kmeans(handle, points, n, dimensions, centres, k, out, bad, ns));
    worked(n * dimensions * Float.BYTES, (long) k * (dimensions + 1) * Double.BYTES);
    return bad[0];
  }

  void sbs(ByteBuffer frames, long n, int width, int height, int shifts, int radius, ByteBuffer depth)
      throws IOException {
    check(Native.sbs(handle, frames, n, width, height, shifts, radius, depth, ns));
    worked(n * width * height * 3, n * width * height / 2);
  }

  void matmul(ByteBuffer pairs, long n, int tile, int repeats, ByteBuffer out) throws IOException {
    check(Native.matmul(handle, pairs, n, tile, repeats, out, ns));
    worked(2 * n * tile * tile * Float.BYTES, n * tile * tile * Float.BYTES);
  }

  private void worked(long in, long out) {
    count(Device.BLOCKS, 1);
    count(Device.BYTES_IN, in);
    count(Device.BYTES_OUT, out);
    step("gpu.h2d", Device.H2D_NS, ns[0], in);
    step("gpu.kernel", Device.KERNEL_NS, ns[1], in);
    step("gpu.d2h", Device.D2H_NS, ns[2], out);
    context.progress();
  }

  private void step(String name, Device counter, double took, long bytes) {
    count(counter, took);
    Trace.end(Trace.begin(name), bytes);
  }

  private void count(Device counter, double value) {
    context.getCounter(counter).increment(Math.round(value));
  }

  private static void check(int code) throws IOException {
    if (code != 0) {
      String text = Native.text();
      boolean memory = code == 2 || text.toLowerCase(Locale.ROOT).contains("out of memory");
      throw new DeviceException(text, memory ? "ask for a smaller gpu.block, or run fewer tasks on a device" : "");
    }
  }

  @Override
  public void close() {
    count(Device.ALLOC_NS, Native.allocNs(handle));
    for (ByteBuffer buffer : buffers) {
      Native.release(buffer, pinned);
    }
    Native.close(handle);
  }
}
