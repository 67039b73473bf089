package mapreduce.harness.gpu;

/**
 * Counters of the tasks that used a device; times are nanoseconds on the device's own clock.
 *
 * <p>A job's counter is the sum over its tasks: a mean is the sum over {@link #DEVICE_CUDA} or
 * {@link #DEVICE_CPU}.
 */
public enum Device {
  /** Copies of blocks to the device. */
  H2D_NS,
  /** Kernels on blocks. */
  KERNEL_NS,
  /** Copies of results to the host. */
  D2H_NS,
  /**
   * Loading the library, starting the driver and making the device's context, once for each task;
   * the host's clock.
   */
  OPEN_NS,
  /** Memory, on the device and pinned. */
  ALLOC_NS,
  /** Blocks that the device worked on. */
  BLOCKS,
  /** Bytes of blocks copied to the device. */
  BYTES_IN,
  /** Bytes of results copied to the host. */
  BYTES_OUT,
  /** Tasks that worked on a CUDA device. */
  DEVICE_CUDA,
  /** Tasks that worked on the processor instead. */
  DEVICE_CPU,
  /**
   * Bytes per second at which the device reads its memory: the sum over tasks, each of which
   * measured it once.
   */
  MEM_READ_BPS
}
