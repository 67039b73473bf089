package mapreduce.harness.gpu;

import java.nio.ByteBuffer;

/**
 * The functions of the library ({@code kernels/harness_gpu.cu}), which registers them here when it is loaded.
 *
 * <p>Those that answer a code answer 0 for well; {@link #text} explains another one to the thread that got it.
 */
final class Native {
  private Native() {}

  static native String text();

  static native boolean isCuda();

  static native int count(int[] devices);

  static native int open(int ordinal, int threads, long limit, long[] device, double[] ns);

  static native void close(long device);

  static native String name(long device);

  static native double allocNs(long device);

  /** Native memory, or null. */
  static native ByteBuffer allocate(long device, long bytes, boolean pinned);

  static native void release(ByteBuffer buffer, boolean pinned);

  static native int memoryRate(long device, long bytes, double[] rate);

  static native int kmeans(
      long device, ByteBuffer points, long n, int dimensions, ByteBuffer centres, int k, ByteBuffer out, long[] bad,
      double[] ns);

  static native int sbs(
      long device, ByteBuffer frames, long n, int width, int height, int shifts, int radius, ByteBuffer depth,
      double[] ns);

  static native int matmul(long device, ByteBuffer pairs, long n, int tile, int repeats, ByteBuffer out, double[] ns);
}
