package mapreduce.harness.jobs.pagerank;

import java.nio.charset.StandardCharsets;
import mapreduce.harness.jobs.generate.Buffer;
import mapreduce.harness.jobs.generate.Content;
import mapreduce.harness.jobs.generate.Draws;
import org.apache.hadoop.conf.Configuration;

/**
 * A web graph whose degrees follow power laws; record n is the line of page n, with rank 1.
 *
 * <p>Links of a page: a page of sixteen has none, the others 10 to 512, bounded Pareto with density
 * as 1/links^2. Each {@link #CYCLE} pages in a row have each quantile of this law once, in an order
 * that the seed mixes, so the bytes of any row of pages are known beforehand and files are even.
 *
 * <p>Where links lead: the page of popularity r (0 is the most popular) of N pages is drawn as the
 * whole part of N * u^skew, u uniform, so links to it fall as r^(1/skew - 1). Skew 2 is HiBench's
 * Zipf law with exponent 0.5. Popular pages are scattered over the numbers.
 *
 * <p>Properties: {@code graph.pages} N, {@code graph.last} links of the last page, {@code
 * graph.skew} a whole number, {@code graph.form}: {@code lines}, or {@code links}, a line for each
 * link of the same graph: its page, a tab, and the page that it leads to.
 */
public final class Graph implements Content {
  static final int CYCLE = 256;
  static final int DANGLING = 16;
  static final int LEAST = 10;
  static final int MOST = 512;

  /** A prime, so that its multiples modulo a smaller number of pages are all different. */
  static final long SCATTER = 2_147_483_647L;

  /**
   * Each number of four digits as they are written, the first in the lowest byte: links are most of
   * the bytes.
   */
  private static final int[] DIGITS = digits();

  private static final byte[] RANK = "\t000000001.0000000000\t".getBytes(StandardCharsets.US_ASCII);

  private final Draws draws = new Draws();
  private final int[] degrees = degrees();
  private long seed;
  private long pages;
  private int last;
  private int skew;
  private boolean asLinks;

  @Override
  public void open(Configuration conf, long chosen) {
    seed = chosen;
    pages = conf.getLong("graph.pages", 0);
    last = conf.getInt("graph.last", 0);
    skew = conf.getInt("graph.skew", 2);
    asLinks = conf.get("graph.form", "lines").equals("links");
    if (pages < 1 || pages >= SCATTER || last < 0 || skew < 1) {
      throw new IllegalArgumentException(
          "a graph of "
              + pages
              + " pages, the last with "
              + last
              + " links, skew "
              + skew
              + ": pages lie from 1 to "
              + (SCATTER - 1)
              + ", skew from 1 up");
    }
  }

  @Override
  public void write(long number, Buffer out) {
    int links = number == pages - 1 ? last : links(number);
    draws.at(seed, number);
    if (asLinks) {
      for (int i = 0; i < links; i++) {
        putPage(number, out);
        out.put('\t');
        putPage(target(), out);
        out.put('\n');
      }
      return;
    }
    putPage(number, out);
    out.put(RANK, 0, RANK.length);
    for (int i = 0; i < links; i++) {
      if (i > 0) {
        out.put(' ');
      }
      putPage(target(), out);
    }
    out.put('\n');
  }

  /** Ten digits. */
  private static void putPage(long page, Buffer out) {
    int high = (int) (page / 100_000_000);
    int low = (int) (page - high * 100_000_000L);
    out.putWord(DIGITS[high] >>> Short.SIZE, 2);
    out.putWord(DIGITS[low / 10_000], 4);
    out.putWord(DIGITS[low % 10_000], 4);
  }

  private long target() {
    double drawn = draws.uniform();
    double power = drawn;
    for (int i = 1; i < skew; i++) {
      power *= drawn; // the same on every machine, which pow() need not be
    }
    return (long) (power * pages) * SCATTER % pages;
  }

  private int links(long number) {
    long bits = draws.at(~seed, number / CYCLE).next();
    long slot = (number % CYCLE * (bits | 1) + (bits >>> 8)) & (CYCLE - 1);
    return degrees[(int) slot];
  }

  private static int[] digits() {
    int[] digits = new int[10_000];
    for (int i = 0; i < digits.length; i++) {
      digits[i] =
          ('0' + i / 1000)
              | ('0' + i / 100 % 10) << 8
              | ('0' + i / 10 % 10) << 16
              | ('0' + i % 10) << 24;
    }
    return digits;
  }

  /** Links of the quantiles, from none upwards. */
  private static int[] degrees() {
    int[] quantiles = new int[CYCLE];
    int steps = 2 * (CYCLE - DANGLING);
    for (int i = DANGLING; i < CYCLE; i++) {
      int middle = 2 * (i - DANGLING) + 1;
      quantiles[i] = LEAST * MOST * steps / (MOST * steps - (MOST - LEAST) * middle);
    }
    return quantiles;
  }
}
