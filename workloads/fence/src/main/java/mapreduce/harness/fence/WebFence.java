package mapreduce.harness.fence;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.security.Principal;
import java.util.Map;
import javax.servlet.Filter;
import javax.servlet.FilterChain;
import javax.servlet.FilterConfig;
import javax.servlet.ServletException;
import javax.servlet.ServletRequest;
import javax.servlet.ServletResponse;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletRequestWrapper;
import javax.servlet.http.HttpServletResponse;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.http.FilterContainer;
import org.apache.hadoop.http.FilterInitializer;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * Lets a daemon's web services answer requests that have the cluster's secret, and no others.
 *
 * <p>Whoever has it is the user whose cluster it is. {@code hadoop.http.filter.initializers} names
 * this class.
 */
public final class WebFence extends FilterInitializer {
  private static final String USER = "user";

  @Override
  public void initFilter(FilterContainer container, Configuration configuration) {
    String user;
    try {
      user = UserGroupInformation.getLoginUser().getShortUserName();
    } catch (IOException error) {
      throw new IllegalStateException("nobody is logged in", error);
    }
    // a global one stands before pages, servlets and files alike
    container.addGlobalFilter("fence", Asking.class.getName(), Map.of(USER, user));
  }

  /** The filter itself. */
  public static final class Asking implements Filter {
    private Secret secret;
    private String user;

    @Override
    public void init(FilterConfig configuration) {
      secret = Secret.read();
      user = configuration.getInitParameter(USER);
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
        throws IOException, ServletException {
      HttpServletRequest asked = (HttpServletRequest) request;
      String query = asked.getQueryString();
      String resource = asked.getRequestURI() + (query == null ? "" : "?" + query);
      Proofs.Request proven =
          new Proofs.Request(
              asked.getMethod(),
              asked.getHeader("Host"),
              resource,
              new InetSocketAddress(asked.getLocalAddr(), asked.getLocalPort()),
              new InetSocketAddress(asked.getRemoteAddr(), asked.getRemotePort()));
      String given = asked.getHeader(secret.header);
      String proof = asked.getHeader(Proofs.HEADER);
      if (secret.opens(given, proof, proven)) {
        chain.doFilter(new OfUser(asked, user), response);
      } else {
        ((HttpServletResponse) response)
            .sendError(HttpServletResponse.SC_FORBIDDEN, "the cluster's secret is missing");
      }
    }

    @Override
    public void destroy() {
      // nothing is held
    }
  }

  private static final class OfUser extends HttpServletRequestWrapper {
    private final String user;

    OfUser(HttpServletRequest request, String user) {
      super(request);
      this.user = user;
    }

    @Override
    public String getRemoteUser() {
      return user;
    }

    @Override
    public Principal getUserPrincipal() {
      return () -> user;
    }
  }
}
