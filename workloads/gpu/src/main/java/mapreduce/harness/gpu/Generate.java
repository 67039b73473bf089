package mapreduce.harness.gpu;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Generate points|frames|pairs OUTPUT: {@code gpu.records} records in {@code gpu.files} files,
 * drawn by {@code gpu.seed}.
 *
 * <p>The job is the one of {@link mapreduce.harness.jobs.generate}; its contents are here.
 */
public final class Generate extends Configured implements Tool {
  static final String RECORDS = "gpu.records";

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
    String[] generate = {
      content(arguments[0]).getName(),
      conf.get(RECORDS, "0"),
      conf.get("gpu.files", "1"),
      conf.get("gpu.seed", "1"),
      arguments[1]
    };
    Tool generator = new mapreduce.harness.jobs.generate.Generate();
    generator.setConf(conf);
    return generator.run(generate);
  }

  private static Class<? extends RawRecords> content(String name) throws IOException {
    return switch (name) {
      case "points" -> Points.class;
      case "frames" -> Frames.class;
      case "pairs" -> Pairs.class;
      default -> throw new IOException("'" + name + "' is not one of points, frames and pairs");
    };
  }
}
