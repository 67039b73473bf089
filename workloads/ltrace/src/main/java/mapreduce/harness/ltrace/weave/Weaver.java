package mapreduce.harness.ltrace.weave;

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
 * Weaver LIB_FOLDER OUT_JAR    a jar of the woven classes and the recorder; equal bytes for equal jars
 * Weaver --check LIB_FOLDER    says which hooks these jars lack
 * </pre>
 *
 * <p>Exit status 1: hooks are missing; each is named, on standard error or, with {@code --check},
 * on standard output.
 */
public final class Weaver {

  // What a task may load of ours. The weaver's own classes stay outside.
  private static final List<String> RECORDER =
      List.of(
          "Calls",
          "Clocks",
          "Closing",
          "GrowingFile",
          "Kind",
          "Lane",
          "RecordLoop",
          "Recorder",
          "Settings",
          "SpanFile",
          "Trace",
          "UnitFile");

  // Equal classes give equal jars, in every time zone.
  private static final LocalDateTime ENTRY_TIME = LocalDateTime.of(1980, 2, 1, 0, 0);

  private final ClassFileLocator classes;
  private final TypePool types;
  private final ClassFileLocator own =
      ClassFileLocator.ForClassLoader.of(Weaver.class.getClassLoader());
  private final Map<String, List<Hook>> hooks = new TreeMap<>();

  /** A weaver of the classes that {@code classes} finds. */
  Weaver(ClassFileLocator classes, List<Hook> hooks) {
    this.classes = classes;
    this.types = TypePool.Default.of(classes);
    hooks.forEach(h -> this.hooks.computeIfAbsent(h.owner(), k -> new ArrayList<>()).add(h));
  }

  public static void main(String[] args) throws IOException {
    if (args.length != 2) {
      System.err.println("usage: Weaver LIB_FOLDER OUT_JAR, or Weaver --check LIB_FOLDER");
      System.exit(2);
    }
    boolean check = args[0].equals("--check");
    Weaver weaver = new Weaver(jars(Path.of(args[check ? 1 : 0])), Hooks.all());
    List<String> missing = weaver.missing();
    for (String hook : missing) {
      (check ? System.out : System.err).println("missing: " + hook);
    }
    if (!missing.isEmpty()) {
      System.exit(1);
    }
    if (!check) {
      weaver.write(Path.of(args[1]));
    }
  }

  /** The jars of a folder, before the classes of this JVM. */
  static ClassFileLocator jars(Path folder) throws IOException {
    List<Path> jars = new ArrayList<>();
    try (DirectoryStream<Path> found = Files.newDirectoryStream(folder, "*.jar")) {
      found.forEach(jars::add);
    }
    jars.sort(null);
    List<ClassFileLocator> locators = new ArrayList<>();
    for (Path jar : jars) {
      locators.add(ClassFileLocator.ForJarFile.of(jar.toFile()));
    }
    locators.add(ClassFileLocator.ForClassLoader.ofPlatformLoader());
    locators.add(ClassFileLocator.ForClassLoader.of(Weaver.class.getClassLoader()));
    return new ClassFileLocator.Compound(locators);
  }

  /** Names of the classes that have hooks. */
  Map<String, List<Hook>> hooks() {
    return hooks;
  }

  /** Hooks whose place is not there, or is there more than once. */
  List<String> missing() {
    List<String> missing = new ArrayList<>();
    for (Map.Entry<String, List<Hook>> entry : hooks.entrySet()) {
      TypePool.Resolution found = types.describe(entry.getKey());
      for (Hook hook : entry.getValue()) {
        String why = found.isResolved() ? complaint(found.resolve(), hook) : "no such class";
        if (why != null) {
          missing.add(hook + ": " + why);
        }
      }
    }
    return missing;
  }

  private String complaint(TypeDescription type, Hook hook) {
    int count = type.getDeclaredMethods().filter(hook.matcher()).size();
    if (count != 1) {
      return count == 0 ? "no such method" : count + " such methods";
    }
    try {
      byte[] woven = weave(type, List.of(hook));
      return hook.replacement() == null || calls(woven, hook) ? null : "no such call";
    } catch (RuntimeException | IOException unlike) { // a field or an argument is not as it was
      return "cannot be woven: " + unlike.getMessage();
    }
  }

  /** A class that calls a method holds its name. */
  private static boolean calls(byte[] woven, Hook hook) {
    return new String(woven, StandardCharsets.ISO_8859_1).contains(hook.replacement());
  }

  /** A class with its hooks. */
  byte[] woven(String name) throws IOException {
    return weave(types.describe(name).resolve(), hooks.get(name));
  }

  private byte[] weave(TypeDescription type, List<Hook> hooks) throws IOException {
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
      contents.put(name.replace('.', '/') + ".class", woven(name));
    }
    String recorder = Recorder.class.getPackageName().replace('.', '/');
    for (String name : RECORDER) {
      String file = recorder + "/" + name + ".class";
      contents.put(file, bytes(file));
    }
    try (ZipOutputStream out = new ZipOutputStream(Files.newOutputStream(jar))) {
      for (Map.Entry<String, byte[]> entry : contents.entrySet()) {
        put(out, entry.getKey(), entry.getValue());
      }
    }
  }

  private static byte[] bytes(String file) throws IOException {
    try (InputStream in = Weaver.class.getClassLoader().getResourceAsStream(file)) {
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
