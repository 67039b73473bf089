package mapreduce.harness.jobs.text;

import mapreduce.harness.jobs.generate.Buffer;
import mapreduce.harness.jobs.generate.Content;
import mapreduce.harness.jobs.generate.Draws;
import org.apache.hadoop.conf.Configuration;

/**
 * Content whose records are pages: each of {@link #page} bytes, the last one what is left of {@code
 * pages.bytes}.
 *
 * <p>A page is filled to its last byte, which ends a line. So an input has exactly the size asked
 * for, and no line crosses from one file to the next.
 */
abstract class Pages implements Content {
  static final int PAGE = 32 * 1024;
  static final String BYTES = "pages.bytes";

  private final Draws draws = new Draws();
  private long seed;
  private long total;

  @Override
  public void open(Configuration conf, long seed) {
    this.seed = seed;
    this.total = conf.getLong(BYTES, 0);
    if (total < 1) {
      throw new IllegalArgumentException(BYTES + " is " + total + ": a text has 1 byte or more");
    }
  }

  @Override
  public void write(long number, Buffer out) {
    long left = total - number * page();
    if (left < 1) {
      throw new IllegalArgumentException("page " + number + " of " + total + " bytes");
    }
    fill(draws.at(seed, number), (int) Math.min(left, page()), out);
  }

  /** Bytes of each page but the last. */
  int page() {
    return PAGE;
  }

  /** Appends {@code size} bytes, which follow from the draws alone. */
  abstract void fill(Draws draws, int size, Buffer out);
}
