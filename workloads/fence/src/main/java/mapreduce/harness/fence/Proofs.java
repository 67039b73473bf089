package mapreduce.harness.fence;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Proofs that a request comes from who has the secret of the cluster, which itself is not sent.
 *
 * <p>A proof is the header {@value #HEADER}, {@code TIME NONCE CODE}: milliseconds since 1970, what
 * nobody has sent before, and the HMAC-SHA256 with the secret of method, host, address of the
 * resource, caller, time and nonce, a line each. Each is taken once, within ten minutes of its
 * time, by the port that it names, on the connection from the caller that it names, and by no
 * daemon that was not there yet: who sees one on the network can use it neither again nor
 * elsewhere, nor sooner than its owner on a connection of his own.
 */
final class Proofs {
  static final String HEADER = "X-Harness-Proof";
  private static final long WINDOW_MS = 600_000;
  private static final int MOST_LENGTH = 200;
  private static final String ALGORITHM = "HmacSHA256";

  private final SecretKeySpec key;
  // what was used up before is not known
  private final long started = System.currentTimeMillis();
  // nonces that were used, by the moment of their proofs, the oldest first
  private final Map<String, Long> used = new LinkedHashMap<>();

  Proofs(byte[] secret) {
    key = new SecretKeySpec(secret, ALGORITHM);
  }

  /** A request as its proof is about it, with the two ends of the connection that it came by. */
  record Request(
      String method,
      String host,
      String resource,
      InetSocketAddress here,
      InetSocketAddress caller) {}

  /** Whether {@code proof} is one for {@code request}, and was not used before. */
  boolean admit(String proof, Request request) {
    if (proof == null || proof.length() > MOST_LENGTH || request.host() == null) {
      return false;
    }
    String[] parts = proof.split(" ");
    if (parts.length != 3 || !isHere(request)) {
      return false;
    }
    long now = System.currentTimeMillis();
    long moment;
    byte[] code;
    try {
      moment = Long.parseLong(parts[0]);
      code = HexFormat.of().parseHex(parts[2]);
    } catch (IllegalArgumentException malformed) {
      return false;
    }
    boolean isNow = moment >= started && Math.abs(now - moment) <= WINDOW_MS;
    return isNow
        && MessageDigest.isEqual(code, code(request, parts[0], parts[1]))
        && isFirst(parts[1], now);
  }

  private byte[] code(Request request, String moment, String nonce) {
    InetSocketAddress caller = request.caller();
    String text =
        String.join(
            "\n",
            request.method(),
            request.host(),
            request.resource(),
            caller.getAddress().getHostAddress() + ":" + caller.getPort(),
            moment,
            nonce);
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(key);
      return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    } catch (GeneralSecurityException missing) {
      throw new IllegalStateException(missing);
    }
  }

  /** Whether the proof names this host and port; names are those of /etc/hosts. */
  private static boolean isHere(Request request) {
    int colon = request.host().lastIndexOf(':');
    if (!request.host().substring(colon + 1).equals(String.valueOf(request.here().getPort()))) {
      return false;
    }
    try {
      String name = request.host().substring(0, Math.max(0, colon));
      return InetAddress.getByName(name).equals(request.here().getAddress());
    } catch (UnknownHostException unknown) {
      return false;
    }
  }

  private synchronized boolean isFirst(String nonce, long now) {
    Iterator<Long> moments = used.values().iterator();
    while (moments.hasNext() && moments.next() < now - 2 * WINDOW_MS) {
      moments.remove();
    }
    return used.putIfAbsent(nonce, now) == null;
  }
}
