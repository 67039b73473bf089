"""
A scored run on hosts of somebody's own: a thousand names in every format that a run has.
"""

import gzip
import io
import json
import re
import struct

from urllib.parse import quote
from xml.sax.saxutils import escape

import fastavro
import pyarrow.parquet as pq

from harness.base.records.trial import MachineLoad, TrialRecord
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand, order
from harness.core.store import Store
from harness.core.store.traces import remake_trace
from tests.parsing.histories import binary
from tests.parsing.test_ltrace import chunk, header, numbers, span, text
from tests.run.fakes import DATA, VERSIONS

HISTORY = (DATA / "terasort.jhist").read_bytes()
CONF = (DATA / "terasort_conf.xml").read_text()
DOMAIN = "cluster.acme-corp.net"
HOSTS = [f"dn{n:03}.{DOMAIN}" for n in range(150)]
SHORT = [host.partition(".")[0] for host in HOSTS]
USERS = [f"jdoe{n:03}" for n in range(150)]
PATHS = [f"/data{n % 7}/acme/vault-{n:03}" for n in range(150)]
ADDRESSES = [f"10.{n // 250}.{n % 250}.77" for n in range(150)]
SIXES = [f"fd12:3456:{n:x}::9" for n in range(50)]
MACS = [f"52:54:00:12:34:{n:02x}" for n in range(50)]
MAILS = [f"ops.{n:03}@acme-corp.net" for n in range(50)]
QUEUES = [f"team-x{n:03}" for n in range(50)]
SECRETS = [f"s3cr3t-{n:03}-value&<{n}>" for n in range(50)]
PLANTED = [*HOSTS, *SHORT, DOMAIN, *USERS, *PATHS, *ADDRESSES, *SIXES, *MACS, *MAILS, *QUEUES,
           *SECRETS]  # fmt: skip

EXPERIMENT = f"""
schema: 1
name: planted
question: Does the model know the jobs of {USERS[0]} on {HOSTS[0]}?
cluster:
  provider: ansible
  hosts: [{", ".join(HOSTS[:3])}]
  ssh: {{user: {USERS[0]}, key: {PATHS[0]}/id_rsa}}
  site: {{dfs.blocksize: 2m}}
workloads: [{{name: terasort, input: 6000000}}]
configuration:
  mapreduce.job.reduces: 2
  mapreduce.task.io.sort.mb: 1
  mapreduce.job.reduce.slowstart.completedmaps: 1.0
  mapreduce.task.io.sort.factor: [3, 5, 10, 20]
  mapreduce.job.queuename: root.{QUEUES[0]}
repeat: 2
predict: {{models: [whatif, scaling], profile_on: {{mapreduce.task.io.sort.factor: [3, 10]}}}}
"""


def history(number, *, is_binary):
    """
    A recorded history on hosts, by a user and in a queue of those above.
    """
    first, second = HOSTS[number % 150], HOSTS[(number + 1) % 150]
    data = HISTORY.replace(b"pzw1", first.encode()).replace(b"pzw2", second.encode())
    data = re.sub(rb'"userName":"[^"]*"', b'"userName":"%s"' % USERS[number].encode(), data)
    queue = b'"jobQueueName":"root.%s"' % QUEUES[number].encode()
    data = re.sub(rb'"jobQueueName":"[^"]*"', queue, data)
    submit_ms = int(re.search(rb'"submitTime":(\d+)', data)[1])
    finish = re.search(rb'\{"type":"JOB_FINISHED".*?"finishTime":(\d+)', data)
    start, end = finish.span(1)
    data = data[:start] + b"%d" % (int(finish[1]) + 97 * number) + data[end:]
    assert first.encode() in data
    return binary(data) if is_binary else data, submit_ms


def log(kind, names):
    """
    What Hadoop writes of *names* of a *kind*, and what a program wrote with them.
    """
    forms = {
        "host": "INFO Connecting to {0}/10.9.8.7:8032 of hdfs://{0}:8020/user",
        "short": 'export NM_HOST="{0}"\nhttp://{0}:8042/node, seen as {0}.',
        "user": "-rw-r--r-- 1 {0} {0}  129 Nov 25 21:02 container_tokens\nugi={0} (auth:SIMPLE)",
        "path": "file:{0}/conf/x.xml -Dlog={0} \\n{0}/logs <value>{0}</value> D{0}",
        "address": "at {0}:8020, BP-17-{0}-1764, [{0}]",
        "six": "from [{0}]:50010 or {0}",
        "mac": "eth0 {0} up",
        "mail": "told <{0}>, mailto:{0}",
        "queue": "queueName=root.{0} in {0}",
        "secret": "password={0}",
    }  # fmt: skip
    return "\n".join(forms[kind].format(name) for name in names)


def logs():
    """
    Logs with all names, of the first trial.
    """
    kinds = {"host": HOSTS, "short": SHORT, "user": USERS, "path": PATHS, "address": ADDRESSES}
    kinds |= {"six": SIXES, "mac": MACS, "mail": MAILS, "queue": QUEUES, "secret": SECRETS}
    plain = "\n".join(log(kind, names) for kind, names in kinds.items())
    again = " | ".join([*PLANTED, *map(escape, PLANTED), *(quote(each, "") for each in PLANTED)])
    again += "".join(f"\\t{each}" for each in PLANTED) + json.dumps(PLANTED)
    return f"{plain}\n{again}\n"


def recording(attempt, host):
    """
    A recording with a copy from *host*, whose name needs two slots.
    """
    where = f"{host}:13562".encode().rjust(55, b"/")
    visit = (span(32, 2000, 3000), text(where[:40]), text(where[40:]), numbers(1, 2, 3))
    started = re.search(rb'"MAP_ATTEMPT_STARTED".*?"startTime":(\d+)', HISTORY)
    head = bytearray(header(attempt=attempt.encode()))
    struct.pack_into("<q", head, 16, 1000 * int(started[1]) + 900_000)
    struct.pack_into("<q", head, 32, int(started[1]) + 100)
    return bytes(head) + chunk(1, f"to {host}".encode(), span(1, 1000, 9000), *visit)


def planted_run(folder):
    """
    The run, scored and ended, with names from the first to the last of its files.
    """
    experiment = read_experiment(EXPERIMENT, "planted.yaml", ())
    run = Store(folder).open_run(experiment, EXPERIMENT)
    trials = order(experiment, expand(experiment), VERSIONS)
    run.write_plan(trials)
    run.update_manifest(
        command=f"harness all {PATHS[1]}/planted.yaml --set cluster.ssh.key={PATHS[2]}/k",
        machines={HOSTS[3]: {"nodes": [HOSTS[4]], "cores": 2.0}},
        limitations=[f"{HOSTS[5]} ({ADDRESSES[5]}) is shared with {MAILS[5]}"],
    )
    for number, trial in enumerate(sorted(trials, key=lambda trial: not trial.profiling)):
        if number == 4:  # all that feeds the profile is there
            e = Evaluation.of(run)
            e.profile()
            e.predict()
        seal = run.seal.sha256() if run.seal.exists() else ""
        commit(run, trial, number, seal)
    Evaluation.of(run).score()
    run.finish()
    return run


def commit(run, trial, number, seal):
    """
    A trial with its logs, as its execution leaves it.
    """
    folder, host = run.start_trial(trial), HOSTS[number]
    data, submit_ms = history(number, is_binary=number % 2)
    (folder.raw / "job-0-history.jhist").write_bytes(data)
    rows = {"mapreduce.job.user.name": USERS[number], "yarn.resourcemanager.hostname": host,
            "dfs.datanode.data.dir": f"file://{PATHS[number]}/hdfs", "harness.seal": seal,
            "mapreduce.job.queuename": f"root.{QUEUES[number]}",
            "dfs.namenode.rpc-address": f"{host}:8020"}  # fmt: skip
    text = "".join(f"<property><name>{name}</name><value>{escape(value)}</value></property>\n"
                   for name, value in rows.items())  # fmt: skip
    conf = CONF.replace("</configuration>", f"{text}</configuration>")
    (folder.raw / "job-0-conf.xml").write_text(conf)
    samples = (f"{submit_ms + 1000 * n} 0 {900 + 7 * number} 1000000000\n" for n in range(1, 9))
    (folder.raw / f"speed-{host}.txt").write_text("".join(samples))
    container = re.search(rb"container_[0-9]+_[0-9]+_01_000002", HISTORY)[0].decode()
    attempt = re.search(rb"attempt_[0-9]+_[0-9]+_m_000000_0", HISTORY)[0].decode()
    below = folder.raw / f"containers/{host}/{container}"
    below.mkdir(parents=True)
    below.joinpath("syslog").write_bytes((DATA / "terasort-map.syslog").read_bytes())
    below.joinpath("ltrace.spans").write_bytes(recording(attempt, host))
    below.joinpath(f"{USERS[number]}.log").write_text(logs() if number == 0 else host)
    below.joinpath("core.gz").write_bytes(gzip.compress("\n".join(PLANTED).encode()))
    record = TrialRecord(
        trial=trial, state="done", started_s=1.0 + number, finished_s=2.0 + number,
        versions=VERSIONS, job_ids=("job_1795224441974_0001",),
        loads={HOSTS[3]: MachineLoad(busy=0.5, steal=0.01, others=None, swap_bytes_per_s=0)},
        disturbed=f"{host}: others used 40 % of the processors" if number == 5 else "",
    )  # fmt: skip
    folder.commit(record)
    remake_trace(run, record)


def texts(folder):
    """
    All that is in the files of a folder, by name: unpacked, and tables and histories as texts.
    """
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            yield path, str(path.relative_to(folder))
            yield path, data.decode("latin-1")
            while data[:2] == b"\x1f\x8b":
                data = gzip.decompress(data)
                yield path, data.decode("utf-8", "replace")
            if data[:4] == b"PAR1":
                yield path, json.dumps(pq.read_table(io.BytesIO(data)).to_pylist())
            if data[:8] == b"LTRACE01":
                slots = data.replace(b"\0", b"").replace(b"\xff\xff\xff\xff", b"")
                yield path, slots.decode("latin-1")
            if data[:11] == b"Avro-Binary":
                schema, events = data.split(b"\n", 2)[1:]
                stream = io.BytesIO(events)
                while stream.tell() < len(events):
                    event = fastavro.schemaless_reader(stream, json.loads(schema), None)
                    yield path, json.dumps(event)


def found_in(folder):
    """
    Parts of the names above that stand in a file of *folder*, or in its name, in any form.
    """
    marks = re.compile(
        r"acme|jdoe\d|dn\d{3}|vault-\d|10\.\d+\.\d+\.77|fd12:|fd12%3A|52:54:00:12|52%3A54%3A00%3A12"
        r"|ops\.\d|team-x|s3cr3t",
        re.IGNORECASE,
    )
    return sorted(
        (str(path.relative_to(folder)), mark)
        for path, content in texts(folder)
        for mark in set(marks.findall(content))
    )


def missing_in(folder):
    """
    Those of the names above that stand in no file of *folder* as they are.
    """
    missing = set(PLANTED)
    for _, content in texts(folder):
        missing -= {name for name in missing if name in content}
    return missing
