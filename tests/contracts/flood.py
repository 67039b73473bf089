"""
What somebody runs who has nothing to do but to connect: many connections that say nothing.

    python -c PROGRAM WHAT

WHAT is JSON: *ports*, pairs of address and number; *count* connections to them in turn, each opened
again when it is closed, *at_once* each fifth of a second, for *seconds*.  One line of JSON comes
back: how often one was opened, how many were open at most, and how many bytes came.
"""

import contextlib
import json
import resource
import selectors
import socket
import sys
import time

ROUND_S = 0.2


def opened(place):
    """
    A connection that is on its way.
    """
    made = socket.socket()
    made.settimeout(0)
    made.connect_ex(place)
    return made


def is_open(connection):
    """
    Whether its other end has taken it.
    """
    try:
        connection.getpeername()
    except OSError:
        return False
    return True


def main():
    """
    Connect, and connect again.
    """
    what = json.loads(sys.argv[1])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    places = [tuple(place) for place in what["ports"]]
    waiting = selectors.DefaultSelector()
    tries, most_open, size = 0, 0, 0
    end = time.monotonic() + what["seconds"]
    while time.monotonic() < end:
        missing = what["count"] - len(waiting.get_map())
        for _ in range(min(missing, what["at_once"])):
            made = opened(places[tries % len(places)])
            waiting.register(made, selectors.EVENT_READ)
            tries += 1
        for key, _ in waiting.select(ROUND_S):
            with contextlib.suppress(OSError):
                size += len(key.fileobj.recv(2**16))
            waiting.unregister(key.fileobj)
            key.fileobj.close()
        most_open = max(most_open, sum(is_open(key.fileobj) for key in waiting.get_map().values()))
        time.sleep(ROUND_S)
    sys.stdout.write(json.dumps({"tries": tries, "open": most_open, "bytes": size}) + "\n")


if __name__ == "__main__":
    main()
