package mapreduce.harness.jobs;

/**
 * Sums 64 bits for each record, so that records in any order have one checksum.
 *
 * <p>A record's bits are SplitMix64's finaliser over its words of 8 bytes (the lowest byte first,
 * zeros behind the last), one after the other, each added to what the words before left. So bytes
 * exchanged within a record or between two change the sum.
 */
final class Checksum {
  private long sum;

  void add(byte[] bytes, int size) {
    long hash = size;
    for (int from = 0; from < size; from += Long.BYTES) {
      long word = 0;
      for (int at = Math.min(from + Long.BYTES, size) - 1; at >= from; at--) {
        word = word << Byte.SIZE | bytes[at] & 0xFF;
      }
      hash = mix(hash + word);
    }
    sum += hash;
  }

  long sum() {
    return sum;
  }

  private static long mix(long bits) {
    long z = (bits ^ bits >>> 30) * 0xBF58476D1CE4E5B9L;
    z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
    return z ^ z >>> 31;
  }
}
