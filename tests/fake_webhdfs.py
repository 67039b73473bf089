"""
A small WebHDFS: files in a dictionary.
"""

import http.server
import json

from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit


class FakeWebHdfs(http.server.BaseHTTPRequestHandler):
    """
    Files in a dictionary, spoken to as WebHDFS; a second path plays the DataNode.
    """

    protocol_version = "HTTP/1.1"
    full = None  # what is said to who writes, where there is no room
    quotas: ClassVar = {}  # the same by folder

    def log_message(self, *arguments):
        """
        Be quiet.
        """

    def do_GET(self):
        if self.path.startswith("/ws"):
            return self.answer(200, b'{"clusterInfo": {"state": "STARTED"}}')
        path, op = self.requested()
        if op == "LISTSTATUS":
            return self.listed(path)
        if path not in self.files:
            return self.refuse(404, f"File {path} does not exist.\nat x.Y")
        if op == "GETFILESTATUS":
            size = len(self.files[path])
            return self.answer(200, json.dumps({"FileStatus": status("", size)}).encode())
        if not self.path.startswith("/datanode"):
            return self.redirect()
        return self.answer(200, self.files[path][: len(self.files[path]) - self.cut])

    def do_PUT(self):
        path, op = self.requested()
        if op == "RENAME":
            target = parse_qs(urlsplit(self.path).query)["destination"][0]
            there = target in self.files
            if not there:
                self.files[target] = self.files.pop(path)
            return self.answer(200, json.dumps({"boolean": not there}).encode())
        if op == "SETQUOTA":
            self.quotas[path] = f"The quota of {path} is exceeded"
            return self.answer(200, b"")
        if op == "MKDIRS":
            return self.answer(200, b'{"boolean": true}')
        if not self.path.startswith("/datanode"):
            return self.redirect()
        full = self.quotas.get(path.rpartition("/")[0], self.full)
        if full is not None:
            return self.refuse_the_rest(full)
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        self.files[path] = content
        return self.answer(201, b"")

    def do_DELETE(self):
        path, _ = self.requested()
        self.files.pop(path, None)
        self.quotas.pop(path, None)
        self.answer(200, b'{"boolean": true}')

    def requested(self):
        url = urlsplit(self.path)
        path = unquote(url.path).partition("/webhdfs/v1")[2]
        return path, parse_qs(url.query)["op"][0]

    def listed(self, folder):
        names = [p for p in self.files if p.startswith(folder.rstrip("/") + "/")]
        if not names:
            return self.refuse(404, f"File {folder} does not exist.")
        entries = [status(n.rpartition("/")[2], len(self.files[n])) for n in names]
        return self.answer(200, json.dumps({"FileStatuses": {"FileStatus": entries}}).encode())

    def redirect(self):
        self.send_response(307)
        self.send_header("Location", f"http://{self.headers['Host']}/datanode{self.path}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def refuse_the_rest(self, why):
        """
        Read a little, refuse or say nothing, hang up: as a DataNode whose block finds no room.
        """
        self.rfile.read(1000)
        self.close_connection = True
        if why:
            self.refuse(403, why)

    def refuse(self, code, message):
        self.answer(code, json.dumps({"RemoteException": {"message": message}}).encode())

    def answer(self, code, content):
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def status(name, size):
    """
    What WebHDFS tells of a file.
    """
    return {"pathSuffix": name, "length": size, "type": "FILE"}
