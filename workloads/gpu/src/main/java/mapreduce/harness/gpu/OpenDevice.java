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
 * A task's device: open from its first block to its last.
 *
 * <p>Each of the three steps of a block is a span of the task, by the host's clock, and adds its
 * time by the device's clock to a counter of {@link Device}.
 */
final class OpenDevice implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(OpenDevice.class);
  // More than the caches of a device hold; of a processor, what a task may well spend its time on.
  private static final long CUDA_RATE_BYTES = 256 << 20;
  private static final long CPU_RATE_BYTES = 16 << 20;

  private final TaskInputOutputContext<?, ?, ?, ?> context;
  private final boolean pinned;
  private final List<ByteBuffer> buffers = new ArrayList<>();
  private final double[] ns = new double[1];
  private final long handle;

  private OpenDevice(TaskInputOutputContext<?, ?, ?, ?> context, long handle) {
    this.context = context;
    this.handle = handle;
    this.pinned = context.getConfiguration().getBoolean("gpu.pinned", false);
  }

  static OpenDevice open(TaskInputOutputContext<?, ?, ?, ?> context) throws IOException {
    Configuration conf = context.getConfiguration();
    long span = Trace.begin("gpu.open");
    long began = System.nanoTime(); // the driver starts when its devices are counted
    try {
      int devices = Library.choose(conf.get("gpu.device", "any"));
      int threads = conf.getInt("gpu.threads", 1);
      long[] handle = new long[1];
      double[] nativeNs = new double[1];
      check(
          Native.open(
              ordinal(context, devices), threads, conf.getLong("gpu.memory", 0), handle, nativeNs));
      OpenDevice device = new OpenDevice(context, handle[0]);
      device.count(Device.OPEN_NS, System.nanoTime() - began);
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
    long bytes = cuda ? CUDA_RATE_BYTES : CPU_RATE_BYTES;
    double[] rate = new double[1];
    check(
        Native.memoryRate(
            handle, limit == 0 ? bytes : Math.min(bytes, Math.max(limit / 2, 1024)), rate));
    count(Device.MEM_READ_BPS, rate[0]);
  }

  /** Memory that the device copies from and to, in its byte order; freed with the device. */
  ByteBuffer buffer(long bytes) throws IOException {
    if (bytes > Integer.MAX_VALUE - 4096) {
      throw new DeviceException(
          bytes + " bytes are too much for one block", "ask for a smaller gpu.block");
    }
    ByteBuffer made = Native.allocate(handle, bytes, pinned);
    if (made == null) {
      throw new DeviceException(Native.text(), "ask for a smaller gpu.block");
    }
    buffers.add(made);
    return made.order(ByteOrder.nativeOrder());
  }

  /** Copies a block to the device, runs the kernel there, and copies the results back. */
  void work(ByteBuffer block, long in, Kernel kernel, ByteBuffer results, long out)
      throws IOException {
    step("gpu.h2d", Device.H2D_NS, in, () -> Native.upload(handle, block, in, ns));
    step("gpu.kernel", Device.KERNEL_NS, in, () -> kernel.run(handle, ns));
    step("gpu.d2h", Device.D2H_NS, out, () -> Native.download(handle, results, out, ns));
    count(Device.BLOCKS, 1);
    count(Device.BYTES_IN, in);
    count(Device.BYTES_OUT, out);
    context.progress();
  }

  /** One of the kernels of {@link Native}, with its arguments. */
  interface Kernel {
    int run(long device, double[] ns);
  }

  private interface Step {
    int run();
  }

  private void step(String name, Device counter, long bytes, Step step) throws IOException {
    long span = Trace.begin(name);
    try {
      check(step.run());
    } finally {
      Trace.end(span, bytes);
    }
    count(counter, ns[0]);
  }

  private void count(Device counter, double value) {
    context.getCounter(counter).increment(Math.round(value));
  }

  private static void check(int code) throws IOException {
    if (code != 0) {
      String text = Native.text();
      boolean memory = code == 2 || text.toLowerCase(Locale.ROOT).contains("out of memory");
      throw new DeviceException(
          text, memory ? "ask for a smaller gpu.block, or run fewer tasks on a device" : "");
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
