"""
Three hosts on a bridge, in network namespaces: the first two have a packet filter.

Standard input is JSON: the filter's rules; the value of ``tcp_syncookies``; servers on the first
host, as user and port; connections to be tried, as user, number of the host, address and port.
What is printed is, for each, whether there was an answer, and whether a server heard anything.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys

from pathlib import Path

NEW_NETWORK = 0x40000000
PATIENCE_S = 0.4
LIBC = ctypes.CDLL(None, use_errno=True)


def run(*argv, text=None):
    """
    A command that must succeed.
    """
    subprocess.run(argv, check=True, input=text, text=True)


def enter(space):
    """
    Join the network namespace of that descriptor.
    """
    assert LIBC.setns(space, NEW_NETWORK) == 0


def make_host(number, home, rules, cookies):
    """
    A host of that number; the descriptor of its network.
    """
    assert LIBC.unshare(NEW_NETWORK) == 0
    space, link = os.open("/proc/self/ns/net", os.O_RDONLY), f"n{number}"
    enter(home)
    peer = ["peer", "name", "eth0", "netns", f"/proc/{os.getpid()}/fd/{space}"]
    run("ip", "link", "add", link, "type", "veth", *peer)
    run("ip", "link", "set", link, "master", "switch0", "up")
    enter(space)
    run("ip", "link", "set", "lo", "up")
    run("ip", "addr", "add", f"198.18.9.{number}/24", "dev", "eth0")
    run("ip", "link", "set", "eth0", "up")
    if rules:
        run("nft", "-f", "-", text=rules)
        Path("/proc/sys/net/ipv4/tcp_syncookies").write_text(str(cookies))
    return space


def fork(user, work, *arguments):
    """
    Do *work* in a process of that user, which ends with the status that it returns.
    """
    process = os.fork()
    if process == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            status = work(*arguments)
        finally:
            os._exit(status)
    return process


def serve(port, ready, heard):
    """
    Answer whoever says something, on all addresses.
    """
    listening = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    os.write(ready, b"1")
    while True:
        connection, _ = listening.accept()
        with connection:
            if connection.recv(9):
                os.write(heard, b"1")
                connection.sendall(b"done")


def call(address, port):
    """
    Say something; 0 when that is answered.
    """
    try:
        with socket.create_connection((address, port), PATIENCE_S) as connection:
            connection.sendall(b"kill")
            return 0 if connection.recv(9) == b"done" else 1
    except OSError:
        return 1


def main():
    """
    Make the hosts, start the servers, try all connections.
    """
    rules, cookies, servers, tries = json.load(sys.stdin)
    "a".encode("idna")  # other users may not be able to read this Python's files
    home, (ready, is_ready), (heard, hearing) = (
        os.open("/proc/self/ns/net", 0),
        os.pipe(),
        os.pipe(),
    )
    os.set_blocking(heard, False)
    run("ip", "link", "add", "name", "switch0", "type", "bridge")
    run("ip", "link", "set", "switch0", "up")
    spaces = [make_host(number, home, rules if number < 3 else "", cookies) for number in (1, 2, 3)]
    enter(spaces[0])
    processes = [fork(user, serve, port, is_ready, hearing) for user, port in servers]
    for _ in processes:
        os.read(ready, 1)
    answers = []
    for user, host, address, port in tries:
        enter(spaces[host - 1])
        status = os.waitpid(fork(user, call, address, port), 0)[1]
        try:
            was_heard = bool(os.read(heard, 9))
        except BlockingIOError:
            was_heard = False
        answers.append([status == 0, was_heard])
    for process in processes:
        os.kill(process, signal.SIGKILL)
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main()
