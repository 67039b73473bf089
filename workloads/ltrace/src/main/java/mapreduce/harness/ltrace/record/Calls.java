package mapreduce.harness.ltrace.record;

import java.io.IOException;
import java.util.concurrent.locks.Condition;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.MapRunnable;
import org.apache.hadoop.mapred.OutputCollector;
import org.apache.hadoop.mapred.Reporter;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.OutputFormat;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.RecordWriter;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.util.Progressable;

/**
 * Calls that take the place of Hadoop's own, where a hook inside the callee would not do: a job's
 * mapper may override {@code run}, and waiting for a lock is in a class of the JVM.
 *
 * <p>Each does what the call did; its name in a class shows the instrumenter that it took its
 * place.
 */
public final class Calls {

  private Calls() {}

  /** Does {@code mapper.run(context)}. */
  public static <A, B, C, D> void runMapper(
      Mapper<A, B, C, D> mapper, Mapper<A, B, C, D>.Context context)
      throws IOException, InterruptedException {
    int slot = beginLoop(Kind.MAP_LOOP);
    boolean failed = true;
    try {
      mapper.run(context);
      failed = false;
    } finally {
      endLoop(slot, failed);
    }
  }

  /** Does {@code runner.run(reader, collector, reporter)}. */
  public static <A, B, C, D> void runMapRunner(
      MapRunnable<A, B, C, D> runner,
      org.apache.hadoop.mapred.RecordReader<A, B> reader,
      OutputCollector<C, D> collector,
      Reporter reporter)
      throws IOException {
    int slot = beginLoop(Kind.MAP_LOOP);
    boolean failed = true;
    try {
      runner.run(reader, collector, reporter);
      failed = false;
    } finally {
      endLoop(slot, failed);
    }
  }

  /** Does {@code reducer.run(context)}. */
  public static <A, B, C, D> void runReducer(
      Reducer<A, B, C, D> reducer, Reducer<A, B, C, D>.Context context)
      throws IOException, InterruptedException {
    int slot = beginLoop(Kind.REDUCE_LOOP);
    boolean failed = true;
    try {
      reducer.run(context);
      failed = false;
    } finally {
      endLoop(slot, failed);
    }
  }

  /** Does {@code format.createRecordReader(split, context)}. */
  public static <A, B> RecordReader<A, B> createReader(
      InputFormat<A, B> format, InputSplit split, TaskAttemptContext context)
      throws IOException, InterruptedException {
    int slot = beginSpan(Kind.READER_OPEN);
    boolean failed = true;
    try {
      RecordReader<A, B> reader = format.createRecordReader(split, context);
      failed = false;
      return reader;
    } finally {
      endSpan(slot, failed);
    }
  }

  /** Does {@code format.getRecordReader(split, job, reporter)}. */
  public static <A, B> org.apache.hadoop.mapred.RecordReader<A, B> openOldReader(
      org.apache.hadoop.mapred.InputFormat<A, B> format,
      org.apache.hadoop.mapred.InputSplit split,
      JobConf job,
      Reporter reporter)
      throws IOException {
    int slot = beginSpan(Kind.READER_OPEN);
    boolean failed = true;
    try {
      org.apache.hadoop.mapred.RecordReader<A, B> reader =
          format.getRecordReader(split, job, reporter);
      failed = false;
      return reader;
    } finally {
      endSpan(slot, failed);
    }
  }

  /** Does {@code format.getRecordWriter(context)}. */
  public static <A, B> RecordWriter<A, B> openWriter(
      OutputFormat<A, B> format, TaskAttemptContext context)
      throws IOException, InterruptedException {
    int slot = beginSpan(Kind.WRITER_OPEN);
    boolean failed = true;
    try {
      RecordWriter<A, B> writer = format.getRecordWriter(context);
      failed = false;
      return writer;
    } finally {
      endSpan(slot, failed);
    }
  }

  /** Does {@code format.getRecordWriter(files, job, name, progress)}; a reduce's loop follows. */
  public static <A, B> org.apache.hadoop.mapred.RecordWriter<A, B> openOldWriter(
      org.apache.hadoop.mapred.OutputFormat<A, B> format,
      FileSystem files,
      JobConf job,
      String name,
      Progressable progress)
      throws IOException {
    int slot = beginSpan(Kind.WRITER_OPEN);
    boolean failed = true;
    try {
      org.apache.hadoop.mapred.RecordWriter<A, B> writer =
          format.getRecordWriter(files, job, name, progress);
      failed = false;
      return writer;
    } finally {
      endSpan(slot, failed);
      beginOldLoop();
    }
  }

  /** Does {@code spillDone.await()}: the buffer is full, and nothing else waits there. */
  public static void awaitRoom(Condition spillDone) throws InterruptedException {
    int slot = beginSpan(Kind.BLOCKED);
    long start = System.nanoTime();
    boolean failed = true;
    try {
      spillDone.await();
      failed = false;
    } finally {
      endWait(slot, start, failed);
    }
  }

  // Nothing of ours may throw into the task, not even where a class of ours cannot be made.

  private static int beginSpan(int kind) {
    try {
      return Recorder.begin(kind);
    } catch (Throwable ignored) {
      return 0;
    }
  }

  private static void endSpan(int slot, boolean failed) {
    try {
      Recorder.end(slot, 0, failed);
    } catch (Throwable ignored) {
      // never into the task
    }
  }

  private static void beginOldLoop() {
    try {
      Recorder.beginOldLoop();
    } catch (Throwable ignored) {
      // never into the task
    }
  }

  private static void endWait(int slot, long start, boolean failed) {
    try {
      CallTimes.addBlocked(System.nanoTime() - start);
      Recorder.end(slot, 0, failed);
    } catch (Throwable ignored) {
      // never into the task
    }
  }

  private static int beginLoop(int kind) {
    try {
      int slot = Recorder.begin(kind);
      RecordLoop.begin();
      return slot;
    } catch (Throwable ignored) {
      return 0;
    }
  }

  private static void endLoop(int slot, boolean failed) {
    try {
      RecordLoop.end();
      Recorder.end(slot, RecordLoop.records(), failed);
    } catch (Throwable ignored) {
      // never into the task
    }
  }
}
