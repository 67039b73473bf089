"""
A server of SSH for tests, on the loopback: it runs commands as this user.

    python ssh_server.py FOLDER     (a client key and a host key are in FOLDER)

Prints its port.  It ends with its standard input.  Only a real sshd (`tests.live.bare_hosts`) has
login shells, limits of sessions and a network that can be cut.
"""

import logging
import socket
import subprocess
import sys
import threading

from pathlib import Path

import paramiko


class Server(paramiko.ServerInterface):
    """
    What one connection may do.
    """

    def __init__(self, client_key):
        self.client_key = client_key

    def get_allowed_auths(self, username):
        return "publickey"

    def check_auth_publickey(self, username, key):
        is_client_key = key == self.client_key
        return paramiko.AUTH_SUCCESSFUL if is_client_key else paramiko.AUTH_FAILED

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        threading.Thread(target=serve_command, args=(channel, command), daemon=True).start()
        return True


def serve_command(channel, command):
    """
    Run a command as sshd does, in a session of its own; its streams are the channel's.
    """
    process = subprocess.Popen(
        ["sh", "-c", command], start_new_session=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
    )  # fmt: skip

    def feed():
        try:
            while piece := channel.recv(2**16):
                process.stdin.write(piece)
        except OSError:
            pass
        process.stdin.close()

    def drain(stream, send):
        try:
            while piece := stream.read(2**16):
                send(piece)
        except OSError:
            pass
        stream.close()

    drains = [
        threading.Thread(target=drain, args=pair)
        for pair in [(process.stdout, channel.sendall), (process.stderr, channel.sendall_stderr)]
    ]
    for thread in [threading.Thread(target=feed, daemon=True), *drains]:
        thread.start()
    for thread in drains:
        thread.join()
    status = process.wait()
    channel.send_exit_status(status if status >= 0 else 128 - status)
    channel.close()


def main():
    """
    Serve until standard input ends.
    """
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    folder = Path(sys.argv[1])
    host_key, client_key = (
        paramiko.Ed25519Key.from_private_key_file(str(folder / name)) for name in ("host", "client")
    )
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            transport = paramiko.Transport(server.accept()[0])
            transport.add_server_key(host_key)
            transport.start_server(event=threading.Event(), server=Server(client_key))

    threading.Thread(target=serve, daemon=True).start()
    sys.stdout.write(f"{server.getsockname()[1]}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
