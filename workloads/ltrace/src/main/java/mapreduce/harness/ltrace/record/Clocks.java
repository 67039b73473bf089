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

  /** What {@code /proc/self/stat} says behind the process's name; without it {@code null}. */
  static String[] process() {
    try {
      String stat = Files.readString(Path.of("/proc/self/stat"));
      return stat.substring(stat.lastIndexOf(')') + 2).split(" ");
    } catch (IOException | RuntimeException unknown) {
      return null;
    }
  }

  /**
   * CPU time of a {@link #process} with all its threads, and of those that it started and that have
   * ended, in milliseconds, to 10 ms; 0: unknown.
   */
  static long processCpu(String[] process) {
    try {
      long ticks = 0;
      for (int i = 11; i < 15; i++) { // user, system, and both of its ended children
        ticks += Long.parseLong(process[i]);
      }
      return ticks * MS_PER_TICK;
    } catch (RuntimeException unknown) {
      return 0;
    }
  }

  /**
   * When a {@link #process} was forked, milliseconds since the epoch, to 20 ms; 0: unknown.
   *
   * <p>A container's launch script runs in the same process, before Java. {@code ProcessHandle}
   * takes it from the boot time, which Linux rounds to seconds.
   */
  static long processStart(String[] process) {
    try {
      String uptime = Files.readString(Path.of("/proc/uptime"));
      double uptimeSeconds = Double.parseDouble(uptime.substring(0, uptime.indexOf(' ')));
      long ageMs = Math.round(uptimeSeconds * 1000) - Long.parseLong(process[19]) * MS_PER_TICK;
      return System.currentTimeMillis() - ageMs;
    } catch (IOException | RuntimeException unknown) {
      return 0;
    }
  }
}
