package mapreduce.harness.jobs;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import mapreduce.harness.ltrace.record.Trace;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.Counter;
import org.apache.hadoop.mapreduce.Counters;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskInputOutputContext;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FixedLengthInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.TextOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Sleep [INPUT] OUTPUT: a job whose time in each phase is known, because it sleeps there.
 *
 * <p>Records have {@code sleep.record} bytes. Durations in milliseconds with fractions: {@code
 * sleep.read} per record read, {@code sleep.map} per call of the map function, {@code
 * sleep.combine} per call of the combiner, which is set where this is above 0, and {@code
 * sleep.reduce} per call of the reduce function. Each record becomes {@code sleep.outputs} records
 * of {@code sleep.bytes} bytes, its own again and again, under {@code sleep.keys} keys in turn. A
 * reduce writes for each key: the key, the records that came, and their {@link Checksum}. When the
 * job has ended, its client writes {@code part-slept}: for each phase its name, calls, and
 * nanoseconds slept.
 *
 * <p>Without INPUT, {@code sleep.maps} maps read {@code sleep.records} records of zeros each, and
 * the reduces leave the values unread. For the tracer's self-test there are, with either input:
 * {@code sleep.work}, slept by each map in its first record within a span of its own, and {@code
 * sleep.large}, the bytes of one more record that is emitted then. The first attempt of the first
 * map kills itself in its record number {@code sleep.kill}, counted from 0, or runs out of memory
 * in number {@code sleep.hoard}.
 */
public final class Sleep extends Configured implements Tool {
  /** Calls of the phases, and nanoseconds slept in them, measured where it was slept. */
  public enum Slept {
    READ_CALLS,
    READ_NS,
    MAP_CALLS,
    MAP_NS,
    /** Slept in the span {@link #WORK}; a part of {@link #MAP_NS}. */
    WORK_NS,
    COMBINE_NS,
    REDUCE_CALLS,
    REDUCE_NS
  }

  /** Name of the span that a map reports. */
  static final String WORK = "pretended work";

  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new Sleep(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 1 && arguments.length != 2) {
      System.err.println("usage: Sleep [-D sleep.map=MILLISECONDS ...] [INPUT] OUTPUT");
      return 2;
    }
    Path output = new Path(arguments[arguments.length - 1]);
    Job job = Job.getInstance(getConf(), "sleep");
    Configuration conf = job.getConfiguration();
    job.setJarByClass(Sleep.class);
    job.setInputFormatClass(SlowInput.class);
    FixedLengthInputFormat.setRecordLength(conf, conf.getInt("sleep.record", 100));
    if (arguments.length == 2) {
      FileInputFormat.setInputPaths(job, new Path(arguments[0]));
    }
    job.setMapperClass(SlowMapper.class);
    if (conf.getDouble("sleep.combine", 0) > 0) {
      job.setCombinerClass(SlowCombiner.class);
    }
    job.setReducerClass(SlowReducer.class);
    job.setMapOutputKeyClass(IntWritable.class);
    job.setMapOutputValueClass(BytesWritable.class);
    job.setOutputKeyClass(IntWritable.class);
    job.setOutputValueClass(Text.class);
    job.setOutputFormatClass(TextOutputFormat.class);
    FileOutputFormat.setOutputPath(job, output);
    if (Client.run(job) != 0) {
      return 1;
    }
    Path report = new Path(output, "part-slept");
    try (OutputStream out = output.getFileSystem(conf).create(report, false)) {
      Counters counters = job.getCounters();
      String lines =
          line(counters, "read", Slept.READ_CALLS, Slept.READ_NS)
              + line(counters, "map", Slept.MAP_CALLS, Slept.MAP_NS)
              + line(counters, "reduce", Slept.REDUCE_CALLS, Slept.REDUCE_NS);
      out.write(lines.getBytes(StandardCharsets.US_ASCII));
    }
    return 0;
  }

  private static String line(Counters counters, String phase, Slept calls, Slept nanos) {
    long called = counters.findCounter(calls).getValue();
    return String.format("%s\t%d\t%d\n", phase, called, counters.findCounter(nanos).getValue());
  }

  private static boolean hasInput(Configuration conf) {
    return conf.get(FileInputFormat.INPUT_DIR) != null;
  }

  /** Records of one size, each after a pause; of files, or zeros where there are none. */
  public static final class SlowInput extends WholeRecords {
    @Override
    public List<InputSplit> getSplits(JobContext context) throws IOException {
      if (hasInput(context.getConfiguration())) {
        return super.getSplits(context);
      }
      List<InputSplit> splits = new ArrayList<>();
      for (int i = 0; i < context.getConfiguration().getInt("sleep.maps", 1); i++) {
        splits.add(new NoData());
      }
      return splits;
    }

    @Override
    public RecordReader<LongWritable, BytesWritable> createRecordReader(
        InputSplit split, TaskAttemptContext context) throws IOException, InterruptedException {
      boolean zeros = split instanceof NoData;
      return new SlowReader(zeros ? new Zeros() : super.createRecordReader(split, context));
    }
  }

  /** A split without data. */
  public static final class NoData extends InputSplit implements Writable {
    @Override
    public long getLength() {
      return 0;
    }

    @Override
    public String[] getLocations() {
      return new String[0];
    }

    @Override
    public void write(DataOutput out) {}

    @Override
    public void readFields(DataInput in) {}
  }

  /** Records of zeros under their numbers. */
  private static final class Zeros extends RecordReader<LongWritable, BytesWritable> {
    private final LongWritable number = new LongWritable(-1);
    private BytesWritable record;
    private int records;

    @Override
    public void initialize(InputSplit split, TaskAttemptContext context) {
      Configuration conf = context.getConfiguration();
      records = conf.getInt("sleep.records", 100);
      record = new BytesWritable(new byte[FixedLengthInputFormat.getRecordLength(conf)]);
    }

    @Override
    public boolean nextKeyValue() {
      if (number.get() + 1 >= records) {
        return false;
      }
      number.set(number.get() + 1);
      return true;
    }

    @Override
    public LongWritable getCurrentKey() {
      return number;
    }

    @Override
    public BytesWritable getCurrentValue() {
      return record;
    }

    @Override
    public float getProgress() {
      return (number.get() + 1f) / Math.max(records, 1);
    }

    @Override
    public void close() {}
  }

  private static final class SlowReader extends RecordReader<LongWritable, BytesWritable> {
    private final RecordReader<LongWritable, BytesWritable> records;
    private Counter calls;
    private Pause pause;

    SlowReader(RecordReader<LongWritable, BytesWritable> records) {
      this.records = records;
    }

    @Override
    public void initialize(InputSplit split, TaskAttemptContext context)
        throws IOException, InterruptedException {
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

  /** Emits each record some times, at the requested size. */
  public static final class SlowMapper
      extends Mapper<LongWritable, BytesWritable, IntWritable, BytesWritable> {
    private final IntWritable key = new IntWritable();
    private BytesWritable value;
    private Counter calls;
    private Pause pause;
    private Pause work;
    private int outputs;
    private int keys;
    private int large;
    private int kill;
    private int hoard;
    private boolean works;
    private long number;
    private long emitted;

    @Override
    protected void setup(Context context) {
      Configuration conf = context.getConfiguration();
      value = new BytesWritable(new byte[conf.getInt("sleep.bytes", 100)]);
      outputs = conf.getInt("sleep.outputs", 1);
      keys = Math.max(conf.getInt("sleep.keys", 10), 1);
      TaskAttemptID attempt = context.getTaskAttemptID();
      boolean first = attempt.getId() == 0 && attempt.getTaskID().getId() == 0;
      kill = first ? conf.getInt("sleep.kill", -1) : -1;
      hoard = first ? conf.getInt("sleep.hoard", -1) : -1;
      large = conf.getInt("sleep.large", 0);
      works = large > 0 || conf.getDouble("sleep.work", 0) > 0;
      Counter slept = context.getCounter(Slept.MAP_NS);
      calls = context.getCounter(Slept.MAP_CALLS);
      pause = new Pause(conf, "sleep.map", slept);
      work = new Pause(conf, "sleep.work", slept, context.getCounter(Slept.WORK_NS));
    }

    @Override
    protected void map(LongWritable place, BytesWritable record, Context context)
        throws IOException, InterruptedException {
      calls.increment(1);
      pause.take();
      if (number == kill) {
        // The shell's own kill: a small system has no program of that name.
        String command = "kill -9 " + ProcessHandle.current().pid();
        new ProcessBuilder("sh", "-c", command).start().waitFor();
      }
      if (number == hoard) {
        List<byte[]> hoarded = new ArrayList<>();
        for (; ; ) {
          hoarded.add(new byte[1 << 20]);
        }
      }
      if (number == 0 && works) {
        work(context);
      }
      number++;
      for (int from = 0; from < value.getLength(); from += record.getLength()) {
        int size = Math.min(record.getLength(), value.getLength() - from);
        System.arraycopy(record.getBytes(), 0, value.getBytes(), from, size);
      }
      for (int i = 0; i < outputs; i++) {
        key.set((int) (emitted++ % keys));
        context.write(key, value);
      }
    }

    private void work(Context context) throws IOException, InterruptedException {
      long span = Trace.begin(WORK);
      try {
        work.take();
      } finally {
        Trace.end(span, large);
      }
      if (large > 0) {
        key.set(0);
        context.write(key, new BytesWritable(new byte[large]));
      }
    }
  }

  /** Lets one record of each key through. */
  public static final class SlowCombiner
      extends Reducer<IntWritable, BytesWritable, IntWritable, BytesWritable> {
    private Pause pause;

    @Override
    protected void setup(Context context) {
      Counter slept = context.getCounter(Slept.COMBINE_NS);
      pause = new Pause(context.getConfiguration(), "sleep.combine", slept);
    }

    @Override
    protected void reduce(IntWritable key, Iterable<BytesWritable> values, Context context)
        throws IOException, InterruptedException {
      pause.take();
      context.write(key, values.iterator().next());
    }
  }

  /** Writes what came under each key. */
  public static final class SlowReducer
      extends Reducer<IntWritable, BytesWritable, IntWritable, Text> {
    private Counter calls;
    private Pause pause;
    private boolean reads;

    @Override
    protected void setup(Context context) {
      Configuration conf = context.getConfiguration();
      calls = context.getCounter(Slept.REDUCE_CALLS);
      pause = new Pause(conf, "sleep.reduce", context.getCounter(Slept.REDUCE_NS));
      reads = hasInput(conf);
    }

    @Override
    protected void reduce(IntWritable key, Iterable<BytesWritable> values, Context context)
        throws IOException, InterruptedException {
      calls.increment(1);
      pause.take();
      Checksum checksum = new Checksum();
      long count = 0;
      if (reads) {
        for (BytesWritable value : values) {
          count++;
          checksum.add(value.getBytes(), value.getLength());
        }
      }
      context.write(key, new Text(String.format("%d\t%016x", count, checksum.sum())));
    }
  }
}
