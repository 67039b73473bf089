package mapreduce.harness.jobs.text;

import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;
import mapreduce.harness.jobs.generate.Buffer;
import mapreduce.harness.jobs.generate.Draws;

/**
 * Lines of words whose frequencies follow Zipf's law.
 *
 * <ul>
 *   <li>words: 20,000 different ones of 3 to 6 letters, consonants and vowels in turn; the same for
 *       every seed, because their lengths decide the records per byte;
 *   <li>frequency: that of rank r is proportional to 1/r, in steps of 2^-20;
 *   <li>lines: 10 to 12 words with one space between them. The last line of a page may have fewer,
 *       and its last words are drawn until one fits.
 * </ul>
 */
public final class ZipfText extends Pages {
  private static final int VOCABULARY = 20_000;
  private static final int TABLE_BITS = 20;
  private static final String CONSONANTS = "bdfghjklmnprstvz";
  private static final String VOWELS = "aeiou";
  private static final String[] FORMS = {"cvc", "cvcv", "cvcvc", "cvcvcv"};

  /** Bytes of the shortest word with what follows it, and of the longest. */
  private static final int SHORTEST = 4;

  private static final int LONGEST = 7;

  private final long[] words = new long[VOCABULARY];
  private final byte[] lengths = new byte[VOCABULARY];
  private final char[] ranks = table();

  public ZipfText() {
    int rank = 0;
    for (String word : vocabulary()) {
      for (int at = 0; at < word.length(); at++) {
        words[rank] |= (long) word.charAt(at) << Byte.SIZE * at;
      }
      lengths[rank++] = (byte) word.length();
    }
  }

  @Override
  void fill(Draws draws, int size, Buffer out) {
    int left = size;
    if (left < SHORTEST) {
      out.put("aa".substring(0, left - 1));
      out.put('\n');
      return;
    }
    while (left > 0) {
      int count = 10 + draws.below(3);
      for (int word = 1; word <= count && left > 0; word++) {
        int rank = fitting(draws, left);
        int length = lengths[rank];
        left -= length + 1;
        long end = word == count || left == 0 ? '\n' : ' ';
        out.putWord(words[rank] | end << Byte.SIZE * length, length + 1);
      }
    }
  }

  /** A rank by chance, whose word fills what is left or leaves room for another. */
  private int fitting(Draws draws, int left) {
    for (; ; ) {
      int rank = ranks[(int) (draws.next() >>> Long.SIZE - TABLE_BITS)];
      int after = left - lengths[rank] - 1;
      if (left >= SHORTEST + LONGEST || after == 0 || after >= SHORTEST) {
        return rank;
      }
    }
  }

  /** Words from the most to the least frequent. */
  private static Set<String> vocabulary() {
    Set<String> vocabulary = new LinkedHashSet<>();
    Draws draws = new Draws().at(VOCABULARY, 0);
    while (vocabulary.size() < VOCABULARY) {
      vocabulary.add(word(draws.next()));
    }
    return vocabulary;
  }

  /** A form by the two lowest bits, then one letter by each eight bits. */
  private static String word(long number) {
    String form = FORMS[(int) (number & 3)];
    StringBuilder letters = new StringBuilder();
    for (int at = 0; at < form.length(); at++) {
      int choice = (int) (number >>> Byte.SIZE * (at + 1) & 0xFF);
      String alphabet = form.charAt(at) == 'c' ? CONSONANTS : VOWELS;
      letters.append(alphabet.charAt(choice % alphabet.length()));
    }
    return letters.toString();
  }

  /** Rank by a random number of 20 bits: rank r fills a share of the table close to 1/r. */
  private static char[] table() {
    long total = 0;
    for (int rank = 1; rank <= VOCABULARY; rank++) {
      total += (1L << 32) / rank;
    }
    char[] table = new char[1 << TABLE_BITS];
    long weight = 0;
    int from = 0;
    for (int rank = 1; rank <= VOCABULARY; rank++) {
      weight += (1L << 32) / rank;
      int to = (int) ((weight << TABLE_BITS) / total);
      Arrays.fill(table, from, to, (char) (rank - 1));
      from = to;
    }
    return table;
  }
}
