package mapreduce.harness.ltrace.record;

/**
 * What a span is. Constants, not an enum: a task loads nothing for them.
 *
 * <p>Readers have the same table, {@code harness/base/records/tasks.py};
 * tests/parsing/test_ltrace.py compares them.
 */
public final class Kind {

  /** All of {@code YarnChild.main}. */
  public static final int MAIN = 1;

  /** {@code MapTask.run}, {@code ReduceTask.run}. */
  public static final int TASK = 2;

  public static final int RUN_MAPPER = 3;
  public static final int READER_OPEN = 4;
  public static final int COLLECTOR_OPEN = 5;

  /** From the first record to the last, with the mapper's set-up and clean-up. */
  public static final int MAP_LOOP = 6;

  public static final int READER_CLOSE = 7;
  public static final int COLLECTOR_CLOSE = 8;
  public static final int FLUSH = 9;

  /** Waiting for room in the full sort buffer. */
  public static final int BLOCKED = 10;

  /** One spill; amount and first number: its records. */
  public static final int SPILL = 11;

  /** Amount: records. */
  public static final int SORT = 12;

  public static final int COMBINE = 13;

  /**
   * The map side's merge; amount: spills; numbers, as of all merges: records and compressed bytes
   * written at its end, records and bytes of files between its passes.
   */
  public static final int MERGE = 14;

  /** One file of a merge; amount: its compressed bytes. */
  public static final int WRITE_FILE = 15;

  public static final int DONE = 16;
  public static final int COMMIT = 17;
  public static final int SPILL_SINGLE = 18;

  /** Intermediate passes of one merge, up to its last, lazy one; amount: segments. */
  public static final int MERGE_PASS = 19;

  /** Reading the files of a configuration. */
  public static final int CONFIGURATION = 20;

  public static final int METRICS = 21;

  /** User and credentials of the task. */
  public static final int LOGIN = 22;

  /** Requesting the task from the application master; connects to it. */
  public static final int GET_TASK = 23;

  /** {@code YarnChild.configureTask}: the three that follow, and the distributed cache. */
  public static final int CONFIGURE_TASK = 24;

  public static final int LOCAL_FOLDERS = 25;

  /** Writing the task's own job.xml. */
  public static final int JOB_FILE = 26;

  /** Making a file system; text: its scheme. */
  public static final int FILE_SYSTEM = 27;

  /** {@code Task.initialize}: the output's format and committer. */
  public static final int INITIALIZE = 28;

  /** Reading the map's part of the input. */
  public static final int SPLIT = 29;

  public static final int SHUFFLE = 30;

  /** Requesting map outputs; amount: new ones. */
  public static final int EVENTS = 31;

  /** One connection to a host, with what it copies. */
  public static final int VISIT = 32;

  public static final int CONNECT = 33;

  /** One map output; amount: its compressed bytes. */
  public static final int SEGMENT = 34;

  public static final int WAIT_MEMORY = 35;

  /** A moment: no memory for a segment; amount: the bytes requested. */
  public static final int STALL = 36;

  /** Amount: segments, as in the three that follow. */
  public static final int MEMORY_MERGE = 37;

  public static final int DISK_MERGE = 38;
  public static final int CLOSE_MERGES = 39;
  public static final int FINAL_MERGE = 40;
  public static final int RUN_REDUCER = 41;
  public static final int WRITER_CLOSE = 42;
  public static final int REDUCE_COMBINE = 43;

  /** The reducer's loop, with its set-up and clean-up. */
  public static final int REDUCE_LOOP = 44;

  /** Opening the output of a reduce, or of a map without reduces. */
  public static final int WRITER_OPEN = 45;

  public static final int SHUFFLE_OPEN = 46;

  /** What follows the task in its JVM: connection, metrics and logs are closed. */
  public static final int SHUT_DOWN = 47;

  /** A span of a workload, which names it. */
  public static final int WORKLOAD = 100;

  /** 40 bytes of text that belong to the span before. */
  public static final int TEXT = -1;

  /** Five numbers that belong to the span before. */
  public static final int NUMBERS = -2;

  private Kind() {}
}
