package mapreduce.harness.jobs;

import java.util.concurrent.locks.LockSupport;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.Counter;

/**
 * Sleeps, and counts how long it really was.
 *
 * <p>A system wakes a sleeper some microseconds late; what one pause was too long, the next ones
 * are shorter. So all pauses together last as long as they should, and at most one delay longer.
 */
final class Pause {
  private final long pauseNs;
  private final Counter[] slept;
  private long ahead;

  /** A pause of as many milliseconds, with fractions, as {@code property} says. */
  Pause(Configuration conf, String property, Counter... slept) {
    this.pauseNs = Math.round(conf.getDouble(property, 0) * 1e6);
    this.slept = slept;
  }

  void take() throws InterruptedException {
    if (pauseNs <= ahead) {
      ahead -= pauseNs;
      return;
    }
    long began = System.nanoTime();
    long took = 0;
    while (took < pauseNs - ahead) {
      LockSupport.parkNanos(pauseNs - ahead - took);
      if (Thread.interrupted()) {
        throw new InterruptedException("woken from a pause");
      }
      took = System.nanoTime() - began;
    }
    ahead += took - pauseNs;
    for (Counter counter : slept) {
      counter.increment(took);
    }
  }
}
