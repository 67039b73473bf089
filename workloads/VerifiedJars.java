package mapreduce.harness.maven;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.Map;
import org.apache.maven.eventspy.AbstractEventSpy;
import org.eclipse.aether.RepositoryEvent;
import org.eclipse.aether.artifact.Artifact;
import org.eclipse.aether.repository.WorkspaceRepository;

/**
 * Ends Maven before it uses a jar that the list of checksums does not have, or has otherwise.
 *
 * <p>Maven reports each artifact when it is resolved, plugins and what they need included, and from
 * the local repository too; none of its classes is loaded by then. Maven logs what a listener
 * throws and goes on, hence the hard end. Poms are not compared: they decide which jars are wanted,
 * and a jar that is not listed is refused.
 *
 * <p>{@code scripts/mvn} compiles this file and says where the list is; with {@code
 * verified.jars.record} what is resolved is written down instead.
 */
public final class VerifiedJars extends AbstractEventSpy {
  private static final int REFUSED = 3;

  private final Path list = Path.of(System.getProperty("verified.jars"));
  private final String record = System.getProperty("verified.jars.record");
  private final Map<String, String> digests = new HashMap<>();

  public VerifiedJars() throws IOException {
    if (record == null) {
      try (BufferedReader lines = Files.newBufferedReader(list)) {
        lines.lines().forEach(line -> digests.put(line.substring(66), line.substring(0, 64)));
      }
    }
  }

  @Override
  public void onEvent(Object occurrence) {
    if (occurrence instanceof RepositoryEvent event
        && event.getType() == RepositoryEvent.EventType.ARTIFACT_RESOLVED) {
      verify(event);
    }
  }

  private void verify(RepositoryEvent event) {
    Artifact artifact = event.getArtifact();
    File file = event.getFile();
    boolean ours = event.getRepository() instanceof WorkspaceRepository;
    if (file == null || ours || artifact.getExtension().equals("pom")) {
      return;
    }
    String name = place(artifact);
    String digest = digest(file);
    if (record != null) {
      write(digest + "  " + name + "\n");
    } else if (!digests.containsKey(name)) {
      refuse(
          name + " is wanted, and " + list + " does not list it",
          "if a version was changed on purpose: scripts/export-sums");
    } else if (!digests.get(name).equals(digest)) {
      refuse(
          file + " has another checksum than in " + list,
          "delete that file and repeat; a second refusal means that the repository's jar changed");
    }
  }

  /** Where a Maven repository keeps an artifact. */
  private static String place(Artifact artifact) {
    String classifier = artifact.getClassifier().isEmpty() ? "" : "-" + artifact.getClassifier();
    return String.format(
        "%s/%s/%s/%s-%s%s.%s",
        artifact.getGroupId().replace('.', '/'),
        artifact.getArtifactId(),
        artifact.getBaseVersion(),
        artifact.getArtifactId(),
        artifact.getVersion(),
        classifier,
        artifact.getExtension());
  }

  private static String digest(File file) {
    try (InputStream stream = Files.newInputStream(file.toPath())) {
      MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
      byte[] buffer = new byte[1 << 16];
      for (int count = stream.read(buffer); count > 0; count = stream.read(buffer)) {
        sha256.update(buffer, 0, count);
      }
      StringBuilder text = new StringBuilder();
      for (byte each : sha256.digest()) {
        text.append(String.format("%02x", each));
      }
      return text.toString();
    } catch (IOException | NoSuchAlgorithmException error) {
      refuse(file + " cannot be read: " + error, "delete that file and repeat");
      throw new IllegalStateException(error);
    }
  }

  private void write(String line) {
    try {
      Files.writeString(
          Path.of(record), line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static void refuse(String what, String fix) {
    System.err.println("[ERROR] " + what + "\n  fix: " + fix);
    System.err.flush();
    Runtime.getRuntime().halt(REFUSED);
  }
}
