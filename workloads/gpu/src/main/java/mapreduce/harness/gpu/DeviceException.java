package mapreduce.harness.gpu;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;

/** A device that is missing or failed; names the node. */
final class DeviceException extends IOException {
  private static final long serialVersionUID = 1;

  DeviceException(String what) {
    this(what, "");
  }

  DeviceException(String what, String fix) {
    this(what, fix, null);
  }

  DeviceException(String what, String fix, Throwable why) {
    super(what + "; at: " + node() + (fix.isEmpty() ? "" : "; fix: " + fix), why);
  }

  /** Name of this node, as YARN or the system gives it. */
  static String node() {
    String yarn = System.getenv("NM_HOST");
    if (yarn != null) {
      return yarn;
    }
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException nameless) {
      return "localhost";
    }
  }
}
