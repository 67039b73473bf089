package mapreduce.harness.jobs;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Counter;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskInputOutputContext;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FixedLengthInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.TextOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * SleepOver INPUT OUTPUT: a job over real records whose time in each phase is known, because it sleeps there.
 *
 * <p>Records have {@code sleep.record} bytes. Durations in milliseconds with fractions: {@code sleep.read} per record
 * read, {@code sleep.map} per call of the map function, {@code sleep.reduce} per call of the reduce function. Each
 * record becomes {@code sleep.outputs} records of {@code sleep.bytes} bytes, its own again and again, under {@code
 * sleep.keys} keys in turn. A reduce writes for each key: the key, the records that came, and their {@link Checksum}.
 * When the job has ended, its client writes {@code part-slept}: for each phase its name, calls, and nanoseconds slept.
 */
public final class SleepOver extends Configured implements Tool {
  /** Calls of each phase, and nanoseconds slept in them. */
  public enum Slept {
    READ_CALLS,
    READ_NS,
    MAP_CALLS,
    MAP_NS,
    REDUCE_CALLS,
    REDUCE_NS
  }

  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new SleepOver(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println("usage: SleepOver [-D sleep.map=MILLISECONDS ...] INPUT OUTPUT");
      return 2;
    }
    Path output = new Path(arguments[1]);
    Job job = Job.getInstance(getConf(), "sleep");
    job.setJarByClass(SleepOver.class);
    job.setInputFormatClass(SlowRecords.class);
    FixedLengthInputFormat.setRecordLength(job.getConfiguration(), getConf().getInt("sleep.record", 100));
    job.setMapperClass(SlowMapper.class);
    job.setReducerClass(SlowReducer.class);
    job.setMapOutputKeyClass(IntWritable.class);
    job.setMapOutputValueClass(BytesWritable.class);
    job.setOutputKeyClass(IntWritable.class);
    job.setOutputValueClass(Text.class);
    job.setOutputFormatClass(TextOutputFormat.class);
    FileInputFormat.setInputPaths(job, new Path(arguments[0]));
    FileOutputFormat.setOutputPath(job, output);
    if (Client.run(job) != 0) {
      return 1;
    }
    try (OutputStream out = output.getFileSystem(getConf()).create(new Path(output, "part-slept"), false)) {
      out.write(told(job.getCounters()).getBytes(StandardCharsets.US_ASCII));
    }
    return 0;
  }

  private static String told(Counters counters) {
    StringBuilder lines = new StringBuilder();
    Slept[] all = Slept.values();
    for (int at = 0; at < all.length; at += 2) {
      String phase = all[at].name().replace("_CALLS", "").toLowerCase(Locale.ROOT);
      long calls = counters.findCounter(all[at]).getValue();
      lines.append(String.format("%s\t%d\t%d\n", phase, calls, counters.findCounter(all[at + 1]).getValue()));
    }
    return lines.toString();
  }

  /** Records of one size, each after a pause. */
  public static final class SlowRecords extends WholeRecords {
    @Override
    public RecordReader<LongWritable, BytesWritable> createRecordReader(InputSplit split, TaskAttemptContext context)
        throws IOException, InterruptedException {
      return new SlowReader(super.createRecordReader(split, context));
    }
  }

  private static final class SlowReader extends RecordReader<LongWritable, BytesWritable> {
    private final RecordReader<LongWritable, BytesWritable> records;
    private Counter calls;
    private Pause pause;

    SlowReader(RecordReader<LongWritable, BytesWritable> records) {
      this.records = records;
    }

    @Override
    public void initialize(InputSplit split, TaskAttemptContext context) throws IOException, InterruptedException {
      records.initialize(split, context);
      // The tracker of records hands its own context over, which has the task's counters.
      TaskInputOutputContext<?, ?, ?, ?> task = (TaskInputOutputContext<?, ?, ?, ?>) context;
      calls = task.getCounter(Slept.READ_CALLS);
      pause = new Pause(context.getConfiguration(), "sleep.read", task.getCounter(Slept.READ_NS));
    }

    @Override
    public boolean nextKeyValue() throws IOException, InterruptedException {
      if (!records.nextKeyValue()) {
        return false;
      }
      calls.increment(1);
      pause.take();
      return true;
    }

    @Override
    public LongWritable getCurrentKey() throws IOException, InterruptedException {
      return records.getCurrentKey();
    }

    @Override
    public BytesWritable getCurrentValue() throws IOException, InterruptedException {
      return records.getCurrentValue();
    }

    @Override
    public float getProgress() throws IOException, InterruptedException {
      return records.getProgress();
    }

    @Override
    public void close() throws IOException {
      records.close();
    }
  }

  /** Emits each record some times, at the size asked for. */
  public static final class SlowMapper extends Mapper<LongWritable, BytesWritable, IntWritable, BytesWritable> {
    private final IntWritable key = new IntWritable();
    private BytesWritable value;
    private Counter calls;
    private Pause pause;
    private int outputs;
    private int keys;
    private long emitted;

    @Override
    protected void setup(Context context) {
      Configuration conf = context.getConfiguration();
      value = new BytesWritable(new byte[conf.getInt("sleep.bytes", 100)]);
      outputs = conf.getInt("sleep.outputs", 1);
      keys = Math.max(conf.getInt("sleep.keys", 10), 1);
      calls = context.getCounter(Slept.MAP_CALLS);
      pause = new Pause(conf, "sleep.map", context.getCounter(Slept.MAP_NS));
    }

    @Override
    protected void map(LongWritable place, BytesWritable record, Context context)
        throws IOException, InterruptedException {
      calls.increment(1);
      pause.take();
      for (int from = 0; from < value.getLength(); from += record.getLength()) {
        int size = Math.min(record.getLength(), value.getLength() - from);
        System.arraycopy(record.getBytes(), 0, value.getBytes(), from, size);
      }
      for (int i = 0; i < outputs; i++) {
        key.set((int) (emitted++ % keys));
        context.write(key, value);
      }
    }
  }

  /** Tells what came under each key. */
  public static final class SlowReducer extends Reducer<IntWritable, BytesWritable, IntWritable, Text> {
    private Counter calls;
    private Pause pause;

    @Override
    protected void setup(Context context) {
      calls = context.getCounter(Slept.REDUCE_CALLS);
      pause = new Pause(context.getConfiguration(), "sleep.reduce", context.getCounter(Slept.REDUCE_NS));
    }

    @Override
    protected void reduce(IntWritable key, Iterable<BytesWritable> values, Context context)
        throws IOException, InterruptedException {
      calls.increment(1);
      pause.take();
      Checksum checksum = new Checksum();
      long count = 0;
      for (BytesWritable value : values) {
        count++;
        checksum.add(value.getBytes(), value.getLength());
      }
      context.write(key, new Text(String.format("%d\t%016x", count, checksum.sum())));
    }
  }
}
