package mapreduce.harness.jobs.kmeans;

import mapreduce.harness.jobs.generate.Draws;

/**
 * Normal numbers with mean 0 and deviation 1, by a ziggurat: most take one chance, one product and
 * no logarithm.
 *
 * <p>The same on every machine and for every JDK: products, and StrictMath for what is rare.
 *
 * <p>[Doo05] J. A. Doornik. "An Improved Ziggurat Method to Generate Normal Random Samples".
 * University of Oxford, 2005.
 */
final class Normals {
  private static final int LAYERS = 128;
  private static final double TAIL = 3.442619855899; // where the lowest layer's tail begins
  private static final double AREA = 9.91256303526217e-3; // of each layer
  private static final double[] EDGES = edges();

  private Normals() {}

  static double next(Draws draws) {
    while (true) {
      long bits = draws.next();
      int layer = (int) (bits & LAYERS - 1);
      double place = 2 * ((bits >>> 11) * 0x1p-53) - 1;
      double normal = place * EDGES[layer];
      if (Math.abs(normal) < EDGES[layer + 1]) {
        return normal;
      }
      if (layer == 0) {
        return tail(draws, place < 0);
      }
      double upper = StrictMath.exp(-0.5 * (EDGES[layer] * EDGES[layer] - normal * normal));
      double lower = StrictMath.exp(-0.5 * (EDGES[layer + 1] * EDGES[layer + 1] - normal * normal));
      if (lower + draws.uniform() * (upper - lower) < 1) {
        return normal;
      }
    }
  }

  private static double tail(Draws draws, boolean negative) {
    double beyond;
    double height;
    do {
      beyond = -StrictMath.log(1 - draws.uniform()) / TAIL;
      height = -StrictMath.log(1 - draws.uniform());
    } while (2 * height < beyond * beyond);
    return negative ? -TAIL - beyond : TAIL + beyond;
  }

  /** Where the layers end, from the lowest, which is widened by its tail, to the top. */
  private static double[] edges() {
    double[] edges = new double[LAYERS + 1];
    edges[0] = AREA / StrictMath.exp(-0.5 * TAIL * TAIL);
    edges[1] = TAIL;
    for (int i = 2; i < LAYERS; i++) {
      double before = edges[i - 1];
      edges[i] =
          StrictMath.sqrt(
              -2 * StrictMath.log(AREA / before + StrictMath.exp(-0.5 * before * before)));
    }
    return edges;
  }
}
