package mapreduce.harness.jobs.pagerank;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import mapreduce.harness.jobs.Client;
import mapreduce.harness.jobs.generate.Buffer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Naive INPUT OUTPUT: ranks of pages by two jobs for each iteration, as {@code PagerankNaive} of
 * Pegasus has them, which HiBench runs.
 *
 * <p>INPUT has a line for each link: a page, a tab, and the page that it leads to; all are numbers
 * from 0 up to {@code pagerank.pages} - 1. The first job joins links and ranks by pages, and sends
 * a share of a page's rank over each of its links; the second adds up what comes to a page. Neither
 * has a combiner. What pages without links have is lost. There are {@code pagerank.iterations} (3)
 * of both jobs at most, and no more behind one in which no rank moves by more than a tenth of the
 * mean.
 *
 * <p>The ranks are left in {@code OUTPUT/iteration-n}, n being the most iterations: lines as those
 * of the package, without links, in units of the mean of those that it begins with. Pegasus writes
 * ranks as shares of all, and with as many digits as they have.
 */
public final class Naive extends Configured implements Tool {
  static final String PAGES = "pagerank.pages";

  private static final double MOVED = 0.1;

  /** What ends the iterations. */
  enum Moves {
    /** Reduces of the second job in which a rank moved. */
    REDUCES
  }

  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new Naive(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    Configuration conf = getConf();
    int pages = conf.getInt(PAGES, 0);
    int iterations = conf.getInt(PageRank.ITERATIONS, 3);
    if (arguments.length != 2 || pages < 1 || iterations < 1) {
      System.err.println(
          "usage: Naive -D pagerank.pages=N [-D pagerank.iterations=N -D pagerank.damping=D]"
              + " INPUT OUTPUT");
      return 2;
    }
    Path links = new Path(arguments[0]);
    Path output = new Path(arguments[1]);
    Path ranks = new Path(output, "ranks");
    Path joined = new Path(output, "joined");
    Path added = new Path(output, "added");
    FileSystem files = output.getFileSystem(conf);
    start(files, new Path(ranks, "start"), pages);
    boolean moves = true;
    for (int i = 1; i <= iterations && moves; i++) {
      Job join = job("join " + i, Join.class, joined, links, ranks);
      join.setOutputKeyClass(IntWritable.class);
      if (Client.run(join) != 0) {
        return 1;
      }
      Job add = job("add " + i, Add.class, added, joined);
      add.setOutputKeyClass(Text.class);
      if (Client.run(add) != 0) {
        return 1;
      }
      moves = add.getCounters().findCounter(Moves.REDUCES).getValue() > 0;
      files.delete(ranks, true);
      files.delete(joined, true);
      files.rename(added, ranks);
    }
    files.rename(ranks, new Path(output, "iteration-" + iterations));
    return 0;
  }

  private Job job(String name, Class<? extends Reducer<?, ?, ?, ?>> reducer, Path to, Path... from)
      throws IOException {
    Job job = Job.getInstance(getConf(), "pagerank " + name);
    job.setJarByClass(Naive.class);
    job.setMapperClass(Read.class);
    job.setReducerClass(reducer);
    job.setMapOutputKeyClass(IntWritable.class);
    job.setMapOutputValueClass(Text.class);
    job.setOutputValueClass(Text.class);
    FileInputFormat.setInputPaths(job, from);
    FileOutputFormat.setOutputPath(job, to);
    return job;
  }

  /** Every page with the mean rank. */
  private static void start(FileSystem files, Path file, int pages) throws IOException {
    byte[] rank = "\t000000001.0000000000\t\n".getBytes(StandardCharsets.US_ASCII);
    Buffer line = new Buffer(64);
    try (OutputStream out = new BufferedOutputStream(files.create(file, false), 1 << 16)) {
      for (int page = 0; page < pages; page++) {
        line.clear();
        line.putDecimal(page, Page.DIGITS);
        line.put(rank, 0, rank.length);
        out.write(line.bytes(), 0, line.size());
      }
    }
  }

  /** The page that a line begins with, and what stands behind it. */
  public static final class Read extends Mapper<LongWritable, Text, IntWritable, Text> {
    private final IntWritable page = new IntWritable();
    private final Text rest = new Text();

    @Override
    protected void map(LongWritable offset, Text line, Context context)
        throws IOException, InterruptedException {
      int tab = line.find("\t");
      try {
        page.set(Integer.parseInt(Text.decode(line.getBytes(), 0, Math.max(tab, 0))));
      } catch (NumberFormatException e) {
        Path file = ((FileSplit) context.getInputSplit()).getPath();
        String text = Page.shown(line.getBytes(), 0, line.getLength());
        throw new IOException(
            file + ", line at byte " + offset + ": no page and a tab: " + text, e);
      }
      rest.set(line.getBytes(), tab + 1, line.getLength() - tab - 1);
      context.write(page, rest);
    }
  }

  /** Sends the rank of a page over its links, and to itself. */
  public static final class Join extends Reducer<IntWritable, Text, IntWritable, Text> {
    private final IntWritable target = new IntWritable();
    private final Text share = new Text();
    private int[] targets = new int[64];

    @Override
    protected void reduce(IntWritable page, Iterable<Text> values, Context context)
        throws IOException, InterruptedException {
      double rank = 0;
      int links = 0;
      for (Text value : values) {
        String text = value.toString();
        if (text.endsWith("\t")) {
          rank = Double.parseDouble(text);
          continue;
        }
        if (links == targets.length) {
          targets = Arrays.copyOf(targets, 2 * links);
        }
        targets[links++] = Integer.parseInt(text);
      }
      share.set("s" + rank);
      context.write(page, share);
      share.set("v" + rank / links);
      for (int i = 0; i < links; i++) {
        target.set(targets[i]);
        context.write(target, share);
      }
    }
  }

  /** Makes the new rank of a page out of all that was sent to it. */
  public static final class Add extends Reducer<IntWritable, Text, Text, Text> {
    private final Text name = new Text();
    private final Text line = new Text();
    private double damping;
    private boolean moved;

    @Override
    protected void setup(Context context) {
      damping = context.getConfiguration().getDouble(PageRank.DAMPING, 0.85);
    }

    @Override
    protected void reduce(IntWritable page, Iterable<Text> values, Context context)
        throws IOException, InterruptedException {
      double before = 0;
      double sum = 0;
      for (Text value : values) {
        String text = value.toString();
        double rank = Double.parseDouble(text.substring(1));
        if (text.charAt(0) == 's') {
          before = rank;
        } else {
          sum += rank;
        }
      }
      double rank = 1 - damping + damping * sum;
      name.set(String.format("%0" + Page.DIGITS + "d", page.get()));
      line.clear();
      Page.write(rank, line);
      line.append(new byte[] {'\t'}, 0, 1);
      context.write(name, line);
      if (!moved && Math.abs(rank - before) > MOVED) {
        moved = true;
        context.getCounter(Moves.REDUCES).increment(1);
      }
    }
  }
}
