package mapreduce.harness.gpu;

import java.nio.ByteBuffer;

/**
 * The functions of the library ({@code kernels/harness_gpu.cu}), which registers them here when it
 * is loaded.
 *
 * <p>Those that answer a code answer 0 for well; {@link #text} explains another one to the thread
 * that got it.
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

  static native int upload(long device, ByteBuffer block, long bytes, double[] ns);

  static native int download(long device, ByteBuffer results, long bytes, double[] ns);

  static native int kmeans(
      long device, long n, int dimensions, ByteBuffer centres, int k, double[] ns);

  static native int sbs(
      long device, long n, int width, int height, int shifts, int radius, double[] ns);

  static native int matmul(long device, long n, int tile, int repeats, double[] ns);
}
