package mapreduce.harness.jobs.kmeans;

import mapreduce.harness.jobs.generate.Buffer;
import mapreduce.harness.jobs.generate.Content;
import mapreduce.harness.jobs.generate.Draws;
import org.apache.hadoop.conf.Configuration;

/**
 * Points of a mixture of normal distributions; record n is point n, in the form of the package.
 *
 * <p>Each point belongs to one of {@code mixture.clusters} clusters, all equally likely. The middle
 * of a cluster is uniform from 0 to 100 in each of {@code mixture.dimensions} dimensions; its
 * points lie around it with the standard deviation {@code mixture.spread} in each.
 */
public final class Mixture implements Content {
  private static final double SIDE = 100;

  private final Draws draws = new Draws();
  private double[][] middles;
  private double spread;
  private long seed;

  @Override
  public void open(Configuration conf, long chosen) {
    int clusters = conf.getInt("mixture.clusters", 5);
    int dimensions = conf.getInt("mixture.dimensions", 20);
    spread = conf.getDouble("mixture.spread", 5);
    seed = chosen;
    if (clusters < 1 || dimensions < 1 || !(spread >= 0) || Double.isInfinite(spread)) {
      throw new IllegalArgumentException(
          "a mixture of "
              + clusters
              + " clusters in "
              + dimensions
              + " dimensions with the spread "
              + spread
              + ": all lie from 1 up, the spread from 0");
    }
    middles = new double[clusters][dimensions];
    for (int i = 0; i < clusters; i++) {
      draws.at(~seed, i);
      for (int d = 0; d < dimensions; d++) {
        middles[i][d] = SIDE * draws.uniform();
      }
    }
  }

  @Override
  public void write(long number, Buffer out) {
    draws.at(seed, number);
    for (double middle : middles[draws.below(middles.length)]) {
      out.putDouble(middle + spread * Normals.next(draws));
    }
  }
}
