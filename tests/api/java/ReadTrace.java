import java.io.FileInputStream;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.tools.rumen.ClusterTopologyReader;
import org.apache.hadoop.tools.rumen.JobTraceReader;
import org.apache.hadoop.tools.rumen.LoggedJob;
import org.apache.hadoop.tools.rumen.LoggedTask;
import org.apache.hadoop.tools.rumen.LoggedTaskAttempt;
import org.apache.hadoop.tools.rumen.TaskAttemptInfo;
import org.apache.hadoop.tools.rumen.ZombieCluster;
import org.apache.hadoop.tools.rumen.ZombieJob;
import org.apache.hadoop.tools.rumen.ZombieJobProducer;

/**
 * ReadTrace TRACE TOPOLOGY: what Rumen's own readers find, a line for each job and each attempt.
 *
 * <p>"job" with times, outcome and numbers of tasks as its reader of traces has them; "attempt" with
 * times, result, host and counters; "story" with what its replayer is given of two attempts
 * at each task, made up where there were none; and the machines of the topology.
 */
final class ReadTrace {
  public static void main(String[] args) throws Exception {
    try (JobTraceReader reader = new JobTraceReader(new FileInputStream(args[0]))) {
      for (LoggedJob job = reader.getNext(); job != null; job = reader.getNext()) {
        print("job", job.getJobID(), job.getJobName().getValue(), job.getUser().getValue(),
            job.getOutcome(), job.getSubmitTime(), job.getLaunchTime(), job.getFinishTime(),
            job.getTotalMaps(), job.getTotalReduces());
        job.getMapTasks().forEach(ReadTrace::printTask);
        job.getReduceTasks().forEach(ReadTrace::printTask);
      }
    }
    ZombieCluster cluster =
        new ZombieCluster(new ClusterTopologyReader(new FileInputStream(args[1])).get(), null);
    cluster.getMachines().stream().map(machine -> machine.getName()).sorted()
        .forEach(name -> print("machine", name));
    ZombieJobProducer stories =
        new ZombieJobProducer(new FileInputStream(args[0]), cluster, 1L);
    for (ZombieJob job = stories.getNextJob(); job != null; job = stories.getNextJob()) {
      printStory(job, TaskType.MAP, job.getNumberMaps());
      printStory(job, TaskType.REDUCE, job.getNumberReduces());
    }
    stories.close();
  }

  private static void printTask(LoggedTask task) {
    for (LoggedTaskAttempt attempt : task.getAttempts()) {
      print("attempt", attempt.getAttemptID(), task.getTaskType(), attempt.getResult(),
          attempt.getHostName().getValue(), attempt.getStartTime(), attempt.getFinishTime(),
          attempt.getShuffleFinished(), attempt.getSortFinished(), attempt.getHdfsBytesRead(),
          attempt.getFileBytesWritten(), attempt.getMapOutputRecords(),
          attempt.getReduceShuffleBytes(), attempt.getSpilledRecords(),
          attempt.getResourceUsageMetrics().getCumulativeCpuUsage());
    }
  }

  private static void printStory(ZombieJob job, TaskType type, int tasks) {
    for (int task = 0; task < tasks; task++) {
      for (int attempt = 0; attempt < 2; attempt++) {
        TaskAttemptInfo info = job.getTaskAttemptInfo(type, task, attempt);
        print("story", job.getJobID(), type, task, attempt, info.getRunState(), info.getRuntime(),
            Math.max(0, info.getTaskInfo().getInputBytes()),
            Math.max(0, info.getTaskInfo().getOutputRecords()));
      }
    }
  }

  private static void print(Object... values) {
    StringBuilder line = new StringBuilder();
    for (Object value : values) {
      line.append(line.length() == 0 ? "" : "\t").append(value);
    }
    System.out.println(line);
  }
}
