package mapreduce.harness.jobs.generate;

/** The bytes of one file: what its content begins with, and the records of its range. */
final class Batches {
  /**
   * Handed on together: few enough to stay in the cache, enough that the steps between do not
   * count.
   */
  private static final int BYTES = 64 * 1024;

  private final Content content;
  private final Buffer batch = new Buffer(2 * BYTES);
  private final long end;
  private long number;
  private boolean isHandedOn;

  Batches(Range range, Content content) {
    this.content = content;
    number = range.first();
    end = range.first() + range.count();
    content.begin(batch);
  }

  /** The next bytes, which stay until more are asked for; {@code null}: there are no more. */
  Buffer next() {
    if (number == end) {
      return null;
    }
    if (isHandedOn) {
      batch.clear();
    }
    isHandedOn = true;
    while (number < end && batch.size() < BYTES) {
      content.write(number++, batch);
    }
    return batch;
  }
}
