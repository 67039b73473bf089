package mapreduce.harness.ltrace.record;

import java.io.IOException;

/**
 * The loop over records: sums of read and function, sampled ones of collect or write, a histogram,
 * and the durations of units.
 *
 * <p>A record lasts from the entry of its read to the entry of the next. Its read ends with the
 * exit; the rest is the function's, with what it collects or writes. One thread at a time runs the
 * loop.
 *
 * <p>The sum of read and function is exact always. What is whose is exact, too, where records take
 * so long that two looks at the clock are nothing beside them, while a spill runs, and where units
 * are recorded. Of shorter records one read in eight or so is timed and stands for those since the
 * last; what readers wait for, and what a read takes beyond the usual, is counted as it is, never
 * scaled.
 */
public final class RecordLoop {

  private static final SpanFile FILE = Recorder.file();
  private static final long ANCHOR = FILE == null ? 0 : FILE.anchor;
  private static final int DOUBLE_FRACTION = 52; // bits
  private static final int DOUBLE_BIAS = 1023;
  private static final int SAVED_EACH = 1024; // records
  private static final long SAVED_AFTER = 1_000_000_000; // nanoseconds
  private static final int LEAST_GAP = 33;
  private static final int GAPS = 64; // of 33 to 96 calls, 64 in the mean
  private static final int SKIPS = 16; // a look at one read in 1 to 16 of short records
  private static final long SHORT = 10_000; // nanoseconds; two looks are half a percent of it
  private static final long USUAL = 20_000; // nanoseconds of a read; what is beyond is not scaled

  // Plain fields of one thread; others read them for a spill's details, and see them late at worst.
  private static long records;
  private static long readNs;
  private static long readMeanwhileNs;
  private static long functionNs;
  private static long aloneNs;
  private static long meanwhileNs;
  private static long meanwhile;
  private static long calls;
  private static long callNs;
  private static long samples;
  private static long exactNs;
  private static long blockedNs;
  private static long blocks;
  private static long units;
  private static final long[] HISTOGRAM = new long[64];

  private static Thread owner;
  private static long savedAt;

  // A stretch of records, one read right after the other's function. What was neither read nor
  // blocked of it is the functions', so that they need no sum of their own at each record.
  private static long stretch; // its begin; 0: none
  private static long stretchReadNs; // of earlier stretches
  private static long stretchBlockedNs;
  private static long stretchFunctionNs;
  private static boolean running; // a function runs

  // The last read whose begin was looked at, and how long it usually takes.
  private static long lookedAt;
  private static long recordsAtLook;
  private static long looks;
  private static long usual;
  private static int skip = 1; // reads until the next look

  // What readers wait for: refills of their buffers, which are few, so each is timed.
  private static boolean reading;
  private static long fillInReadNs;
  private static long fillSinceLookNs;
  private static long fillNs;
  private static long fills;

  // How far the clock of spills and the blocked time had come where read and function last met.
  private static long spillingThen;
  private static long blockedThen;
  private static long blockedAtCall;

  // A fixed gap would meet the same records, and their stalls, in every task.
  private static int random = (int) System.nanoTime() | 1;
  private static int gap = nextGap();

  private static UnitFile unitFile;
  private static int inUnit;
  private static long unitStart;

  /**
   * Time during which a spill thread has been at work, up to its last change: at least 0 while none
   * is; while one is, that time less the spill's begin (both since the anchor), which is below 0.
   */
  private static volatile long spilling;

  // One spill runs at a time.
  private static long recordsAtSpill;
  private static long callsAtSpill;

  private RecordLoop() {}

  // the loop

  /** The loop begins; so does its first unit. */
  public static void begin() {
    owner = Thread.currentThread();
    if (Settings.UNITS && FILE != null && unitFile == null) {
      openUnits();
    }
    unitStart = System.nanoTime();
  }

  private static void openUnits() {
    try {
      unitFile = new UnitFile();
    } catch (IOException why) {
      FILE.giveUp(why);
    }
  }

  /** A read begins, which ends the record before. Answers the time, or 0: it is not looked at. */
  public static long readBegins() {
    reading = true;
    fillInReadNs = 0;
    if (--skip > 0 && spilling == spillingThen) {
      return 0;
    }
    long now = System.nanoTime();
    if (spilling != spillingThen) {
      functionMet(now);
    }
    return now;
  }

  /** The read that began at {@code start} ends; {@code more}: it has read a record. */
  public static void readEnds(long start, boolean more) {
    reading = false;
    if (start != 0) {
      lookedRead(start, System.nanoTime(), more);
    } else if (!more) {
      loopEnds(System.nanoTime());
    } else if ((++records & SAVED_EACH - 1) == 0) {
      settle(System.nanoTime());
      save();
    }
  }

  private static void lookedRead(long start, long now, boolean more) {
    if (!more) {
      if (running) {
        lastReads(fillSinceLookNs - fillInReadNs, recordsEnd(start) - 1);
      }
      stretchEnds(start);
      readNs += now - start;
      looks++;
      return;
    }
    if (!running) {
      stretchBegins(start);
    }
    countReads(now - start, running ? recordsEnd(start) : 1);
    if (spilling != spillingThen) {
      readMeanwhileNs += spilled(now);
    }
    running = true;
    lookedAt = start;
    recordsAtLook = records++;
    if ((records & SAVED_EACH - 1) == 0 || now - savedAt > SAVED_AFTER) {
      savedAt = now;
      settle(now);
      save();
    }
  }

  /** The records since the last look have ended. Answers how many; says when to look again. */
  private static long recordsEnd(long now) {
    long ended = records - recordsAtLook;
    long each = ended == 1 ? now - lookedAt : (now - lookedAt) / ended;
    HISTOGRAM[log2(each | 1)] += ended;
    skip = each < SHORT && !Settings.UNITS ? nextSkip() : 1;
    if (Settings.UNITS && ++inUnit == Settings.UNIT) {
      unitEnds(now);
    }
    return ended;
  }

  /** A read was looked at: it stands for {@code reads}, of which it is the last. */
  private static void countReads(long took, long reads) {
    long own = took - fillInReadNs;
    usual = own < USUAL ? own : USUAL;
    readNs += fillSinceLookNs + own + usual * (reads - 1);
    fillSinceLookNs = 0;
    looks++;
  }

  /** The last {@code reads} were not looked at; {@code fill}: what they waited for. */
  private static void lastReads(long fill, long reads) {
    readNs += fill + usual * reads;
    fillSinceLookNs = 0;
  }

  private static void loopEnds(long now) {
    if (running) {
      lastReads(fillSinceLookNs, recordsEnd(now) - 1);
    }
    stretchEnds(now);
  }

  /** There are no more records: the last one's function has ended, where it still ran. */
  public static void end() {
    if (running) {
      long now = System.nanoTime();
      if (spilling != spillingThen) {
        functionMet(now);
      }
      loopEnds(now);
    }
  }

  /** A reader waits for its source. Answers the time, or 0: no read of the loop waits. */
  public static long fillBegins() {
    return reading && Thread.currentThread() == owner ? System.nanoTime() : 0;
  }

  /** What began at {@code start} ends. */
  public static void fillEnds(long start) {
    if (start != 0) {
      long took = System.nanoTime() - start;
      fillInReadNs += took;
      fillSinceLookNs += took;
      fillNs += took;
      fills++;
    }
  }

  private static void stretchBegins(long start) {
    skip = 1;
    stretch = start;
    stretchReadNs = readNs;
    stretchBlockedNs = blockedNs;
    stretchFunctionNs = functionNs;
  }

  private static void stretchEnds(long now) {
    settle(now);
    stretch = 0;
    running = false;
  }

  /** Sum up the functions' time until {@code now}, where read and function meet. */
  private static void settle(long now) {
    if (stretch != 0) {
      long others = readNs - stretchReadNs + blockedNs - stretchBlockedNs;
      functionNs = stretchFunctionNs + now - stretch - others;
      aloneNs = functionNs - meanwhileNs;
    }
  }

  /** By the exponent of a double: the compiler of tasks knows no instruction for leading zeros. */
  private static int log2(long positive) {
    return (int) (Double.doubleToRawLongBits(positive) >> DOUBLE_FRACTION) - DOUBLE_BIAS;
  }

  /** A function has ended that a spill has met; the buffer blocks only while a spill runs. */
  private static void functionMet(long now) {
    long blocked = blockedNs - blockedThen;
    blockedThen = blockedNs;
    long during = spilled(now) - blocked;
    if (running && during > 0) {
      meanwhileNs += during;
      meanwhile++;
    }
  }

  /** Time during which spills have run since read and function last met. */
  private static long spilled(long now) {
    long clock = spilling(now);
    long since = clock - spillingThen;
    spillingThen = clock;
    return since;
  }

  private static void unitEnds(long now) {
    inUnit = 0;
    if (unitFile == null) {
      return;
    }
    try {
      unitFile.write(now - unitStart);
      units++;
      unitStart = now;
    } catch (IOException why) {
      unitFile = null;
      FILE.giveUp(why);
    }
  }

  // collect and write

  /** A collect or a write begins. Answers the time where this call is measured, else 0. */
  public static long callBegins() {
    calls++;
    if (!Settings.EXACT_WRITES && --gap != 0) {
      return 0;
    }
    blockedAtCall = blockedNs;
    return System.nanoTime();
  }

  /** The call that began at {@code start} ends; 0: it is not measured. */
  public static void callEnds(long start) {
    if (start == 0) {
      return;
    }
    long took = System.nanoTime() - start - (blockedNs - blockedAtCall);
    if (Settings.EXACT_WRITES) {
      exactNs += took;
    } else {
      callNs += took;
      samples++;
      gap = nextGap();
    }
  }

  private static int nextGap() {
    return LEAST_GAP + (nextRandom() & GAPS - 1);
  }

  private static int nextSkip() {
    return 1 + (nextRandom() & SKIPS - 1);
  }

  private static int nextRandom() {
    random ^= random << 13;
    random ^= random >>> 17;
    random ^= random << 5;
    return random;
  }

  /** The loop's thread has waited {@code ns} for room in the buffer. */
  static void blocked(long ns) {
    blockedNs += ns;
    blocks++;
  }

  // spills

  /** Input records read so far. */
  static long read() {
    return records;
  }

  /** Input records read since the spill began. */
  static long readMeanwhile() {
    return records - recordsAtSpill;
  }

  /** Records collected since the spill began. */
  static long collectedMeanwhile() {
    return calls - callsAtSpill;
  }

  static void spillBegins() {
    recordsAtSpill = records;
    callsAtSpill = calls;
    spilling = spilling - (System.nanoTime() - ANCHOR);
  }

  static void spillEnds() {
    spilling = spilling(System.nanoTime());
  }

  /** Time during which spills have run until now. */
  private static long spilling(long now) {
    long clock = spilling;
    return clock >= 0 ? clock : clock + now - ANCHOR;
  }

  // keeping

  /** Write the sums into the file, where this thread runs the loop. */
  static void saveMine() {
    if (Thread.currentThread() == owner) {
      save();
    }
  }

  /** Write the sums into the file. */
  public static void save() {
    if (FILE == null) {
      return;
    }
    FILE.sum(0, records);
    FILE.sum(1, readNs);
    FILE.sum(2, Settings.REDUCE ? 0 : aloneNs);
    FILE.sum(3, meanwhileNs);
    FILE.sum(4, meanwhile);
    FILE.sum(5, calls);
    FILE.sum(6, callNs);
    FILE.sum(7, samples);
    FILE.sum(8, exactNs);
    FILE.sum(9, units);
    FILE.sum(10, inUnit);
    FILE.sum(11, blockedNs);
    FILE.sum(12, blocks);
    FILE.sum(13, unitFile == null ? 0 : unitFile.size());
    FILE.sum(14, LEAST_GAP - 1 + GAPS / 2);
    FILE.sum(15, Settings.REDUCE ? functionNs : 0);
    FILE.sum(16, readMeanwhileNs);
    FILE.sum(17, looks);
    FILE.sum(18, fills);
    FILE.sum(19, fillNs);
    FILE.histogram(HISTOGRAM);
  }

  static void closeUnits() throws IOException {
    if (unitFile != null) {
      unitFile.cut();
    }
  }
}
