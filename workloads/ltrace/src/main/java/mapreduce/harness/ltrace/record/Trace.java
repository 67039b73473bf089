package mapreduce.harness.ltrace.record;

/**
 * Spans of a workload: what a job's own code does, beside the phases of Hadoop.
 *
 * <pre>{@code
 * long slot = Trace.begin("host to device");
 * try {
 *     copy(buffer);
 * } finally {
 *     Trace.end(slot, buffer.remaining());
 * }
 * }</pre>
 *
 * <p>Nothing happens where the task is not traced. A span begins and ends on one thread.
 */
public final class Trace {

  private Trace() {}

  /**
   * Begin a span.
   *
   * @param name what it is; ASCII, of which 40 characters are kept
   * @return the slot that {@link #end} needs
   */
  public static long begin(String name) {
    try {
      return Recorder.SPANS ? Recorder.beginWithText(Kind.WORKLOAD, name) : 0;
    } catch (Throwable error) { // never into the task
      return 0;
    }
  }

  /**
   * End a span.
   *
   * @param slot what {@link #begin} returned
   * @param amount bytes or whatever the span counts
   */
  public static void end(long slot, long amount) {
    if (slot != 0) {
      Recorder.end((int) slot, amount, false);
    }
  }
}
