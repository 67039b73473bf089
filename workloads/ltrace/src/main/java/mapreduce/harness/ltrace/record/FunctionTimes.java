package mapreduce.harness.ltrace.record;

/**
 * Time of the functions, by stretches of records in which each read follows the function before.
 *
 * <p>The functions have what is left of a stretch beside reads and waits for the buffer: so no
 * record needs a sum of its own.
 */
final class FunctionTimes {

  private static long totalNs;

  private static long stretchStart; // 0: no stretch is open, and so no function runs
  private static long totalNsBefore;
  private static long readNsBefore;
  private static long blockedNsBefore;

  private FunctionTimes() {}

  /** Whether a function runs, between two reads. */
  static boolean isOpen() {
    return stretchStart != 0;
  }

  static void open(long start) {
    stretchStart = start;
    totalNsBefore = totalNs;
    readNsBefore = ReadTimes.totalNs();
    blockedNsBefore = CallTimes.blockedNs();
  }

  static void close(long now) {
    addUntil(now);
    stretchStart = 0;
  }

  /** Add up the functions' time until {@code now}, the boundary of a function and a read. */
  static void addUntil(long now) {
    if (stretchStart != 0) {
      long readNs = ReadTimes.totalNs() - readNsBefore;
      long blockedNs = CallTimes.blockedNs() - blockedNsBefore;
      totalNs = totalNsBefore + now - stretchStart - readNs - blockedNs;
    }
  }

  static void save(SpanFile file) {
    file.sum(Sum.MAP_ALONE_NS, Settings.REDUCE ? 0 : totalNs - SpillOverlap.functionNs());
    file.sum(Sum.REDUCE_NS, Settings.REDUCE ? totalNs : 0);
  }
}
