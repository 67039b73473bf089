package mapreduce.harness.fence;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;

/**
 * The secret of the cluster: a header of HTTP, as one line of the file {@code secret} in the
 * configuration folder of the node.
 *
 * <p>The header opens services of the node on which it is sent, for {@code curl -H @secret}. It
 * crosses no network: from elsewhere a proof opens (see {@link Proofs}). Without the file nothing
 * starts: a web service that nobody can be kept from is worse than none.
 */
final class Secret {
  private static final String FILE = "secret";
  private static final String FOLDER = "HADOOP_CONF_DIR";

  /** Name of the header. */
  final String header;

  private final byte[] value;
  private final Proofs proofs;

  private Secret(String header, byte[] value) {
    this.header = header;
    this.value = value;
    this.proofs = new Proofs(value);
  }

  static Secret read() {
    String folder = System.getenv(FOLDER);
    if (folder == null) {
      throw new IllegalStateException(FOLDER + " is not set: the secret of the cluster is there");
    }
    try {
      String line = Files.readString(Path.of(folder, FILE)).strip();
      int colon = line.indexOf(": ");
      if (colon < 1 || line.length() < colon + 2 + 32) {
        throw new IllegalStateException(folder + "/" + FILE + " is not a line NAME: SECRET");
      }
      byte[] value = line.substring(colon + 2).getBytes(StandardCharsets.UTF_8);
      return new Secret(line.substring(0, colon), value);
    } catch (IOException error) {
      throw new IllegalStateException("no secret of the cluster: " + error, error);
    }
  }

  /** Whether a {@code request} may pass, with these two headers. */
  boolean opens(String given, String proof, Proofs.Request request) {
    return proofs.admit(proof, request) || (isOfThisNode(request) && isSecret(given));
  }

  private static boolean isOfThisNode(Proofs.Request request) {
    InetAddress caller = request.caller().getAddress();
    return caller.isLoopbackAddress() || caller.equals(request.here().getAddress());
  }

  /** What the header has, for services of this node. */
  String text() {
    return new String(value, StandardCharsets.UTF_8);
  }

  /** In constant time. */
  private boolean isSecret(String given) {
    return given != null && MessageDigest.isEqual(value, given.getBytes(StandardCharsets.UTF_8));
  }
}
