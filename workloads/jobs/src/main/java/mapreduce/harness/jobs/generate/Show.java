package mapreduce.harness.jobs.generate;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.util.GenericOptionsParser;

/**
 * Show CONTENT SEED FIRST COUNT: prints some records as a file of them, without a job or a file
 * system.
 */
public final class Show {
  private Show() {}

  public static void main(String[] arguments) throws IOException {
    Configuration conf = new Configuration(false);
    String[] rest = new GenericOptionsParser(conf, arguments).getRemainingArgs();
    if (rest.length != 4) {
      System.err.println("usage: Show [-D name=value ...] CONTENT SEED FIRST COUNT");
      System.exit(2);
    }
    conf.set(Generate.CONTENT, rest[0]);
    conf.setLong(Generate.SEED, Long.parseLong(rest[1]));
    long first = Long.parseLong(rest[2]);
    long end = Math.addExact(first, Long.parseLong(rest[3]));
    Content content = Generate.content(conf);
    Buffer buffer = new Buffer(1 << 16);
    content.begin(buffer);
    try (OutputStream out = new BufferedOutputStream(System.out, 1 << 16)) {
      for (long number = first; number < end; number++) {
        content.write(number, buffer);
        out.write(buffer.bytes(), 0, buffer.size());
        buffer.clear();
      }
    }
  }
}
