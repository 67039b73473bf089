package mapreduce.harness.ltrace.record;

/**
 * The loop over records: how many there are, which reads are timed, and a histogram of durations.
 *
 * <p>A record lasts from the entry of its read to the entry of the next. Its read ends with the
 * exit; the rest is the function's, with what it collects or writes. One thread at a time runs the
 * loop; {@link ReadTimes}, {@link FunctionTimes}, {@link CallTimes}, {@link SpillOverlap} and
 * {@link UnitTimes} add up its parts.
 *
 * <p>The sum of read and function is always exact. Their shares are exact, too, where records take
 * so long that reading the clock twice is negligible, while a spill runs, and where units are
 * recorded. Of shorter records one read in eight or so is timed and stands for those since the last
 * one; what readers wait for, and what a read takes beyond the usual, is added as it is and never
 * scaled.
 */
public final class RecordLoop {

  private static final SpanFile FILE = Recorder.file();

  /** Reading the clock twice is half a percent of a record of this length. */
  private static final long SHORT_RECORD_NS = 10_000;

  /** Of short records one read in 1 to 16 is timed. */
  private static final int MOST_READS_PER_SAMPLE = 16;

  /** The sums are saved after as many records (a power of two), or after as long. */
  private static final int RECORDS_PER_SAVE = 1024;

  private static final long NS_PER_SAVE = 1_000_000_000;

  private static final int DOUBLE_FRACTION_BITS = 52;
  private static final int DOUBLE_EXPONENT_BIAS = 1023;

  // Plain fields, here and in the classes of the parts: one thread writes them. Another one reads
  // them for the numbers of a spill, and may see them late.
  private static Thread owner;
  private static long records;
  private static long savedAt;

  /** How many records took 2^index ns or more, and less than twice that. */
  private static final long[] HISTOGRAM = new long[64];

  private static int readsUntilSample = 1;
  private static long lastSampleAt;
  private static long recordsAtLastSample;

  private RecordLoop() {}

  /** The loop begins in this thread, and with it the first unit. */
  public static void begin() {
    owner = Thread.currentThread();
    if (Settings.UNITS && FILE != null) {
      UnitTimes.begin();
    }
  }

  /** A read begins, which ends the record before. Returns the time, or 0: it is not timed. */
  public static long readBegins() {
    ReadTimes.begin();
    boolean spillHasChanged = SpillOverlap.hasChanged();
    if (--readsUntilSample > 0 && !spillHasChanged) {
      return 0;
    }
    ReadTimes.beginSample();
    long now = System.nanoTime();
    if (spillHasChanged) {
      SpillOverlap.functionEnds(now);
    }
    return now;
  }

  /** The read that began at {@code start} ends; {@code hasRecord}: there was one more record. */
  public static void readEnds(long start, boolean hasRecord) {
    ReadTimes.end();
    if (start != 0) {
      long now = System.nanoTime();
      if (hasRecord) {
        sampledReadEnds(start, now);
      } else {
        ReadTimes.addLast(now - start, FunctionTimes.isOpen() ? recordsEnd(start) - 1 : 0);
        closeStretch(now);
      }
    } else if (!hasRecord) {
      lastRecordEnds(System.nanoTime());
    } else if ((++records & RECORDS_PER_SAVE - 1) == 0) {
      FunctionTimes.addUntil(System.nanoTime());
      save();
    }
  }

  private static void sampledReadEnds(long start, long now) {
    if (FunctionTimes.isOpen()) {
      ReadTimes.addSample(now - start, recordsEnd(start) - 1);
    } else {
      FunctionTimes.open(start);
      ReadTimes.addSample(now - start, 0);
    }
    if (SpillOverlap.hasChanged()) {
      SpillOverlap.readEnds(now);
    }
    lastSampleAt = start;
    recordsAtLastSample = records++;
    if ((records & RECORDS_PER_SAVE - 1) == 0 || now - savedAt > NS_PER_SAVE) {
      savedAt = now;
      FunctionTimes.addUntil(now);
      save();
    }
  }

  /** The records since the last sample end. Returns how many, and draws when to sample next. */
  private static long recordsEnd(long now) {
    long ended = records - recordsAtLastSample;
    long meanNs = ended == 1 ? now - lastSampleAt : (now - lastSampleAt) / ended;
    HISTOGRAM[log2(meanNs | 1)] += ended;
    if (Settings.UNITS) {
      readsUntilSample = 1;
      UnitTimes.recordEnds(now);
    } else {
      readsUntilSample = meanNs < SHORT_RECORD_NS ? RandomGap.next(1, MOST_READS_PER_SAMPLE) : 1;
    }
    return ended;
  }

  /** By the exponent of a double: the compiler of tasks has no instruction for leading zeros. */
  private static int log2(long positive) {
    return (int) (Double.doubleToRawLongBits(positive) >> DOUBLE_FRACTION_BITS)
        - DOUBLE_EXPONENT_BIAS;
  }

  private static void lastRecordEnds(long now) {
    if (FunctionTimes.isOpen()) {
      ReadTimes.addUnsampled(recordsEnd(now) - 1);
    }
    closeStretch(now);
  }

  private static void closeStretch(long now) {
    FunctionTimes.close(now);
    readsUntilSample = 1; // the first read of a stretch is where its time begins
  }

  /** There are no more records: the last one's function has ended, if it was still running. */
  public static void end() {
    if (FunctionTimes.isOpen()) {
      long now = System.nanoTime();
      if (SpillOverlap.hasChanged()) {
        SpillOverlap.functionEnds(now);
      }
      lastRecordEnds(now);
    }
  }

  /** Input records read so far. */
  static long records() {
    return records;
  }

  /** Whether this thread runs the loop. */
  static boolean isOwner() {
    return Thread.currentThread() == owner;
  }

  /** Write the sums into the file. */
  public static void save() {
    if (FILE == null) {
      return;
    }
    FILE.sum(Sum.RECORDS, records);
    ReadTimes.save(FILE);
    FunctionTimes.save(FILE);
    CallTimes.save(FILE);
    SpillOverlap.save(FILE);
    UnitTimes.save(FILE);
    FILE.histogram(HISTOGRAM);
  }
}
