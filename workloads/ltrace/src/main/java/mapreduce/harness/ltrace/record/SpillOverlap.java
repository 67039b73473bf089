package mapreduce.harness.ltrace.record;

/**
 * How much of the loop ran while a spill did. One spill runs at a time, in a thread of its own; the
 * loop's thread looks at the boundaries of read and function how far the spills have come.
 */
final class SpillOverlap {

  private static final SpanFile FILE = Recorder.file();
  private static final long ANCHOR = FILE == null ? 0 : FILE.anchor;

  /**
   * Time during which spills have run, up to the last change. It is 0 or more while none runs;
   * while one runs it is that time less the begin of the spill since the anchor, which is below 0.
   */
  private static volatile long spillClock;

  private static long spillNsAtBoundary;
  private static long blockedNsAtBoundary;

  private static long functionNs;
  private static long functions;
  private static long readNs;

  private static long recordsAtBegin;
  private static long callsAtBegin;

  private SpillOverlap() {}

  // called by the thread that spills

  static void begin() {
    recordsAtBegin = RecordLoop.records();
    callsAtBegin = CallTimes.calls();
    spillClock = spillClock - (System.nanoTime() - ANCHOR);
  }

  static void end() {
    spillClock = spillNs(System.nanoTime());
  }

  /** Input records read since the spill began. */
  static long recordsRead() {
    return RecordLoop.records() - recordsAtBegin;
  }

  /** Records collected since the spill began. */
  static long recordsCollected() {
    return CallTimes.calls() - callsAtBegin;
  }

  // called by the thread of the loop

  /** Whether a spill runs, or has run since the last boundary. */
  static boolean hasChanged() {
    return spillClock != spillNsAtBoundary;
  }

  /** A function, if one runs, ends; the buffer blocks it only while a spill runs. */
  static void functionEnds(long now) {
    long blockedNs = CallTimes.blockedNs() - blockedNsAtBoundary;
    blockedNsAtBoundary = CallTimes.blockedNs();
    long overlapNs = spillNsSinceBoundary(now) - blockedNs;
    if (FunctionTimes.isOpen() && overlapNs > 0) {
      functionNs += overlapNs;
      functions++;
    }
  }

  static void readEnds(long now) {
    readNs += spillNsSinceBoundary(now);
  }

  private static long spillNsSinceBoundary(long now) {
    long before = spillNsAtBoundary;
    spillNsAtBoundary = spillNs(now);
    return spillNsAtBoundary - before;
  }

  /** Time during which spills have run until now. */
  private static long spillNs(long now) {
    long clock = spillClock;
    return clock >= 0 ? clock : clock + now - ANCHOR;
  }

  static long functionNs() {
    return functionNs;
  }

  static void save(SpanFile file) {
    file.sum(Sum.MAP_SPILLING_NS, functionNs);
    file.sum(Sum.MAPS_SPILLING, functions);
    file.sum(Sum.READ_SPILLING_NS, readNs);
  }
}
