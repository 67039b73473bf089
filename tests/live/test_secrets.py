"""
A real run with a secret in each place where a user can write one: it is in nothing that is left.
"""

import gzip
import re
import subprocess

import pyarrow.parquet as pq
import pytest

from harness.core.store import Store
from tests.live.runs import LIMIT_S, clusters, command, processes, settings

pytestmark = [pytest.mark.live, pytest.mark.long]

# The tasks print all their system properties, and one of two clients what it takes for no number.
TINY = """\
schema: 1
name: canary
question: Who finds the bird?  # CANARY-site-1
cluster:
  workers: 1
  node: {map_slots: 1, reduce_slots: 1, task_memory: 512 MiB}
  site:
    fs.s3a.secret.key: CANARY-site-1
    hadoop.security.sensitive-config-keys: my.+pin
    my.own.pin: "CANARY 'own' <2>"
    my.file: ${file:TOKEN}
workloads: [{name: wordcount, input: [1 MiB, 2 MiB]}]
configuration:
  mapreduce.job.reduces: 1
  my.variable: ${env:SOME_TOKEN}
  mapreduce.map.java.opts: -Xmx300m -Dtoken=${env:SOME_TOKEN} -XshowSettings:properties
  mapreduce.client.submit.file.replication: [2, "${env:SOME_TOKEN}"]
repeat: 1
warmup: 0
predict: {models: [whatif], profile_on: {input: 1 MiB}}
"""
# as its file has it, and its clients' requests
CLUSTERS_OWN = rb"X-Harness-Secret: [0-9a-f]{64}"


def contents(folder):
    """
    Name and content of every file below a folder, unpacked; tables as text, too.
    """
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        if path.suffix == ".parquet":
            data += str(pq.read_table(path).to_pydict()).encode()
        yield f"{path}", data


def test_what_is_left_of_a_run_holds_no_secret(tmp_path):
    """
    Results, reports, logs, tables, state, and what the commands print; where the values stood are
    digests, and jobs had the values themselves.
    """
    environment = {**settings(tmp_path), "SOME_TOKEN": "CANARY-env/+3"}
    (tmp_path / "token").touch(mode=0o600)
    (tmp_path / "token").write_text('CANARY-file-"4\n')
    experiment, results = tmp_path / "tiny.yaml", tmp_path / "results"
    experiment.write_text(TINY.replace("TOKEN}", f"{tmp_path}/token}}", 1))
    override = ["--set", "configuration.oauth.the.token=CANARY-set-5"]

    def run(name, *more):
        argv = command(name, results, *override, *more, experiment=experiment)
        return subprocess.run(
            argv, env=environment, capture_output=True, check=False, timeout=LIMIT_S
        )

    ends = [run("plan", "--json"), run("all"), run("collect"), run("plan")]

    assert ends[1].returncode == 6, ends[1].stderr.decode()
    run_ = Store(results).latest("canary")
    by_state = {record.state: record for record in run_.trials().values()}
    raw = run_.raw(by_state["done"].trial.id)
    (stderr,) = [n for n in raw.names() if n.endswith("_000002/stderr")]
    assert [end.returncode for end in ends] == [0, 6, 0, 0]
    assert by_state["failed"].reason.startswith("the client ended with status")
    assert 'For input string: "secret:' in by_state["failed"].reason
    assert b"token = secret:" in raw.open(stderr).read()
    printed = [text for end in ends for text in (end.stdout, end.stderr)]
    files = [*contents(results), *contents(tmp_path / "state")]
    shown = [text for text in printed if b"CANARY" in text]
    assert shown + [name for name, data in files if b"CANARY" in data] == []
    assert [name for name, data in files if re.search(CLUSTERS_OWN, data)] == []
    assert len(files) > 20
    assert (clusters(environment), processes(environment)) == ([], [])
