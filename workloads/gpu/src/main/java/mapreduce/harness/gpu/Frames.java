package mapreduce.harness.gpu;

import org.apache.hadoop.conf.Configuration;

/**
 * Stereo frames: two layers of noise, the one behind moved by one column between the views, a
 * rectangle in front by 3 to 10 columns; it wanders from frame to frame.
 */
public final class Frames extends RawRecords {
  private long seed;
  private int view;
  private int height;
  private int shifts;

  @Override
  int prepare(Configuration conf, long seed) {
    this.seed = seed;
    view = conf.getInt(GpuSbs.WIDTH, 640) / 2;
    height = conf.getInt(GpuSbs.HEIGHT, 180);
    shifts = conf.getInt(GpuSbs.SHIFTS, 16);
    return 2 * view * height * 3;
  }

  @Override
  void fill(byte[] record, long frame) {
    int front = Math.min(3 + (int) (frame % 8), shifts - 1);
    int left = (int) (frame * 3 % view);
    int at = 0;
    for (int y = 0; y < height; y++) {
      boolean crosses = y >= height / 4 && y < height * 3 / 4;
      long noise = mix(seed, frame * height + y);
      row(record, at, noise, crosses ? left : Integer.MAX_VALUE, 0, 0);
      row(record, at + 3 * view, noise, crosses ? left : Integer.MAX_VALUE, 1, front);
      at += 6 * view;
    }
  }

  /** One row of a view, which shows the layers moved to the left by so many columns. */
  private void row(byte[] record, int at, long noise, int left, int back, int front) {
    int write = at;
    for (int x = 0; x < view; x++) {
      int column = x + front;
      boolean covered = column >= left && column - left < view / 3;
      long pixel = covered ? mix(~noise, column) : mix(noise, x + back);
      record[write++] = (byte) pixel;
      record[write++] = (byte) (pixel >> 8);
      record[write++] = (byte) (pixel >> 16);
    }
  }
}
