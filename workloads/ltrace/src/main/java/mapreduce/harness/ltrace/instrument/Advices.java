package mapreduce.harness.ltrace.instrument;

import java.lang.reflect.Method;
import java.net.URI;
import java.nio.IntBuffer;
import java.util.List;
import mapreduce.harness.ltrace.record.CallTimes;
import mapreduce.harness.ltrace.record.ReadTimes;
import mapreduce.harness.ltrace.record.RecordLoop;
import mapreduce.harness.ltrace.record.Recorder;
import net.bytebuddy.asm.Advice.Argument;
import net.bytebuddy.asm.Advice.Enter;
import net.bytebuddy.asm.Advice.FieldValue;
import net.bytebuddy.asm.Advice.Local;
import net.bytebuddy.asm.Advice.OnMethodEnter;
import net.bytebuddy.asm.Advice.OnMethodExit;
import net.bytebuddy.asm.Advice.Return;
import net.bytebuddy.asm.Advice.This;
import net.bytebuddy.asm.Advice.Thrown;
import net.bytebuddy.implementation.bytecode.assign.Assigner.Typing;
import org.apache.hadoop.mapreduce.task.reduce.MapHost;
import org.apache.hadoop.mapreduce.task.reduce.MapOutput;

/**
 * Code that is copied into Hadoop's methods, before their first statement and behind their last.
 *
 * <p>It runs as a part of those methods, so it may call what is public only; whatever it throws is
 * dropped. Where the recorder is off, the compiler removes the code.
 */
final class Advices {

  private Advices() {}

  /** A span. */
  static final class Span {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(@KindOf int kind) {
      return Recorder.SPANS ? Recorder.begin(kind) : 0;
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter int slot, @Thrown Throwable error) {
      Recorder.end(slot, 0, error != null);
    }
  }

  /** The sums are whole before it; a span. */
  static final class Done {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(@KindOf int kind) {
      if (Recorder.SPANS) {
        RecordLoop.end();
        RecordLoop.save();
      }
      return Recorder.SPANS ? Recorder.begin(kind) : 0;
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter int slot, @Thrown Throwable error) {
      Recorder.end(slot, 0, error != null);
    }
  }

  /** A call of the application master, if it requests the task. */
  static final class GetTask {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(@KindOf int kind, @Argument(1) Method method) {
      boolean isGetTask = Recorder.SPANS && method.getName().equals("getTask");
      return isGetTask ? Recorder.begin(kind) : 0;
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter int slot, @Thrown Throwable error) {
      Recorder.end(slot, 0, error != null);
    }
  }

  /** A new file system; text: its scheme. */
  static final class MakeFileSystem {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(@KindOf int kind, @Argument(0) URI address) {
      return Recorder.SPANS ? Recorder.beginWithText(kind, address.getScheme()) : 0;
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter int slot, @Thrown Throwable error) {
      Recorder.end(slot, 0, error != null);
    }
  }

  /** A sort of the records from the second argument up to the third; amount: how many. */
  static final class Sort {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(@KindOf int kind) {
      return Recorder.SPANS ? Recorder.begin(kind) : 0;
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(
        @Enter int slot, @Argument(1) int left, @Argument(2) int right, @Thrown Throwable error) {
      Recorder.end(slot, right - left, error != null);
    }
  }

  /** A spill of what lies between the buffer's marks. */
  static final class Spill {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(
        @FieldValue("kvstart") int start,
        @FieldValue("kvend") int end,
        @FieldValue("kvmeta") IntBuffer meta,
        @FieldValue("numSpills") int number,
        @Local("records") int records) {
      if (!Recorder.SPANS) {
        return 0;
      }
      // As sortAndSpill has it: records have 4 integers each, downwards, around the end.
      records = 1 + (start >= end ? start : meta.capacity() + start) / 4 - end / 4;
      return Recorder.beginSpill(records, number);
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter int slot, @Local("records") int records, @Thrown Throwable error) {
      if (Recorder.SPANS) {
        Recorder.endSpill(slot, records, error != null);
      }
    }
  }

  /** A spill of one record that the buffer cannot hold. */
  static final class SpillSingle {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(@KindOf int kind) {
      if (!Recorder.SPANS) {
        return 0;
      }
      Recorder.countFiles();
      return Recorder.beginWithNumbers(kind);
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter int slot, @FieldValue("numSpills") int after, @Thrown Throwable error) {
      Recorder.number(slot, 0, Recorder.recordsWritten());
      Recorder.number(slot, 1, Recorder.bytesWritten());
      Recorder.number(slot, 2, after - 1);
      Recorder.end(slot, 1, error != null);
    }
  }

  /** The map side's merge; amount: spills. */
  static final class Merge {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(@KindOf int kind) {
      if (!Recorder.SPANS) {
        return 0;
      }
      Recorder.countFiles();
      return Recorder.beginWithNumbers(kind);
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(
        @Enter int slot, @FieldValue("numSpills") int spills, @Thrown Throwable error) {
      Recorder.numberFiles(slot);
      Recorder.end(slot, spills, error != null);
    }
  }

  /** A merge of the segments in a list; amount: how many. */
  static final class ListMerge {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(@KindOf int kind, @Argument(0) List<?> list, @Local("segments") int segments) {
      if (!Recorder.SPANS) {
        return 0;
      }
      segments = list.size(); // the merge empties the list
      Recorder.countFiles();
      return Recorder.beginWithNumbers(kind);
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter int slot, @Local("segments") int segments, @Thrown Throwable error) {
      Recorder.numberFiles(slot);
      Recorder.end(slot, segments, error != null);
    }
  }

  /** The reduce's last merge, of segments in memory and on disk; otherwise as {@link ListMerge}. */
  static final class FinalMerge {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(
        @KindOf int kind,
        @Argument(2) List<?> memory,
        @Argument(3) List<?> disk,
        @Local("segments") int segments) {
      if (!Recorder.SPANS) {
        return 0;
      }
      segments = memory.size() + disk.size();
      Recorder.countFiles();
      return Recorder.beginWithNumbers(kind);
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter int slot, @Local("segments") int segments, @Thrown Throwable error) {
      Recorder.numberFiles(slot);
      Recorder.end(slot, segments, error != null);
    }
  }

  /** All passes of a merge but the last; amount: segments. */
  static final class MergePass {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(
        @KindOf int kind, @FieldValue("segments") List<?> list, @Local("segments") int segments) {
      if (!Recorder.SPANS) {
        return 0;
      }
      segments = list.size();
      Recorder.betweenPasses(true);
      return Recorder.begin(kind);
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter int slot, @Local("segments") int segments, @Thrown Throwable error) {
      if (Recorder.SPANS) {
        Recorder.betweenPasses(false);
        Recorder.end(slot, segments, error != null);
      }
    }
  }

  /** The contents of a file; its size is known when its writer is closed. */
  static final class WriteFile {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(@KindOf int kind) {
      return Recorder.SPANS ? Recorder.begin(kind) : 0;
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter int slot, @Thrown Throwable error) {
      if (Recorder.SPANS) {
        Recorder.end(slot, 0, error != null);
        Recorder.awaitSize(slot);
      }
    }
  }

  /** An intermediate file is closed. */
  static final class CloseFile {
    @OnMethodExit(suppress = Throwable.class)
    static void exit(
        @FieldValue("numRecordsWritten") long records,
        @FieldValue("compressedBytesWritten") long compressed) {
      if (Recorder.SPANS) {
        Recorder.closedFile(records, compressed);
      }
    }
  }

  /** A request for map outputs; amount: how many are new. */
  static final class Events {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(@KindOf int kind) {
      return Recorder.SPANS ? Recorder.begin(kind) : 0;
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter int slot, @Return int maps, @Thrown Throwable error) {
      Recorder.end(slot, maps, error != null);
    }
  }

  /** A visit to a host. */
  static final class Visit {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(@KindOf int kind, @Argument(0) MapHost host) {
      return Recorder.SPANS ? Recorder.beginWithText(kind, host.getHostName()) : 0;
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter int slot, @Thrown Throwable error) {
      Recorder.end(slot, 0, error != null);
    }
  }

  /** The copy of one map output. */
  static final class Segment {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(
        @This MapOutput<?, ?> output, @Argument(2) long compressed, @Argument(3) long raw) {
      if (!Recorder.SPANS) {
        return 0;
      }
      boolean onDisk = output.getDescription().equals("DISK");
      return Recorder.beginSegment(output.getMapId().toString(), compressed, raw, onDisk);
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter int slot, @Argument(2) long compressed, @Thrown Throwable error) {
      Recorder.end(slot, compressed, error != null);
    }
  }

  /** A wait, recorded where it is long. */
  static final class Wait {
    @OnMethodEnter(suppress = Throwable.class)
    static long enter(@Local("cpu") long cpu) {
      if (!Recorder.SPANS) {
        return 0;
      }
      cpu = Recorder.cpu();
      return Recorder.now();
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@KindOf int kind, @Enter long start, @Local("cpu") long cpu) {
      if (Recorder.SPANS) {
        Recorder.waited(kind, start, cpu);
      }
    }
  }

  /** A reservation that got no memory; amount: the bytes requested. */
  static final class Reserve {
    @OnMethodExit(suppress = Throwable.class)
    static void exit(
        @KindOf int kind, @Argument(1) long bytes, @Return(typing = Typing.DYNAMIC) Object output) {
      if (Recorder.SPANS && output == null) {
        Recorder.moment(kind, bytes);
      }
    }
  }

  /** A read of the map's loop: a record where it returns {@code true}. */
  static final class Read {
    @OnMethodEnter(suppress = Throwable.class)
    static long enter() {
      return Recorder.SPANS ? RecordLoop.readBegins() : 0;
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter long start, @Return boolean hasRecord) {
      if (Recorder.SPANS) {
        RecordLoop.readEnds(start, hasRecord);
      }
    }
  }

  /** A reader's buffer is filled again. */
  static final class Fill {
    @OnMethodEnter(suppress = Throwable.class)
    static long enter() {
      return Recorder.SPANS ? ReadTimes.fillBegins() : 0;
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter long start) {
      if (Recorder.SPANS) {
        ReadTimes.fillEnds(start);
      }
    }
  }

  /** A read of the reduce's loop, and of a combiner's, which is none. */
  static final class ReduceRead {
    @OnMethodEnter(suppress = Throwable.class)
    static long enter() {
      return Recorder.SPANS && Recorder.REDUCE ? RecordLoop.readBegins() : 0;
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter long start, @Return boolean hasRecord) {
      if (Recorder.SPANS && Recorder.REDUCE) {
        RecordLoop.readEnds(start, hasRecord);
      }
    }
  }

  /** A read of the old interface: a record unless it throws. */
  static final class OldReduceRead {
    @OnMethodEnter(suppress = Throwable.class)
    static long enter() {
      return Recorder.SPANS && Recorder.REDUCE ? RecordLoop.readBegins() : 0;
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter long start, @Thrown Throwable error) {
      if (Recorder.SPANS && Recorder.REDUCE) {
        RecordLoop.readEnds(start, error == null);
      }
    }
  }

  /** The next group, without a record to read: the last function has ended. */
  static final class NextGroup {
    @OnMethodExit(suppress = Throwable.class)
    static void exit(@Return boolean hasRecord) {
      if (Recorder.SPANS && Recorder.REDUCE && !hasRecord) {
        RecordLoop.end();
      }
    }
  }

  /** A collect or a write. */
  static final class Call {
    @OnMethodEnter(suppress = Throwable.class)
    static long enter() {
      return Recorder.SPANS ? CallTimes.begin() : 0;
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter long start) {
      if (Recorder.SPANS) {
        CallTimes.end(start);
      }
    }
  }

  /** The loop has ended; a span. */
  static final class WriterClose {
    @OnMethodEnter(suppress = Throwable.class)
    static int enter(@KindOf int kind) {
      if (!Recorder.SPANS) {
        return 0;
      }
      Recorder.endOldLoop();
      return Recorder.begin(kind);
    }

    @OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Enter int slot, @Thrown Throwable error) {
      Recorder.end(slot, 0, error != null);
    }
  }
}
