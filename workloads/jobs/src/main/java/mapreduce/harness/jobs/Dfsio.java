package mapreduce.harness.jobs;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.zip.CRC32;
import mapreduce.harness.jobs.generate.Buffer;
import mapreduce.harness.jobs.generate.Noise;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskInputOutputContext;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.mapreduce.lib.input.TextInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.TextOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Dfsio INPUT OUTPUT: the rate at which the file system takes or gives files, one map for each,
 * without a reduce.
 *
 * <p>{@code dfsio.mode=read}: each map reads a file of INPUT whole. {@code write}: INPUT has a line
 * of {@link mapreduce.harness.jobs.generate.Shares} for each file, and its map writes these records
 * of {@link Noise} to {@code part-data-NUMBER} in OUTPUT; {@code dfsio.seed} and {@code
 * noise.bytes} say which they are.
 *
 * <p>Each map then writes a line: name of the file, CRC-32 of its bytes in hexadecimal digits,
 * bytes, and nanoseconds within the file system's calls, from opening to closing. Making and
 * checking the bytes is not in that time. Their sums are counters, {@link Moved}.
 */
public final class Dfsio extends Configured implements Tool {
  private static final int BUFFER = 1 << 20;

  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new Dfsio(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println("usage: Dfsio [-D dfsio.mode=write|read ...] INPUT OUTPUT");
      return 2;
    }
    String mode = getConf().get("dfsio.mode", "write");
    Job job = Job.getInstance(getConf(), "dfsio " + mode);
    job.setJarByClass(Dfsio.class);
    switch (mode) {
      case "write" -> {
        job.setInputFormatClass(TextInputFormat.class);
        job.setMapperClass(Write.class);
      }
      case "read" -> {
        job.setInputFormatClass(WholeFiles.class);
        job.setMapperClass(Read.class);
      }
      default ->
          throw new IllegalArgumentException("dfsio.mode is " + mode + ": it is write or read");
    }
    job.setNumReduceTasks(0);
    job.setSpeculativeExecution(false);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(NullWritable.class);
    job.setOutputFormatClass(TextOutputFormat.class);
    FileInputFormat.setInputPaths(job, new Path(arguments[0]));
    FileOutputFormat.setOutputPath(job, new Path(arguments[1]));
    return Client.run(job);
  }

  /** What all maps moved, for the job's history: a throughput is bytes by time. */
  public enum Moved {
    BYTES,
    FILE_SYSTEM_NS
  }

  private static Text line(
      TaskInputOutputContext<?, ?, ?, ?> context, Path file, CRC32 crc, long bytes, long nanos) {
    context.getCounter(Moved.BYTES).increment(bytes);
    context.getCounter(Moved.FILE_SYSTEM_NS).increment(nanos);
    return new Text(
        String.format("%s\t%08x\t%d\t%d", file.getName(), crc.getValue(), bytes, nanos));
  }

  /** Writes one file. */
  public static final class Write extends Mapper<LongWritable, Text, Text, NullWritable> {
    @Override
    protected void map(LongWritable place, Text share, Context context)
        throws IOException, InterruptedException {
      Configuration conf = context.getConfiguration();
      String[] numbers = share.toString().split(" ");
      int part = Integer.parseInt(numbers[0]);
      long first = Long.parseLong(numbers[1]);
      long end = first + Long.parseLong(numbers[2]);
      Noise noise = new Noise();
      noise.open(conf, conf.getLong("dfsio.seed", 1));
      Path file =
          new Path(
              FileOutputFormat.getWorkOutputPath(context), String.format("part-data-%05d", part));
      FileSystem files = file.getFileSystem(conf);
      Buffer buffer = new Buffer(2 * BUFFER);
      CRC32 crc = new CRC32();
      long bytes = 0;
      long nanos = -System.nanoTime();
      OutputStream out = files.create(file, false);
      nanos += System.nanoTime();
      for (long record = first; record < end; record++) {
        noise.write(record, buffer);
        if (buffer.size() >= BUFFER || record == end - 1) {
          crc.update(buffer.bytes(), 0, buffer.size());
          bytes += buffer.size();
          nanos -= System.nanoTime();
          out.write(buffer.bytes(), 0, buffer.size());
          nanos += System.nanoTime();
          buffer.clear();
          context.progress();
        }
      }
      nanos -= System.nanoTime();
      out.close();
      nanos += System.nanoTime();
      context.write(line(context, file, crc, bytes, nanos), NullWritable.get());
    }
  }

  /** Reads one file. */
  public static final class Read extends Mapper<Text, NullWritable, Text, NullWritable> {
    @Override
    protected void map(Text name, NullWritable nothing, Context context)
        throws IOException, InterruptedException {
      Path file = new Path(name.toString());
      FileSystem files = file.getFileSystem(context.getConfiguration());
      byte[] buffer = new byte[BUFFER];
      CRC32 crc = new CRC32();
      long bytes = 0;
      long nanos = -System.nanoTime();
      InputStream in = files.open(file);
      int count = in.read(buffer);
      nanos += System.nanoTime();
      while (count > 0) {
        crc.update(buffer, 0, count);
        bytes += count;
        context.progress();
        nanos -= System.nanoTime();
        count = in.read(buffer);
        nanos += System.nanoTime();
      }
      in.close();
      context.write(line(context, file, crc, bytes, nanos), NullWritable.get());
    }
  }

  /** Each file is one split, and one record: its path. */
  public static final class WholeFiles extends FileInputFormat<Text, NullWritable> {
    @Override
    protected boolean isSplitable(JobContext context, Path file) {
      return false;
    }

    @Override
    public RecordReader<Text, NullWritable> createRecordReader(
        InputSplit split, TaskAttemptContext context) {
      return new PathReader();
    }
  }

  private static final class PathReader extends RecordReader<Text, NullWritable> {
    private Text path;
    private boolean read;

    @Override
    public void initialize(InputSplit split, TaskAttemptContext context) {
      path = new Text(((FileSplit) split).getPath().toString());
    }

    @Override
    public boolean nextKeyValue() {
      boolean first = !read;
      read = true;
      return first;
    }

    @Override
    public Text getCurrentKey() {
      return path;
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
}
