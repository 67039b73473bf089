"""
A time-stamping authority of our own, with `openssl ts`, on a port of this machine.
"""

import subprocess
import threading

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONFIGURATION = """\
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[signer]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
[tsa]
default_tsa = authority
[authority]
serial = {folder}/serial
signer_cert = {folder}/signer.pem
signer_key = {folder}/signer.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
accuracy = secs:1
ess_cert_id_alg = sha256
tsa_name = yes
ess_cert_id_chain = no
"""


def openssl(*arguments, folder):
    """
    What a command of openssl prints.
    """
    done = subprocess.run(
        ["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60
    )
    return done.stdout


def make_certificates(folder, days="2", name="Root"):
    """
    A root and a signer below it, `root.pem` and `signer.pem`, for so many *days*.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tsa.cnf").write_text(CONFIGURATION.format(folder=folder))
    (folder / "serial").write_text("01\n")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl(
        "req", "-x509", *key, "-keyout", "root.key", "-out", "root.pem", "-subj", f"/CN={name}",
        "-days", "9", "-config", "tsa.cnf", "-extensions", "ca", folder=folder,
    )  # fmt: skip
    openssl(
        "req", "-new", *key, "-keyout", "signer.key", "-out", "signer.csr", "-subj", "/CN=Clock",
        "-config", "tsa.cnf", folder=folder,
    )  # fmt: skip
    openssl(
        "x509", "-req", "-in", "signer.csr", "-CA", "root.pem", "-CAkey", "root.key",
        "-CAcreateserial", "-out", "signer.pem", "-days", days, "-extfile", "tsa.cnf",
        "-extensions", "signer", folder=folder,
    )  # fmt: skip
    return folder


def configure(folder, *, digests="sha256, sha512", certificates=""):
    """
    Have the authority take these *digests* alone, or send further *certificates* of a file.
    """
    text = CONFIGURATION.format(folder=folder).replace("sha256, sha512", digests)
    if certificates:
        text = text.replace("signer_key", f"certs = {folder}/{certificates}\nsigner_key")
    (folder / "tsa.cnf").write_text(text)


def stamp(folder, query):
    """
    The authority's answer to a *query*.
    """
    (folder / "query.tsq").write_bytes(query)
    openssl(
        "ts", "-reply", "-config", "tsa.cnf", "-section", "authority", "-queryfile", "query.tsq",
        "-out", "answer.tsr", folder=folder,
    )  # fmt: skip
    return (folder / "answer.tsr").read_bytes()


@contextmanager
def serving(answer_to, status=200):
    """
    Address of a service whose answers *answer_to* gives, of what was sent.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            """
            Answer.
            """
            answer = answer_to(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments):
            """
            Print nothing.
            """

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/tsr"
        server.shutdown()
        thread.join()
