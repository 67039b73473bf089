package mapreduce.harness.ltrace.instrument;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import mapreduce.harness.ltrace.record.Recorder;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.pool.TypePool;

/**
 * Puts the hooks into Hadoop's classes before any task starts.
 *
 * <pre>
 * Instrumenter LIB_FOLDER OUT_JAR    a jar of the instrumented classes and the recorder
 * Instrumenter --check LIB_FOLDER    prints the hooks that these jars lack
 * </pre>
 *
 * <p>Exit status 1: hooks are missing; each is named, on standard error or, with {@code --check},
 * on standard output.
 */
public final class Instrumenter {

  // The classes that tasks load; those of the instrumenter itself are not among them.
  private static final List<String> RECORDER =
      List.of(
          "CallTimes",
          "Calls",
          "Clocks",
          "Closing",
          "FunctionTimes",
          "GrowingFile",
          "Kind",
          "Lane",
          "RandomGap",
          "ReadTimes",
          "RecordLoop",
          "Recorder",
          "Settings",
          "SpanFile",
          "SpillOverlap",
          "Sum",
          "Trace",
          "UnitFile",
          "UnitTimes");

  // Equal classes give equal jars, in every time zone.
  private static final LocalDateTime ENTRY_TIME = LocalDateTime.of(1980, 2, 1, 0, 0);

  private final ClassFileLocator classes;
  private final TypePool types;
  private final ClassFileLocator own =
      ClassFileLocator.ForClassLoader.of(Instrumenter.class.getClassLoader());
  private final Map<String, List<Hook>> hooks = new TreeMap<>();

  /** An instrumenter of the classes that {@code classes} finds. */
  Instrumenter(ClassFileLocator classes, List<Hook> hooks) {
    this.classes = classes;
    this.types = TypePool.Default.of(classes);
    for (Hook hook : hooks) {
      this.hooks.computeIfAbsent(hook.owner(), owner -> new ArrayList<>()).add(hook);
    }
  }

  public static void main(String[] args) throws IOException {
    if (args.length != 2) {
      System.err.println(
          "usage: Instrumenter LIB_FOLDER OUT_JAR, or Instrumenter --check LIB_FOLDER");
      System.exit(2);
    }
    boolean check = args[0].equals("--check");
    Instrumenter instrumenter = new Instrumenter(jars(Path.of(args[check ? 1 : 0])), Hooks.all());
    List<String> missing = instrumenter.missing();
    for (String hook : missing) {
      (check ? System.out : System.err).println("missing: " + hook);
    }
    if (!missing.isEmpty()) {
      System.exit(1);
    }
    if (!check) {
      instrumenter.write(Path.of(args[1]));
    }
  }

  /** The jars of a folder, before the classes of this JVM. */
  static ClassFileLocator jars(Path folder) throws IOException {
    List<Path> jars = new ArrayList<>();
    try (DirectoryStream<Path> paths = Files.newDirectoryStream(folder, "*.jar")) {
      paths.forEach(jars::add);
    }
    jars.sort(null);
    List<ClassFileLocator> locators = new ArrayList<>();
    for (Path jar : jars) {
      locators.add(ClassFileLocator.ForJarFile.of(jar.toFile()));
    }
    locators.add(ClassFileLocator.ForClassLoader.ofPlatformLoader());
    locators.add(ClassFileLocator.ForClassLoader.of(Instrumenter.class.getClassLoader()));
    return new ClassFileLocator.Compound(locators);
  }

  /** Names of the classes that have hooks. */
  Map<String, List<Hook>> hooks() {
    return hooks;
  }

  /** Hooks without a place in these classes, or with more than one. */
  List<String> missing() {
    List<String> missing = new ArrayList<>();
    for (Map.Entry<String, List<Hook>> entry : hooks.entrySet()) {
      TypePool.Resolution resolution = types.describe(entry.getKey());
      for (Hook hook : entry.getValue()) {
        String problem =
            resolution.isResolved() ? problem(resolution.resolve(), hook) : "no such class";
        if (problem != null) {
          missing.add(hook + ": " + problem);
        }
      }
    }
    return missing;
  }

  private String problem(TypeDescription type, Hook hook) {
    int count = type.getDeclaredMethods().filter(hook.matcher()).size();
    if (count != 1) {
      return count == 0 ? "no such method" : count + " such methods";
    }
    try {
      byte[] changed = instrument(type, List.of(hook));
      return hook.replacement() == null || calls(changed, hook) ? null : "no such call";
    } catch (RuntimeException | IOException error) { // a field or an argument is not as it was
      return "cannot be instrumented: " + error.getMessage();
    }
  }

  /** Whether the class calls the replacement: then its constants have the name. */
  private static boolean calls(byte[] changed, Hook hook) {
    return new String(changed, StandardCharsets.ISO_8859_1).contains(hook.replacement());
  }

  /** A class with its hooks. */
  byte[] instrumented(String name) throws IOException {
    return instrument(types.describe(name).resolve(), hooks.get(name));
  }

  private byte[] instrument(TypeDescription type, List<Hook> hooks) throws IOException {
    DynamicType.Builder<?> builder = new ByteBuddy().redefine(type, classes);
    for (Hook hook : hooks) {
      builder = builder.visit(hook.visitor(types, own));
    }
    try (DynamicType.Unloaded<?> made = builder.make()) {
      return made.getBytes();
    }
  }

  private void write(Path jar) throws IOException {
    Map<String, byte[]> contents = new TreeMap<>();
    for (String name : hooks.keySet()) {
      contents.put(name.replace('.', '/') + ".class", instrumented(name));
    }
    String recorder = Recorder.class.getPackageName().replace('.', '/');
    for (String name : RECORDER) {
      String file = recorder + "/" + name + ".class";
      contents.put(file, bytes(file));
    }
    try (ZipOutputStream archive = new ZipOutputStream(Files.newOutputStream(jar))) {
      for (Map.Entry<String, byte[]> entry : contents.entrySet()) {
        put(archive, entry.getKey(), entry.getValue());
      }
    }
  }

  private static byte[] bytes(String file) throws IOException {
    try (InputStream in = Instrumenter.class.getClassLoader().getResourceAsStream(file)) {
      return in.readAllBytes();
    }
  }

  /** Stored, as another zlib would compress otherwise. */
  private static void put(ZipOutputStream out, String name, byte[] bytes) throws IOException {
    ZipEntry entry = new ZipEntry(name);
    CRC32 sum = new CRC32();
    sum.update(bytes);
    entry.setMethod(ZipEntry.STORED);
    entry.setSize(bytes.length);
    entry.setCrc(sum.getValue());
    entry.setTimeLocal(ENTRY_TIME);
    out.putNextEntry(entry);
    out.write(bytes);
    out.closeEntry();
  }
}
