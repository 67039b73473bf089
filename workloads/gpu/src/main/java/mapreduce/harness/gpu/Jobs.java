package mapreduce.harness.gpu;

import java.io.IOException;
import mapreduce.harness.jobs.generate.RawOutput;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;

/** What the jobs share. */
final class Jobs {
  private Jobs() {}

  /** Input and output of a job that numbers what it makes and writes it in order. */
  static void inOrder(Job job, String[] arguments) throws IOException {
    check(job);
    job.setInputFormatClass(BlockInputFormat.class);
    FileInputFormat.addInputPath(job, new Path(arguments[0]));
    job.setMapOutputKeyClass(LongWritable.class);
    job.setMapOutputValueClass(BytesWritable.class);
    job.setPartitionerClass(RangePartitioner.class);
    job.setOutputKeyClass(NullWritable.class);
    job.setOutputValueClass(BytesWritable.class);
    job.setOutputFormatClass(RawOutput.class);
    FileOutputFormat.setOutputPath(job, new Path(arguments[1]));
  }

  /** Refuses before the job what every task would refuse. */
  static void check(Job job) throws IOException {
    Library.require(job.getConfiguration().get("gpu.device", "any"));
    if (job.getNumReduceTasks() < 1) {
      throw new IOException(
          job.getJobName()
              + " needs a reduce: its maps do not end in the order of the input; fix: set "
              + "mapreduce.job.reduces to 1 or more");
    }
  }

  /** A number of the configuration that must be 1 or more. */
  static int positive(Job job, String property, int usual) throws IOException {
    int value = job.getConfiguration().getInt(property, usual);
    if (value < 1) {
      throw new IOException(property + " is " + value + ", below 1");
    }
    return value;
  }
}
