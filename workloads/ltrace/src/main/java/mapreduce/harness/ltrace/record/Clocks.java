package mapreduce.harness.ltrace.record;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;

/** The clocks of this JVM. */
final class Clocks {

  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  private static final long MS_PER_TICK = 10; // USER_HZ is 100 on every Linux that Java runs on

  private Clocks() {}

  /** CPU time of this thread in nanoseconds; 0 where the JVM cannot measure it. */
  static long cpu() {
    try {
      return THREADS.getCurrentThreadCpuTime();
    } catch (RuntimeException unsupported) {
      return 0;
    }
  }

  /** Wall clock, microseconds since the epoch. */
  static long wallMicros() {
    Instant now = Instant.now();
    return now.getEpochSecond() * 1_000_000 + now.getNano() / 1000;
  }

  /** When this JVM began, milliseconds since the epoch; 0: unknown. */
  static long jvmStart() {
    try {
      return System.currentTimeMillis() - ManagementFactory.getRuntimeMXBean().getUptime();
    } catch (RuntimeException unsupported) {
      return 0;
    }
  }

  /**
   * When the process was forked, milliseconds since the epoch, to 20 ms; 0: unknown.
   *
   * <p>A container's launch script runs in the same process, before Java. {@code ProcessHandle}
   * takes it from the boot time, which Linux rounds to seconds.
   */
  static long processStart() {
    try {
      String stat = Files.readString(Path.of("/proc/self/stat"));
      String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
      String uptime = Files.readString(Path.of("/proc/uptime"));
      double uptimeSeconds = Double.parseDouble(uptime.substring(0, uptime.indexOf(' ')));
      long ageMs = Math.round(uptimeSeconds * 1000) - Long.parseLong(fields[19]) * MS_PER_TICK;
      return System.currentTimeMillis() - ageMs;
    } catch (IOException | RuntimeException unknown) {
      return 0;
    }
  }
}
