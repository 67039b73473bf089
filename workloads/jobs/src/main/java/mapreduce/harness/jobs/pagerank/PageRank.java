package mapreduce.harness.jobs.pagerank;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Partitioner;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * PageRank INPUT OUTPUT: the ranks of a graph after some iterations, each of which is a job.
 *
 * <p>Properties: {@code pagerank.iterations} (3, as HiBench's) and {@code pagerank.damping} (0.85).
 * The graph of the last iteration, number n, is left in {@code OUTPUT/iteration-n}, those before it
 * are removed. The form of a graph and the rule are those of the package.
 *
 * <p>How many pages there are, and the rank of those without links, is summed by each map of the
 * same job and sent to every reduce, where it is sorted before all pages: the sum is complete when
 * the first page comes, and no job waits for a counter of another.
 */
public final class PageRank extends Configured implements Tool {
  static final String ITERATIONS = "pagerank.iterations";
  static final String DAMPING = "pagerank.damping";

  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new PageRank(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println(
          "usage: PageRank [-D pagerank.iterations=N -D pagerank.damping=D] INPUT OUTPUT");
      return 2;
    }
    int iterations = getConf().getInt(ITERATIONS, 3);
    double damping = getConf().getDouble(DAMPING, 0.85);
    if (iterations < 1 || !(damping >= 0 && damping <= 1)) {
      System.err.println(
          "PageRank: error: one iteration or more, and a damping from 0 to 1, are needed; not "
              + iterations
              + " and "
              + damping);
      return 2;
    }
    Path input = new Path(arguments[0]);
    Path output = new Path(arguments[1]);
    for (int i = 1; i <= iterations; i++) {
      Path next = new Path(output, "iteration-" + i);
      if (!iterate(input, next, i)) {
        return 1;
      }
      if (i > 1) {
        input.getFileSystem(getConf()).delete(input, true);
      }
      input = next;
    }
    return 0;
  }

  private boolean iterate(Path input, Path output, int number)
      throws IOException, InterruptedException, ClassNotFoundException {
    Job job = Job.getInstance(getConf(), "pagerank " + number);
    job.setJarByClass(PageRank.class);
    job.setMapperClass(Spread.class);
    job.setCombinerClass(Sum.class);
    job.setPartitionerClass(ToAll.class);
    job.setReducerClass(Collect.class);
    job.setMapOutputKeyClass(Text.class);
    job.setMapOutputValueClass(Share.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(Text.class);
    FileInputFormat.setInputPaths(job, input);
    FileOutputFormat.setOutputPath(job, output);
    if (job.getNumReduceTasks() < 1) {
      System.err.println(
          "PageRank: error: it needs a reduce: mapreduce.job.reduces is "
              + job.getNumReduceTasks());
      return false;
    }
    if (!job.waitForCompletion(true)) {
      return false;
    }
    if (job.getCounters().findCounter(TaskCounter.MAP_INPUT_RECORDS).getValue() == 0) {
      System.err.println("PageRank: error: the graph in " + input + " is empty");
      return false;
    }
    return true;
  }

  /** Sends the rank of each page over its links, and its links to itself. */
  public static final class Spread extends Mapper<LongWritable, Text, Text, Share> {
    private final Page page = new Page();
    private final Text target = new Text();
    private final Share share = new Share();
    private long pages;
    private double dangling;

    @Override
    protected void map(LongWritable offset, Text line, Context context)
        throws IOException, InterruptedException {
      try {
        page.read(line);
      } catch (IOException e) {
        Path file = ((FileSplit) context.getInputSplit()).getPath();
        throw new IOException(file + ", line at byte " + offset + ": " + e.getMessage(), e);
      }
      pages++;
      page.name(target);
      share.setLinks(page.adjacency());
      context.write(target, share);
      int links = page.links();
      if (links == 0) {
        dangling += page.rank();
      }
      share.setRank(page.rank() / links);
      int at = page.first();
      for (int i = 0; i < links; i++) {
        at = page.link(at, target);
        context.write(target, share);
      }
    }

    @Override
    protected void cleanup(Context context) throws IOException, InterruptedException {
      target.clear();
      for (int i = 0; i < context.getNumReduceTasks(); i++) {
        share.setTotals(i, pages, dangling);
        context.write(target, share);
      }
    }
  }

  /** Adds up ranks that go to the same page, and totals that go to the same reduce. */
  public static final class Sum extends Reducer<Text, Share, Text, Share> {
    private final Share sum = new Share();

    @Override
    protected void reduce(Text page, Iterable<Share> shares, Context context)
        throws IOException, InterruptedException {
      double rank = 0;
      long pages = 0;
      int partition = 0;
      boolean any = false;
      for (Share share : shares) {
        if (share.kind() == Share.Kind.LINKS) {
          context.write(page, share);
          continue;
        }
        any = true;
        rank += share.rank();
        pages += share.pages();
        partition = share.partition();
      }
      if (!any) {
        return;
      }
      if (page.getLength() == 0) {
        sum.setTotals(partition, pages, rank);
      } else {
        sum.setRank(rank);
      }
      context.write(page, sum);
    }
  }

  /** Pages by their names, totals to the reduce that they are for. */
  public static final class ToAll extends Partitioner<Text, Share> {
    @Override
    public int getPartition(Text page, Share share, int reduces) {
      return page.getLength() == 0
          ? share.partition()
          : (page.hashCode() & Integer.MAX_VALUE) % reduces;
    }
  }

  /** Makes the new rank of a page out of all that was sent to it. */
  public static final class Collect extends Reducer<Text, Share, Text, Text> {
    private final Text line = new Text();
    private double damping;
    private double base;

    @Override
    protected void setup(Context context) {
      Configuration conf = context.getConfiguration();
      damping = conf.getDouble(DAMPING, 0.85);
    }

    @Override
    protected void reduce(Text page, Iterable<Share> shares, Context context)
        throws IOException, InterruptedException {
      byte[] links = null;
      double rank = 0;
      long pages = 0;
      for (Share share : shares) {
        switch (share.kind()) {
          case RANK -> rank += share.rank();
          case LINKS -> links = only(links, share.links(), page);
          case TOTALS -> {
            rank += share.rank();
            pages += share.pages();
          }
        }
      }
      if (page.getLength() == 0) {
        base = 1 - damping + damping * rank / pages;
      } else if (links == null) {
        throw new IOException(
            "page "
                + shown(page)
                + " is linked to and has no line of its own;"
                + " the job Adjacency makes complete graphs of lists of links");
      } else {
        line.clear();
        Page.write(base + damping * rank, line);
        line.append(new byte[] {'\t'}, 0, 1);
        line.append(links, 0, links.length);
        context.write(page, line);
      }
    }

    private static byte[] only(byte[] before, byte[] links, Text page) throws IOException {
      if (before != null) {
        throw new IOException("page " + shown(page) + " has two lines");
      }
      return links;
    }

    private static String shown(Text page) {
      return Page.shown(page.getBytes(), 0, page.getLength());
    }
  }
}
