package mapreduce.harness.fence;

import java.io.FileDescriptor;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketOption;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.IllegalBlockingModeException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.util.Set;
import sun.nio.ch.SelChImpl;
import sun.nio.ch.SelectionKeyImpl;

/**
 * A listening channel that closes connections of others, and accepts the next one.
 *
 * <p>All else is done by the JDK's own channel, which nobody else sees.
 */
final class FencedChannel extends ServerSocketChannel implements SelChImpl {
  private final ServerSocketChannel inner;
  private final SelChImpl selectable;
  private final Peers peers;
  private final ServerSocket socket;

  FencedChannel(SelectorProvider provider, ServerSocketChannel inner, Peers peers)
      throws IOException {
    super(provider);
    this.inner = inner;
    this.selectable = (SelChImpl) inner;
    this.peers = peers;
    this.socket = new FencedSocket();
  }

  @Override
  public SocketChannel accept() throws IOException {
    while (true) {
      SocketChannel accepted;
      try {
        accepted = inner.accept();
      } catch (ClosedChannelException closed) { // an interrupt has closed it
        close();
        throw closed;
      }
      if (accepted == null || isOwn(accepted)) {
        return accepted;
      }
    }
  }

  private boolean isOwn(SocketChannel accepted) throws IOException {
    boolean own = false;
    try {
      own =
          peers.isOwn(
              (InetSocketAddress) accepted.getRemoteAddress(),
              (InetSocketAddress) accepted.getLocalAddress());
    } finally {
      if (!own) {
        accepted.close();
      }
    }
    return own;
  }

  @Override
  protected void implCloseSelectableChannel() throws IOException {
    // one with keys is closed when its selector has let go of it
    if (!isRegistered()) {
      inner.close();
    }
  }

  @Override
  public void kill() throws IOException {
    inner.close();
  }

  @Override
  protected void implConfigureBlocking(boolean block) throws IOException {
    inner.configureBlocking(block);
  }

  @Override
  public ServerSocketChannel bind(SocketAddress local, int backlog) throws IOException {
    inner.bind(local, backlog);
    return this;
  }

  @Override
  public <T> ServerSocketChannel setOption(SocketOption<T> name, T value) throws IOException {
    inner.setOption(name, value);
    return this;
  }

  @Override
  public <T> T getOption(SocketOption<T> name) throws IOException {
    return inner.getOption(name);
  }

  @Override
  public Set<SocketOption<?>> supportedOptions() {
    return inner.supportedOptions();
  }

  @Override
  public SocketAddress getLocalAddress() throws IOException {
    return inner.getLocalAddress();
  }

  @Override
  public ServerSocket socket() {
    return socket;
  }

  @Override
  public FileDescriptor getFD() {
    return selectable.getFD();
  }

  @Override
  public int getFDVal() {
    return selectable.getFDVal();
  }

  @Override
  public boolean translateAndUpdateReadyOps(int ops, SelectionKeyImpl key) {
    return selectable.translateAndUpdateReadyOps(ops, key);
  }

  @Override
  public boolean translateAndSetReadyOps(int ops, SelectionKeyImpl key) {
    return selectable.translateAndSetReadyOps(ops, key);
  }

  @Override
  public int translateInterestOps(int ops) {
    return selectable.translateInterestOps(ops);
  }

  @Override
  public String toString() {
    return inner.toString();
  }

  /** The channel as a socket of the older kind. */
  private final class FencedSocket extends ServerSocket {
    private final ServerSocket old = inner.socket();

    FencedSocket() throws IOException {
      // unbound: the inner one is
    }

    @Override
    public Socket accept() throws IOException {
      if (!isBlocking()) {
        throw new IllegalBlockingModeException();
      }
      while (true) {
        Socket accepted = old.accept(); // which knows of time-outs
        if (isOwn(accepted.getChannel())) {
          return accepted;
        }
      }
    }

    @Override
    public void bind(SocketAddress local) throws IOException {
      old.bind(local);
    }

    @Override
    public void bind(SocketAddress local, int backlog) throws IOException {
      old.bind(local, backlog);
    }

    @Override
    public void close() throws IOException {
      FencedChannel.this.close();
    }

    @Override
    public ServerSocketChannel getChannel() {
      return FencedChannel.this;
    }

    @Override
    public boolean isBound() {
      return old.isBound();
    }

    @Override
    public boolean isClosed() {
      return !FencedChannel.this.isOpen();
    }

    @Override
    public InetAddress getInetAddress() {
      return old.getInetAddress();
    }

    @Override
    public int getLocalPort() {
      return old.getLocalPort();
    }

    @Override
    public SocketAddress getLocalSocketAddress() {
      return old.getLocalSocketAddress();
    }

    @Override
    public void setSoTimeout(int milliseconds) throws SocketException {
      old.setSoTimeout(milliseconds);
    }

    @Override
    public int getSoTimeout() throws IOException {
      return old.getSoTimeout();
    }

    @Override
    public void setReuseAddress(boolean on) throws SocketException {
      old.setReuseAddress(on);
    }

    @Override
    public boolean getReuseAddress() throws SocketException {
      return old.getReuseAddress();
    }

    @Override
    public void setReceiveBufferSize(int size) throws SocketException {
      old.setReceiveBufferSize(size);
    }

    @Override
    public int getReceiveBufferSize() throws SocketException {
      return old.getReceiveBufferSize();
    }

    @Override
    public <T> ServerSocket setOption(SocketOption<T> name, T value) throws IOException {
      old.setOption(name, value);
      return this;
    }

    @Override
    public <T> T getOption(SocketOption<T> name) throws IOException {
      return old.getOption(name);
    }

    @Override
    public Set<SocketOption<?>> supportedOptions() {
      return old.supportedOptions();
    }

    @Override
    public String toString() {
      return old.toString();
    }
  }
}
