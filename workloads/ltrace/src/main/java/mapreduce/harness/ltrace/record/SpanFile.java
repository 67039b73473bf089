package mapreduce.harness.ltrace.record;

import java.io.IOException;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * The file {@code ltrace.spans}: a header, then chunks of slots, each chunk owned by one thread.
 *
 * <p>Little endian; places are bytes from the file's beginning.
 */
final class SpanFile {

  static final int CHUNK = 32768;
  static final int SLOT = 48;
  static final int CHUNK_HEAD = 48;

  /** Longest text of a slot, and name of a thread, in bytes. */
  static final int TEXT = 40;

  private static final int HEADER = 4096;
  private static final int MOST = HEADER + 512 * CHUNK; // 16 MiB: 349 000 spans
  private static final long MAGIC = 0x313045434152544CL; // "LTRACE01"

  private static final int MODE = 8;
  private static final int UNIT = 12;
  private static final int WALL = 16;
  private static final int ANCHOR = 24;
  private static final int PROCESS_START = 32;
  private static final int OPENING = 40;
  private static final int LOST = 48;
  private static final int STATE = 52;
  private static final int CHUNKS = 56;
  private static final int TASK = 60;
  private static final int TASK_BYTES = 120;
  private static final int JVM_START = 184;
  private static final int CPU_AT_MAIN = 192;
  private static final int CPU_AT_END = 200;
  private static final int SUMS = 256;
  private static final int HISTOGRAM = 1024;

  private static final int OPEN = 0;
  private static final int CLOSED = 1;
  private static final int GIVEN_UP = 2;

  // A span's slot: kind, flags, start, end, CPU at the start, at the end, amount.
  private static final int FLAGS = 4;
  private static final int START = 8;
  private static final int END = 16;
  private static final int CPU_START = 24;
  private static final int CPU_END = 32;
  private static final int AMOUNT = 40;

  /** Flag of a span that an exception has ended. */
  private static final int FAILED = 1;

  private final GrowingFile file;
  private final ByteBuffer bytes;
  private int lost;
  private int chunks;

  /** Time of the anchor, of {@link System#nanoTime}. */
  final long anchor;

  SpanFile() throws IOException {
    long begin = System.nanoTime();
    file = new GrowingFile(Settings.file("ltrace.spans"), MOST, CHUNK);
    file.reserve(HEADER);
    bytes = file.bytes;
    bytes.putInt(MODE, Settings.UNITS ? 3 : 1).putInt(UNIT, Settings.UNIT);
    byte[] task = Settings.TASK.getBytes(StandardCharsets.US_ASCII);
    bytes.putInt(TASK, Math.min(task.length, TASK_BYTES));
    text(TASK + 4, task, TASK_BYTES);
    String[] process = Clocks.process();
    bytes.putLong(PROCESS_START, Clocks.processStart(process));
    bytes.putLong(CPU_AT_MAIN, Clocks.processCpu(process));
    bytes.putLong(JVM_START, Clocks.jvmStart());
    long before = System.nanoTime();
    bytes.putLong(WALL, Clocks.wallMicros());
    anchor = before + (System.nanoTime() - before) / 2;
    bytes.putLong(ANCHOR, anchor).putLong(OPENING, System.nanoTime() - begin);
    VarHandle.releaseFence();
    bytes.putLong(0, MAGIC);
  }

  // spans

  /** Open a span in an empty slot. Its kind is stored last: a slot without one is not there. */
  void begin(int at, int kind) {
    bytes.putLong(at + CPU_START, Clocks.cpu());
    bytes.putLong(at + START, System.nanoTime());
    VarHandle.releaseFence();
    bytes.putInt(at, kind);
  }

  /** End an open span. Its end is stored last: a span without one is open. */
  void end(int at, long amount, boolean failed) {
    long end = System.nanoTime();
    close(at, end, Clocks.cpu(), amount, failed);
  }

  /** Put a span that has ended into an empty slot; times are those of {@link System#nanoTime}. */
  void past(int at, int kind, long start, long cpuStart, long amount) {
    long end = System.nanoTime();
    bytes.putLong(at + CPU_START, cpuStart).putLong(at + START, start);
    close(at, end, Clocks.cpu(), amount, false);
    VarHandle.releaseFence();
    bytes.putInt(at, kind);
  }

  private void close(int at, long end, long cpu, long amount, boolean failed) {
    bytes.putLong(at + CPU_END, cpu).putLong(at + AMOUNT, amount);
    if (failed) {
      bytes.putInt(at + FLAGS, FAILED);
    }
    VarHandle.releaseFence();
    bytes.putLong(at + END, end);
  }

  void amount(int at, long amount) {
    bytes.putLong(at + AMOUNT, amount);
  }

  /** Make the slot at {@code at} the text of the span before. */
  void textSlot(int at, String text) {
    int length = Math.min(text.length(), TEXT);
    for (int i = 0; i < length; i++) {
      char letter = text.charAt(i);
      bytes.put(at + 8 + i, (byte) (letter < 128 ? letter : '?'));
    }
    bytes.putInt(at, Kind.TEXT);
  }

  /** Make the slot at {@code at} the five numbers of the span before; all are 0. */
  void numbersSlot(int at) {
    bytes.putInt(at, Kind.NUMBERS);
  }

  /** Set number {@code index}, from 0 to 4, of the slot at {@code at}. */
  void number(int at, int index, long value) {
    bytes.putLong(at + 8 + 8 * index, value);
  }

  // chunks

  /**
   * Place of a new chunk's first slot, or 0: the file or the disk is full, or the recording is
   * closed.
   */
  synchronized int chunk(int thread, byte[] name) {
    if (bytes.getInt(STATE) != OPEN) {
      return 0;
    }
    if (file.room() < CHUNK) {
      bytes.putInt(LOST, ++lost);
      return 0;
    }
    try {
      file.reserve(CHUNK);
    } catch (IOException full) {
      giveUp(full);
      return 0;
    }
    int at = HEADER + chunks * CHUNK;
    bytes.putInt(at, thread).putInt(at + 4, Math.min(name.length, TEXT));
    text(at + 8, name, TEXT);
    VarHandle.releaseFence();
    bytes.putInt(CHUNKS, ++chunks);
    return at + CHUNK_HEAD;
  }

  /** Record no more: the disk is full. Warns once. */
  synchronized void giveUp(IOException error) {
    if (bytes.getInt(STATE) == OPEN) {
      bytes.putInt(STATE, GIVEN_UP);
      Recorder.warn(error);
    }
  }

  /** The recording is complete: the JVM ends. */
  synchronized void close() {
    if (bytes.getInt(STATE) == OPEN) {
      bytes.putLong(CPU_AT_END, Clocks.processCpu(Clocks.process()));
      bytes.putInt(STATE, CLOSED);
    }
  }

  // sums

  /** Set one of the sums, see {@link Sum}. */
  void sum(int index, long value) {
    bytes.putLong(SUMS + 8 * index, value);
  }

  void histogram(long[] counts) {
    for (int i = 0; i < counts.length; i++) {
      bytes.putLong(HISTOGRAM + 8 * i, counts[i]);
    }
  }

  private void text(int at, byte[] text, int most) {
    for (int i = 0; i < Math.min(text.length, most); i++) {
      bytes.put(at + i, text[i]);
    }
  }
}
