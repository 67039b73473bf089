package mapreduce.harness.ltrace.record;

/**
 * Time of the loop's reads, of which some are timed and stand for the others.
 *
 * <p>What readers wait for, refills of their buffers, is seldom, so each is timed.
 */
public final class ReadTimes {

  /** What a read takes beyond this is added once and never stands for other reads. */
  private static final long LONGEST_USUAL_NS = 20_000;

  private static long totalNs;
  private static long samples;
  private static long usualNs; // of the last timed read, without its fills

  private static boolean isReading;
  private static long fills;
  private static long fillNs;
  private static long fillNsInSample;
  private static long fillNsSinceSample; // with those in the current read

  private ReadTimes() {}

  static void begin() {
    isReading = true;
  }

  /** The current read is to be timed. */
  static void beginSample() {
    fillNsInSample = 0;
  }

  static void end() {
    isReading = false;
  }

  /** A reader waits for its source. Returns the time, or 0: no read of the loop waits. */
  public static long fillBegins() {
    return isReading && RecordLoop.isOwner() ? System.nanoTime() : 0;
  }

  /** The fill that began at {@code start} ends. */
  public static void fillEnds(long start) {
    if (start != 0) {
      long tookNs = System.nanoTime() - start;
      fillNsInSample += tookNs;
      fillNsSinceSample += tookNs;
      fillNs += tookNs;
      fills++;
    }
  }

  /** Add a timed read, which stands for the {@code unsampled} ones before it. */
  static void addSample(long tookNs, long unsampled) {
    long ownNs = tookNs - fillNsInSample;
    usualNs = ownNs < LONGEST_USUAL_NS ? ownNs : LONGEST_USUAL_NS;
    totalNs += ownNs;
    samples++;
    addUnsampled(unsampled);
  }

  /** Add the timed read that found no record, so that it stands for no other. */
  static void addLast(long tookNs, long unsampled) {
    totalNs += tookNs - fillNsInSample;
    samples++;
    addUnsampled(unsampled);
  }

  /** Add reads that were not timed, and all fills since the last sample. */
  static void addUnsampled(long reads) {
    totalNs += fillNsSinceSample + usualNs * reads;
    fillNsSinceSample = 0;
  }

  static long totalNs() {
    return totalNs;
  }

  static void save(SpanFile file) {
    file.sum(Sum.READ_NS, totalNs);
    file.sum(Sum.READ_SAMPLES, samples);
    file.sum(Sum.FILLS, fills);
    file.sum(Sum.FILL_NS, fillNs);
  }
}
