package mapreduce.harness.jobs.generate;

import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import mapreduce.harness.jobs.Client;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.ReflectionUtils;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Generate CONTENT RECORDS FILES SEED OUTPUT: writes records 0 to RECORDS - 1 of a {@link Content}.
 *
 * <p>CONTENT is the name of its class. Files are {@code part-m-00000} and so on, in the order of
 * the records, which are spread evenly over them: some of the first hold one more. A job writes
 * them; where {@code generate.here} is true this client does, without one.
 */
public final class Generate extends Configured implements Tool {
  static final String CONTENT = "generate.content";
  static final String RECORDS = "generate.records";
  static final String FILES = "generate.files";
  static final String SEED = "generate.seed";
  private static final String HERE = "generate.here";

  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new Generate(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 5) {
      System.err.println("usage: Generate [-D name=value ...] CONTENT RECORDS FILES SEED OUTPUT");
      return 2;
    }
    Configuration conf = getConf();
    conf.set(CONTENT, arguments[0]);
    conf.setLong(RECORDS, number("RECORDS", arguments[1], Long.MAX_VALUE / 2));
    conf.setInt(FILES, (int) number("FILES", arguments[2], Integer.MAX_VALUE));
    conf.setLong(SEED, Long.parseLong(arguments[3]));
    content(conf); // refuses here what every map would refuse
    if (conf.getBoolean(HERE, false)) {
      return writeHere(new Path(arguments[4]), conf);
    }
    Job job =
        Job.getInstance(
            conf, "generate " + arguments[0].substring(arguments[0].lastIndexOf('.') + 1));
    job.setJarByClass(Generate.class);
    job.setInputFormatClass(Ranges.class);
    job.setMapperClass(Writer.class);
    job.setNumReduceTasks(0);
    job.setSpeculativeExecution(false);
    job.setOutputFormatClass(RawOutput.class);
    job.setOutputKeyClass(NullWritable.class);
    job.setOutputValueClass(BytesWritable.class);
    FileOutputFormat.setOutputPath(job, new Path(arguments[4]));
    return Client.run(job);
  }

  private static int writeHere(Path folder, Configuration conf) throws IOException {
    FileSystem files = folder.getFileSystem(conf);
    int parts = conf.getInt(FILES, 1);
    for (int part = 0; part < parts; part++) {
      Range range = Range.of(conf.getLong(RECORDS, 0), parts, part);
      Batches batches = new Batches(range, content(conf));
      Path file = new Path(folder, String.format("part-m-%05d", part));
      try (OutputStream out = files.create(file, false)) {
        for (Buffer batch = batches.next(); batch != null; batch = batches.next()) {
          out.write(batch.bytes(), 0, batch.size());
        }
      }
    }
    return 0;
  }

  private static long number(String name, String text, long most) {
    long value = Long.parseLong(text);
    if (value < 1 || value > most) {
      throw new IllegalArgumentException(name + " is " + value + ": it must be from 1 to " + most);
    }
    return value;
  }

  /** The content that the properties name, ready for its records. */
  static Content content(Configuration conf) {
    Class<? extends Content> type = conf.getClass(CONTENT, null, Content.class);
    if (type == null) {
      throw new IllegalArgumentException("no content: " + CONTENT + " names no class");
    }
    Content content = ReflectionUtils.newInstance(type, conf);
    content.open(conf, conf.getLong(SEED, 1));
    return content;
  }

  /** One split for each file. */
  public static final class Ranges extends InputFormat<Range, NullWritable> {
    @Override
    public List<InputSplit> getSplits(JobContext context) {
      Configuration conf = context.getConfiguration();
      int files = conf.getInt(FILES, 1);
      List<InputSplit> splits = new ArrayList<>(files);
      for (int part = 0; part < files; part++) {
        splits.add(Range.of(conf.getLong(RECORDS, 0), files, part));
      }
      return splits;
    }

    @Override
    public RecordReader<Range, NullWritable> createRecordReader(
        InputSplit split, TaskAttemptContext context) {
      return new Whole();
    }
  }

  /** Its split, once. */
  private static final class Whole extends RecordReader<Range, NullWritable> {
    private Range range;
    private boolean read;

    @Override
    public void initialize(InputSplit split, TaskAttemptContext context) {
      range = (Range) split;
    }

    @Override
    public boolean nextKeyValue() {
      boolean first = !read;
      read = true;
      return first;
    }

    @Override
    public Range getCurrentKey() {
      return range;
    }

    @Override
    public NullWritable getCurrentValue() {
      return NullWritable.get();
    }

    @Override
    public float getProgress() {
      return read ? 1 : 0;
    }

    @Override
    public void close() {}
  }

  /** Writes the records of its range. */
  public static final class Writer
      extends Mapper<Range, NullWritable, NullWritable, BytesWritable> {
    @Override
    protected void map(Range range, NullWritable nothing, Context context)
        throws IOException, InterruptedException {
      Batches batches = new Batches(range, content(context.getConfiguration()));
      for (Buffer batch = batches.next(); batch != null; batch = batches.next()) {
        // The bytes as they are; setting them would copy.
        context.write(NullWritable.get(), new BytesWritable(batch.bytes(), batch.size()));
      }
    }
  }
}
