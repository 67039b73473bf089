package mapreduce.harness.gpu;

import org.apache.hadoop.conf.Configuration;

/** Pairs of tiles of two matrices whose elements are uniform in [-1, 1). */
public final class Pairs extends RawRecords {
  private long seed;
  private int tile;
  private int inner;
  private long columns;

  @Override
  int prepare(Configuration conf, long seed) {
    this.seed = seed;
    tile = conf.getInt(GpuMatmul.TILE, 128);
    inner = conf.getInt(GpuMatmul.INNER, 4);
    long records = conf.getLong(Generate.RECORDS, 0);
    if (inner < 1 || records < 1 || records % inner != 0) {
      throw new IllegalArgumentException(
          records + " pairs of tiles are not a whole number of sums of " + inner + " products");
    }
    columns = GpuMatmul.columns(records / inner);
    return 2 * tile * tile * Float.BYTES;
  }

  @Override
  void fill(byte[] record, long number) {
    long result = number / inner;
    long product = number % inner;
    fillTile(record, 0, mix(mix(seed, result / columns), product));
    fillTile(record, record.length / 2, mix(mix(~seed, result % columns), product));
  }

  private void fillTile(byte[] record, int at, long numbers) {
    for (int i = 0; i < tile * tile; i++) {
      putFloat(record, at + i * Float.BYTES, (mix(numbers, i) >>> 40) * 0x1p-23f - 1);
    }
  }
}
