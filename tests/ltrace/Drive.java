package mapreduce.harness.ltrace.record;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/** Drives the recorder as the hooks do; tests/ltrace/test_recorder.py starts it. */
public final class Drive {

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private Drive() {}

  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "spans" -> spans();
      case "loop" -> loop(Integer.parseInt(args[1]));
      case "short" -> shortRecords(Integer.parseInt(args[1]));
      case "spill" -> spill();
      case "hang" -> hang();
      case "many" -> many(Integer.parseInt(args[1]));
      case "allocation" -> allocation();
      default -> throw new IllegalArgumentException(args[0]);
    }
    System.out.println("alive");
  }

  private static void spans() throws InterruptedException {
    int main = Recorder.begin(Kind.MAIN);
    Thread.currentThread().interrupt(); // as Hadoop does with its threads
    int visit = Recorder.beginWithText(Kind.VISIT, "worker1:13562");
    int segment = Recorder.beginSegment("attempt_1_0001_m_000002_0", 100, 200, true);
    Recorder.end(segment, 100, false);
    Recorder.end(visit, 0, true);
    Recorder.countFiles();
    int merge = Recorder.beginWithNumbers(Kind.MERGE);
    int file = Recorder.begin(Kind.WRITE_FILE);
    Recorder.end(file, 0, false);
    Recorder.awaitSize(file);
    Recorder.closedFile(7, 70);
    Recorder.betweenPasses(true);
    Recorder.closedFile(5, 50);
    Recorder.betweenPasses(false);
    Recorder.closedFile(1, 10);
    Recorder.numberFiles(merge);
    Recorder.end(merge, 2, false);
    Recorder.waited(Kind.WAIT_MEMORY, Recorder.now(), Recorder.cpu());
    Recorder.waited(Kind.WAIT_MEMORY, Recorder.now() - 5_000_000, Recorder.cpu());
    Recorder.moment(Kind.STALL, 4096);
    Thread.interrupted();
    Thread other = new Thread(() -> Trace.end(Trace.begin("host to device"), 64), "Gerät");
    other.start();
    other.join();
    Recorder.end(main, 0, false);
  }

  /** Records of 2 ms, read in 1 ms; each collects twice. */
  private static void loop(int records) throws InterruptedException {
    int slot = Recorder.begin(Kind.MAP_LOOP);
    RecordLoop.begin();
    for (int i = 0; i < records; i++) {
      read(true);
      CallTimes.end(CallTimes.begin());
      Thread.sleep(2);
      CallTimes.end(CallTimes.begin());
    }
    read(false);
    RecordLoop.end();
    Recorder.end(slot, records, false);
  }

  private static void read(boolean hasRecord) throws InterruptedException {
    long start = RecordLoop.readBegins();
    Thread.sleep(1);
    RecordLoop.readEnds(start, hasRecord);
  }

  /**
   * Reads of 1 us and functions of 2; each 500th read waits 0.3 ms. Prints what it really took, and
   * of reads also without what went beyond their waiting and 20 us, when the machine stopped them.
   */
  private static void shortRecords(int records) {
    long read = 0;
    long usual = 0;
    RecordLoop.begin();
    long begin = System.nanoTime();
    for (int i = 0; i < records; i++) {
      long readStart = RecordLoop.readBegins();
      long start = System.nanoTime();
      if (i % 500 == 499) {
        long fill = ReadTimes.fillBegins();
        spin(300_000);
        ReadTimes.fillEnds(fill);
      }
      long filled = System.nanoTime();
      spin(1_000 + i % 7 * 100);
      long end = System.nanoTime();
      RecordLoop.readEnds(readStart, true);
      read += end - start;
      usual += filled - start + Math.min(end - filled, 20_000);
      spin(2_000);
    }
    RecordLoop.readEnds(RecordLoop.readBegins(), false);
    long all = System.nanoTime() - begin;
    System.out.println(read + " " + usual + " " + all);
  }

  private static void spin(long ns) {
    long until = System.nanoTime() + ns;
    while (System.nanoTime() < until) {
      Thread.onSpinWait();
    }
  }

  /** A record of 30 ms: 10 alone, 10 beside a spill, 10 blocked; one of 10 ms, read in it. */
  private static void spill() throws InterruptedException {
    RecordLoop.begin();
    read(true);
    Thread.sleep(10);
    int slot = Recorder.beginSpill(5, 3);
    Thread.sleep(10);
    long start = System.nanoTime();
    Thread.sleep(10);
    CallTimes.addBlocked(System.nanoTime() - start);
    Recorder.closedFile(5, 50);
    read(true);
    Recorder.endSpill(slot, 5, false);
    Thread.sleep(10);
    read(false);
    RecordLoop.end();
  }

  private static void hang() throws InterruptedException {
    Recorder.begin(Kind.MAIN);
    Recorder.end(Recorder.begin(Kind.TASK), 1, false);
    Recorder.begin(Kind.MAP_LOOP);
    RecordLoop.begin();
    for (int i = 0; i < 2048 + 3; i++) {
      RecordLoop.readEnds(RecordLoop.readBegins(), true);
    }
    System.out.println("ready");
    Thread.sleep(600_000);
  }

  private static void many(int spans) {
    for (int i = 0; i < spans; i++) {
      Recorder.end(Recorder.begin(Kind.SORT), i, false);
    }
  }

  private static void allocation() {
    work(20_000); // the compiler's own work, and the chunk of this thread
    long before = THREADS.getCurrentThreadAllocatedBytes();
    long after = THREADS.getCurrentThreadAllocatedBytes();
    long measuring = after - before;
    before = THREADS.getCurrentThreadAllocatedBytes();
    work(1_000_000);
    after = THREADS.getCurrentThreadAllocatedBytes();
    System.out.println(after - before - measuring);
  }

  private static void work(int records) {
    for (int i = 0; i < records; i++) {
      RecordLoop.readEnds(RecordLoop.readBegins(), true);
      CallTimes.end(CallTimes.begin());
      if (i % 8 == 0) {
        Recorder.end(Recorder.begin(Kind.SORT), i, false);
      }
    }
  }
}
