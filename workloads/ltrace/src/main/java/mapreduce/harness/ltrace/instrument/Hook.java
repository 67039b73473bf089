package mapreduce.harness.ltrace.instrument;

import static net.bytebuddy.matcher.ElementMatchers.isAbstract;
import static net.bytebuddy.matcher.ElementMatchers.isBridge;
import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.not;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.asm.AsmVisitorWrapper;
import net.bytebuddy.asm.MemberSubstitution;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.pool.TypePool;

/**
 * One place in Hadoop's code.
 *
 * @param owner the class
 * @param method its method, {@code <init>} for its constructor
 * @param arguments how many that one takes, which distinguishes overloads
 * @param kind what its span is; 0: it records something else
 * @param advice what is put into the method, or {@code null}: a call in it is replaced
 * @param callee method whose call is replaced
 * @param replacement method of {@code Calls} that takes its place
 */
record Hook(
    String owner,
    String method,
    int arguments,
    int kind,
    Class<?> advice,
    String callee,
    String replacement) {

  // Our classes are described, not looked into by reflection: that would load Hadoop's classes.
  private static final String CALLS = "mapreduce.harness.ltrace.record.Calls";
  private static final String CONSTRUCTOR = "<init>";

  /** Which methods of the owner this is about: one, or this Hadoop is not supported. */
  ElementMatcher.Junction<MethodDescription> matcher() {
    ElementMatcher.Junction<MethodDescription> name =
        method.equals(CONSTRUCTOR) ? isConstructor() : named(method);
    return name.and(takesArguments(arguments)).and(not(isAbstract())).and(not(isBridge()));
  }

  /** What changes the owner's bytes; {@code advices} finds the bytes of our own classes. */
  AsmVisitorWrapper visitor(TypePool types, ClassFileLocator advices) {
    return advice == null ? substitution(types) : advice(types, advices);
  }

  private AsmVisitorWrapper advice(TypePool types, ClassFileLocator advices) {
    return Advice.withCustomMapping()
        .bind(KindOf.class, kind)
        .to(types.describe(advice.getName()).resolve(), advices)
        .on(matcher());
  }

  private AsmVisitorWrapper substitution(TypePool types) {
    MethodDescription target =
        types.describe(CALLS).resolve().getDeclaredMethods().filter(named(replacement)).getOnly();
    return MemberSubstitution.relaxed()
        .method(named(callee).and(takesArguments(target.getParameters().size() - 1)))
        .replaceWith(target)
        .on(matcher());
  }

  @Override
  public String toString() {
    String name = owner + "." + method + " with " + arguments + " arguments";
    return callee == null ? name : callee + " in " + name;
  }
}
