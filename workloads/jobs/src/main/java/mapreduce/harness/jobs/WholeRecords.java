package mapreduce.harness.jobs;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.lib.input.FixedLengthInputFormat;

/**
 * Records of one size; a file that ends within one is refused by name, before the job is submitted.
 */
public class WholeRecords extends FixedLengthInputFormat {
  @Override
  protected List<FileStatus> listStatus(JobContext context) throws IOException {
    List<FileStatus> files = super.listStatus(context);
    int size = getRecordLength(context.getConfiguration());
    for (FileStatus file : files) {
      if (file.getLen() % size != 0) {
        throw new IOException(
            file.getPath()
                + " has "
                + file.getLen()
                + " bytes, which is not a whole number of records of "
                + size
                + " bytes");
      }
    }
    return files;
  }
}
