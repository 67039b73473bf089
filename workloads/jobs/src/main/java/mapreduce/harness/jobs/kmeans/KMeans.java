package mapreduce.harness.jobs.kmeans;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.stream.Collectors;
import mapreduce.harness.jobs.generate.RawOutput;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.mapreduce.lib.input.FixedLengthInputFormat;
import org.apache.hadoop.mapreduce.lib.input.TextInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * KMeans INPUT OUTPUT: centres of clusters, by jobs that are repeated until the centres stand
 * still.
 *
 * <p>Properties, with HiBench's values where nothing is given: {@code kmeans.centres} (10), {@code
 * kmeans.dimensions} (20), {@code kmeans.epsilon} (0.5), the distance that no centre moves beyond
 * in the last iteration, {@code kmeans.iterations} (5) at most, and {@code kmeans.format}, {@code
 * binary} or {@code csv}. The forms and the rule are those of the package.
 *
 * <p>With {@code kmeans.assign} one job more, without reduces, writes each point and behind it the
 * number of the nearest of the last centres, as a double, into {@code OUTPUT/centres/part-m-*}: as
 * HiBench has it of Mahout.
 *
 * <p>The centres of all iterations, from the start, number 0, to the last one, are left in {@code
 * OUTPUT/centres/part-00000}: lines of centres with the number of the iteration and a tab before
 * them. Tasks read the centres from the distributed cache.
 */
public final class KMeans extends Configured implements Tool {
  static final String CENTRES = "kmeans.centres";
  static final String DIMENSIONS = "kmeans.dimensions";
  static final String EPSILON = "kmeans.epsilon";
  static final String ITERATIONS = "kmeans.iterations";
  static final String FORMAT = "kmeans.format";
  static final String ASSIGN = "kmeans.assign";

  /** What tasks call the file of centres. */
  private static final String CACHED = "centres";

  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new KMeans(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println(
          "usage: KMeans [-D kmeans.centres=K -D kmeans.dimensions=D ...] INPUT OUTPUT");
      return 2;
    }
    Configuration conf = getConf();
    int count = conf.getInt(CENTRES, 10);
    int most = conf.getInt(ITERATIONS, 5);
    String format = conf.get(FORMAT, "binary");
    if (count < 1
        || Points.dimensions(conf) < 1
        || most < 1
        || !(format.equals("binary") || format.equals("csv"))) {
      System.err.println(
          "KMeans: error: "
              + CENTRES
              + ", "
              + DIMENSIONS
              + " and "
              + ITERATIONS
              + " are 1 or more, "
              + FORMAT
              + " is binary or csv");
      return 2;
    }
    Path input = new Path(arguments[0]);
    Path output = new Path(arguments[1]);
    FileSystem files = output.getFileSystem(conf);
    if (files.exists(output)) {
      System.err.println("KMeans: error: " + output + " is there already");
      return 1;
    }
    Centres centres;
    try {
      centres = Start.read(conf, input, count);
    } catch (IOException e) {
      System.err.println("KMeans: error: " + e.getMessage());
      return 1;
    }
    return iterate(files, input, output, centres);
  }

  private int iterate(FileSystem files, Path input, Path output, Centres start)
      throws IOException, InterruptedException, ClassNotFoundException {
    Centres centres = start;
    StringBuilder all = new StringBuilder(numbered(0, start));
    Path work = new Path(output, "work");
    double epsilon = getConf().getDouble(EPSILON, 0.5);
    int most = getConf().getInt(ITERATIONS, 5);
    double shift = Double.POSITIVE_INFINITY;
    for (int i = 1; i <= most && shift > epsilon; i++) {
      Path cached = new Path(work, "centres-" + (i - 1));
      write(files, cached, centres.text());
      Path means = new Path(work, "means-" + i);
      if (!job(input, cached, means, i).waitForCompletion(true)) {
        return 1;
      }
      Centres next = read(files, means, centres);
      shift = next.shift(centres);
      centres = next;
      all.append(numbered(i, next));
    }
    Path left = new Path(output, "centres");
    if (getConf().getBoolean(ASSIGN, false)) {
      Path cached = new Path(work, "centres");
      write(files, cached, centres.text());
      Job assign = job(input, cached, left, 0);
      assign.setJobName("k-means assign");
      assign.setMapperClass(Label.class);
      assign.setNumReduceTasks(0);
      assign.setOutputKeyClass(NullWritable.class);
      assign.setOutputValueClass(BytesWritable.class);
      assign.setOutputFormatClass(RawOutput.class);
      if (!assign.waitForCompletion(true)) {
        return 1;
      }
    }
    write(files, new Path(left, "part-00000"), all.toString());
    files.delete(work, true);
    return 0;
  }

  private Job job(Path input, Path cached, Path means, int number) throws IOException {
    Configuration conf = new Configuration(getConf());
    FixedLengthInputFormat.setRecordLength(conf, Points.recordBytes(conf));
    Job job = Job.getInstance(conf, "k-means " + number);
    job.setJarByClass(KMeans.class);
    job.setInputFormatClass(
        Points.isText(conf) ? TextInputFormat.class : FixedLengthInputFormat.class);
    job.setMapperClass(Assign.class);
    job.setCombinerClass(Add.class);
    job.setReducerClass(Mean.class);
    job.setMapOutputKeyClass(IntWritable.class);
    job.setMapOutputValueClass(Sums.class);
    job.setOutputKeyClass(IntWritable.class);
    job.setOutputValueClass(Text.class);
    job.addCacheFile(URI.create(cached.getFileSystem(conf).makeQualified(cached) + "#" + CACHED));
    FileInputFormat.setInputPaths(job, input);
    FileOutputFormat.setOutputPath(job, means);
    return job;
  }

  /** The centres after an iteration: means where there are points, else where they were. */
  private static Centres read(FileSystem files, Path means, Centres before) throws IOException {
    Centres next = before.next();
    for (FileStatus part : files.globStatus(new Path(means, "part-*"))) {
      try (InputStream in = files.open(part.getPath())) {
        next.read(in);
      }
    }
    return next;
  }

  private static String numbered(int iteration, Centres centres) {
    return centres
        .text()
        .lines()
        .map(line -> iteration + "\t" + line + "\n")
        .collect(Collectors.joining());
  }

  private static void write(FileSystem files, Path path, String text) throws IOException {
    try (OutputStream out = files.create(path, false)) {
      out.write(text.getBytes(StandardCharsets.US_ASCII));
    }
  }

  /** Sends each point to its nearest centre. */
  public static final class Assign extends Mapper<LongWritable, Writable, IntWritable, Sums> {
    private final IntWritable number = new IntWritable();
    private final Sums point = new Sums();
    private Centres centres;
    private Points points;

    @Override
    protected void setup(Context context) throws IOException {
      Configuration conf = context.getConfiguration();
      points = new Points(Points.dimensions(conf));
      try (InputStream in = new FileInputStream(CACHED)) {
        centres = Centres.of(conf.getInt(CENTRES, 10), in);
      }
    }

    @Override
    protected void map(LongWritable offset, Writable record, Context context)
        throws IOException, InterruptedException {
      double[] read;
      try {
        read = points.read(record);
      } catch (IOException e) {
        throw new IOException(place(offset.get(), context) + ": " + e.getMessage(), e);
      }
      point.set(read);
      number.set(centres.nearest(read));
      context.write(number, point);
    }

    private static String place(long offset, Context context) {
      Configuration conf = context.getConfiguration();
      Path file = ((FileSplit) context.getInputSplit()).getPath();
      return file
          + (Points.isText(conf)
              ? ", line at byte " + offset
              : ", record " + offset / Points.recordBytes(conf));
    }
  }

  /** Writes each point, and behind it the number of its nearest centre. */
  public static final class Label
      extends Mapper<LongWritable, Writable, NullWritable, BytesWritable> {
    private Centres centres;
    private Points points;
    private byte[] record;

    @Override
    protected void setup(Context context) throws IOException {
      Configuration conf = context.getConfiguration();
      points = new Points(Points.dimensions(conf));
      record = new byte[Points.recordBytes(conf) + Double.BYTES];
      try (InputStream in = new FileInputStream(CACHED)) {
        centres = Centres.of(conf.getInt(CENTRES, 10), in);
      }
    }

    @Override
    protected void map(LongWritable offset, Writable read, Context context)
        throws IOException, InterruptedException {
      double[] point = points.read(read);
      ByteBuffer.wrap(record).asDoubleBuffer().put(point).put(centres.nearest(point));
      context.write(NullWritable.get(), new BytesWritable(record));
    }
  }

  /** Adds up the points of a centre. */
  public static final class Add extends Reducer<IntWritable, Sums, IntWritable, Sums> {
    private final Sums sum = new Sums();

    @Override
    protected void reduce(IntWritable number, Iterable<Sums> points, Context context)
        throws IOException, InterruptedException {
      sum.clear();
      points.forEach(sum::add);
      context.write(number, sum);
    }
  }

  /** Makes the mean of the points of a centre. */
  public static final class Mean extends Reducer<IntWritable, Sums, IntWritable, Text> {
    private final Sums sum = new Sums();
    private final Text line = new Text();

    @Override
    protected void reduce(IntWritable number, Iterable<Sums> points, Context context)
        throws IOException, InterruptedException {
      sum.clear();
      points.forEach(sum::add);
      line.set(Centres.line(sum.points(), sum.mean()));
      context.write(number, line);
    }
  }
}
