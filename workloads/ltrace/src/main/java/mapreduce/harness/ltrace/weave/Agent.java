package mapreduce.harness.ltrace.weave;

import java.io.IOException;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import java.util.List;
import net.bytebuddy.dynamic.ClassFileLocator;

/**
 * The same hooks, put in while a task runs: {@code -javaagent:harness-ltrace.jar}.
 *
 * <p>For clusters whose jars are not ours; it costs more than a second per task. A Hadoop that
 * lacks a hook is not traced at all.
 */
public final class Agent implements ClassFileTransformer {

  private final Weaver weaver;

  private Agent(Weaver weaver) {
    this.weaver = weaver;
  }

  /** Called by the JVM before {@code main}. */
  public static void premain(String arguments, Instrumentation instrumentation) {
    ClassFileLocator classes = ClassFileLocator.ForClassLoader.ofSystemLoader();
    Weaver weaver = new Weaver(classes, Hooks.all());
    List<String> missing = weaver.missing();
    if (missing.isEmpty()) {
      instrumentation.addTransformer(new Agent(weaver));
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
    if (name == null || !weaver.hooks().containsKey(name.replace('/', '.'))) {
      return null;
    }
    try {
      return weaver.woven(name.replace('/', '.'));
    } catch (IOException | RuntimeException why) {
      System.err.println("ltrace: " + name + " is not traced: " + why);
      return null;
    }
  }
}
