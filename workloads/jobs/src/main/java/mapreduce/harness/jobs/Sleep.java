package mapreduce.harness.jobs;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import mapreduce.harness.ltrace.record.Trace;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.Counter;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Sleep OUTPUT: a job whose time in each phase is known, because it sleeps there.
 *
 * <p>Properties, durations in milliseconds with fractions: {@code sleep.maps}, {@code sleep.records} of each map,
 * {@code sleep.read} per record read, {@code sleep.map} per call of the map function, {@code sleep.outputs} records
 * of {@code sleep.bytes} bytes emitted by each call under {@code sleep.keys} keys, {@code sleep.combine} and
 * {@code sleep.reduce} per call. In its first record each map sleeps {@code sleep.work} within a span of its own, and
 * emits a record of {@code sleep.large} bytes. What was really slept stands in the counters of {@link Slept}. The first
 * attempt of the first map kills itself in its record number {@code sleep.kill}, counted from 0, or runs out of memory
 * in number {@code sleep.hoard}.
 */
public final class Sleep extends Configured implements Tool {
  /** Nanoseconds slept in each phase, measured where it was slept. */
  public enum Slept {
    READ_NS,
    MAP_NS,
    /** Slept in the span {@link #WORK}; a part of {@link #MAP_NS}. */
    WORK_NS,
    COMBINE_NS,
    REDUCE_NS
  }

  /** Name of the span that a map reports. */
  static final String WORK = "pretended work";

  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new Sleep(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 1) {
      System.err.println("usage: Sleep [-D sleep.maps=N ...] OUTPUT");
      return 2;
    }
    Job job = Job.getInstance(getConf(), "sleep");
    job.setJarByClass(Sleep.class);
    job.setInputFormatClass(SlowInput.class);
    job.setMapperClass(SlowMapper.class);
    if (getConf().getDouble("sleep.combine", 0) > 0) {
      job.setCombinerClass(SlowCombiner.class);
    }
    job.setReducerClass(SlowReducer.class);
    job.setOutputKeyClass(IntWritable.class);
    job.setOutputValueClass(BytesWritable.class);
    job.setOutputFormatClass(SequenceFileOutputFormat.class);
    FileOutputFormat.setOutputPath(job, new Path(arguments[0]));
    return job.waitForCompletion(false) ? 0 : 1;
  }

  /** Splits that hold nothing but their number. */
  public static final class SlowInput extends InputFormat<IntWritable, NullWritable> {
    @Override
    public List<InputSplit> getSplits(JobContext context) {
      List<InputSplit> splits = new ArrayList<>();
      for (int i = 0; i < context.getConfiguration().getInt("sleep.maps", 1); i++) {
        splits.add(new NoData());
      }
      return splits;
    }

    @Override
    public RecordReader<IntWritable, NullWritable> createRecordReader(InputSplit split, TaskAttemptContext context) {
      return new SlowReader();
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

  private static final class SlowReader extends RecordReader<IntWritable, NullWritable> {
    private final IntWritable key = new IntWritable(-1);
    private Pause pause;
    private int records;

    @Override
    public void initialize(InputSplit split, TaskAttemptContext context) {
      Configuration conf = context.getConfiguration();
      records = conf.getInt("sleep.records", 100);
      // The tracker of records hands its own context over, which has the task's counters.
      Counter slept = ((org.apache.hadoop.mapreduce.TaskInputOutputContext<?, ?, ?, ?>) context).getCounter(Slept.READ_NS);
      pause = new Pause(conf, "sleep.read", slept);
    }

    @Override
    public boolean nextKeyValue() throws IOException, InterruptedException {
      if (key.get() + 1 >= records) {
        return false;
      }
      pause.take();
      key.set(key.get() + 1);
      return true;
    }

    @Override
    public IntWritable getCurrentKey() {
      return key;
    }

    @Override
    public NullWritable getCurrentValue() {
      return NullWritable.get();
    }

    @Override
    public float getProgress() {
      return (key.get() + 1f) / Math.max(records, 1);
    }

    @Override
    public void close() {}
  }

  /** Emits the same record again and again. */
  public static final class SlowMapper extends Mapper<IntWritable, NullWritable, IntWritable, BytesWritable> {
    private final IntWritable key = new IntWritable();
    private BytesWritable value;
    private Pause pause;
    private Pause work;
    private int outputs;
    private int keys;
    private int large;
    private int kill;
    private int hoard;

    @Override
    protected void setup(Context context) {
      Configuration conf = context.getConfiguration();
      value = new BytesWritable(new byte[conf.getInt("sleep.bytes", 100)]);
      outputs = conf.getInt("sleep.outputs", 1);
      keys = Math.max(conf.getInt("sleep.keys", 10), 1);
      TaskAttemptID me = context.getTaskAttemptID();
      boolean first = me.getId() == 0 && me.getTaskID().getId() == 0;
      kill = first ? conf.getInt("sleep.kill", -1) : -1;
      hoard = first ? conf.getInt("sleep.hoard", -1) : -1;
      large = conf.getInt("sleep.large", 0);
      Counter slept = context.getCounter(Slept.MAP_NS);
      pause = new Pause(conf, "sleep.map", slept);
      work = new Pause(conf, "sleep.work", slept, context.getCounter(Slept.WORK_NS));
    }

    @Override
    protected void map(IntWritable number, NullWritable nothing, Context context)
        throws IOException, InterruptedException {
      pause.take();
      if (number.get() == kill) {
        new ProcessBuilder("kill", "-9", Long.toString(ProcessHandle.current().pid())).start().waitFor();
      }
      if (number.get() == hoard) {
        hoard();
      }
      if (number.get() == 0) {
        first(context);
      }
      for (int i = 0; i < outputs; i++) {
        key.set((number.get() * outputs + i) % keys);
        context.write(key, value);
      }
    }

    private void first(Context context) throws IOException, InterruptedException {
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

    private static void hoard() {
      List<byte[]> hoarded = new ArrayList<>();
      for (; ; ) {
        hoarded.add(new byte[1 << 20]);
      }
    }
  }

  /** Lets one record of each key through. */
  public abstract static class SlowGroups extends Reducer<IntWritable, BytesWritable, IntWritable, BytesWritable> {
    private final String property;
    private final Slept where;
    private Pause pause;

    SlowGroups(String property, Slept where) {
      this.property = property;
      this.where = where;
    }

    @Override
    protected void setup(Context context) {
      pause = new Pause(context.getConfiguration(), property, context.getCounter(where));
    }

    @Override
    protected void reduce(IntWritable key, Iterable<BytesWritable> values, Context context)
        throws IOException, InterruptedException {
      pause.take();
      context.write(key, values.iterator().next());
    }
  }

  /** The combiner. */
  public static final class SlowCombiner extends SlowGroups {
    public SlowCombiner() {
      super("sleep.combine", Slept.COMBINE_NS);
    }
  }

  /** The reducer. */
  public static final class SlowReducer extends SlowGroups {
    public SlowReducer() {
      super("sleep.reduce", Slept.REDUCE_NS);
    }
  }
}
