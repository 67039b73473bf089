package mapreduce.harness.jobs;

import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.KeyValueTextInputFormat;
import org.apache.hadoop.mapreduce.lib.input.SequenceFileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.TextOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Sort INPUT OUTPUT: records in the order of their keys, each output file for itself, as HiBench's
 * sort. Map and reduce change nothing: what is left is Hadoop's own work.
 *
 * <p>{@code sort.form}: {@code lines}, whose keys end at the first tab; or {@code sequence},
 * sequence files of texts on both sides. Its job is then that of Sort in Hadoop's examples, class
 * by class. That client itself takes no number of reduces from the configuration.
 */
public final class Sort extends Configured implements Tool {
  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new Sort(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println("usage: Sort [-D sort.form=lines|sequence ...] INPUT OUTPUT");
      return 2;
    }
    Job job = Job.getInstance(getConf(), "sort");
    job.setJarByClass(Sort.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(Text.class);
    String form = getConf().get("sort.form", "lines");
    if (form.equals("sequence")) {
      job.setInputFormatClass(SequenceFileInputFormat.class);
      job.setOutputFormatClass(SequenceFileOutputFormat.class);
    } else if (form.equals("lines")) {
      job.setInputFormatClass(KeyValueTextInputFormat.class);
      job.setOutputFormatClass(TextOutputFormat.class);
    } else {
      throw new IllegalArgumentException("sort.form is " + form + ": it is lines or sequence");
    }
    FileInputFormat.setInputPaths(job, new Path(arguments[0]));
    FileOutputFormat.setOutputPath(job, new Path(arguments[1]));
    return Client.run(job);
  }
}
