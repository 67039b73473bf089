package mapreduce.harness.fence;

import static io.netty.handler.codec.http.HttpHeaderNames.CONNECTION;
import static io.netty.handler.codec.http.HttpHeaderNames.CONTENT_LENGTH;
import static io.netty.handler.codec.http.HttpHeaderNames.HOST;

import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.util.AttributeKey;
import io.netty.util.ReferenceCountUtil;
import java.net.InetSocketAddress;
import org.apache.hadoop.conf.Configuration;

/**
 * The same for the web service of a DataNode, which knows no servlets: files are read and written
 * there.
 *
 * <p>{@code dfs.datanode.httpserver.filter.handlers} names this class; the DataNode makes one for
 * all connections, of what {@link #initializeState} returns.
 */
@ChannelHandler.Sharable
public final class DataNodeFence extends ChannelInboundHandlerAdapter {
  private static final AttributeKey<Boolean> REFUSED = AttributeKey.valueOf("harness.refused");

  private final Secret secret;

  /** One with the state that {@link #initializeState} has made. */
  public DataNodeFence(State state) {
    secret = state.secret;
  }

  /** What the DataNode keeps for it. */
  public static State initializeState(Configuration configuration) {
    return new State(Secret.read());
  }

  @Override
  public void channelRead(ChannelHandlerContext context, Object message) {
    boolean refused = context.channel().hasAttr(REFUSED);
    if (!refused && message instanceof HttpRequest request) {
      refused = !opens(context, request);
      if (refused) {
        context.channel().attr(REFUSED).set(true);
        DefaultFullHttpResponse response =
            new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.FORBIDDEN);
        response.headers().set(CONTENT_LENGTH, 0).set(CONNECTION, "close");
        context.writeAndFlush(response).addListener(ChannelFutureListener.CLOSE);
      }
    }
    if (refused) { // the rest of a request that was refused
      ReferenceCountUtil.release(message);
    } else {
      context.fireChannelRead(message);
    }
  }

  private boolean opens(ChannelHandlerContext context, HttpRequest request) {
    InetSocketAddress here = (InetSocketAddress) context.channel().localAddress();
    InetSocketAddress caller = (InetSocketAddress) context.channel().remoteAddress();
    HttpHeaders headers = request.headers();
    Proofs.Request proven =
        new Proofs.Request(request.method().name(), headers.get(HOST), request.uri(), here, caller);
    boolean isOpen = secret.opens(headers.get(secret.header), headers.get(Proofs.HEADER), proven);
    if (isOpen) { // pages are got from a service behind us on this node, which asks, too
      headers.set(secret.header, secret.text());
    }
    return isOpen;
  }

  /** What all connections share. */
  public static final class State {
    private final Secret secret;

    State(Secret secret) {
      this.secret = secret;
    }
  }
}
