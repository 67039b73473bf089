package mapreduce.harness.jobs;

import java.io.IOException;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Partitioner;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FixedLengthInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.TextOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Shuffle INPUT OUTPUT: every byte goes to a reduce, and nothing is computed.
 *
 * <p>Records have {@code shuffle.record} bytes. Each map deals its records out in turn, under keys
 * that ascend already, so that every reduce gets the same number from every map, but for one. A
 * reduce writes one line: records, bytes and {@link Checksum} of the values, the last in
 * hexadecimal digits.
 */
public final class Shuffle extends Configured implements Tool {
  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new Shuffle(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println("usage: Shuffle [-D shuffle.record=BYTES ...] INPUT OUTPUT");
      return 2;
    }
    Job job = Job.getInstance(getConf(), "shuffle");
    job.setJarByClass(Shuffle.class);
    job.setInputFormatClass(WholeRecords.class);
    FixedLengthInputFormat.setRecordLength(
        job.getConfiguration(), getConf().getInt("shuffle.record", 1000));
    job.setMapperClass(Dealer.class);
    job.setPartitionerClass(InTurn.class);
    job.setReducerClass(Counter.class);
    job.setMapOutputKeyClass(LongWritable.class);
    job.setMapOutputValueClass(BytesWritable.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(NullWritable.class);
    job.setOutputFormatClass(TextOutputFormat.class);
    FileInputFormat.setInputPaths(job, new Path(arguments[0]));
    FileOutputFormat.setOutputPath(job, new Path(arguments[1]));
    return Client.run(job);
  }

  /** Numbers the records of its split. */
  public static final class Dealer
      extends Mapper<LongWritable, BytesWritable, LongWritable, BytesWritable> {
    private final LongWritable number = new LongWritable();
    private long next;

    @Override
    protected void setup(Context context) {
      // Each map begins with another reduce, or those of low numbers would get all that is odd.
      next = context.getTaskAttemptID().getTaskID().getId();
    }

    @Override
    protected void map(LongWritable place, BytesWritable record, Context context)
        throws IOException, InterruptedException {
      number.set(next++);
      context.write(number, record);
    }
  }

  /** The number's remainder. */
  public static final class InTurn extends Partitioner<LongWritable, BytesWritable> {
    @Override
    public int getPartition(LongWritable number, BytesWritable record, int parts) {
      return (int) (number.get() % parts);
    }
  }

  /** Writes what came. */
  public static final class Counter
      extends Reducer<LongWritable, BytesWritable, Text, NullWritable> {
    private final Checksum checksum = new Checksum();
    private long records;
    private long bytes;

    @Override
    protected void reduce(LongWritable number, Iterable<BytesWritable> values, Context context) {
      for (BytesWritable value : values) {
        records++;
        bytes += value.getLength();
        checksum.add(value.getBytes(), value.getLength());
      }
    }

    @Override
    protected void cleanup(Context context) throws IOException, InterruptedException {
      String line = String.format("%d\t%d\t%016x", records, bytes, checksum.sum());
      context.write(new Text(line), NullWritable.get());
    }
  }
}
