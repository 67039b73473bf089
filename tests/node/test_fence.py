"""
Tests for `harness.clusters.node.fence`: who completes a connection to a daemon, in network
namespaces.

Two hosts of a cluster and a third one on a bridge.  A daemon of the account, another user's server
and one of root listen on the first, on all its addresses.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys

from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from harness.clusters.node import fence
from tests.contracts import outside
from tests.live.packages import provide

TOOLS = ("ip", "unshare", "nsenter")
missing = [
    tool for tool in TOOLS if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None
]

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes networks"),
    pytest.mark.skipif(bool(missing), reason=f"missing: {', '.join(missing)}"),
]

ACCOUNT, ANOTHER = 64_711, 64_712
FIRST, SECOND = "198.18.9.1", "198.18.9.2"
DAEMON, OTHERS, ROOTS = 5000, 6000, 222
LIMIT_S = 120
NONCE = fence.nonce_of("secret")

PLAYER = Path(__file__).with_name("three_hosts.py")

# where a caller is, and by which addresses it reaches the first host
WAYS = [(1, "127.0.0.1"), (1, "::1"), (1, FIRST), (2, FIRST), (3, FIRST)]


@pytest.fixture(scope="module", params=[1, 2], ids=["as usual", "cookies for all"])
def completed(request):
    """
    A function that says of (user, host, address, port) whether a connection is answered and heard.
    """
    if reason := provide("nft"):
        pytest.skip(reason)
    tries = [
        (user, host, address, port)
        for user, (host, address) in itertools.product((0, ACCOUNT, ANOTHER), WAYS)
        for port in (DAEMON, ROOTS, *((OTHERS,) if request.param == 1 else ()))
    ]
    rules = fence.rules("test", ACCOUNT, [FIRST, SECOND], NONCE)
    servers = [(ACCOUNT, DAEMON), (ANOTHER, OTHERS), (0, ROOTS)]
    spaces = ["unshare", "-nm", "--kill-child", "--fork", "--pid", "--mount-proc"]
    done = subprocess.run(
        [*spaces, sys.executable, str(PLAYER)],
        input=json.dumps([rules, request.param, servers, tries]), text=True, timeout=LIMIT_S,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(zip(tries, map(tuple, json.loads(done.stdout)), strict=True))


def test_daemons_answer_the_account_on_the_clusters_hosts_alone(completed):
    """
    Nothing that anybody else sends is heard, either.
    """
    daemons = {key: answer for key, answer in completed.items() if key[3] == DAEMON}

    assert daemons == {
        (user, host, address, DAEMON): (True, True) if allowed else (False, False)
        for user, (host, address) in itertools.product((0, ACCOUNT, ANOTHER), WAYS)
        for allowed in [user == ACCOUNT and host != 3]
    }


def test_others_servers_are_as_they_were(completed):
    """
    But for the account itself, which reaches nothing outside; here all servers are inside.
    """
    others = {key: answer for key, answer in completed.items() if key[3] != DAEMON}

    assert {key for key, answer in others.items() if answer != (True, True)} == set()


@contextmanager
def network():
    """
    A network of its own; what leads into it.
    """
    alone = ["setpriv", "--pdeathsig", "KILL", "unshare", "-n", "sh", "-c"]
    with subprocess.Popen(
        [*alone, "echo ready; exec sleep infinity"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield ["nsenter", "-n", "-t", str(process.pid)]
        finally:
            process.kill()


@pytest.fixture
def forwarded():
    """
    A function that says with which marks a container behind the second host gets an answer of a
    daemon on the first one; and what leads into the second one's network.
    """
    if reason := provide("nft"):
        pytest.skip(reason)
    rules = fence.rules("test", ACCOUNT, [FIRST, SECOND], NONCE)
    number = str(ACCOUNT)
    as_account = ["setpriv", "--reuid", number, "--regid", number, "--clear-groups", "--"]
    listen = f"import socket, sys; s = socket.create_server(('', {DAEMON})); sys.stdin.read()"
    with ExitStack() as stack:
        first, second = stack.enter_context(network()), stack.enter_context(network())
        there = second[-1]
        outside.run([*first, *f"ip link add eth0 type veth peer name eth0 netns {there}".split()])
        for enter, address in ((first, FIRST), (second, SECOND)):
            outside.run([*enter, *f"ip addr add {address}/24 dev eth0".split()])
            outside.run([*enter, *["ip", "link", "set", "eth0", "up"]])
            outside.run([*enter, "sh", "-c", 'printf "%s" "$0" | nft -f -', rules])
        argv = [*first, *as_account, "/usr/bin/python3", "-c", listen]
        daemon = stack.enter_context(subprocess.Popen(argv, stdin=subprocess.PIPE))
        stack.callback(daemon.kill)
        container = stack.enter_context(outside.container_behind(second))
        own = {"interface": "eth0", "source": f"{outside.CONTAINER_NET}.77"}

        def answered(*marks):
            what = {"do": "open", "ports": [(FIRST, DAEMON)], "marks": marks, "flags": [0]}
            facts = {**own, "hop": outside.CONTAINER_GATEWAY, **what}
            done = outside.told("crafted.py", facts, container, sys.executable)
            return [mark for _, _, mark in done["answered"]]

        yield answered, second


def test_what_is_forwarded_has_no_mark(forwarded):
    """
    A container may write raw packets, and its host hides its address.
    """
    answered, second = forwarded
    marks = [0, 1, NONCE, 2**16 - 1]
    fenced = answered(*marks)
    outside.run([*second, "nft", "flush chain inet mapreduce-harness-test passing"])

    assert (fenced, answered(*marks)) == ([], [NONCE])


def test_the_rules_replace_what_is_there():
    """
    Loaded twice, in one step each: a start that was cut off is repeated.
    """
    if reason := provide("nft"):
        pytest.skip(reason)
    rules = fence.rules("test", ACCOUNT, [FIRST, FIRST], NONCE)
    load = 'printf "%s" "$0" | nft -f -'
    argv = ["unshare", "-n", "sh", "-c", f"{load} && {load} && nft list tables", rules]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=LIMIT_S)

    assert (done.stdout, done.stderr) == ("table inet mapreduce-harness-test\n", "")
