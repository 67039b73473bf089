package mapreduce.harness.jobs.pagerank;

import java.io.IOException;
import java.util.StringTokenizer;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
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
 * Adjacency INPUT OUTPUT: makes a graph that {@link PageRank} reads out of a plain list of links.
 *
 * <p>Each line of the input is a link: the page that has it and the page that it leads to, with
 * spaces or tabs between them, as HiBench's edges and SNAP's files are. Empty lines, and lines that
 * begin with {@code #}, are left out. A page that is only linked to gets a line without links, and
 * nobody a rank. All links of a page are held in memory at once.
 */
public final class Adjacency extends Configured implements Tool {
  public static void main(String[] arguments) throws Exception {
    System.exit(ToolRunner.run(new Adjacency(), arguments));
  }

  @Override
  public int run(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      System.err.println("usage: Adjacency [-D name=value ...] INPUT OUTPUT");
      return 2;
    }
    Job job = Job.getInstance(getConf(), "adjacency");
    job.setJarByClass(Adjacency.class);
    job.setMapperClass(Links.class);
    job.setReducerClass(Gather.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(Text.class);
    FileInputFormat.setInputPaths(job, new Path(arguments[0]));
    FileOutputFormat.setOutputPath(job, new Path(arguments[1]));
    return job.waitForCompletion(true) ? 0 : 1;
  }

  /** Reads links; the page at the end of one gets an empty link, so that it is in the graph. */
  public static final class Links extends Mapper<LongWritable, Text, Text, Text> {
    private static final Text NOWHERE = new Text();
    private final Text from = new Text();
    private final Text to = new Text();

    @Override
    protected void map(LongWritable offset, Text line, Context context)
        throws IOException, InterruptedException {
      StringTokenizer words = new StringTokenizer(line.toString());
      int count = words.countTokens();
      if (count == 0 || line.charAt(0) == '#') {
        return;
      }
      if (count != 2) {
        Path file = ((FileSplit) context.getInputSplit()).getPath();
        throw new IOException(
            file
                + ", line at byte "
                + offset
                + ": it is not two pages: "
                + Page.shown(line.getBytes(), 0, line.getLength()));
      }
      from.set(words.nextToken());
      to.set(words.nextToken());
      context.write(from, to);
      context.write(to, NOWHERE);
    }
  }

  /** Puts the links of a page on its line. */
  public static final class Gather extends Reducer<Text, Text, Text, Text> {
    private static final byte[] TAB = {'\t'};
    private static final byte[] SPACE = {' '};
    private final Text line = new Text();

    @Override
    protected void reduce(Text page, Iterable<Text> links, Context context)
        throws IOException, InterruptedException {
      line.set(TAB);
      for (Text link : links) {
        if (link.getLength() == 0) {
          continue;
        }
        if (line.getLength() > 1) {
          line.append(SPACE, 0, 1);
        }
        line.append(link.getBytes(), 0, link.getLength());
      }
      context.write(page, line);
    }
  }
}
