package mapreduce.harness.gpu;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;

/**
 * What generated records hold, from whole numbers mixed of the seed and the record's number.
 *
 * <p>Points: one of {@code gpu.k} middles, which lie evenly in [-100, 100) in each coordinate, and
 * a normal deviate of {@code gpu.spread} added to each coordinate. Frames: two layers of noise, the
 * one behind moved by one column between the views, a rectangle in front by 3 to 10 columns; it
 * wanders from frame to frame. Pairs: tiles of two matrices whose elements lie evenly in [-1, 1).
 */
abstract class Scenes {
  private static final long GOLDEN = 0x9E3779B97F4A7C15L;

  /** Bytes of a record. */
  abstract int bytes();

  /** Write records with these numbers. */
  abstract void fill(byte[] to, long first, int records);

  static Scenes of(Configuration conf) throws IOException {
    long seed = mix(conf.getLong("gpu.seed", 1) ^ 0x6A09E667F3BCC908L);
    String kind = conf.get(Generate.KIND, "");
    switch (kind) {
      case "points":
        return new Points(conf, seed);
      case "frames":
        return new Frames(conf, seed);
      case "pairs":
        return new Pairs(conf, seed);
      default:
        throw new IOException(
            "nothing is known of '" + kind + "': points, frames and pairs are generated");
    }
  }

  /** 64 well mixed bits (the finaliser of SplitMix64). */
  static long mix(long x) {
    long z = x;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  static long mix(long seed, long number) {
    return mix(seed + (number + 1) * GOLDEN);
  }

  private static void putFloat(byte[] to, int at, float value) {
    int bits = Float.floatToRawIntBits(value);
    to[at] = (byte) bits;
    to[at + 1] = (byte) (bits >> 8);
    to[at + 2] = (byte) (bits >> 16);
    to[at + 3] = (byte) (bits >> 24);
  }

  /** A Gaussian mixture. */
  private static final class Points extends Scenes {
    private static final int LEVELS = 1 << 16;

    private final long seed;
    private final int k;
    private final int dimensions;
    private final float[] middles;
    private final float[] deviates = new float[LEVELS];

    Points(Configuration conf, long seed) {
      this.seed = seed;
      this.k = conf.getInt(GpuKMeans.K, 10);
      this.dimensions = conf.getInt(GpuKMeans.DIMENSIONS, 4);
      this.middles = new float[k * dimensions];
      for (int i = 0; i < middles.length; i++) {
        middles[i] = (float) ((mix(~seed, i) >>> 11) * 0x1p-53 * 200 - 100);
      }
      double spread = conf.getDouble("gpu.spread", 5);
      for (int i = 0; i < LEVELS; i++) {
        deviates[i] = (float) (spread * Normal.quantile((i + 0.5) / LEVELS));
      }
    }

    @Override
    int bytes() {
      return dimensions * Float.BYTES;
    }

    @Override
    void fill(byte[] to, long first, int records) {
      int at = 0;
      for (int i = 0; i < records; i++) {
        long number = mix(seed, first + i);
        int middle = (int) Long.remainderUnsigned(number, k) * dimensions;
        long bits = 0;
        for (int j = 0; j < dimensions; j++) {
          bits = j % 4 == 0 ? mix(number, j) : bits >>> 16;
          putFloat(to, at, middles[middle + j] + deviates[(int) (bits & 0xFFFF)]);
          at += Float.BYTES;
        }
      }
    }
  }

  /** Stereo frames. */
  private static final class Frames extends Scenes {
    private final long seed;
    private final int view;
    private final int height;
    private final int shifts;

    Frames(Configuration conf, long seed) {
      this.seed = seed;
      this.view = conf.getInt(GpuSbs.WIDTH, 640) / 2;
      this.height = conf.getInt(GpuSbs.HEIGHT, 180);
      this.shifts = conf.getInt(GpuSbs.SHIFTS, 16);
    }

    @Override
    int bytes() {
      return 2 * view * height * 3;
    }

    @Override
    void fill(byte[] to, long first, int records) {
      int at = 0;
      for (int i = 0; i < records; i++) {
        long frame = first + i;
        int front = Math.min(3 + (int) (frame % 8), shifts - 1);
        int left = (int) (frame * 3 % view);
        for (int y = 0; y < height; y++) {
          boolean crosses = y >= height / 4 && y < height * 3 / 4;
          row(to, at, mix(seed, frame * height + y), crosses ? left : Integer.MAX_VALUE, 0, 0);
          row(
              to,
              at + 3 * view,
              mix(seed, frame * height + y),
              crosses ? left : Integer.MAX_VALUE,
              1,
              front);
          at += 6 * view;
        }
      }
    }

    /** One row of a view, which shows the layers moved to the left by so many columns. */
    private void row(byte[] to, int at, long noise, int left, int back, int front) {
      int write = at;
      for (int x = 0; x < view; x++) {
        int there = x + front;
        boolean covered = there >= left && there - left < view / 3;
        long pixel = covered ? mix(~noise, there) : mix(noise, x + back);
        to[write++] = (byte) pixel;
        to[write++] = (byte) (pixel >> 8);
        to[write++] = (byte) (pixel >> 16);
      }
    }
  }

  /** Pairs of tiles. */
  private static final class Pairs extends Scenes {
    private final long seed;
    private final int tile;
    private final int inner;
    private final long columns;

    Pairs(Configuration conf, long seed) throws IOException {
      this.seed = seed;
      this.tile = conf.getInt(GpuMatmul.TILE, 128);
      this.inner = conf.getInt(GpuMatmul.INNER, 4);
      long records = conf.getLong(Generate.RECORDS, 0);
      if (inner < 1 || records < 1 || records % inner != 0) {
        throw new IOException(
            records + " pairs of tiles are no whole number of sums of " + inner + " products");
      }
      this.columns = GpuMatmul.columns(records / inner);
    }

    @Override
    int bytes() {
      return 2 * tile * tile * Float.BYTES;
    }

    @Override
    void fill(byte[] to, long first, int records) {
      int half = tile * tile * Float.BYTES;
      for (int i = 0; i < records; i++) {
        long result = (first + i) / inner;
        long q = (first + i) % inner;
        tile(to, 2 * i * half, mix(mix(seed, result / columns), q));
        tile(to, (2 * i + 1) * half, mix(mix(~seed, result % columns), q));
      }
    }

    private void tile(byte[] to, int at, long numbers) {
      for (int i = 0; i < tile * tile; i++) {
        putFloat(to, at + i * Float.BYTES, (mix(numbers, i) >>> 40) * 0x1p-23f - 1);
      }
    }
  }
}
