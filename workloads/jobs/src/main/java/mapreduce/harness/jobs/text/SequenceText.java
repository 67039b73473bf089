package mapreduce.harness.jobs.text;

import mapreduce.harness.jobs.generate.Buffer;
import mapreduce.harness.jobs.generate.Draws;
import org.apache.hadoop.conf.Configuration;

/**
 * Sequence files of RandomTextWriter, one of Hadoop's examples that HiBench takes: key and value
 * are texts of 5 to 9 and of 10 to 99 words, drawn evenly from its list of 1,000, with a space
 * behind each word.
 *
 * <p>The form is that of {@code SequenceFile.Writer}, not compressed, in its version 6: a header,
 * then records, each with its length and that of its key before it. What differs from
 * RandomTextWriter: the size is met to the byte, framing included. A page begins with a sync mark
 * (Hadoop has one about every 100 KB), and its last record fills it, with fewer or more words in
 * its value, and spaces where no word fits. The mark is the same in all files.
 */
public final class SequenceText extends Pages {
  /** Room that a record needs behind another: the longest key, and some words of a value. */
  private static final int LEAST = 256;

  /** Bytes of the two lengths before a record. */
  private static final int FRAME = 2 * Integer.BYTES;

  private static final String TEXT = "org.apache.hadoop.io.Text";

  /** Bytes that each file begins with. */
  private static final int HEADER = 78;

  private final byte[][] words = RandomText.list();
  private final Buffer mark = new Buffer(2 * Long.BYTES);
  private final Buffer key = new Buffer(LEAST);
  private final Buffer value = new Buffer(1 << 12);

  @Override
  public void open(Configuration conf, long seed) {
    super.open(conf, seed);
    Draws draws = new Draws().at(PAGE, 0);
    mark.clear();
    mark.putLittleLong(draws.next());
    mark.putLittleLong(draws.next());
  }

  /** Shorter, so that a file of some pages with its header fits where as many others do. */
  @Override
  int page() {
    return PAGE - HEADER;
  }

  @Override
  public void begin(Buffer out) {
    out.put("SEQ");
    out.put(6);
    for (int type = 0; type < 2; type++) {
      out.put(TEXT.length());
      out.put(TEXT);
    }
    out.put(0); // neither records
    out.put(0); // nor blocks of them are compressed
    putInt(0, out); // no metadata
    out.put(mark.bytes(), 0, mark.size());
  }

  @Override
  void fill(Draws draws, int size, Buffer out) {
    int left = size - Integer.BYTES - mark.size();
    if (left < FRAME + 2) {
      throw new IllegalArgumentException("a page of " + size + " bytes holds no record");
    }
    putInt(-1, out);
    out.put(mark.bytes(), 0, mark.size());
    while (left > 0) {
      int keyWords = 5 + draws.below(5);
      int valueWords = 10 + draws.below(90);
      key.clear();
      value.clear();
      sentence(draws, keyWords, key);
      sentence(draws, valueWords, value);
      if (left - FRAME - written(key.size()) - written(value.size()) < LEAST) {
        end(draws, left);
      }
      int keyBytes = written(key.size());
      int bytes = keyBytes + written(value.size());
      putInt(bytes, out);
      putInt(keyBytes, out);
      putText(key, out);
      putText(value, out);
      left -= FRAME + bytes;
    }
  }

  /** Makes key and value fill what is left of a page. */
  private void end(Draws draws, int left) {
    if (left - FRAME - written(key.size()) < 1) {
      key.clear();
    }
    int room = left - FRAME - written(key.size());
    if (room == 129 || room == 258) { // no text has so many bytes with its length before it
      key.put(' ');
      room = left - FRAME - written(key.size());
    }
    int size = room - (room <= 128 ? 1 : room <= 257 ? 2 : 3);
    while (value.size() < size) {
      sentence(draws, 1, value);
    }
    byte[] drawn = value.bytes();
    int whole = size;
    while (whole > 0 && drawn[whole - 1] != ' ') {
      whole--;
    }
    value.clear();
    value.put(drawn, 0, whole);
    value.put(" ".repeat(size - whole));
  }

  private void sentence(Draws draws, int count, Buffer out) {
    for (int number = 0; number < count; number++) {
      byte[] word = words[draws.below(words.length)];
      out.put(word, 0, word.length);
      out.put(' ');
    }
  }

  /** Bytes of a text with its length before it. */
  private static int written(int size) {
    return size + (size < 1 << 7 ? 1 : size < 1 << 8 ? 2 : 3);
  }

  /** A text as {@code Text.write} writes it: how long it is, in Hadoop's numbers, and it. */
  private static void putText(Buffer text, Buffer out) {
    int size = text.size();
    if (size >= 1 << 8) {
      out.put(-114);
      out.put(size >>> Byte.SIZE);
    } else if (size >= 1 << 7) {
      out.put(-113);
    }
    out.put(size);
    out.put(text.bytes(), 0, size);
  }

  /** The highest byte first. */
  private static void putInt(int number, Buffer out) {
    for (int shift = Integer.SIZE - Byte.SIZE; shift >= 0; shift -= Byte.SIZE) {
      out.put(number >>> shift);
    }
  }
}
