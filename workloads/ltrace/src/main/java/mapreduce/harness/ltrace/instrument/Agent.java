package mapreduce.harness.ltrace.instrument;

import java.io.IOException;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import java.util.List;
import net.bytebuddy.dynamic.ClassFileLocator;

/**
 * The same hooks, put in while a task runs: {@code -javaagent:harness-ltrace.jar}.
 *
 * <p>For clusters of which Hadoop home and jars are not made by the harness; it costs more than a
 * second per task. A Hadoop that lacks a hook is not traced at all.
 */
public final class Agent implements ClassFileTransformer {

  private final Instrumenter instrumenter;

  private Agent(Instrumenter instrumenter) {
    this.instrumenter = instrumenter;
  }

  /** Called by the JVM before {@code main}. */
  public static void premain(String arguments, Instrumentation instrumentation) {
    ClassFileLocator classes = ClassFileLocator.ForClassLoader.ofSystemLoader();
    Instrumenter instrumenter = new Instrumenter(classes, Hooks.all());
    List<String> missing = instrumenter.missing();
    if (missing.isEmpty()) {
      instrumentation.addTransformer(new Agent(instrumenter));
    }
    for (String hook : missing) {
      System.err.println("ltrace: not traced, this Hadoop lacks a hook: " + hook);
    }
  }

  @Override
  public byte[] transform(
      ClassLoader loader,
      String name,
      Class<?> redefined,
      ProtectionDomain domain,
      byte[] original) {
    if (name == null || !instrumenter.hooks().containsKey(name.replace('/', '.'))) {
      return null;
    }
    try {
      return instrumenter.instrumented(name.replace('/', '.'));
    } catch (IOException | RuntimeException error) {
      System.err.println("ltrace: " + name + " is not traced: " + error);
      return null;
    }
  }
}
