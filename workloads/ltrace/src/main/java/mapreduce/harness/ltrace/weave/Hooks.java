package mapreduce.harness.ltrace.weave;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import mapreduce.harness.ltrace.record.Kind;

/** The table of hooks: where in Hadoop 3.5 each phase of a task begins and ends. */
final class Hooks {

    private static final String MAPRED = "org.apache.hadoop.mapred.";
    private static final String BUFFER = MAPRED + "MapTask$MapOutputBuffer";
    private static final String REDUCE = "org.apache.hadoop.mapreduce.task.reduce.";
    private static final String MERGES = REDUCE + "MergeManagerImpl";

    private final List<Hook> table = new ArrayList<>();

    private Hooks() {
        task();
        map();
        oldMap();
        buffer();
        merges();
        shuffle();
        reduce();
    }

    /** All hooks. */
    static List<Hook> all() {
        return Collections.unmodifiableList(new Hooks().table);
    }

    private void task() {
        span(MAPRED + "YarnChild", "main", 1, Kind.MAIN);
        span(MAPRED + "MapTask", "run", 2, Kind.TASK);
        span(MAPRED + "ReduceTask", "run", 2, Kind.TASK);
        hook(MAPRED + "Task", "done", 2, Kind.DONE, Advices.Done.class);
        span(MAPRED + "Task", "commit", 3, Kind.COMMIT);
    }

    private void map() {
        span(MAPRED + "MapTask", "runNewMapper", 4, Kind.RUN_MAPPER);
        call(MAPRED + "MapTask", "runNewMapper", 4, "run", "runMapper");
        String reader = MAPRED + "MapTask$NewTrackingRecordReader";
        span(reader, "initialize", 2, Kind.READER_OPEN);
        hook(reader, "nextKeyValue", 0, 0, Advices.Read.class);
        span(reader, "close", 0, Kind.READER_CLOSE);
        for (String collector : List.of("NewOutputCollector", "NewDirectOutputCollector")) {
            hook(MAPRED + "MapTask$" + collector, "write", 2, 0, Advices.Call.class);
            span(MAPRED + "MapTask$" + collector, "close", 1, Kind.COLLECTOR_CLOSE);
        }
    }

    private void oldMap() {
        span(MAPRED + "MapTask", "runOldMapper", 4, Kind.RUN_MAPPER);
        call(MAPRED + "MapTask", "runOldMapper", 4, "run", "runMapRunner");
        String reader = MAPRED + "MapTask$TrackedRecordReader";
        hook(reader, "next", 2, 0, Advices.Read.class);
        span(reader, "close", 0, Kind.READER_CLOSE);
        hook(MAPRED + "MapTask$OldOutputCollector", "collect", 2, 0, Advices.Call.class);
        span(MAPRED + "MapTask$DirectMapOutputCollector", "init", 1, Kind.COLLECTOR_OPEN);
        span(MAPRED + "MapTask$DirectMapOutputCollector", "close", 0, Kind.COLLECTOR_CLOSE);
    }

    private void buffer() {
        span(BUFFER, "init", 1, Kind.COLLECTOR_OPEN);
        span(BUFFER, "flush", 0, Kind.FLUSH);
        hook(BUFFER, "sortAndSpill", 0, Kind.SPILL, Advices.Spill.class);
        hook(BUFFER, "spillSingleRecord", 3, Kind.SPILL_SINGLE, Advices.SpillSingle.class);
        hook(BUFFER, "mergeParts", 0, Kind.MERGE, Advices.Merge.class);
        call(BUFFER + "$Buffer", "write", 3, "await", "awaitRoom");
        hook("org.apache.hadoop.util.QuickSort", "sort", 4, Kind.SORT, Advices.Sort.class);
        span(MAPRED + "Task$NewCombinerRunner", "combine", 2, Kind.COMBINE);
        span(MAPRED + "Task$OldCombinerRunner", "combine", 2, Kind.COMBINE);
    }

    private void merges() {
        hook(MAPRED + "IFile$Writer", "close", 0, 0, Advices.CloseFile.class);
        hook(MAPRED + "Merger", "writeFile", 4, Kind.WRITE_FILE, Advices.WriteFile.class);
        hook(MAPRED + "Merger$MergeQueue", "merge", 8, Kind.MERGE_PASS, Advices.MergePass.class);
    }

    private void shuffle() {
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
        hook(MAPRED + "ReduceTask", "runOldReducer", 7, Kind.RUN_REDUCER, Advices.Loop.class);
        call(MAPRED + "ReduceTask", "runNewReducer", 7, "run", "runReducer");
        String context = "org.apache.hadoop.mapreduce.task.ReduceContextImpl";
        hook(context, "nextKeyValue", 0, 0, Advices.ReduceRead.class);
        hook(context, "nextKey", 0, 0, Advices.NextGroup.class);
        String values = MAPRED + "ReduceTask$ReduceValuesIterator";
        hook(values, "next", 0, 0, Advices.OldReduceRead.class);
        for (String writer : List.of("NewTrackingRecordWriter", "OldTrackingRecordWriter")) {
            hook(MAPRED + "ReduceTask$" + writer, "write", 2, 0, Advices.Call.class);
            String owner = MAPRED + "ReduceTask$" + writer;
            hook(owner, "close", 1, Kind.WRITER_CLOSE, Advices.WriterClose.class);
        }
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
