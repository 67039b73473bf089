"""
A month of a cluster, generated: histories and configurations as the engines of its users leave
them.

Four workers run Hadoop 2.10 until the 10th, 3.1 until the 20th and 3.5 from then on, and one of
them has a clock that is eight seconds ahead.  Each program is known here under a key of its own,
whatever its jobs are called; programs of one key differ in size, never in what they do.
"""

import gzip

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import quote_plus

import numpy as np

from tests.catalog.events import counters, in_binary, in_json

MIB = 2**20
BLOCK = 128 * MIB
START = datetime(2026, 3, 1, tzinfo=UTC)
WORKERS = ("worker1", "worker2", "worker3", "worker4")
AHEAD_MS = {"worker3": 8000}  # by how much a worker's clock is
SLOTS = 8  # containers that a job gets at once
VERSIONS = ((10, "2.10"), (20, "3.1"), (31, "3.5"))
SPLIT_BYTES = 110  # of the description of one map's split
LIBRARY = "org.apache.hadoop.mapreduce.lib"
OLD = "org.apache.hadoop.mapred"
EXAMPLES = "org.apache.hadoop.examples"
PIG = "org.apache.pig.backend.hadoop.executionengine.mapReduceLayer"
COMMON = {
    "dfs.blocksize": "134217728",
    "dfs.replication": "3",
    "mapreduce.framework.name": "yarn",
    "mapreduce.map.java.opts": "-Xmx1638m",
    "mapreduce.map.memory.mb": "2048",
    "mapreduce.reduce.java.opts": "-Xmx1638m",
    "mapreduce.reduce.memory.mb": "2048",
    "mapreduce.task.io.sort.factor": "10",
    "mapreduce.task.io.sort.mb": "100",
    "mapreduce.map.output.compress": "false",
    "mapreduce.output.fileoutputformat.compress": "false",
}


def new_interface(mapper="", reducer="", combiner="", reads="", writes=""):
    """
    Properties of a job of the new interface, with these classes.
    """
    classes = {
        "mapreduce.job.map.class": mapper,
        "mapreduce.job.combine.class": combiner,
        "mapreduce.job.reduce.class": reducer,
        "mapreduce.job.inputformat.class": reads,
        "mapreduce.job.outputformat.class": writes,
    }
    switches = {"mapred.mapper.new-api": "true", "mapred.reducer.new-api": "true"}
    return {name: value for name, value in classes.items() if value} | switches


def old_interface(mapper, reducer, reads, writes):
    """
    The same of the old one.
    """
    return {
        "mapred.mapper.class": mapper,
        "mapred.reducer.class": reducer,
        "mapred.input.format.class": reads,
        "mapred.output.format.class": writes,
    }


@dataclass(frozen=True)
class Program:
    """
    What some jobs run: *name* and *properties* have fields that vary from run to run.

    Its maps read *mean_mib* in splits of *split_mib*; *counts* says where Hadoop counts that: as
    bytes of files, of a file system alone, or nowhere, as where rows come from a database.
    """

    key: str
    name: str
    properties: dict
    mean_mib: float
    reduces: int
    every_days: int = 3
    split_mib: int = 128
    counts: str = "files"
    map_mib_per_s: float = 20.0
    output_share: float = 0.5
    user: str = "etl"


def hive(key, query, stage, **facts):
    """
    A stage of a query, which Hive shortens to a name.
    """
    shown = query if len(query) <= 44 else f"{query[:21]}...{query[-20:]}"
    reads = facts.pop("reads", "org.apache.hadoop.hive.ql.io.CombineHiveInputFormat")
    properties = old_interface(
        "org.apache.hadoop.hive.ql.exec.mr.ExecMapper",
        "org.apache.hadoop.hive.ql.exec.mr.ExecReducer",
        reads,
        "org.apache.hadoop.hive.ql.io.HiveOutputFormatImpl",
    )
    properties |= {
        "hive.query.id": "{user}_{second}_{uuid}",
        "hive.query.string": quote_plus(query),
        "mapreduce.workflow.id": "hive_{user}_{second}_{uuid}",
        "mapreduce.workflow.node.name": stage,
    }
    facts = {"counts": "file system", "split_mib": 256, "user": "hive", **facts}
    return Program(key, f"{shown}({stage})", properties, **facts)


def pig(key, name, feature, alias, **facts):
    """
    A job of a script, or of what somebody typed.
    """
    properties = new_interface(
        f"{PIG}.PigGenericMapReduce$Map", f"{PIG}.PigGenericMapReduce$Reduce",
        f"{PIG}.PigCombiner$Combine" if "COMBINER" in feature else "",
        f"{PIG}.PigInputFormat", f"{PIG}.PigOutputFormat",
    )  # fmt: skip
    properties |= {
        "pig.job.feature": feature,
        "pig.alias": alias,
        "pig.script.id": "{uuid}",
        "pig.version": "0.17.0",
    }
    facts = {"counts": "file system", "user": "analyst", **facts}
    return Program(key, f"PigLatin:{name}", properties, **facts)


def streaming(key, mapper, reducer, name="streamjob{digits}.jar", **facts):
    """
    A job of two scripts; Hadoop names it by the jar that it was packed into.
    """
    properties = old_interface(
        "org.apache.hadoop.streaming.PipeMapper", "org.apache.hadoop.streaming.PipeReducer",
        f"{OLD}.TextInputFormat", f"{OLD}.TextOutputFormat",
    )  # fmt: skip
    properties |= {
        "stream.map.streamprocessor": quote_plus(mapper),
        "stream.reduce.streamprocessor": quote_plus(reducer),
        "mapred.map.runner.class": "org.apache.hadoop.streaming.PipeMapRunner",
    }
    return Program(key, name, properties, **facts)


def mrjob(step, **facts):
    """
    One of the three steps of a script of mrjob.
    """
    call = f"python3 mr_sessions.py --step-num={step - 1} --"
    return streaming(
        f"mrjob step {step}", f"{call}mapper", f"{call}reducer",
        f"mr_sessions.etl.{{stamp}}: Step {step} of 3", **facts,
    )  # fmt: skip


def launcher(action, kind, **facts):
    """
    The job of one map by which Oozie starts an action.
    """
    mapper = "org.apache.oozie.action.hadoop.LauncherMapper"
    reads = "org.apache.oozie.action.hadoop.OozieLauncherInputFormat"
    properties = old_interface(mapper, "", reads, f"{OLD}.lib.NullOutputFormat")
    del properties["mapred.reducer.class"]
    name = f"oozie:launcher:T={kind}:W=nightly:A={action}:ID={{serial}}-{{oozie}}-oozie-oozi-W"
    facts = {"counts": "nothing", "output_share": 0.0, "user": "oozie", **facts}
    return Program(f"oozie {action}", name, properties, mean_mib=100, reduces=0, **facts)


def sqoop(table, mean_mib, **facts):
    """
    The import of a table: four maps that read a database.
    """
    properties = new_interface(
        "org.apache.sqoop.mapreduce.TextImportMapper",
        reads="org.apache.sqoop.mapreduce.db.DataDrivenDBInputFormat",
        writes=f"{LIBRARY}.output.TextOutputFormat",
    )
    properties |= {"mapreduce.jdbc.input.table.name": table, "sqoop.inline.lob.length.max": "16"}
    facts = {"counts": "nothing", "output_share": 1.0, "user": "sqoop", **facts}
    return Program(f"sqoop {table}", f"{table}.jar", properties, mean_mib, reduces=0,
                   split_mib=-(-int(mean_mib) // 4), **facts)  # fmt: skip


SESSIONS = (
    "INSERT OVERWRITE TABLE sessions SELECT user_id, count(*) n FROM clicks"
    " GROUP BY user_id ORDER BY n"
)
PROGRAMS = (
    hive("hive sessions 1", SESSIONS, "Stage-1", mean_mib=1500, reduces=3),
    hive("hive sessions 2", SESSIONS, "Stage-2", mean_mib=500, reduces=1, map_mib_per_s=8.0),
    hive("hive top", "SELECT product, sum(price) FROM orders GROUP BY product", "Stage-1",
         mean_mib=600, reduces=2, reads="org.apache.hadoop.hive.ql.io.HiveInputFormat",
         split_mib=128, user="analyst"),
    hive("hive filter", "INSERT INTO TABLE errors SELECT * FROM logs WHERE level = 'E'", "Stage-1",
         mean_mib=900, reduces=0, output_share=0.05),
    pig("pig group", "sessionize.pig", "GROUP_BY,COMBINER", "clicks,grouped", mean_mib=800,
        reduces=2, output_share=0.1),
    pig("pig join", "sessionize.pig", "HASH_JOIN", "joined,users", mean_mib=700, reduces=3,
        map_mib_per_s=10.0),
    pig("pig sampler", "DefaultJobName", "SAMPLER", "ordered", mean_mib=400, reduces=1,
        output_share=0.01, every_days=4),
    pig("pig order", "DefaultJobName", "ORDER_BY", "ordered", mean_mib=400, reduces=2,
        every_days=4),
    streaming("stream words", "python3 words.py", "python3 add.py", mean_mib=500, reduces=2),
    streaming("stream parse", "perl parse.pl --strict", "cat", mean_mib=900, reduces=1,
              map_mib_per_s=5.0),
    mrjob(1, mean_mib=900, reduces=2),
    mrjob(2, mean_mib=450, reduces=2, map_mib_per_s=10.0),
    mrjob(3, mean_mib=300, reduces=1, map_mib_per_s=6.0),
    launcher("load", "hive2"),
    launcher("export", "shell", every_days=4),
    sqoop("orders", 700),
    sqoop("customers", 300, every_days=4),
    Program("word count", "word count", new_interface(
        f"{EXAMPLES}.WordCount$TokenizerMapper", f"{EXAMPLES}.WordCount$IntSumReducer",
        f"{EXAMPLES}.WordCount$IntSumReducer", f"{LIBRARY}.input.TextInputFormat",
        f"{LIBRARY}.output.TextOutputFormat"), 600, 2, map_mib_per_s=7.0, output_share=0.1),
    Program("teragen", "TeraGen", new_interface(
        f"{EXAMPLES}.terasort.TeraGen$SortGenMapper",
        reads=f"{EXAMPLES}.terasort.TeraGen$RangeInputFormat",
        writes=f"{EXAMPLES}.terasort.TeraOutputFormat"),
        800, 0, every_days=5, counts="nothing", output_share=1.0),
    Program("terasort", "TeraSort", new_interface(
        reads=f"{EXAMPLES}.terasort.TeraInputFormat",
        writes=f"{EXAMPLES}.terasort.TeraOutputFormat"), 800, 4, every_days=4, output_share=1.0),
    Program("report", "daily-report {day}", new_interface(
        "com.example.report.ReportMapper", "com.example.report.ReportReducer",
        reads=f"{LIBRARY}.input.SequenceFileInputFormat",
        writes=f"{LIBRARY}.output.TextOutputFormat"), 1000, 2, every_days=1),
)  # fmt: skip


@dataclass
class Job:
    """
    A job that ran: its program, when it was submitted, what became of it, and its two files.
    """

    job_id: str
    program: str
    submit_ms: int
    outcome: str
    files: dict = field(default_factory=dict)

    @property
    def is_success(self):
        """
        Whether it ended as it should.
        """
        return self.outcome not in ("failed", "killed")

    @property
    def folder(self):
        """
        Where a history server puts it: by its day, and the first digits of its number.
        """
        at = START + timedelta(milliseconds=self.submit_ms)
        return f"{at:%Y/%m/%d}/{int(self.job_id[-4:]) // 100:06d}"


@dataclass
class Month:
    """
    All *jobs* in the order of submission; *others* are files of applications that are no jobs.
    """

    jobs: list
    others: dict

    def counts(self):
        """
        How many jobs came to which outcome.
        """
        return Counter(job.outcome for job in self.jobs)

    def write(self, folder, shuffle=None):
        """
        Write all files below *folder*, as Hadoop's done tree has them, or *shuffle*-d by a number.
        """
        random = np.random.default_rng(shuffle)
        trees = [(job.folder, job.files) for job in self.jobs]
        for path, content in self.others.items():
            parent, _, name = path.rpartition("/")
            trees.append((parent, {name: content}))
        for place in random.permutation(len(trees)) if shuffle is not None else range(len(trees)):
            parent, files = trees[place]
            if shuffle is not None and parent.startswith("2026"):
                parent = f"{random.integers(9)}/{random.integers(9)}"
            for name, content in files.items():
                path = folder / parent / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)


def outcome_of(number):
    """
    What becomes of the job of this number: each in its turn, the same for all seeds.
    """
    turns = {
        "failed": (23, 11), "killed": (41, 17), "recovered": (29, 5), "node lost": (37, 9),
        "attempt failed": (31, 21), "uber": (97, 60), "no configuration": (149, 70),
        "cut": (173, 90),
    }  # fmt: skip
    for outcome, (period, turn) in turns.items():
        if number % period == turn:
            return outcome
    return "done"


class Run:
    """
    One run of a program: its tasks on slots, and the events that its masters write.
    """

    def __init__(self, program, number, day, random, outcome):
        self.program = program
        self.random = random
        self.outcome = outcome
        self.version = next(version for last, version in VERSIONS if day < last)
        boot_ms = {"2.10": 1772300000000, "3.1": 1773200000000, "3.5": 1774100000000}
        self.job = f"{boot_ms[self.version]}_{number:04d}"
        hour_ms = 3_600_000 * (1 + number % 22) + int(random.integers(3_000_000))
        self.submit_ms = day * 86_400_000 + hour_ms
        growth = (1 + 0.04 * day) * (0.6 if day % 7 in (0, 6) else 1.0)
        self.mib = program.mean_mib * growth * float(random.lognormal(0, 0.12))
        if outcome == "uber":
            self.mib = min(self.mib, 90.0)
        self.master = str(random.choice(WORKERS))
        self.map_count = max(1, -(-int(self.mib) // program.split_mib))
        if program.key.startswith("sqoop"):
            self.map_count = 4
        if program.key.startswith("oozie"):
            self.map_count = 1
        self.events = []
        self.sums = {"map": Counter(), "reduce": Counter()}
        self.finished_ms = self.submit_ms

    @property
    def base_ms(self):
        """
        Moment at which the month begins.
        """
        return int(START.timestamp() * 1000)

    def moment(self, at_ms, host=None):
        """
        A moment by the clock of the master, or of another *host*.
        """
        return self.base_ms + int(at_ms) + AHEAD_MS.get(host or self.master, 0)

    def noise(self):
        """
        By how much times spread.
        """
        return float(self.random.lognormal(0, 0.08))

    def add(self, event_type, record, **fields):
        """
        Write an event.
        """
        self.events.append((event_type, record, fields))

    def history(self):
        """
        All events, and when the job ended.
        """
        launch_ms = self.submit_ms + 4000 * self.noise()
        self.start_master(1, launch_ms)
        self.describe(launch_ms)
        ready_ms = self.run_tasks("map", self.map_count, [launch_ms + 500] * SLOTS)
        if self.outcome not in ("failed", "killed") and self.program.reduces:
            ready_ms = self.run_tasks("reduce", self.program.reduces, [ready_ms] * SLOTS)
        self.finished_ms = ready_ms + 300
        self.end()
        return self.events

    def start_master(self, number, at_ms):
        """
        An application master starts.
        """
        self.add(
            "AM_STARTED", "AMStarted",
            applicationAttemptId=f"appattempt_{self.job}_{number:06d}",
            startTime=self.moment(at_ms - 2000),
            containerId=f"container_{self.job}_{number:02d}_000001",
            nodeManagerHost=self.master, nodeManagerPort=8041, nodeManagerHttpPort=8042,
        )  # fmt: skip

    def describe(self, launch_ms):
        """
        What it is that runs.
        """
        job_id = f"job_{self.job}"
        properties = self.properties()
        self.add(
            "JOB_SUBMITTED", "JobSubmitted", jobid=job_id, jobName=self.name(),
            userName=self.program.user, submitTime=self.base_ms + int(self.submit_ms),
            jobConfPath=f"hdfs://nn:8020/user/{self.program.user}/.staging/{job_id}/job.xml",
            acls={}, jobQueueName="default",
            workflowId=properties.get("mapreduce.workflow.id", ""), workflowName="",
            workflowNodeName=properties.get("mapreduce.workflow.node.name", ""),
            workflowAdjacencies="", workflowTags="",
        )  # fmt: skip
        self.add("JOB_QUEUE_CHANGED", "JobQueueChange", jobid=job_id, jobQueueName="root.default")
        self.add(
            "JOB_INITED", "JobInited", jobid=job_id, launchTime=self.moment(launch_ms),
            totalMaps=self.map_count, totalReduces=self.program.reduces, jobStatus="INITED",
            uberized=self.outcome == "uber",
        )  # fmt: skip
        self.add(
            "JOB_INFO_CHANGED", "JobInfoChange", jobid=job_id,
            submitTime=self.base_ms + int(self.submit_ms), launchTime=self.moment(launch_ms),
        )  # fmt: skip

    def varying(self):
        """
        What differs between two runs of a program.
        """
        at = START + timedelta(milliseconds=self.submit_ms)
        number = int(self.job[-4:])
        return {
            "user": self.program.user,
            "second": f"{at:%Y%m%d%H%M%S}",
            "stamp": f"{at:%Y%m%d.%H%M%S}.{(number * 7919) % 1_000_000:06d}",
            "day": f"{at:%Y-%m-%d}",
            "oozie": "260228120000000",
            "serial": f"{number:07d}",
            "digits": str(10**18 + number * 7_919_000_000_007),
            "uuid": f"{number:08x}-1a2b-4c3d-8e4f-{number * 7919:012x}",
        }

    def name(self):
        """
        The name of the job.
        """
        return self.program.name.format(**self.varying())

    def properties(self):
        """
        Its configuration.
        """
        properties = {
            name: value.format(**self.varying()) for name, value in self.program.properties.items()
        }
        reduces = {"mapreduce.job.reduces": str(self.program.reduces)}
        return COMMON | properties | reduces | {"mapreduce.job.name": self.name()}

    def configuration(self):
        """
        Its configuration as Hadoop stores it.
        """
        rows = "".join(
            f"<property><name>{name}</name><value>{escaped(value)}</value><final>false</final>"
            "<source>job.xml</source></property>\n"
            for name, value in sorted(self.properties().items())
        )
        head = '<?xml version="1.0" encoding="UTF-8" standalone="no"?><configuration>\n'
        return f"{head}{rows}</configuration>\n".encode()

    def run_tasks(self, kind, task_count, free_ms):
        """
        Run all tasks of a kind on slots that are free from then on; when the last one ends.
        """
        ends_ms = []
        is_broken = kind == "map" and self.outcome in ("recovered", "node lost", "attempt failed")
        for task in range(task_count):
            slot = int(np.argmin(free_ms))
            start_ms = free_ms[slot] + 800 * self.noise()
            host = WORKERS[(slot + task) % len(WORKERS)]
            attempt = 0
            if is_broken and task == task_count - 1:
                start_ms, attempt = self.break_attempt(task, start_ms, host)
            free_ms[slot] = self.run_attempt(kind, task, attempt, start_ms, host)
            ends_ms.append(free_ms[slot])
        return max(ends_ms)

    def break_attempt(self, task, start_ms, host):
        """
        The attempt fails, or is lost with its node or its master; when the next starts, and which.
        """
        if self.outcome == "recovered":
            # The next master writes what it knows of the finished tasks, and the job once more.
            self.start_master(2, start_ms + 12_000)
            self.describe(self.submit_ms + 4000)
            return start_ms + 14_000, 1000
        if self.outcome == "node lost":
            end_ms = self.run_attempt("map", task, 0, start_ms, host, is_counted=False)
            self.lose(self.ids("map", task, 0), end_ms + 2000, host, "KILLED",
                      "Container released on a *lost* node")  # fmt: skip
            return end_ms + 3000, 1
        self.start("map", task, 0, start_ms, host)
        self.lose(self.ids("map", task, 0), start_ms + 6000, host, "FAILED",
                  "Error: java.lang.OutOfMemoryError: Java heap space")  # fmt: skip
        return start_ms + 7000, 1

    def ids(self, kind, task, attempt):
        """
        Ids of a task and of its attempt.
        """
        return f"task_{self.job}_{kind[0]}_{task:06d}", (
            f"attempt_{self.job}_{kind[0]}_{task:06d}_{attempt}"
        )

    def start(self, kind, task, attempt, start_ms, host):
        """
        An attempt starts; of the first one, the task as well.
        """
        task_id, attempt_id = self.ids(kind, task, attempt)
        if attempt in (0, 1000):
            self.add("TASK_STARTED", "TaskStarted", taskid=task_id, taskType=kind.upper(),
                     startTime=self.moment(start_ms - 400), splitLocations="")  # fmt: skip
        number = 2 + task + (500 if kind == "reduce" else 0) + attempt
        self.add(
            f"{kind.upper()}_ATTEMPT_STARTED", "TaskAttemptStarted", taskid=task_id,
            taskType=kind.upper(), attemptId=attempt_id, startTime=self.moment(start_ms),
            trackerName=host, httpPort=8042, shufflePort=13562,
            containerId=f"container_{self.job}_01_{number:06d}", locality="NODE_LOCAL",
            avataar="VIRGIN",
        )  # fmt: skip

    def lose(self, ids, at_ms, host, status, error):
        """
        An attempt of a map ends badly.
        """
        task_id, attempt_id = ids
        self.add(
            f"MAP_ATTEMPT_{status}", "TaskAttemptUnsuccessfulCompletion", taskid=task_id,
            taskType="MAP",
            attemptId=attempt_id, finishTime=self.moment(at_ms), hostname=host, port=8041,
            rackname="/default-rack", status=status, error=error, counters=None,
            clockSplits=[], cpuUsages=[], vMemKbytes=[], physMemKbytes=[],
        )  # fmt: skip

    def run_attempt(self, kind, task, attempt, start_ms, host, *, is_counted=True):
        """
        An attempt from its start to its end, by the clocks of its node and of its master.
        """
        self.start(kind, task, attempt, start_ms, host)
        task_id, attempt_id = self.ids(kind, task, attempt)
        if self.outcome in ("failed", "killed") and task == self.map_count - 1:
            status = self.outcome.upper()
            end_ms = start_ms + 5000
            self.lose((task_id, attempt_id), end_ms, host, status, "by hand")
            return end_ms
        values = self.map_counters(task) if kind == "map" else self.reduce_counters()
        if is_counted:
            self.sums[kind].update(values)
        done_s, end_s = self.times(kind, values)
        end_ms = start_ms + end_s * 1000
        shared = {
            "taskid": task_id, "attemptId": attempt_id, "taskType": kind.upper(),
            "taskStatus": "SUCCEEDED", "finishTime": self.moment(end_ms), "hostname": host,
            "port": 8041, "rackname": "/default-rack", "counters": counters("COUNTERS", **values),
            "clockSplits": [], "cpuUsages": [], "vMemKbytes": [], "physMemKbytes": [],
        }  # fmt: skip
        if kind == "map":
            done_ms = self.moment(start_ms + done_s * 1000, host)
            self.add("MAP_ATTEMPT_FINISHED", "MapAttemptFinished", **shared, state="map > sort",
                     mapFinishTime=done_ms)  # fmt: skip
        else:
            moments = {
                "shuffleFinishTime": self.moment(start_ms + done_s * 1000, host),
                "sortFinishTime": self.moment(start_ms + (done_s + 0.2) * 1000, host),
            }
            self.add("REDUCE_ATTEMPT_FINISHED", "ReduceAttemptFinished", **shared,
                     state="reduce > reduce", **moments)  # fmt: skip
        self.add("TASK_FINISHED", "TaskFinished", taskid=task_id, taskType=kind.upper(),
                 finishTime=self.moment(end_ms), status="SUCCEEDED", counters=shared["counters"],
                 successfulAttemptId=attempt_id)  # fmt: skip
        return end_ms

    def times(self, kind, values):
        """
        Seconds until a map's function, or a reduce's shuffle, has ended; and until the attempt has.
        """
        if kind == "map":
            work_mib = self.mib / self.map_count
            done_s = 2.0 + work_mib / self.program.map_mib_per_s * self.noise()
            return done_s, done_s + 0.3 + values.get("MAP_OUTPUT_BYTES", 0) / MIB / 60
        shuffled_mib = values["REDUCE_SHUFFLE_BYTES"] / MIB
        done_s = 2.5 + shuffled_mib / 40 * self.noise()
        return done_s, done_s + 0.7 + shuffled_mib / 15 * self.noise()

    def map_counters(self, task):
        """
        Counters of a map: of its split, the last of which is not full.
        """
        split_bytes = self.program.split_mib * MIB
        read_bytes = min(split_bytes, max(1000, int(self.mib * MIB) - task * split_bytes))
        if self.map_count in (1, 4) and self.program.counts == "nothing":
            read_bytes = int(self.mib * MIB / self.map_count)
        records = read_bytes // 100
        output_bytes = int(read_bytes * self.program.output_share)
        values = {
            "FILE_BYTES_READ": 0, "FILE_BYTES_WRITTEN": 230_000,
            "HDFS_BYTES_READ": SPLIT_BYTES, "HDFS_BYTES_WRITTEN": 0,
            "MAP_INPUT_RECORDS": records,
            "MAP_OUTPUT_RECORDS": int(records * self.program.output_share),
            "SPLIT_RAW_BYTES": SPLIT_BYTES, "SPILLED_RECORDS": 0, "MERGED_MAP_OUTPUTS": 0,
            "CPU_MILLISECONDS": 900 + read_bytes // 30_000, "BYTES_READ": 0,
        }  # fmt: skip
        if self.program.key.startswith("oozie"):
            values |= {"MAP_INPUT_RECORDS": 1, "MAP_OUTPUT_RECORDS": 0}
        elif self.program.counts != "nothing":
            values["HDFS_BYTES_READ"] = read_bytes + SPLIT_BYTES
        if self.program.counts == "files":
            values["BYTES_READ"] = read_bytes
        if self.program.reduces:
            written = output_bytes + 6 * values["MAP_OUTPUT_RECORDS"] // 5
            values |= {
                "MAP_OUTPUT_BYTES": output_bytes, "MAP_OUTPUT_MATERIALIZED_BYTES": written,
                "COMBINE_INPUT_RECORDS": 0, "SPILLED_RECORDS": values["MAP_OUTPUT_RECORDS"],
                "FILE_BYTES_WRITTEN": written + 230_000,
            }  # fmt: skip
        else:
            values |= {"HDFS_BYTES_WRITTEN": output_bytes, "BYTES_WRITTEN": output_bytes}
        return values

    def reduce_counters(self):
        """
        Counters of a reduce: its share of what all maps wrote.
        """
        maps = self.sums["map"]
        share = {name: maps[name] // self.program.reduces for name in maps}
        records = share["MAP_OUTPUT_RECORDS"]
        shuffled = share["MAP_OUTPUT_MATERIALIZED_BYTES"]
        return {
            "FILE_BYTES_READ": shuffled, "FILE_BYTES_WRITTEN": shuffled + 230_000,
            "HDFS_BYTES_READ": 0, "HDFS_BYTES_WRITTEN": shuffled,
            "COMBINE_INPUT_RECORDS": 0, "COMBINE_OUTPUT_RECORDS": 0,
            "REDUCE_INPUT_GROUPS": max(1, records // 3), "REDUCE_SHUFFLE_BYTES": shuffled,
            "REDUCE_INPUT_RECORDS": records, "REDUCE_OUTPUT_RECORDS": records,
            "SPILLED_RECORDS": records, "SHUFFLED_MAPS": self.map_count,
            "MERGED_MAP_OUTPUTS": self.map_count, "CPU_MILLISECONDS": 1500 + shuffled // 40_000,
            "BYTES_WRITTEN": shuffled,
        }  # fmt: skip

    def end(self):
        """
        The job ends.
        """
        job_id = f"job_{self.job}"
        finish = {"jobid": job_id, "finishTime": self.moment(self.finished_ms)}
        if self.outcome in ("failed", "killed"):
            why = {
                "failed": f"Task failed task_{self.job}_m_{self.map_count - 1:06d}\nJob failed as"
                " tasks failed. failedMaps:1 failedReduces:0\n",
                "killed": "Kill job received from etl (auth:SIMPLE) at 10.0.0.7\nJob received Kill"
                " while in RUNNING state.\n",
            }
            self.add(
                f"JOB_{self.outcome.upper()}", "JobUnsuccessfulCompletion", **finish,
                finishedMaps=self.map_count - 1, finishedReduces=0,
                jobStatus=self.outcome.upper(), diagnostics=why[self.outcome],
                failedMaps=1, failedReduces=0, killedMaps=0, killedReduces=0,
            )  # fmt: skip
            return
        totals = self.sums["map"] + self.sums["reduce"]
        for kind in ("map", "reduce"):  # counters of 0 stay
            totals.update(dict.fromkeys(self.sums[kind], 0))
        self.add(
            "JOB_FINISHED", "JobFinished", **finish, finishedMaps=self.map_count,
            finishedReduces=self.program.reduces, failedMaps=0, failedReduces=0,
            totalCounters=counters("TOTAL_COUNTERS", **totals),
            mapCounters=counters("MAP_COUNTERS", **self.sums["map"]),
            reduceCounters=counters("REDUCE_COUNTERS", **self.sums["reduce"]),
            killedMaps=0, killedReduces=0,
        )  # fmt: skip


def escaped(value):
    """
    A text inside of XML.
    """
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def files_of(run, number):
    """
    The two files of a run, under the names that Hadoop gives them; some of them packed.
    """
    events = run.history()
    # Hadoop 2 writes JSON; 3 the binary form, unless it is told to.
    write = in_json if run.version.startswith("2") or number % 3 == 0 else in_binary
    history = write(run.version, events)
    if run.outcome == "cut":
        history = history[: len(history) * 2 // 3]
    state = {"failed": "FAILED", "killed": "KILLED"}.get(run.outcome, "SUCCEEDED")
    name = quote_plus(run.name()[:50]).replace("-", "%2D")
    moments = (run.base_ms + int(run.submit_ms), run.base_ms + int(run.finished_ms))
    file_name = (
        f"job_{run.job}-{moments[0]}-{run.program.user}-{name}-{moments[1]}-{run.map_count}"
        f"-{run.program.reduces}-{state}-default-{moments[0] + 4000}.jhist"
    )
    if number % 10 == 4:
        file_name += ".gz"
        history = gzip.compress(history, 1, mtime=0)
    files = {file_name: history}
    if run.outcome != "no configuration":
        files[f"job_{run.job}_conf.xml"] = run.configuration()
    return files


def other_applications():
    """
    Files of 12 applications of Tez and 5 of Spark.
    """
    sequence = (
        b"SEQ\x06\x21org.apache.hadoop.io.NullWritable"
        b"\x3corg.apache.tez.dag.history.logging.proto.ProtoMessageWritable\x01\x00"
    )
    spark = b'{"Event":"SparkListenerLogStart","Spark Version":"3.5.1"}\n'
    files = {}
    for number in range(7001, 7008):
        files[f"tez/history.txt.appattempt_1772300000000_{number}_000001"] = b"{}\x01\n"
    for number in range(7008, 7013):
        application = f"1772300000000_{number}"
        day = "date=2026-03-07"
        files[f"tez/dag_meta/{day}/appattempt_{application}_000001"] = sequence
        files[f"tez/dag_data/{day}/dag_{application}_1_1"] = sequence
    for number in range(8001, 8004):
        files[f"spark/application_1772300000000_{number}"] = spark
    files["spark/application_1772300000000_8004_1.zstd"] = b"\x28\xb5\x2f\xfd"
    folder = "eventlog_v2_application_1772300000000_8005"
    files[f"spark/{folder}/events_1_application_1772300000000_8005"] = spark
    return files


def make_month(seed=1):
    """
    The month of that *seed*.
    """
    random = np.random.default_rng(seed)
    runs = []
    number = 0
    for day in range(31):
        for place, program in enumerate(PROGRAMS):
            if day % program.every_days == place % program.every_days:
                number += 1
                runs.append(Run(program, number, day, random, outcome_of(number)))
    jobs = []
    for number, run in enumerate(runs, 1):
        job = Job(f"job_{run.job}", run.program.key, run.submit_ms, run.outcome)
        job.files = files_of(run, number)
        jobs.append(job)
    return Month(sorted(jobs, key=lambda job: job.submit_ms), other_applications())
