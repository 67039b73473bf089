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
   * @param name what it is; ASCII, 40 letters are kept
   * @return what {@link #end} wants
   */
  public static long begin(String name) {
    try {
      return Recorder.SPANS ? Recorder.beginWithText(Kind.WORKLOAD, name) : 0;
    } catch (Throwable why) { // never into the task
      return 0;
    }
  }

  /**
   * End a span.
   *
   * @param slot what {@link #begin} has answered
   * @param amount bytes or whatever the span counts
   */
  public static void end(long slot, long amount) {
    if (slot != 0) {
      Recorder.end((int) slot, amount, false);
    }
  }
}
