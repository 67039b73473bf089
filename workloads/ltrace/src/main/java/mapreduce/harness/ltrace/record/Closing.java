package mapreduce.harness.ltrace.record;

/**
 * Completes the recording when the JVM ends. A class of its own: a lambda costs a task more to
 * start.
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
