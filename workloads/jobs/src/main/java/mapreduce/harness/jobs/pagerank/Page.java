package mapreduce.harness.jobs.pagerank;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import org.apache.hadoop.io.Text;

/**
 * One line of a graph: a page, its rank and its links.
 *
 * <p>An object is used for line after line, and holds no copy of any.
 */
final class Page {
  /** Digits of a page as the generator and {@link Naive} write it. */
  static final int DIGITS = 10;

  /** Characters of a rank as {@link #write} prints it. */
  static final int RANK_WIDTH = 20;

  private static final long UNIT = 10_000_000_000L;
  private static final int DECIMALS = 10;

  private byte[] line;
  private int end;
  private int nameEnd;
  private int linksStart;
  private int links;
  private double rank;

  /**
   * Takes a line apart.
   *
   * @throws IOException with what is wrong with it
   */
  void read(Text text) throws IOException {
    line = text.getBytes();
    end = text.getLength();
    nameEnd = find('\t', 0);
    int rankEnd = nameEnd < end ? find('\t', nameEnd + 1) : end;
    if (nameEnd == 0 || rankEnd == end) {
      throw new IOException(
          "it is not a page, a tab, a rank, a tab and links: " + shown(line, 0, end));
    }
    if (find(' ', 0) < nameEnd) {
      throw new IOException("the name of the page has a space: " + shown(line, 0, nameEnd));
    }
    rank = rank(nameEnd + 1, rankEnd);
    linksStart = rankEnd + 1;
    links = count();
  }

  /** The rank, in units of the mean. */
  double rank() {
    return rank;
  }

  /** How many links the page has. */
  int links() {
    return links;
  }

  /** Sets the name of the page. */
  void name(Text name) {
    name.set(line, 0, nameEnd);
  }

  /** A copy of the links as they stand in the line. */
  byte[] adjacency() {
    return Arrays.copyOfRange(line, linksStart, end);
  }

  /** Where the first link begins. */
  int first() {
    return linksStart;
  }

  /**
   * Sets the page that the link at this place leads to, and returns the place of the link behind
   * it.
   */
  int link(int at, Text target) {
    int stop = find(' ', at);
    target.set(line, at, stop - at);
    return stop + 1;
  }

  private int count() throws IOException {
    if (linksStart == end) {
      return 0;
    }
    int count = 1;
    byte before = ' ';
    for (int i = linksStart; i < end; i++) {
      byte now = line[i];
      if (now == '\t' || now == ' ' && before == ' ') {
        throw new IOException(
            "its links are not separated by single spaces: " + shown(line, 0, end));
      }
      if (now == ' ') {
        count++;
      }
      before = now;
    }
    if (before == ' ') {
      throw new IOException("a space follows its last link: " + shown(line, 0, end));
    }
    return count;
  }

  private int find(char wanted, int from) {
    int at = from;
    while (at < end && line[at] != wanted) {
      at++;
    }
    return at;
  }

  private double rank(int from, int to) throws IOException {
    if (from == to) {
      return 1;
    }
    double own = to - from == RANK_WIDTH ? fixed(from) : -1;
    return own >= 0 ? own : other(from, to);
  }

  /** The rank as {@link #write} prints it; negative where it is written in another way. */
  private double fixed(int from) {
    long units = 0;
    int point = from + RANK_WIDTH - 1 - DECIMALS;
    for (int i = from; i < from + RANK_WIDTH; i++) {
      if (i == point) {
        if (line[i] != '.') {
          return -1;
        }
      } else if (line[i] < '0' || line[i] > '9' || units > Long.MAX_VALUE / 10 - 9) {
        return -1;
      } else {
        units = units * 10 + line[i] - '0';
      }
    }
    return (double) units / UNIT;
  }

  private double other(int from, int to) throws IOException {
    String written = shown(line, from, to);
    double value;
    try {
      value = Double.parseDouble(written);
    } catch (NumberFormatException e) {
      throw new IOException("its rank is no number: " + written, e);
    }
    if (!(value >= 0) || Double.isInfinite(value)) {
      throw new IOException("its rank is not a finite number of 0 or more: " + written);
    }
    return value;
  }

  /**
   * Writes a rank in {@link #RANK_WIDTH} characters, ten of them decimals; more where it has more
   * digits.
   */
  static void write(double rank, Text out) {
    long units = Math.round(rank * UNIT);
    if (units / UNIT > 99_999_999L) {
      byte[] wide = String.format(Locale.ROOT, "%.10f", rank).getBytes(StandardCharsets.US_ASCII);
      out.append(wide, 0, wide.length);
      return;
    }
    byte[] digits = new byte[RANK_WIDTH];
    int point = RANK_WIDTH - 1 - DECIMALS;
    long rest = units;
    for (int i = RANK_WIDTH - 1; i >= 0; i--) {
      if (i == point) {
        digits[i] = '.';
      } else {
        digits[i] = (byte) ('0' + rest % 10);
        rest /= 10;
      }
    }
    out.append(digits, 0, RANK_WIDTH);
  }

  /** Part of a line for a message: not much of it, and no control characters. */
  static String shown(byte[] bytes, int from, int to) {
    int stop = Math.min(to, from + 60);
    String text = new String(bytes, from, stop - from, StandardCharsets.UTF_8);
    String plain = text.replace('\t', ' ').replaceAll("[^\\x20-\\x7e]", "?");
    return stop < to ? plain + "..." : plain;
  }
}
