package mapreduce.harness.gpu;

import java.io.DataInput;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.TaskAttemptContext;

/** The centres of one iteration. */
final class Centres {
  private final float[][] at;

  Centres(int count, int dimensions) {
    at = new float[count][dimensions];
  }

  int count() {
    return at.length;
  }

  int dimensions() {
    return at[0].length;
  }

  float[] get(int centre) {
    return at[centre];
  }

  /** Reads one centre as little-endian floats; false where one of them is not finite. */
  boolean read(DataInput in, int centre) throws IOException {
    boolean finite = true;
    for (int j = 0; j < dimensions(); j++) {
      at[centre][j] = Float.intBitsToFloat(Integer.reverseBytes(in.readInt()));
      finite &= Float.isFinite(at[centre][j]);
    }
    return finite;
  }

  void write(Path file, Configuration conf) throws IOException {
    ByteBuffer bytes =
        ByteBuffer.allocate(count() * dimensions() * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    copyTo(bytes.asFloatBuffer());
    try (FSDataOutputStream out = file.getFileSystem(conf).create(file, false)) {
      out.write(bytes.array());
    }
  }

  void copyTo(FloatBuffer to) {
    for (float[] centre : at) {
      to.put(centre);
    }
  }

  /** The centres that a task's distributed cache holds. */
  static Centres cached(TaskAttemptContext context) throws IOException {
    Configuration conf = context.getConfiguration();
    Centres centres =
        new Centres(conf.getInt(GpuKMeans.K, 10), conf.getInt(GpuKMeans.DIMENSIONS, 4));
    URI file = context.getCacheFiles()[0];
    // The copy on this node stands in the task's work folder, under the file's own name.
    java.nio.file.Path local = java.nio.file.Path.of(new Path(file).getName());
    FloatBuffer floats =
        ByteBuffer.wrap(Files.readAllBytes(local)).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
    for (float[] centre : centres.at) {
      floats.get(centre);
    }
    return centres;
  }

  /** One line of output. */
  static String line(int centre, long points, int iteration, float[] coordinates) {
    StringBuilder line =
        new StringBuilder(
            String.format(Locale.ROOT, "%05d\t%012d\t%05d\t", centre, points, iteration));
    for (int j = 0; j < coordinates.length; j++) {
      line.append(j == 0 ? "" : " ").append(String.format(Locale.ROOT, "%+.9e", coordinates[j]));
    }
    return line.toString();
  }

  /** The centres that the reduces of an iteration have written. */
  static Centres parse(FileSystem files, Path folder, int count, int dimensions)
      throws IOException {
    Centres centres = new Centres(count, dimensions);
    int parsed = 0;
    for (FileStatus file : files.globStatus(new Path(folder, "part-r-*"))) {
      byte[] bytes = new byte[(int) file.getLen()];
      try (var in = files.open(file.getPath())) {
        in.readFully(bytes);
      }
      for (String line : new String(bytes, StandardCharsets.US_ASCII).lines().toList()) {
        String[] fields = line.split("\t");
        String[] coordinates = fields[3].split(" ");
        for (int j = 0; j < dimensions; j++) {
          centres.at[Integer.parseInt(fields[0])][j] = Float.parseFloat(coordinates[j]);
        }
        parsed++;
      }
    }
    if (parsed != count) {
      throw new IOException(folder + " has " + parsed + " centres, not " + count);
    }
    return centres;
  }

  /** How far the centre that moved farthest has moved. */
  double farthest(Centres before) {
    double farthest = 0;
    for (int c = 0; c < count(); c++) {
      double square = 0;
      for (int j = 0; j < dimensions(); j++) {
        double moved = (double) at[c][j] - before.at[c][j];
        square += moved * moved;
      }
      farthest = Math.max(farthest, Math.sqrt(square));
    }
    return farthest;
  }
}
