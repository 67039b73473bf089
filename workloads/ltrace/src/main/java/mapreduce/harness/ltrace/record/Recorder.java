package mapreduce.harness.ltrace.record;

/**
 * What the hooks in Hadoop's classes call.
 *
 * <p>Nothing here throws, locks, or allocates after a thread's first span. A span is known by its
 * slot, its place in the file; slot 0 stands for none, and calls with it do nothing.
 */
public final class Recorder {

  /** Whether spans are recorded; a constant, so that the compiler removes hooks that are off. */
  public static final boolean SPANS = Settings.SPANS;

  /** Whether this is the JVM of a reduce task. */
  public static final boolean REDUCE = Settings.REDUCE;

  /** Shorter waits are not recorded, in nanoseconds. */
  private static final long SHORTEST_WAIT_NS = 100_000;

  private static final SpanFile FILE = open();

  /** The span of the old interface's reduce loop, while it runs. */
  private static int oldLoopSlot;

  private Recorder() {}

  private static SpanFile open() {
    if (!SPANS) {
      return null;
    }
    try {
      SpanFile file = new SpanFile();
      Runtime.getRuntime().addShutdownHook(new Closing());
      return file;
    } catch (Throwable error) { // whatever it is, the task goes on
      warn(error);
      return null;
    }
  }

  /** The file, or {@code null}: nothing can be recorded. */
  static SpanFile file() {
    return FILE;
  }

  /** The one warning of a task whose tracing ends before it does. */
  static void warn(Throwable error) {
    System.err.println("ltrace: tracing of this task ends: " + error);
  }

  /** Keep what there is; the JVM ends. */
  static void close() {
    try {
      RecordLoop.save();
      UnitTimes.close();
      FILE.close();
    } catch (Throwable ignored) {
      // The JVM ends; what is in the file stays.
    }
  }

  // spans

  /** Begin a span of this thread; returns its slot. */
  public static int begin(int kind) {
    return begin(kind, null, false);
  }

  /** Begin a span with a text: 40 letters of it are kept. */
  public static int beginWithText(int kind, String text) {
    return begin(kind, text, false);
  }

  /** Begin a span with five numbers, all 0 until {@link #number} sets them. */
  public static int beginWithNumbers(int kind) {
    return begin(kind, null, true);
  }

  /** Begin the span of a copied map output. */
  public static int beginSegment(String map, long compressed, long raw, boolean onDisk) {
    int slot = begin(Kind.SEGMENT, map, true);
    if (slot != 0) {
      numberAt(slot + 2 * SpanFile.SLOT, compressed, raw, onDisk ? 1 : 0);
    }
    return slot;
  }

  private static int begin(int kind, String text, boolean numbers) {
    try {
      return FILE == null ? 0 : record(kind, text, numbers);
    } catch (Throwable error) { // never into the task
      return 0;
    }
  }

  private static int record(int kind, String text, boolean numbers) {
    int slot = Lane.current().take(FILE, 1 + (text == null ? 0 : 1) + (numbers ? 1 : 0));
    if (slot == 0) {
      return 0;
    }
    int next = slot + SpanFile.SLOT;
    if (text != null) {
      FILE.textSlot(next, text);
      next += SpanFile.SLOT;
    }
    if (numbers) {
      FILE.numbersSlot(next);
    }
    FILE.begin(slot, kind);
    return slot;
  }

  private static void numberAt(int place, long first, long second, long third) {
    try {
      FILE.number(place, 0, first);
      FILE.number(place, 1, second);
      FILE.number(place, 2, third);
    } catch (Throwable ignored) {
      // never into the task
    }
  }

  /** Set number {@code index} (0 to 4) of a span that began with numbers and no text. */
  public static void number(int slot, int index, long value) {
    if (slot != 0) {
      FILE.number(slot + SpanFile.SLOT, index, value);
    }
  }

  /** End a span of this thread; {@code failed}: by an exception. */
  public static void end(int slot, long amount, boolean failed) {
    if (slot == 0) {
      return;
    }
    try {
      FILE.end(slot, amount, failed);
      if (RecordLoop.isOwner()) {
        RecordLoop.save();
      }
    } catch (Throwable ignored) {
      // never into the task
    }
  }

  // the loop of the old interface's reduces

  /** Begin the loop, which has no method of its own. */
  static void beginOldLoop() {
    oldLoopSlot = begin(Kind.REDUCE_LOOP);
    RecordLoop.begin();
  }

  /** The loop is over, of either interface; ends the old one's span. */
  public static void endOldLoop() {
    RecordLoop.end();
    end(oldLoopSlot, RecordLoop.records(), false);
    oldLoopSlot = 0;
  }

  // waits and moments

  /** Now, in nanoseconds of this JVM's own clock. */
  public static long now() {
    return System.nanoTime();
  }

  /** CPU time of this thread in nanoseconds. */
  public static long cpu() {
    return Clocks.cpu();
  }

  /** A span from {@code start} to now, where that is more than a tenth of a millisecond. */
  public static void waited(int kind, long start, long cpuStart) {
    if (System.nanoTime() - start >= SHORTEST_WAIT_NS) {
      past(kind, start, cpuStart, 0);
    }
  }

  /** A span without duration. */
  public static void moment(int kind, long amount) {
    past(kind, System.nanoTime(), Clocks.cpu(), amount);
  }

  private static void past(int kind, long start, long cpuStart, long amount) {
    try {
      int slot = FILE == null ? 0 : Lane.current().take(FILE, 1);
      if (slot != 0) {
        FILE.past(slot, kind, start, cpuStart, amount);
      }
    } catch (Throwable ignored) {
      // never into the task
    }
  }

  // intermediate files

  /** This thread begins something whose intermediate files are to be counted. */
  public static void countFiles() {
    Lane.current().resetFiles();
  }

  /** This thread has closed an intermediate file. */
  public static void closedFile(long records, long compressedBytes) {
    Lane lane = Lane.current();
    lane.addFile(records, compressedBytes);
    if (lane.slotAwaitingSize != 0) {
      FILE.amount(lane.slotAwaitingSize, compressedBytes);
      lane.slotAwaitingSize = 0;
    }
  }

  /** Files that this thread closes from now on lie between the passes of a merge, or no more. */
  public static void betweenPasses(boolean between) {
    Lane.current().isBetweenPasses = between;
  }

  /** Set the numbers of a merge: what was written since {@link #countFiles}. */
  public static void numberFiles(int slot) {
    Lane lane = Lane.current();
    number(slot, 0, lane.records);
    number(slot, 1, lane.bytes);
    number(slot, 2, lane.betweenRecords);
    number(slot, 3, lane.betweenBytes);
  }

  /** Records in the files that this thread has closed since {@link #countFiles}. */
  public static long recordsWritten() {
    return Lane.current().records;
  }

  /** Compressed bytes of the files that this thread has closed since {@link #countFiles}. */
  public static long bytesWritten() {
    return Lane.current().bytes;
  }

  /** The span in {@code slot} gets the size of the file that this thread closes next. */
  public static void awaitSize(int slot) {
    Lane.current().slotAwaitingSize = slot;
  }

  // spills

  /** Begin spill {@code number} of {@code records} records of the sort buffer. */
  public static int beginSpill(long records, int number) {
    Lane.current().resetFiles();
    int slot = begin(Kind.SPILL, null, true);
    number(slot, 0, records);
    number(slot, 2, number);
    SpillOverlap.begin();
    return slot;
  }

  /** End a spill. */
  public static void endSpill(int slot, long records, boolean failed) {
    SpillOverlap.end();
    number(slot, 1, bytesWritten());
    number(slot, 3, SpillOverlap.recordsRead());
    number(slot, 4, SpillOverlap.recordsCollected());
    end(slot, records, failed);
  }
}
