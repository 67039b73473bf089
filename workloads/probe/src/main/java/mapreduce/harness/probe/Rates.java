package mapreduce.harness.probe;

import com.sun.nio.file.ExtendedOpenOption;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.Random;
import java.util.Set;

/**
 * How fast a node's disk and memory are: {@code Rates FOLDER}.
 *
 * <p>Prints {@code name bytes_per_second} for each pass: {@code disk_write}, {@code disk_read} of a
 * file of 64 MiB in FOLDER, {@code mem_write}, {@code mem_read} of 128 MiB on one core. A last line
 * {@code how direct} says that the disk was used past the page cache; {@code how cached}, that its
 * file system does not allow it, so that a write ends with a flush and a read comes from memory.
 * The file is removed. No pass of a kind starts after five seconds of that kind.
 */
public final class Rates {

  private static final int BLOCK = 1 << 20;
  private static final int BLOCKS = 64;
  private static final int LONGS = 16 << 20; // 128 MiB: beyond the caches
  private static final int PASSES = 3;
  private static final int WARM_UPS = 2;
  private static final long MOST_NS = 5_000_000_000L;

  /** What all reading comes to: read by nobody, but the compiler cannot know. */
  private static volatile long sink;

  private interface Work {
    void run() throws IOException;
  }

  private Rates() {}

  public static void main(String[] args) throws IOException {
    if (args.length != 1) {
      System.err.println("usage: Rates FOLDER");
      System.exit(2);
    }
    Path file = Files.createTempFile(Path.of(args[0]), "rates", ".tmp");
    try {
      disk(file);
    } finally {
      Files.deleteIfExists(file);
    }
    memory();
  }

  private static void disk(Path file) throws IOException {
    ByteBuffer block = ByteBuffer.allocateDirect(2 * BLOCK).alignedSlice(4096).limit(BLOCK).slice();
    byte[] noise = new byte[BLOCK]; // a file system may compress
    new Random(1).nextBytes(noise);
    block.put(noise);
    boolean direct = canBeDirect(file, block);
    long size = (long) BLOCK * BLOCKS;
    passes("disk_write", size, () -> write(file, block, direct));
    passes("disk_read", size, () -> read(file, block, direct));
    System.out.println("how " + (direct ? "direct" : "cached"));
  }

  private static boolean canBeDirect(Path file, ByteBuffer block) {
    try (FileChannel channel = FileChannel.open(file, options(StandardOpenOption.WRITE, true))) {
      channel.write(block.clear());
      return true;
    } catch (IOException | UnsupportedOperationException refused) {
      return false;
    }
  }

  private static Set<OpenOption> options(StandardOpenOption kind, boolean direct) {
    Set<OpenOption> options = new HashSet<>(EnumSet.of(kind));
    if (direct) {
      options.add(ExtendedOpenOption.DIRECT);
    }
    return options;
  }

  private static void write(Path file, ByteBuffer block, boolean direct) throws IOException {
    try (FileChannel channel = FileChannel.open(file, options(StandardOpenOption.WRITE, direct))) {
      for (int i = 0; i < BLOCKS; i++) {
        block.clear();
        while (block.hasRemaining()) {
          channel.write(block);
        }
      }
      channel.force(true);
    }
  }

  private static void read(Path file, ByteBuffer block, boolean direct) throws IOException {
    try (FileChannel channel = FileChannel.open(file, options(StandardOpenOption.READ, direct))) {
      int count;
      do {
        count = channel.read(block.clear());
      } while (count > 0);
    }
  }

  private static void memory() throws IOException {
    long[] numbers = new long[LONGS];
    for (int i = 0; i < WARM_UPS; i++) {
      Arrays.fill(numbers, i);
      sink += sum(numbers);
    }
    long size = (long) LONGS * Long.BYTES;
    passes("mem_write", size, () -> Arrays.fill(numbers, sink));
    passes("mem_read", size, () -> sink += sum(numbers));
  }

  private static long sum(long[] numbers) {
    long sum = 0;
    for (long number : numbers) {
      sum += number;
    }
    return sum;
  }

  private static void passes(String name, long bytes, Work work) throws IOException {
    long begin = System.nanoTime();
    for (int pass = 0; pass < PASSES && System.nanoTime() - begin < MOST_NS; pass++) {
      long start = System.nanoTime();
      work.run();
      System.out.println(name + " " + (long) (bytes * 1e9 / (System.nanoTime() - start)));
    }
  }
}
