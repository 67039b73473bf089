package mapreduce.harness.ltrace.record;

/** Calls of the functions that collect or write: all are counted, some or all are timed. */
public final class CallTimes {

  // Calls are timed at random distances of 33 to 96, 64 in the mean: a fixed one would meet the
  // same records, and their stalls, in every task.
  private static final int LEAST_GAP = 33;
  private static final int GAPS = 64;
  private static final int MEAN_GAP = LEAST_GAP - 1 + GAPS / 2;

  private static long calls;
  private static long sampledNs;
  private static long samples;
  private static long exactNs;
  private static int callsUntilSample = RandomGap.next(LEAST_GAP, GAPS);

  private static long blockedNs;
  private static long blockedWaits;
  private static long blockedNsAtBegin;

  private CallTimes() {}

  /** A collect or a write begins. Returns the time, or 0: it is not timed. */
  public static long begin() {
    calls++;
    if (!Settings.EXACT_WRITES && --callsUntilSample != 0) {
      return 0;
    }
    blockedNsAtBegin = blockedNs;
    return System.nanoTime();
  }

  /** The call that began at {@code start} ends; 0: it is not timed. */
  public static void end(long start) {
    if (start == 0) {
      return;
    }
    long tookNs = System.nanoTime() - start - (blockedNs - blockedNsAtBegin);
    if (Settings.EXACT_WRITES) {
      exactNs += tookNs;
    } else {
      sampledNs += tookNs;
      samples++;
      callsUntilSample = RandomGap.next(LEAST_GAP, GAPS);
    }
  }

  /** The loop's thread has waited {@code ns} for room in the buffer. */
  static void addBlocked(long ns) {
    blockedNs += ns;
    blockedWaits++;
  }

  static long blockedNs() {
    return blockedNs;
  }

  static long calls() {
    return calls;
  }

  static void save(SpanFile file) {
    file.sum(Sum.CALLS, calls);
    file.sum(Sum.SAMPLED_CALL_NS, sampledNs);
    file.sum(Sum.CALL_SAMPLES, samples);
    file.sum(Sum.EXACT_CALL_NS, exactNs);
    file.sum(Sum.BLOCKED_NS, blockedNs);
    file.sum(Sum.BLOCKED_WAITS, blockedWaits);
    file.sum(Sum.MEAN_CALL_GAP, MEAN_GAP);
  }
}
