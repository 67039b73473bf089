package mapreduce.harness.jobs;

import java.io.IOException;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskCompletionEvent;

/** What the clients of all jobs do alike. */
public final class Client {
  private static final int MOST_EVENTS = 10_000;

  private Client() {}

  /**
   * Submits a job, follows it to its end, and returns the client's exit status.
   *
   * <p>Of a job that fails, the last line on standard error is the diagnosis of its first failed
   * attempt: Hadoop's client mostly ends before it has read one.
   */
  public static int run(Job job) throws IOException, InterruptedException, ClassNotFoundException {
    if (job.waitForCompletion(true)) {
      return 0;
    }
    for (TaskCompletionEvent event : job.getTaskCompletionEvents(0, MOST_EVENTS)) {
      boolean failed =
          event.getStatus() == TaskCompletionEvent.Status.FAILED
              || event.getStatus() == TaskCompletionEvent.Status.TIPFAILED;
      if (failed) {
        String[] diagnostics = job.getTaskDiagnostics(event.getTaskAttemptId());
        System.err.println(
            "Error in "
                + event.getTaskAttemptId()
                + ": "
                + (diagnostics.length > 0 ? first(diagnostics[0]) : ""));
        break;
      }
    }
    return 1;
  }

  private static String first(String text) {
    return text.strip().lines().findFirst().orElse("");
  }
}
