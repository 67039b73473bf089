package mapreduce.harness.gpu;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * GpuKMeans INPUT OUTPUT: Lloyd's K-means, a job for each iteration.
 *
 * <p>Input: files of points, {@code gpu.dimensions} little-endian floats each. The first {@code
 * gpu.k} points are the centres to begin with. Iterations end when no centre has moved farther than
 * {@code gpu.epsilon}, or after {@code gpu.iterations}. Output: OUTPUT/result, a line for each
 * centre: its number, its points, the iteration, coordinates. A centre without points stays where
 * it was.
 */
public final class GpuKMeans extends Configured implements Tool {
  static final String DIMENSIONS = "gpu.dimensions";
  static final String K = "gpu.k";
  static final String ITERATIONS = "gpu.iterations";
  static final String EPSILON = "gpu.epsilon";
  static final String ITERATION = "gpu.iteration";

  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new GpuKMeans(), arguments));
  }

  /** Bytes of a point. */
  static long pointBytes(Configuration conf) {
    return (long) conf.getInt(DIMENSIONS, 4) * Float.BYTES;
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println("usage: GpuKMeans [-D gpu.k=N ...] INPUT OUTPUT");
      return 2;
    }
    getConf().setLong(Records.BYTES, pointBytes(getConf()));
    Path output = new Path(arguments[1]);
    FileSystem files = output.getFileSystem(getConf());
    if (files.exists(output)) {
      throw new IOException(output + " exists already");
    }
    Centres centres = start(arguments[0]);
    int most = getConf().getInt(ITERATIONS, 5);
    double epsilon = getConf().getDouble(EPSILON, 0.001);
    for (int iteration = 1; ; iteration++) {
      Path folder = new Path(output, String.format("iteration-%05d", iteration));
      if (!step(arguments[0], centres, iteration, folder)) {
        return 1;
      }
      Centres moved = Centres.parse(files, folder, centres.count(), centres.dimensions());
      double shift = moved.farthest(centres);
      System.err.println("iteration " + iteration + ": the farthest centre moved by " + shift);
      centres = moved;
      if (shift <= epsilon || iteration >= most) {
        files.rename(folder, new Path(output, "result"));
        return 0;
      }
    }
  }

  private boolean step(String input, Centres centres, int iteration, Path folder)
      throws IOException, InterruptedException, ClassNotFoundException {
    Job job = Job.getInstance(new Configuration(getConf()), "gpu-kmeans " + iteration);
    Jobs.check(job);
    job.getConfiguration().setInt(ITERATION, iteration);
    Path file = new Path(folder.getParent(), "centres-" + iteration);
    centres.write(file, job.getConfiguration());
    job.addCacheFile(file.toUri());
    job.setJarByClass(GpuKMeans.class);
    job.setInputFormatClass(BlockInputFormat.class);
    FileInputFormat.addInputPath(job, new Path(input));
    job.setMapperClass(KMeansTasks.NearestMapper.class);
    job.setMapOutputKeyClass(IntWritable.class);
    job.setMapOutputValueClass(KMeansTasks.Sums.class);
    job.setReducerClass(KMeansTasks.MeanReducer.class);
    job.setOutputKeyClass(NullWritable.class);
    job.setOutputValueClass(Text.class);
    FileOutputFormat.setOutputPath(job, folder);
    return job.waitForCompletion(true);
  }

  private Centres start(String input) throws IOException {
    Job inputJob = Job.getInstance(new Configuration(getConf()));
    FileInputFormat.addInputPath(inputJob, new Path(input));
    int k = Jobs.positive(inputJob, K, 10);
    int dimensions = Jobs.positive(inputJob, DIMENSIONS, 4);
    long points = Records.count(inputJob);
    if (points < k) {
      throw new IOException(
          input + " has " + points + " points, fewer than the " + k + " centres asked for (gpu.k)");
    }
    Centres centres = new Centres(k, dimensions);
    int next = 0;
    for (FileStatus file : Records.files(inputJob)) {
      try (FSDataInputStream in = file.getPath().getFileSystem(getConf()).open(file.getPath())) {
        long here = file.getLen() / pointBytes(getConf());
        for (long point = 0; point < here && next < k; point++) {
          if (!centres.read(in, next++)) {
            throw new IOException(
                "point "
                    + point
                    + " of "
                    + file.getPath()
                    + " has a coordinate that is not finite");
          }
        }
      }
    }
    return centres;
  }
}
