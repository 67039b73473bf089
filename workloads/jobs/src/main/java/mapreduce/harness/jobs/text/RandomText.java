package mapreduce.harness.jobs.text;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import mapreduce.harness.jobs.generate.Buffer;
import mapreduce.harness.jobs.generate.Draws;

/**
 * Text by the law of RandomTextWriter, one of Hadoop's examples that HiBench takes: records of a
 * key of 5 to 9 words, a tab, and a value of 10 to 99 words, all drawn evenly from its list of
 * 1,000.
 *
 * <p>That program itself takes no seed, and misses the requested size. What differs here: lines of
 * text and no sequence file, no space behind the last word, and the last record of a page fills it,
 * with fewer or a few more words in its value. A page below {@link #LEAST} bytes is one record
 * without words.
 */
public final class RandomText extends Pages {
  /** Room that a record needs behind another: the longest key, and some words of a value. */
  private static final int LEAST = 256;

  /** Bytes of the shortest word with what follows it. */
  private static final int SHORTEST = 3;

  private final byte[][] words = list();

  @Override
  void fill(Draws draws, int size, Buffer out) {
    if (size < LEAST) {
      out.put("a".repeat(Math.max(size - 2, 0)));
      out.put(size > 1 ? "\t\n" : "\n");
      return;
    }
    int left = size;
    while (left > 0) {
      left = record(draws, left, out);
    }
  }

  /** Appends one record; returns what is left: nothing, or room for another. */
  private int record(Draws draws, int size, Buffer out) {
    int key = 5 + draws.below(5);
    int value = 10 + draws.below(90);
    int left = size;
    for (int number = 1; left > 0; number++) {
      byte[] word = fitting(draws, left);
      out.put(word, 0, word.length);
      left -= word.length + 1;
      boolean ends = left == 0 || number >= key + value && left >= LEAST;
      out.put(ends ? '\n' : number == key ? '\t' : ' ');
      if (ends) {
        break;
      }
    }
    return left;
  }

  /** A word by chance, which fills what is left or leaves room for another. */
  private byte[] fitting(Draws draws, int left) {
    for (; ; ) {
      byte[] word = words[draws.below(words.length)];
      int after = left - word.length - 1;
      if (after == 0 || after >= SHORTEST) {
        return word;
      }
    }
  }

  /** The words of RandomTextWriter. */
  static byte[][] list() {
    try (InputStream in = RandomText.class.getResourceAsStream("random-words.txt")) {
      String all = new String(in.readAllBytes(), StandardCharsets.US_ASCII);
      return all.lines()
          .map(word -> word.getBytes(StandardCharsets.US_ASCII))
          .toArray(byte[][]::new);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
