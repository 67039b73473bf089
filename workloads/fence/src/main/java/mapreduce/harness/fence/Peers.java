package mapreduce.harness.fence;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;

/** Whose processes are at the other end of connections, as the kernel's tables of sockets say. */
final class Peers {
  private static final Path[] TABLES = {Path.of("/proc/net/tcp6"), Path.of("/proc/net/tcp")};
  // columns of a table
  private static final int LOCAL = 1;
  private static final int REMOTE = 2;
  private static final int USER = 7;
  private static final int INODE = 9;
  // a table that changes while it is read may lack a line
  private static final int TRIES = 3;

  private final String user;
  // the table that had the last one: the kernel takes milliseconds to go through all its sockets
  private volatile int first;

  Peers() {
    try {
      user = Files.getAttribute(Path.of("/proc/self"), "unix:uid").toString();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /**
   * Whether the process that connected from {@code peer} to {@code here} is on this machine, and is
   * this user's or root's.
   */
  boolean isOwn(InetSocketAddress peer, InetSocketAddress here) throws IOException {
    int start = first;
    for (int tried = 0; tried < TRIES * TABLES.length; tried++) {
      int table = (start + tried) % TABLES.length;
      String owner = owner(TABLES[table], peer, here);
      if (owner != null) {
        first = table;
        return owner.equals(user) || "0".equals(owner);
      }
    }
    return false;
  }

  /** The user of the socket that {@code table} has for {@code peer}; null where it has none. */
  private static String owner(Path table, InetSocketAddress peer, InetSocketAddress here)
      throws IOException {
    if (!Files.exists(table)) { // a kernel without version 6 of the protocol
      return null;
    }
    String port = String.format(":%04X", peer.getPort());
    try (BufferedReader lines = Files.newBufferedReader(table)) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        if (!line.contains(port)) {
          continue;
        }
        String[] columns = line.strip().split("\\s+");
        // a closed socket lingers without an inode, and then root's
        if (columns.length > INODE
            && !"0".equals(columns[INODE])
            && is(columns[LOCAL], peer)
            && is(columns[REMOTE], here)) {
          return columns[USER];
        }
      }
    }
    return null;
  }

  private static boolean is(String written, InetSocketAddress address) throws IOException {
    int colon = written.indexOf(':');
    if (Integer.parseInt(written.substring(colon + 1), 16) != address.getPort()) {
      return false;
    }
    // words of 32 bits, each as this machine writes a number
    ByteBuffer words = ByteBuffer.allocate(colon / 2).order(ByteOrder.nativeOrder());
    for (int start = 0; start < colon; start += 8) {
      words.putInt(Integer.parseUnsignedInt(written.substring(start, start + 8), 16));
    }
    // that of version 4 within one of version 6 becomes what it stands for
    return InetAddress.getByAddress(words.array()).equals(address.getAddress());
  }
}
