package mapreduce.harness.gpu;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * How fast a node copies from pinned memory to its first device and back: one line of JSON on
 * standard output.
 *
 * <p>{@code Rates [gpu|cpu]}; the line says which {@code kind} it was, {@code cuda} or {@code cpu},
 * as the library itself reports it. It runs with this jar alone, without Hadoop.
 */
public final class Rates {
  private static final int BYTES = 64 << 20;
  private static final int SIDE = 64;
  private static final int PASSES = 8;

  private final long handle;
  private final double[] ns = new double[1];

  private Rates(long handle) {
    this.handle = handle;
  }

  /**
   * Measures; a device that is not there, or fails, is named on standard error, and the status is
   * 1.
   */
  public static void main(String[] args) {
    try {
      Library.choose(args.length > 0 ? args[0] : "gpu");
      long[] handle = new long[1];
      check(Native.open(0, 1, 0, handle, new double[1]));
      System.out.println(new Rates(handle[0]).measure());
    } catch (DeviceException why) {
      System.err.println(why.getMessage());
      System.exit(1);
    }
  }

  private String measure() throws DeviceException {
    ByteBuffer block = Native.allocate(handle, BYTES, true);
    if (block == null) {
      throw new DeviceException(Native.text());
    }
    check(
        Native.upload(handle, block, BYTES, ns)); // makes the memory there: its time does not count
    List<Long> in = new ArrayList<>();
    for (int pass = 0; pass < PASSES; pass++) {
      check(Native.upload(handle, block, BYTES, ns));
      in.add(rate(BYTES));
    }
    // Products of pairs of tiles lie where a download finds them: half as much as was uploaded.
    check(Native.matmul(handle, BYTES / (2 * Float.BYTES * SIDE * SIDE), SIDE, 1, ns));
    check(Native.download(handle, block, BYTES / 2, ns));
    List<Long> out = new ArrayList<>();
    for (int pass = 0; pass < PASSES; pass++) {
      check(Native.download(handle, block, BYTES / 2, ns));
      out.add(rate(BYTES / 2));
    }
    Native.release(block, true);
    String kind = Native.isCuda() ? "cuda" : "cpu";
    Native.close(handle);
    return "{\"kind\": \"" + kind + "\", \"h2d_bps\": " + in + ", \"d2h_bps\": " + out + "}";
  }

  private long rate(long bytes) {
    return Math.round(bytes / (Math.max(ns[0], 1) * 1e-9));
  }

  private static void check(int code) throws DeviceException {
    if (code != 0) {
      throw new DeviceException(Native.text());
    }
  }
}
