package mapreduce.harness.jobs.generate;

/**
 * Chances that follow from (seed, number): SplitMix64, with a starting point mixed from both.
 *
 * <p>The same on every machine and for every JDK, as it has whole numbers alone.
 *
 * <p>[Ste14] G. Steele, D. Lea, C. Flood. "Fast Splittable Pseudorandom Number Generators". OOPSLA
 * 2014; the finaliser is its variant 13 of MurmurHash3's.
 */
public final class Draws {
  private static final long GOLDEN = 0x9E3779B97F4A7C15L;

  private long state;

  /** Starts again at the first draw of (seed, number). */
  public Draws at(long seed, long number) {
    // Mixed between the two, or (seed, number) and (seed + 1, number - 1) would draw the same.
    state = mix(mix(seed + GOLDEN) + number * GOLDEN);
    return this;
  }

  /** 64 bits. */
  public long next() {
    state += GOLDEN;
    return mix(state);
  }

  /**
   * A whole number from 0 to {@code bound} - 1; its bias, bound / 2^32, is below what anybody could
   * count.
   */
  public int below(int bound) {
    return (int) ((next() >>> 32) * bound >>> 32);
  }

  /** At least 0, below 1, in steps of 2^-53. */
  public double uniform() {
    return (next() >>> 11) * 0x1p-53;
  }

  /** 64 well mixed bits: the finaliser. */
  public static long mix(long bits) {
    long z = (bits ^ bits >>> 30) * 0xBF58476D1CE4E5B9L;
    z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
    return z ^ z >>> 31;
  }
}
