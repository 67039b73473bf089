package mapreduce.harness.jobs.kmeans;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;

/** Reads points out of records, and refuses those that are none. */
final class Points {
  private final double[] point;

  Points(int dimensions) {
    this.point = new double[dimensions];
  }

  /** The number of dimensions that the properties give. */
  static int dimensions(Configuration conf) {
    return conf.getInt(KMeans.DIMENSIONS, 20);
  }

  static boolean isText(Configuration conf) {
    return conf.get(KMeans.FORMAT, "binary").equals("csv");
  }

  /** Bytes of a record that is not text. */
  static int recordBytes(Configuration conf) {
    return Math.multiplyExact(dimensions(conf), Double.BYTES);
  }

  /**
   * The point in a record; the same array each time.
   *
   * @throws IOException with what is wrong with it
   */
  double[] read(Writable value) throws IOException {
    if (value instanceof Text line) {
      return read(line);
    }
    BytesWritable record = (BytesWritable) value;
    ByteBuffer.wrap(record.getBytes(), 0, record.getLength()).asDoubleBuffer().get(point);
    for (int i = 0; i < point.length; i++) {
      check(i, Double.toString(point[i]));
    }
    return point;
  }

  private double[] read(Text line) throws IOException {
    String[] parts = line.toString().split(",", -1);
    if (parts.length != point.length) {
      throw new IOException(
          parts.length + " coordinates, not " + point.length + " (" + KMeans.DIMENSIONS + ")");
    }
    for (int i = 0; i < parts.length; i++) {
      String part = parts[i].strip();
      try {
        point[i] = Double.parseDouble(part);
      } catch (NumberFormatException e) {
        throw new IOException("coordinate " + (i + 1) + " is no number: " + shown(part), e);
      }
      check(i, part);
    }
    return point;
  }

  private void check(int i, String written) throws IOException {
    if (!Double.isFinite(point[i])) {
      throw new IOException("coordinate " + (i + 1) + " is not finite: " + shown(written));
    }
  }

  private static String shown(String text) {
    return text.substring(0, Math.min(text.length(), 40)).replaceAll("[^\\x20-\\x7e]", "?");
  }
}
