package mapreduce.harness.probe;

import java.io.IOException;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * How fast this machine is now: fixed work, and the CPU time that it takes.
 *
 * <p>{@code SpeedProbe [threads] [seconds]}: each of {@code threads} threads (one per core) does
 * one unit of work, about a millisecond, every 100 ms, and reads its own CPU clock around it. Once
 * a second each prints {@code epoch_ms thread units cpu_ns}, sums over the second that ends there.
 * The first line is a header and says that the code is warm and the threads run. They are named
 * {@code probe-0} and so on: whoever starts the probe pins each to a core of its own by that name,
 * which Java cannot do. A thread that is free to move wakes on an idle core, and would measure how
 * fast those are where nothing runs. The probe ends when its standard input does, which is also
 * when its parent dies, or after {@code seconds}.
 */
public final class SpeedProbe implements Runnable {

  // A unit of work never changes: rates are compared between days, machines and versions.
  private static final int NUMBERS = 8 * 1024; // longs: 64 KiB, beyond a first-level cache

  private static final long PERIOD_NS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final int UNITS_PER_LINE = 10;
  private static final int WARM_UP_UNITS = 200;
  private static final int DEFAULT_SECONDS = 7 * 24 * 3600;

  private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();
  private static final PrintStream OUT = System.out;

  /** What all work comes to: read by nobody, but the compiler cannot know. */
  private static volatile long sink;

  private static volatile boolean ended;

  private final int number;
  private final long firstNs;
  private final long[] table = new long[NUMBERS];
  private int units;
  private long cpuNs;

  private SpeedProbe(int number, long firstNs) {
    this.number = number;
    this.firstNs = firstNs;
  }

  public static void main(String[] args) throws InterruptedException {
    int threads =
        args.length > 0 ? Integer.parseInt(args[0]) : Runtime.getRuntime().availableProcessors();
    int seconds = args.length > 1 ? Integer.parseInt(args[1]) : DEFAULT_SECONDS;
    new SpeedProbe(0, 0).warmUp();

    long now = System.nanoTime();
    Thread[] workers = new Thread[threads];
    for (int i = 0; i < threads; i++) {
      // Staggered, so that the probe itself never takes more than one core.
      workers[i] = new Thread(new SpeedProbe(i, now + PERIOD_NS * i / threads), "probe-" + i);
      workers[i].setDaemon(true);
      workers[i].start();
    }
    print("# epoch_ms thread units cpu_ns");
    Thread watcher = new Thread(SpeedProbe::awaitEndOfInput, "stdin");
    watcher.setDaemon(true);
    watcher.start();
    watcher.join(TimeUnit.SECONDS.toMillis(seconds));
    ended = true;
    for (Thread worker : workers) {
      LockSupport.unpark(worker);
      worker.join(1000);
    }
  }

  private static void awaitEndOfInput() {
    try {
      while (System.in.read() >= 0) {
        // What is written to us does not matter, only that somebody still could.
      }
    } catch (IOException broken) {
      // A broken pipe has ended, too.
    }
  }

  @Override
  public void run() {
    // The table is in memory, and not zero, before anything is measured.
    sink = unit(table, number + 1);
    long due = firstNs;
    while (!ended) {
      awaitTime(due);
      measureUnit();
      if (units == UNITS_PER_LINE) {
        report();
      }
      // A unit that could not run in its period is left out, not made up for.
      due += PERIOD_NS * Math.max(1, (System.nanoTime() - due + PERIOD_NS - 1) / PERIOD_NS);
    }
    report();
  }

  private static void awaitTime(long due) {
    long left = due - System.nanoTime();
    while (left > 0 && !ended) {
      LockSupport.parkNanos(left);
      left = due - System.nanoTime();
    }
  }

  private void measureUnit() {
    if (ended) {
      return;
    }
    long before = CLOCK.getCurrentThreadCpuTime();
    sink = unit(table, sink);
    cpuNs += CLOCK.getCurrentThreadCpuTime() - before;
    units++;
  }

  private void report() {
    if (units > 0) {
      print(System.currentTimeMillis() + " " + number + " " + units + " " + cpuNs);
    }
    units = 0;
    cpuNs = 0;
  }

  /** Lines of threads must not mix, and whoever reads the log wants whole lines now. */
  private static synchronized void print(String line) {
    OUT.print(line + "\n");
    OUT.flush();
  }

  private void warmUp() {
    for (int i = 0; i < WARM_UP_UNITS; i++) {
      sink = unit(table, sink);
      CLOCK.getCurrentThreadCpuTime();
    }
  }

  /**
   * The work: draw random numbers and sort them.
   *
   * <p>Sorting is what tasks do, and what slows them slows it: it keeps the processor's units and
   * its branch predictor busy, which two threads of one physical core share. A chain of dependent
   * steps through memory, tried first, is hardly slowed by a busy neighbour (bench/README.md).
   */
  private static long unit(long[] table, long seed) {
    long x = seed | 1;
    for (int i = 0; i < table.length; i++) {
      x ^= x << 13;
      x ^= x >>> 7;
      x ^= x << 17;
      table[i] = x;
    }
    Arrays.sort(table);
    return x + table[table.length / 2];
  }
}
