package mapreduce.harness.ltrace.instrument;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import mapreduce.harness.ltrace.record.Kind;

/** The table of hooks: where in Hadoop 3.5 each phase of a task begins and ends. */
final class Hooks {

  private static final String HADOOP = "org.apache.hadoop.";
  private static final String MAPRED = HADOOP + "mapred.";
  private static final String BUFFER = MAPRED + "MapTask$MapOutputBuffer";
  private static final String REDUCE = HADOOP + "mapreduce.task.reduce.";
  private static final String MERGES = REDUCE + "MergeManagerImpl";

  private final List<Hook> table = new ArrayList<>();

  private Hooks() {
    process();
    task();
    map();
    oldMap();
    buffer();
    merges();
    shuffle();
    reduce();
    fills();
  }

  /** All hooks. */
  static List<Hook> all() {
    return Collections.unmodifiableList(new Hooks().table);
  }

  /** What a task's JVM does before and after the task. */
  private void process() {
    String child = MAPRED + "YarnChild";
    span(child, "main", 1, Kind.MAIN);
    span(child, "configureTask", 4, Kind.CONFIGURE_TASK);
    span(child, "configureLocalDirs", 2, Kind.LOCAL_FOLDERS);
    span(child, "writeLocalJobFile", 2, Kind.JOB_FILE);
    String calls = HADOOP + "ipc.WritableRpcEngine$Invoker";
    hook(calls, "invoke", 3, Kind.GET_TASK, Advices.GetTask.class);
    String configuration = HADOOP + "conf.Configuration";
    hook(configuration, "loadResources", 5, Kind.CONFIGURATION, Advices.Wait.class);
    span(HADOOP + "security.UserGroupInformation", "createLoginUser", 1, Kind.LOGIN);
    span(HADOOP + "metrics2.lib.DefaultMetricsSystem", "initialize", 1, Kind.METRICS);
    span(HADOOP + "metrics2.lib.DefaultMetricsSystem", "shutdown", 0, Kind.SHUT_DOWN);
    span(HADOOP + "metrics2.source.JvmMetrics", "initSingleton", 2, Kind.METRICS);
    String files = HADOOP + "fs.FileSystem";
    hook(files, "createFileSystem", 2, Kind.FILE_SYSTEM, Advices.MakeFileSystem.class);
    span(MAPRED + "TaskLog", "syncLogsShutdown", 1, Kind.SHUT_DOWN);
  }

  private void task() {
    span(MAPRED + "Task", "initialize", 4, Kind.INITIALIZE);
    span(MAPRED + "MapTask", "run", 2, Kind.TASK);
    span(MAPRED + "ReduceTask", "run", 2, Kind.TASK);
    hook(MAPRED + "Task", "done", 2, Kind.DONE, Advices.Done.class);
    span(MAPRED + "Task", "commit", 3, Kind.COMMIT);
  }

  private void map() {
    span(MAPRED + "MapTask", "runNewMapper", 4, Kind.RUN_MAPPER);
    call(MAPRED + "MapTask", "runNewMapper", 4, "run", "runMapper");
    span(MAPRED + "MapTask", "getSplitDetails", 2, Kind.SPLIT);
    String reader = MAPRED + "MapTask$NewTrackingRecordReader";
    call(reader, "<init>", 4, "createRecordReader", "createReader");
    span(reader, "initialize", 2, Kind.READER_OPEN);
    hook(reader, "nextKeyValue", 0, 0, Advices.Read.class);
    span(reader, "close", 0, Kind.READER_CLOSE);
    for (String collector : List.of("NewOutputCollector", "NewDirectOutputCollector")) {
      hook(MAPRED + "MapTask$" + collector, "write", 2, 0, Advices.Call.class);
      span(MAPRED + "MapTask$" + collector, "close", 1, Kind.COLLECTOR_CLOSE);
    }
    String direct = MAPRED + "MapTask$NewDirectOutputCollector";
    call(direct, "<init>", 5, "getRecordWriter", "openWriter");
  }

  private void oldMap() {
    span(MAPRED + "MapTask", "runOldMapper", 4, Kind.RUN_MAPPER);
    call(MAPRED + "MapTask", "runOldMapper", 4, "run", "runMapRunner");
    String reader = MAPRED + "MapTask$TrackedRecordReader";
    call(reader, "<init>", 3, "getRecordReader", "openOldReader");
    hook(reader, "next", 2, 0, Advices.Read.class);
    span(reader, "close", 0, Kind.READER_CLOSE);
    hook(MAPRED + "MapTask$OldOutputCollector", "collect", 2, 0, Advices.Call.class);
    span(MAPRED + "MapTask$DirectMapOutputCollector", "init", 1, Kind.WRITER_OPEN);
    span(MAPRED + "MapTask$DirectMapOutputCollector", "close", 0, Kind.COLLECTOR_CLOSE);
  }

  private void buffer() {
    span(BUFFER, "init", 1, Kind.COLLECTOR_OPEN);
    span(BUFFER, "flush", 0, Kind.FLUSH);
    hook(BUFFER, "sortAndSpill", 0, Kind.SPILL, Advices.Spill.class);
    hook(BUFFER, "spillSingleRecord", 3, Kind.SPILL_SINGLE, Advices.SpillSingle.class);
    hook(BUFFER, "mergeParts", 0, Kind.MERGE, Advices.Merge.class);
    call(BUFFER + "$Buffer", "write", 3, "await", "awaitRoom");
    hook(HADOOP + "util.QuickSort", "sort", 4, Kind.SORT, Advices.Sort.class);
    span(MAPRED + "Task$NewCombinerRunner", "combine", 2, Kind.COMBINE);
    span(MAPRED + "Task$OldCombinerRunner", "combine", 2, Kind.COMBINE);
  }

  private void merges() {
    hook(MAPRED + "IFile$Writer", "close", 0, 0, Advices.CloseFile.class);
    hook(MAPRED + "Merger", "writeFile", 4, Kind.WRITE_FILE, Advices.WriteFile.class);
    hook(MAPRED + "Merger$MergeQueue", "merge", 8, Kind.MERGE_PASS, Advices.MergePass.class);
  }

  private void shuffle() {
    span(REDUCE + "Shuffle", "init", 1, Kind.SHUFFLE_OPEN);
    span(REDUCE + "Shuffle", "run", 0, Kind.SHUFFLE);
    String events = REDUCE + "EventFetcher";
    hook(events, "getMapCompletionEvents", 0, Kind.EVENTS, Advices.Events.class);
    hook(REDUCE + "Fetcher", "copyFromHost", 1, Kind.VISIT, Advices.Visit.class);
    span(REDUCE + "Fetcher", "openShuffleUrl", 3, Kind.CONNECT);
    String output = REDUCE + "IFileWrappedMapOutput";
    hook(output, "shuffle", 6, Kind.SEGMENT, Advices.Segment.class);
    hook(MERGES, "waitForResource", 0, Kind.WAIT_MEMORY, Advices.Wait.class);
    hook(MERGES, "reserve", 3, Kind.STALL, Advices.Reserve.class);
    hook(MERGES + "$InMemoryMerger", "merge", 1, Kind.MEMORY_MERGE, Advices.ListMerge.class);
    hook(MERGES + "$OnDiskMerger", "merge", 1, Kind.DISK_MERGE, Advices.ListMerge.class);
    span(MERGES, "combineAndSpill", 2, Kind.REDUCE_COMBINE);
    span(MERGES, "close", 0, Kind.CLOSE_MERGES);
    hook(MERGES, "finalMerge", 4, Kind.FINAL_MERGE, Advices.FinalMerge.class);
  }

  private void reduce() {
    span(MAPRED + "ReduceTask", "runNewReducer", 7, Kind.RUN_REDUCER);
    span(MAPRED + "ReduceTask", "runOldReducer", 7, Kind.RUN_REDUCER);
    call(MAPRED + "ReduceTask", "runNewReducer", 7, "run", "runReducer");
    String context = HADOOP + "mapreduce.task.ReduceContextImpl";
    hook(context, "nextKeyValue", 0, 0, Advices.ReduceRead.class);
    hook(context, "nextKey", 0, 0, Advices.NextGroup.class);
    String values = MAPRED + "ReduceTask$ReduceValuesIterator";
    hook(values, "next", 0, 0, Advices.OldReduceRead.class);
    String writers = MAPRED + "ReduceTask$";
    call(writers + "NewTrackingRecordWriter", "<init>", 2, "getRecordWriter", "openWriter");
    call(writers + "OldTrackingRecordWriter", "<init>", 4, "getRecordWriter", "openOldWriter");
    for (String writer : List.of("NewTrackingRecordWriter", "OldTrackingRecordWriter")) {
      hook(MAPRED + "ReduceTask$" + writer, "write", 2, 0, Advices.Call.class);
      String owner = MAPRED + "ReduceTask$" + writer;
      hook(owner, "close", 1, Kind.WRITER_CLOSE, Advices.WriterClose.class);
    }
  }

  /** Where readers wait for a host, for the disk, or for the page cache. */
  private void fills() {
    String blocks = HADOOP + "hdfs.client.impl.BlockReader";
    hook(blocks + "Remote", "readNextPacket", 0, 0, Advices.Fill.class);
    hook(blocks + "Local", "fillDataBuf", 1, 0, Advices.Fill.class);
    String local = HADOOP + "fs.RawLocalFileSystem$LocalFSFileInputStream";
    hook(local, "read", 3, 0, Advices.Fill.class);
  }

  private void span(String owner, String method, int arguments, int kind) {
    hook(owner, method, arguments, kind, Advices.Span.class);
  }

  private void hook(String owner, String method, int arguments, int kind, Class<?> advice) {
    table.add(new Hook(owner, method, arguments, kind, advice, null, null));
  }

  private void call(String owner, String method, int arguments, String callee, String replacement) {
    table.add(new Hook(owner, method, arguments, 0, null, callee, replacement));
  }
}
