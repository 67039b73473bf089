package mapreduce.harness.ltrace.record;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/**
 * What each hook does to a task: bench_ltrace.py runs it as tasks run, with the recorder in each of
 * its modes.
 *
 * <p>A span's file is full after 349 000 of them, so these take a slot of their own, over and over.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Hooks {

  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  private int slot;

  /** The clock that all the others look at. */
  @Benchmark
  public long nanoTime() {
    return System.nanoTime();
  }

  /** The thread's CPU clock, which a span reads twice. */
  @Benchmark
  public long cpuTime() {
    return THREADS.getCurrentThreadCpuTime();
  }

  /** Begin and end of a span: two looks at each clock. */
  @Benchmark
  public void span() {
    if (slot == 0) {
      slot = Recorder.SPANS ? Recorder.begin(Kind.SORT) : 0;
    }
    if (Recorder.SPANS) {
      Recorder.file().begin(slot, Kind.SORT);
    }
    Recorder.end(slot, 1, false);
  }

  /**
   * One record read by a map or a reduce: exact read and function, histogram; with units, those.
   */
  @Benchmark
  public void record() {
    long start = Recorder.SPANS ? RecordLoop.readBegins() : 0;
    if (Recorder.SPANS) {
      RecordLoop.readEnds(start, true);
    }
  }

  /** One record collected or written: counted, and 1 in 64 timed. */
  @Benchmark
  public void collect() {
    long start = Recorder.SPANS ? CallTimes.begin() : 0;
    if (Recorder.SPANS) {
      CallTimes.end(start);
    }
  }
}
