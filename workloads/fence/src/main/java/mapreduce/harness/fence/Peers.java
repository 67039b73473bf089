package mapreduce.harness.fence;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Whose processes are at the other end of connections, as the kernel says.
 *
 * <p>The supervisor of the cluster asks it for each connection alone, on a socket in the folder of
 * configuration. Where there is none, its tables of all sockets are read, which takes the longer
 * the more connections others have.
 */
final class Peers {
  private static final Path[] TABLES = {Path.of("/proc/net/tcp6"), Path.of("/proc/net/tcp")};
  // columns of a table
  private static final int LOCAL = 1;
  private static final int REMOTE = 2;
  private static final int USER = 7;
  private static final int INODE = 9;
  // a table that changes while it is read may lack a line
  private static final int TRIES = 3;
  private static final int MOST_ANSWER = 32;

  private final String user;
  // the table that had the last one: the kernel takes milliseconds to go through all its sockets
  private volatile int first;
  private final Path answers = answers();
  private SocketChannel asked;

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
    if (answers != null) {
      try {
        String owner = ask(peer, here);
        return owner.equals(user) || "0".equals(owner);
      } catch (IOException gone) {
        // the supervisor ends, or the thread was interrupted: the tables know, too
      }
    }
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

  /** The socket on which the supervisor answers; null where there is none. */
  private static Path answers() {
    String folder = System.getenv("HADOOP_CONF_DIR");
    Path path = folder == null ? null : Path.of(folder, "peers");
    return path != null && Files.exists(path) ? path : null;
  }

  /** The user of the socket at {@code peer}; -1 where the kernel knows of none. */
  private synchronized String ask(InetSocketAddress peer, InetSocketAddress here)
      throws IOException {
    String line = written(peer) + " " + written(here) + "\n";
    ByteBuffer buffer = ByteBuffer.wrap(line.getBytes(StandardCharsets.US_ASCII));
    try {
      if (asked == null) {
        asked = SocketChannel.open(UnixDomainSocketAddress.of(answers.toRealPath()));
      }
      while (buffer.hasRemaining()) {
        asked.write(buffer);
      }
      ByteBuffer answer = ByteBuffer.allocate(MOST_ANSWER);
      while (answer.position() == 0 || answer.get(answer.position() - 1) != '\n') {
        if (asked.read(answer) < 0) {
          throw new IOException("no answer");
        }
      }
      return new String(answer.array(), 0, answer.position() - 1, StandardCharsets.US_ASCII);
    } catch (IOException failure) {
      if (asked != null) {
        asked.close();
        asked = null;
      }
      throw failure;
    }
  }

  private static String written(InetSocketAddress address) {
    // without the interface of a local one
    return address.getAddress().getHostAddress().split("%")[0] + " " + address.getPort();
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
