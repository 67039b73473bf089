package mapreduce.harness.ltrace.record;

/**
 * Which number of the file's sums is which. The reader, {@code harness/observe/parsing/ltrace.py},
 * has the same order. Constants, not an enum: a task loads nothing for them.
 */
final class Sum {

  static final int RECORDS = 0;
  static final int READ_NS = 1;

  /** Of a map: functions while no spill runs, and while one does. */
  static final int MAP_ALONE_NS = 2;

  static final int MAP_SPILLING_NS = 3;

  /** Functions of which some part ran while a spill did. */
  static final int MAPS_SPILLING = 4;

  /** Calls of collect or write. */
  static final int CALLS = 5;

  static final int SAMPLED_CALL_NS = 6;
  static final int CALL_SAMPLES = 7;

  /** All calls, where each is timed. */
  static final int EXACT_CALL_NS = 8;

  static final int UNITS = 9;
  static final int RECORDS_IN_LAST_UNIT = 10;

  /** Waiting for room in the buffer. */
  static final int BLOCKED_NS = 11;

  static final int BLOCKED_WAITS = 12;
  static final int UNIT_FILE_BYTES = 13;
  static final int MEAN_CALL_GAP = 14;

  /** Of a reduce: its functions, with their writes. */
  static final int REDUCE_NS = 15;

  static final int READ_SPILLING_NS = 16;
  static final int READ_SAMPLES = 17;

  /** Waits of readers for their source. */
  static final int FILLS = 18;

  static final int FILL_NS = 19;

  private Sum() {}
}
