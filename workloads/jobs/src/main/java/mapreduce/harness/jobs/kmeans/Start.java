package mapreduce.harness.jobs.kmeans;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.Text;

/** The first points of an input, which are where the centres start. */
final class Start {
  private final Configuration conf;
  private final Points reader;
  private final List<double[]> points = new ArrayList<>();

  private Start(Configuration conf) {
    this.conf = conf;
    this.reader = new Points(Points.dimensions(conf));
  }

  /**
   * The first points of the files in a folder, or of a file.
   *
   * @throws IOException where there are fewer, or a file does not hold a whole number of points
   */
  static Centres read(Configuration conf, Path input, int count) throws IOException {
    Start start = new Start(conf);
    FileSystem files = input.getFileSystem(conf);
    FileStatus[] all =
        files.listStatus(
            input, path -> !path.getName().startsWith("_") && !path.getName().startsWith("."));
    Arrays.sort(all, Comparator.comparing(FileStatus::getPath));
    for (FileStatus file : all) {
      start.check(file);
      if (start.points.size() < count) {
        start.add(files, file, count);
      }
    }
    if (start.points.size() < count) {
      throw new IOException(
          input
              + " has "
              + start.points.size()
              + " points in "
              + all.length
              + " files, fewer than the "
              + count
              + " centres ("
              + KMeans.CENTRES
              + ")");
    }
    return new Centres(start.points.toArray(double[][]::new), new long[count]);
  }

  private void check(FileStatus file) throws IOException {
    int size = Points.recordBytes(conf);
    if (file.isFile() && !Points.isText(conf) && file.getLen() % size != 0) {
      throw new IOException(
          file.getPath()
              + " has "
              + file.getLen()
              + " bytes: its record "
              + file.getLen() / size
              + ", counted from 0, is cut short of "
              + size
              + " bytes ("
              + KMeans.DIMENSIONS
              + ")");
    }
  }

  private void add(FileSystem files, FileStatus file, int count) throws IOException {
    try (FSDataInputStream in = files.open(file.getPath())) {
      if (Points.isText(conf)) {
        addLines(
            file, new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8)), count);
      } else {
        addRecords(file, in, count);
      }
    }
  }

  private void addLines(FileStatus file, BufferedReader lines, int count) throws IOException {
    long number = 1;
    String line = lines.readLine();
    while (line != null && points.size() < count) {
      try {
        points.add(reader.read(new Text(line)).clone());
      } catch (IOException e) {
        throw new IOException(file.getPath() + ", line " + number + ": " + e.getMessage(), e);
      }
      line = lines.readLine();
      number++;
    }
  }

  private void addRecords(FileStatus file, FSDataInputStream in, int count) throws IOException {
    byte[] record = new byte[Points.recordBytes(conf)];
    long records = file.getLen() / record.length;
    for (long number = 0; number < records && points.size() < count; number++) {
      in.readFully(record);
      try {
        points.add(reader.read(new BytesWritable(record)).clone());
      } catch (IOException e) {
        throw new IOException(file.getPath() + ", record " + number + ": " + e.getMessage(), e);
      }
    }
  }
}
