package mapreduce.harness.ltrace.record;

import java.io.File;

/**
 * Settings of the tracer on the command line of the task; constants, so that the compiler removes
 * what is off.
 */
final class Settings {

  /** Record spans and the sums of the record loop. */
  static final boolean SPANS = mode() > 0;

  /** Record the duration of every {@link #UNIT} records, too. */
  static final boolean UNITS = mode() > 1;

  /** Records of a unit. */
  static final int UNIT = Math.max(1, Integer.getInteger("ltrace.unit", 5));

  /** Attempt whose JVM this is. */
  static final String TASK = System.getProperty("ltrace.task", "");

  /** Reads of a combiner look like those of a reduce; so only reduce tasks count them. */
  static final boolean REDUCE = TASK.contains("_r_");

  /** Time every write of a reduce, not a sample of them: two more looks at the clock a record. */
  static final boolean EXACT_WRITES = REDUCE && "exact".equals(System.getProperty("ltrace.writes"));

  private Settings() {}

  /** 0 off, 1 spans, 2 units. */
  private static int mode() {
    String mode = System.getProperty("ltrace", "off");
    return mode.equals("units") ? 2 : mode.equals("spans") ? 1 : 0;
  }

  /** A file in the log folder of the container. */
  static File file(String name) {
    String logs = System.getProperty("yarn.app.container.log.dir", ".");
    return new File(System.getProperty("ltrace.dir", logs), name);
  }
}
