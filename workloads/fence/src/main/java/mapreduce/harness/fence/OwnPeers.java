package mapreduce.harness.fence;

import java.io.IOException;
import java.net.ProtocolFamily;
import java.net.StandardProtocolFamily;
import java.nio.channels.DatagramChannel;
import java.nio.channels.Pipe;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.AbstractSelector;
import java.nio.channels.spi.SelectorProvider;
import sun.nio.ch.DefaultSelectorProvider;

/**
 * Makes every listening channel of this JVM accept connections of its own user's and of root's
 * processes on this machine alone.
 *
 * <p>{@code -Djava.nio.channels.spi.SelectorProvider} names this class, on clusters whose nodes
 * share the addresses of their machine: whatever Hadoop listens with (its RPC, Jetty, Netty, the
 * data port) is such a channel.
 */
public final class OwnPeers extends SelectorProvider {
  private final SelectorProvider system = DefaultSelectorProvider.get();
  private final Peers peers = new Peers();

  @Override
  public ServerSocketChannel openServerSocketChannel() throws IOException {
    return new FencedChannel(this, system.openServerSocketChannel(), peers);
  }

  @Override
  public ServerSocketChannel openServerSocketChannel(ProtocolFamily family) throws IOException {
    ServerSocketChannel channel = system.openServerSocketChannel(family);
    // a path in the file system has permissions of its own
    return family == StandardProtocolFamily.UNIX
        ? channel
        : new FencedChannel(this, channel, peers);
  }

  @Override
  public DatagramChannel openDatagramChannel() throws IOException {
    return system.openDatagramChannel();
  }

  @Override
  public DatagramChannel openDatagramChannel(ProtocolFamily family) throws IOException {
    return system.openDatagramChannel(family);
  }

  @Override
  public Pipe openPipe() throws IOException {
    return system.openPipe();
  }

  @Override
  public AbstractSelector openSelector() throws IOException {
    return system.openSelector();
  }

  @Override
  public SocketChannel openSocketChannel() throws IOException {
    return system.openSocketChannel();
  }

  @Override
  public SocketChannel openSocketChannel(ProtocolFamily family) throws IOException {
    return system.openSocketChannel(family);
  }
}
