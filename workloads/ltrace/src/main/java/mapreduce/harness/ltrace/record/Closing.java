package mapreduce.harness.ltrace.record;

/**
 * What the JVM does of ours when it ends. A class of its own: a lambda costs a task more to start.
 */
final class Closing extends Thread {

  Closing() {
    super("ltrace-end");
  }

  @Override
  public void run() {
    Recorder.close();
  }
}
