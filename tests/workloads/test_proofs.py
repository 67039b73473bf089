"""
Proofs that a request comes from who has the secret: made by the node agent, taken by daemons.
"""

import subprocess

import pytest

from harness.clusters.hadoop_home.home import FENCE, find_java
from harness.clusters.node import hdfs

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not FENCE.is_file(), reason="make setup builds it"),
]

SECRET = "0123456789abcdef" * 4
METHOD, HOST, RESOURCE = "GET", "127.0.0.1:9870", "/jmx?qry=a%20b"
CALLER = "127.0.0.1", 40_000
USUAL = {
    "method": METHOD, "host": HOST, "resource": RESOURCE, "port": "9870", "caller": "40000",
}  # fmt: skip

# A line of each request: its proof, method, host, resource, ports of who is asked and who asks.
ADMIT = """
package mapreduce.harness.fence;
import java.net.InetSocketAddress;
import java.util.Scanner;
public class Admit {
  public static void main(String[] secret) {
    Proofs proofs = new Proofs(secret[0].getBytes());
    System.out.println("ready");
    Scanner lines = new Scanner(System.in);
    while (lines.hasNextLine()) {
      String[] parts = lines.nextLine().split("\\t", -1);
      var here = new InetSocketAddress("127.0.0.1", Integer.parseInt(parts[4]));
      var caller = new InetSocketAddress("127.0.0.1", Integer.parseInt(parts[5]));
      var request = new Proofs.Request(parts[1], parts[2], parts[3], here, caller);
      System.out.println(proofs.admit(parts[0], request));
    }
  }
}
"""


@pytest.fixture(scope="module")
def admit(tmp_path_factory):
    """
    A function that says of a proof whether one daemon takes it, for the usual request or another.
    """
    folder = tmp_path_factory.mktemp("proofs")
    source = folder / "Admit.java"
    source.write_text(ADMIT)
    java = find_java()
    subprocess.run(
        [f"{java.home}/bin/javac", "-cp", str(FENCE), "-d", str(folder), str(source)], check=True
    )
    argv = [java.launcher, "-cp", f"{folder}:{FENCE}", "mapreduce.harness.fence.Admit", SECRET]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout.readline() == "ready\n"

        def ask(proof, **elsewhere):
            line = "\t".join([proof, *{**USUAL, **elsewhere}.values()])
            daemon.stdin.write(f"{line}\n")
            daemon.stdin.flush()
            return daemon.stdout.readline() == "true\n"

        yield ask
        daemon.stdin.close()


def proof(**changed):
    """
    One for the usual request.
    """
    usual = {
        "secret": SECRET, "method": METHOD, "host": HOST, "url_path": RESOURCE, "caller": CALLER,
    }  # fmt: skip
    return hdfs.proof(**{**usual, **changed})


def test_a_proof_is_taken_once(admit):
    """
    Whoever has seen it on the network comes too late.
    """
    made = proof()

    assert [admit(made), admit(made)] == [True, False]


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"method": "DELETE"},
        {"resource": "/conf"},
        {"host": "127.0.0.1:8088"},
        {"port": "8088"},
        {"host": "198.18.0.1:9870"},
        {"host": "no-such-host.invalid:9870"},
        {"host": "127.0.0.1"},
        {"caller": "40001"},
    ],
    ids=str,
)
def test_a_proof_is_for_one_request_on_one_connection(admit, elsewhere):
    """
    And is still good for that one when it was tried elsewhere first.
    """
    made = proof()

    assert [admit(made, **elsewhere), admit(made)] == [False, True]


def test_a_proof_of_another_secret_is_none(admit):
    """
    Nor is one that is cut, or no proof at all.
    """
    made = proof()
    wrong = [proof(secret="0" * 64), made[:-2], made.upper(), "", "1 2", "a b c", "9" * 300]

    assert [each for each in wrong if admit(each)] == []


def test_a_proof_lasts_minutes(admit, monkeypatch):
    """
    One from before the daemon is none either: it does not know which of them were used.
    """
    now = hdfs.time.time()
    monkeypatch.setattr(hdfs.time, "time", lambda: now - 3600)
    before = proof()
    monkeypatch.setattr(hdfs.time, "time", lambda: now + 3600)
    later = proof()

    assert [admit(before), admit(later)] == [False, False]
