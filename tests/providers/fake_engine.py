"""
A Docker engine as far as commands in containers go: each runs on this machine instead.

It speaks the engine's protocol over a real socket, with TLS if requested: an exec is created, its
connection is upgraded and carries frames, and its status is inspected.
"""

import contextlib
import http.server
import json
import socket
import subprocess
import sys
import threading

from harness.clusters.docker.host import AGENT
from tests.node_agent import node_agent_path


class Handler(http.server.BaseHTTPRequestHandler):
    """
    One request of a client.
    """

    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def json(self, value, status=200):
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        if self.path.endswith("/version"):
            return self.json({"ApiVersion": "1.44", "Version": "29.1.2"})
        with self.server.guard:
            process = self.server.processes[self.path.split("/")[-2]]
        status = process.poll()
        return self.json({"Running": status is None, "ExitCode": status})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/exec"):
            with self.server.guard:
                number = str(len(self.server.commands))
                self.server.commands.append(json.loads(body)["Cmd"])
            return self.json({"Id": number}, 201)
        number = self.path.split("/")[-2]
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", "tcp")
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        return self.carry(number)

    def carry(self, number):
        """
        Run a command, its streams over this connection.
        """
        _, *arguments = self.server.commands[int(number)]
        argv = [str(node_agent_path()) if word == AGENT else word for word in arguments]
        process = subprocess.Popen(
            [sys.executable, *argv],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        with self.server.guard:
            self.server.processes[number] = process
        sending = threading.Lock()

        def send(stream, pipe):
            with pipe:
                while piece := pipe.read(2**15):
                    header = bytes([stream, 0, 0, 0]) + len(piece).to_bytes(4, "big")
                    with sending, contextlib.suppress(OSError):  # it reads on for a lost client
                        self.connection.sendall(header + piece)

        def receive():
            with contextlib.suppress(OSError), process.stdin:
                while piece := self.connection.recv(2**16):
                    process.stdin.write(piece)

        outputs = [
            threading.Thread(target=send, args=pair)
            for pair in ((1, process.stdout), (2, process.stderr))
        ]
        receiver = threading.Thread(target=receive, daemon=True)
        for thread in (*outputs, receiver):
            thread.start()
        process.wait()
        for thread in outputs:
            thread.join()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.connection, socket.SHUT_WR)
        receiver.join()


@contextlib.contextmanager
def fake_engine(context=None):
    """
    Its port on this machine; *context* is that of a server with TLS.
    """
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.guard = threading.Lock()
    server.commands = []
    server.processes = {}
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()
    for process in server.processes.values():
        process.kill()
        process.wait()
