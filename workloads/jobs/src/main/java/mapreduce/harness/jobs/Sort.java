package mapreduce.harness.jobs;

import java.io.IOException;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.KeyValueTextInputFormat;
import org.apache.hadoop.mapreduce.lib.input.SequenceFileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.TextOutputFormat;
import org.apache.hadoop.mapreduce.lib.partition.InputSampler;
import org.apache.hadoop.mapreduce.lib.partition.TotalOrderPartitioner;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Sort INPUT OUTPUT: lines in the order of their keys, which end at the first tab.
 *
 * <p>{@code sort.order}: {@code partition}, each output file for itself, as HiBench's sort; or
 * {@code total}, from one file to the next, too, with the partitions cut at keys that the client
 * samples before it submits. Map and reduce change nothing: what is left is Hadoop's own work.
 *
 * <p>{@code sort.form}: {@code lines}; or {@code sequence}, sequence files of texts on both sides.
 * Its job is then that of Sort in Hadoop's examples, class by class. That client itself takes no
 * number of reduces from the configuration.
 */
public final class Sort extends Configured implements Tool {
  private static final int SAMPLES = 10_000;
  private static final int SAMPLED_SPLITS = 10;

  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new Sort(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println("usage: Sort [-D sort.order=partition|total ...] INPUT OUTPUT");
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
    Path output = new Path(arguments[1]);
    FileOutputFormat.setOutputPath(job, output);
    String order = getConf().get("sort.order", "partition");
    if (order.equals("partition")) {
      return Client.run(job);
    }
    if (!order.equals("total")) {
      throw new IllegalArgumentException("sort.order is " + order + ": it is partition or total");
    }
    Path cuts = output.suffix("-partitions");
    FileSystem files = cuts.getFileSystem(job.getConfiguration());
    try {
      job.setPartitionerClass(TotalOrderPartitioner.class);
      TotalOrderPartitioner.setPartitionFile(job.getConfiguration(), cuts);
      cut(
          job,
          cuts,
          form.equals("lines") ? new KeyValueTextInputFormat() : new SequenceFileInputFormat<>());
      return Client.run(job);
    } finally {
      files.delete(cuts, false);
    }
  }

  /**
   * Writes the first key of each partition but the first, evenly spaced among the keys at the heads
   * of some splits.
   */
  private static void cut(Job job, Path file, InputFormat<Text, Text> format)
      throws IOException, InterruptedException {
    TreeSet<Text> distinct = new TreeSet<>();
    for (Object key : sample(format, job)) {
      distinct.add((Text) key);
    }
    Text[] keys = distinct.toArray(new Text[0]);
    int parts = job.getNumReduceTasks();
    if (keys.length < parts) {
      throw new IllegalArgumentException(
          "sort.order is total: the sample has "
              + keys.length
              + " keys for "
              + parts
              + " reduces; ask for fewer");
    }
    Configuration conf = job.getConfiguration();
    try (SequenceFile.Writer writer =
        SequenceFile.createWriter(
            conf,
            SequenceFile.Writer.file(file),
            SequenceFile.Writer.keyClass(Text.class),
            SequenceFile.Writer.valueClass(NullWritable.class))) {
      for (int part = 1; part < parts; part++) {
        writer.append(keys[(int) ((long) part * keys.length / parts)], NullWritable.get());
      }
    }
  }

  /** The sampler says that its keys are an array of their class, and it is none. */
  private static <K, V> Object[] sample(InputFormat<K, V> format, Job job)
      throws IOException, InterruptedException {
    return new InputSampler.SplitSampler<K, V>(SAMPLES, SAMPLED_SPLITS).getSample(format, job);
  }
}
