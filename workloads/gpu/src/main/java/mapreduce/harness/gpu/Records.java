package mapreduce.harness.gpu;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;

/**
 * The input of a job as whole records of one size, numbered through all its files in the order of
 * their names.
 */
final class Records {
  /** Property: bytes of a record. */
  static final String BYTES = "gpu.record.bytes";

  private Records() {}

  static long bytes(Configuration conf) {
    return conf.getLong(BYTES, 0);
  }

  /** Input files that are not empty, by name; an error names one that is cut short. */
  static List<FileStatus> files(JobContext job) throws IOException {
    long record = bytes(job.getConfiguration());
    List<FileStatus> nonEmpty = new ArrayList<>();
    for (FileStatus file : new Listing().list(job)) {
      long rest = file.getLen() % record;
      if (rest != 0) {
        throw new IOException(
            file.getPath()
                + " has "
                + file.getLen()
                + " bytes, which is not a whole number of records of "
                + record
                + " bytes: its last record lacks "
                + (record - rest)
                + " bytes");
      }
      if (file.getLen() > 0) {
        nonEmpty.add(file);
      }
    }
    nonEmpty.sort((a, b) -> a.getPath().compareTo(b.getPath()));
    return nonEmpty;
  }

  /** Records in all; an error where there are none. */
  static long count(JobContext job) throws IOException {
    long bytes = 0;
    for (FileStatus file : files(job)) {
      bytes += file.getLen();
    }
    if (bytes == 0) {
      Path[] paths = FileInputFormat.getInputPaths(job);
      throw new IOException(
          "the input is empty: " + (paths.length > 0 ? paths[0] : "no path was given"));
    }
    return bytes / bytes(job.getConfiguration());
  }

  /** Opens the listing of FileInputFormat, which knows of globs and hidden files. */
  private static final class Listing extends BlockInputFormat {
    List<FileStatus> list(JobContext job) throws IOException {
      return listStatus(job);
    }
  }
}
