package mapreduce.harness.gpu;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Generate points|frames|pairs OUTPUT: {@code gpu.records} records in {@code gpu.files} files.
 *
 * <p>A record is a function of {@code gpu.seed} and its number: all files together have the same
 * bytes however many they are. Their records differ by one at most, the larger ones first. {@link
 * Scenes} says what records hold.
 */
public final class Generate extends Configured implements Tool {
  static final String RECORDS = "gpu.records";
  static final String FILES = "gpu.files";
  static final String KIND = "gpu.generate";
  private static final int PIECE = 1 << 18;

  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new Generate(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println("usage: Generate [-D gpu.records=N ...] points|frames|pairs OUTPUT");
      return 2;
    }
    Configuration conf = getConf();
    conf.set(KIND, arguments[0]);
    conf.setInt("mapreduce.job.reduces", 0);
    Scenes.of(conf); // complains here, and not in a task
    Job job = Job.getInstance(conf, "generate " + arguments[0]);
    job.setJarByClass(Generate.class);
    job.setInputFormatClass(Numbers.class);
    job.setMapperClass(Maker.class);
    job.setOutputKeyClass(NullWritable.class);
    job.setOutputValueClass(BytesWritable.class);
    job.setOutputFormatClass(RawOutputFormat.class);
    FileOutputFormat.setOutputPath(job, new Path(arguments[1]));
    return job.waitForCompletion(true) ? 0 : 1;
  }

  /** A split for each file: the number of its first record, and how many it has. */
  public static final class Numbers extends InputFormat<LongWritable, LongWritable> {
    @Override
    public List<InputSplit> getSplits(JobContext job) {
      long records = job.getConfiguration().getLong(RECORDS, 0);
      int maps = job.getConfiguration().getInt(FILES, 1);
      List<InputSplit> splits = new ArrayList<>();
      long first = 0;
      for (int i = 0; i < maps; i++) {
        long count = records / maps + (i < records % maps ? 1 : 0);
        splits.add(new Range(first, count, i));
        first += count;
      }
      return splits;
    }

    @Override
    public RecordReader<LongWritable, LongWritable> createRecordReader(
        InputSplit split, TaskAttemptContext context) {
      return new One((Range) split);
    }
  }

  /** Records of one file. */
  public static final class Range extends InputSplit implements Writable {
    private long first;
    private long count;
    private long order;

    /** For Hadoop, which fills it by {@link #readFields}. */
    public Range() {}

    Range(long first, long count, int order) {
      this.first = first;
      this.count = count;
      this.order = order;
    }

    /** Hadoop numbers maps by falling length: this is what keeps file and number together. */
    @Override
    public long getLength() {
      return Integer.MAX_VALUE - order;
    }

    @Override
    public String[] getLocations() {
      return new String[0];
    }

    @Override
    public void write(DataOutput out) throws IOException {
      out.writeLong(first);
      out.writeLong(count);
      out.writeLong(order);
    }

    @Override
    public void readFields(DataInput in) throws IOException {
      first = in.readLong();
      count = in.readLong();
      order = in.readLong();
    }
  }

  /** The whole range as one record. */
  private static final class One extends RecordReader<LongWritable, LongWritable> {
    private final Range range;
    private boolean given;

    One(Range range) {
      this.range = range;
    }

    @Override
    public void initialize(InputSplit split, TaskAttemptContext context) {}

    @Override
    public boolean nextKeyValue() {
      boolean first = !given;
      given = true;
      return first;
    }

    @Override
    public LongWritable getCurrentKey() {
      return new LongWritable(range.first);
    }

    @Override
    public LongWritable getCurrentValue() {
      return new LongWritable(range.count);
    }

    @Override
    public float getProgress() {
      return given ? 1 : 0;
    }

    @Override
    public void close() {}
  }

  /** Makes the records of a range, many at a time. */
  public static final class Maker
      extends Mapper<LongWritable, LongWritable, NullWritable, BytesWritable> {
    @Override
    protected void map(LongWritable first, LongWritable count, Context context)
        throws IOException, InterruptedException {
      Scenes scenes = Scenes.of(context.getConfiguration());
      int most = Math.max(PIECE / scenes.bytes(), 1);
      BytesWritable piece = new BytesWritable();
      long end = first.get() + count.get();
      for (long at = first.get(); at < end; at += most) {
        int records = (int) Math.min(most, end - at);
        piece.setSize(records * scenes.bytes());
        scenes.fill(piece.getBytes(), at, records);
        context.write(NullWritable.get(), piece);
        context.progress();
      }
    }
  }
}
