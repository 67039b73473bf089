package mapreduce.harness.jobs;

import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.FileOutputFormat;
import org.apache.hadoop.mapred.JobClient;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * OldCopy INPUT OUTPUT: lines with their places in their files, by Hadoop's old interface.
 *
 * <p>That interface has readers, collectors and loops of its own. Its defaults read text, and
 * change nothing.
 */
public final class OldCopy extends Configured implements Tool {
  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new OldCopy(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println("usage: OldCopy [-D name=value ...] INPUT OUTPUT");
      return 2;
    }
    JobConf job = new JobConf(getConf(), OldCopy.class);
    job.setJobName("old copy");
    job.setOutputKeyClass(LongWritable.class);
    job.setOutputValueClass(Text.class);
    FileInputFormat.setInputPaths(job, new Path(arguments[0]));
    FileOutputFormat.setOutputPath(job, new Path(arguments[1]));
    return JobClient.runJob(job).isSuccessful() ? 0 : 1;
  }
}
