package mapreduce.harness.ltrace.record;

/** Random distances between samples, other ones in every task; not for several threads. */
final class RandomGap {

  private static int state = (int) System.nanoTime() | 1;

  private RandomGap() {}

  /** One of {@code count} whole numbers, a power of two, of which {@code least} is the first. */
  static int next(int least, int count) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return least + (state & count - 1);
  }
}
