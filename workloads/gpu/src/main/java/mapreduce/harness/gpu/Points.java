package mapreduce.harness.gpu;

import org.apache.hadoop.conf.Configuration;

/**
 * A Gaussian mixture: one of {@code gpu.k} middles, which are uniform in [-100, 100) in each
 * coordinate, and a normal deviate of {@code gpu.spread} added to each coordinate.
 */
public final class Points extends RawRecords {
  private static final int LEVELS = 1 << 16;

  private final float[] deviates = new float[LEVELS];
  private long seed;
  private int clusters;
  private int dimensions;
  private float[] middles;

  @Override
  int prepare(Configuration conf, long seed) {
    this.seed = seed;
    clusters = conf.getInt(GpuKMeans.K, 10);
    dimensions = conf.getInt(GpuKMeans.DIMENSIONS, 4);
    middles = new float[clusters * dimensions];
    for (int i = 0; i < middles.length; i++) {
      middles[i] = (float) ((mix(~seed, i) >>> 11) * 0x1p-53 * 200 - 100);
    }
    double spread = conf.getDouble("gpu.spread", 5);
    for (int i = 0; i < LEVELS; i++) {
      deviates[i] = (float) (spread * Normal.quantile((i + 0.5) / LEVELS));
    }
    return dimensions * Float.BYTES;
  }

  @Override
  void fill(byte[] record, long number) {
    long draw = mix(seed, number);
    int middle = (int) Long.remainderUnsigned(draw, clusters) * dimensions;
    long bits = 0;
    for (int j = 0; j < dimensions; j++) {
      bits = j % 4 == 0 ? mix(draw, j) : bits >>> 16;
      putFloat(record, j * Float.BYTES, middles[middle + j] + deviates[(int) (bits & 0xFFFF)]);
    }
  }
}
