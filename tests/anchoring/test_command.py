"""
Tests for `harness anchor`: runs whose seal was stamped, and what somebody changed in them.
"""

import base64
import json
import shutil
import subprocess

from pathlib import Path

import pytest

from harness.cli import main
from harness.core.evaluate.laws import broken_laws
from harness.core.store import Run, anchors
from harness.core.store.anchors import name_of_answer, order_words, unanchored_why
from harness.core.store.evidence import CHAIN, Chain
from harness.core.store.run import FINISHED
from harness.publish.bundle import publish
from tests.anchoring.authority import make_certificates, openssl, serving, stamp
from tests.hostile.whole import ANCHOR, hash_again, line_of, nothing_drawn, whole_run

PROJECT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.process

TSA = "harness anchor tsa https://tsa.example/tsr"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """
    Folder of an authority with its certificates.
    """
    return make_certificates(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """
    A run with evidence, whose seal a notary has seen; not to be changed.
    """
    return whole_run(tmp_path_factory.mktemp("whole") / "results")


@pytest.fixture
def run(whole, tmp_path, monkeypatch):
    """
    A copy of it. It was measured long before an authority of today could stamp its seal.
    """
    monkeypatch.setattr(anchors, "_MOST_SKEW_S", 1e10)
    copy = tmp_path / whole.path.parent.name / whole.id
    shutil.copytree(whole.path, copy)
    return Run(copy)


def ask(authority, digest):
    """
    What the authority answers about the digits, as `harness anchor tsa` prints it.
    """
    from harness.anchoring.stamp import ask_authority

    with serving(lambda query: stamp(authority, query)) as url:
        return base64.encodebytes(ask_authority(url, digest))


def put_anchor(run, about="seal", **fields):
    """
    Put an anchor into the run, as it would have been kept, with all hashes made anew.
    """
    if about == "end":
        fields.setdefault("sha256", next(reversed(Chain(run.opener).lines())))
        document = {"schema_version": 14, "name": "anchors/end.json", "stored_s": 99.0}
        text = line_of({**document, "sha256": "", "previous": ""})
        with (run.path / CHAIN).open("ab") as chain:
            chain.write(text)
    fields.setdefault("sha256", run.seal.sha256())
    if isinstance(fields.get("answer"), bytes):
        fields["answer"] = base64.b64encode(fields["answer"]).decode()
    path = run.path / "anchors" / f"{about}.json"
    path.write_text(json.dumps(ANCHOR | {"about": about} | fields))
    hash_again(run)
    return Run(run.path)


def checked(capsys, run, *options):
    """
    Status of `anchor check`, and all that it prints to stdout.
    """
    status = main(["anchor", "check", str(run.path), *map(str, options)])
    printed = capsys.readouterr()
    return status, printed.out + (printed.err if status not in (0, 1) else "")


def test_a_stamp_of_the_seal_is_verified(run, authority, capsys):
    """
    All of the answer is on stdout, and the authority's name is text.
    """
    run = put_anchor(run, command=TSA, answer=ask(authority, run.seal.sha256()), name="Clock")
    status, out = checked(capsys, run, "--certificate", authority / "root.pem")

    assert status == 0
    assert "Blind, anchored by Clock." in out
    assert "by CN=Clock, verified" in out
    status, out = checked(capsys, run)
    assert status == 0
    assert "not verified: give --certificate" in out


def test_other_tools_verify_what_is_written(run, authority, tmp_path, capsys):
    """
    A file that is there stays.
    """
    run = put_anchor(run, command=TSA, answer=ask(authority, run.seal.sha256()))
    target = tmp_path / "seal.tsr"
    assert main(["anchor", "stamp", str(run.path), "-o", str(target)]) == 0
    assert run.seal.sha256() in capsys.readouterr().out
    (tmp_path / "digits").write_text(run.seal.sha256())
    verify = ("ts", "-verify", "-in", "seal.tsr", "-data", "digits", "-CAfile")
    assert b"OK" in openssl(*verify, authority / "root.pem", folder=tmp_path)

    assert main(["anchor", "stamp", str(run.path), "-o", str(target)]) == 2
    assert "there already" in capsys.readouterr().err


def test_the_recipe_of_the_page(run, authority):
    """
    With `openssl`, from the files of the run alone, word for word.
    """
    page = (PROJECT / "docs" / "results.md").read_text()
    recipe = page.partition("With the files of the run alone:\n\n```sh\n")[2].partition("```")[0]
    run = put_anchor(run, command=TSA, answer=ask(authority, run.seal.sha256()))
    shutil.copy(authority / "root.pem", run.path / "anchors")
    done = subprocess.run(
        ["bash", "-euc", recipe.replace("cd RUN", f"cd {run.path}")],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "Verification: OK" in done.stdout + done.stderr
    assert "Clock" in done.stdout
    assert run.seal.sha256() in done.stdout


@pytest.mark.parametrize("level", ["scores", "raw"])
def test_a_bundle_keeps_what_was_told(run, authority, tmp_path, capsys, level):
    """
    The name, the digits of the seal as it was measured, and its stamp; no path.
    """
    run = put_anchor(
        run, command="/srv/acme/notary.sh --key /srv/acme/keys",
        answer=ask(authority, run.seal.sha256()), name="Example Notary",
    )  # fmt: skip
    with nothing_drawn():
        publish([run], tmp_path / "bundle", level=level)
    (folder,) = (tmp_path / "bundle" / "runs").iterdir()
    copy = Run(folder)

    assert unanchored_why(copy) == ""
    assert order_words(copy) == "blind, anchored by Example Notary"
    assert "anchored by Example Notary" in (tmp_path / "bundle" / "README.md").read_text()
    assert "/srv" not in (folder / "anchors" / "seal.json").read_text()
    assert copy.seal.sha256() != run.seal.sha256()
    status, out = checked(capsys, copy, "--certificate", authority / "root.pem")
    assert status == 0
    assert "verified" in out


def test_what_has_no_stamp_writes_none(run, tmp_path, capsys):
    """
    A notary said "seen".
    """
    assert main(["anchor", "stamp", str(run.path), "-o", str(tmp_path / "x.tsr")]) == 7
    assert "there is no time stamp of its seal" in capsys.readouterr().err
    assert not (tmp_path / "x.tsr").exists()


def test_a_certificate_without_a_stamp(run, authority, capsys):
    """
    It is said, and no success.
    """
    status, out = checked(capsys, run, "--certificate", authority / "root.pem")
    assert status == 1
    assert "--certificate says nothing here" in out
    assert checked(capsys, run)[0] == 0


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"granted\n", "its answer is no time stamp"),
        (b'{"stamp": "MIIB"}', "its answer is no time stamp"),
        (b"", "its answer is no time stamp"),
        ("another", "its time stamp is of something else"),
        ("cut", "its time stamp cannot be read"),
    ],
    ids=["words", "JSON", "nothing", "another seal", "cut"],
)
def test_an_answer_that_was_made_up(run, authority, capsys, answer, says):
    """
    Whoever says that an authority has answered needs its stamp of this seal.
    """
    stamped = ask(authority, "ba" * 32 if answer == "another" else run.seal.sha256())
    if answer == "another":
        answer = stamped
    elif answer == "cut":
        answer = base64.b64encode(base64.b64decode(stamped)[:-50])
    run = put_anchor(run, command=TSA, answer=answer, name="Clock")

    assert says in unanchored_why(run)
    assert order_words(run) == "blind by the owner's word"
    assert main(["anchor", "check", str(run.path)]) in (1, 7)


def test_a_stamp_of_another_seal_does_not_count_whatever_the_command(run, authority):
    """
    Also where a program of the owner's printed it.
    """
    run = put_anchor(run, command="notary", answer=ask(authority, "ba" * 32))
    assert "something else than this seal" in unanchored_why(run)


def test_a_stamp_of_the_sealed_file_counts(run, authority):
    """
    As `openssl ts -query -digest` asks for it, in DER.
    """
    query = openssl(
        "ts", "-query", "-sha256", "-digest", run.seal.sha256(), "-cert", folder=authority
    )
    run = put_anchor(run, command="notary", answer=stamp(authority, query), name="A clock")
    assert order_words(run) == "blind, anchored by A clock"


def test_a_stamp_that_was_made_after_the_measurement(run, authority, monkeypatch):
    """
    The chain can be made anew, the authority's moment cannot.
    """
    monkeypatch.undo()
    run = put_anchor(run, command=TSA, answer=ask(authority, run.seal.sha256()))
    assert "after a scored trial had started" in unanchored_why(run)


def test_a_moment_that_was_changed_is_seen(run, capsys):
    """
    `answered_s` a day earlier, and no hash made anew.
    """
    path = run.path / "anchors" / "seal.json"
    path.write_text(path.read_text().replace("2.5", "1.5"))
    status, out = checked(capsys, run)
    assert status == 7
    assert "anchors/seal.json was changed" in out


def test_an_end_of_another_chain_is_named(run, capsys):
    """
    It was told the last line at that moment, and no other.
    """
    held = put_anchor(run, "end")
    assert checked(capsys, held)[0] == 0

    path = held.path / "anchors" / "end.json"
    path.write_text(path.read_text().replace('"sha256": "', '"sha256": "0000')[:-1] + "}")
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"sha256": "ab" * 32}))
    hash_again(held)
    status, out = checked(capsys, Run(held.path))
    assert status == 7
    assert "anchors/end.json is of another chain" in out
    assert "anchors/end.json" in {breach.law for breach in broken_laws(Run(held.path))}


def test_an_end_whose_stamp_was_made_up(run, capsys):
    """
    As that of a seal.
    """
    held = put_anchor(run, "end", command=TSA, answer=b"granted")
    status, out = checked(capsys, held)
    assert status == 7
    assert "anchors/end.json: its answer is no time stamp" in out


def test_an_anchor_that_the_chain_does_not_name(run):
    """
    Put there later: no order follows from it.
    """
    path = run.path / CHAIN
    kept = [line for line in path.read_bytes().splitlines() if b"anchors/seal" not in line]
    path.write_bytes(b"".join(line + b"\n" for line in kept))
    hash_again(run)
    assert unanchored_why(Run(run.path)) == "the chain does not name its anchor"


def test_why_nobody_answered_is_shown(run, capsys):
    """
    In the order, and at the anchor.
    """
    run = put_anchor(run, answer="", error="notary: status 1: no network")
    status, out = checked(capsys, run)
    assert status == 1
    assert "nobody answered: notary: status 1: no network" in out


def test_what_nobody_knew_before_is_shown(run, capsys):
    """
    From the seal.
    """
    path = run.seal.path
    path.write_text(json.dumps(json.loads(path.read_text()) | {"not_before": "snow in Rome"}))
    run = put_anchor(run)
    assert "Sealed after this was known: snow in Rome" in checked(capsys, run)[1]


@pytest.mark.parametrize(
    ("certificate", "says"),
    [
        ("signer.pem", "is the root of the authority, not its signing certificate"),
        ("another", "the signer's is by CN=Root: give its root"),
    ],
)
def test_the_wrong_certificate_is_told(run, authority, capsys, certificate, says):
    """
    Which it is, and which would do.
    """
    path = authority / certificate
    if certificate == "another":
        path = make_certificates(run.path.parent / "another", name="Other") / "root.pem"
    run = put_anchor(run, command=TSA, answer=ask(authority, run.seal.sha256()))
    status, out = checked(capsys, run, "--certificate", path)
    assert status == 7
    assert says in " ".join(out.split())


def test_names_of_who_was_told(authority):
    """
    Of the stamp, of the address, of the program; never a path.
    """
    digest = "ab" * 32
    answer = ask(authority, digest)
    assert name_of_answer(TSA, answer, digest) == "Clock"
    assert name_of_answer(TSA, answer, "ba" * 32) == "tsa.example"
    assert name_of_answer("curl 'https://u:p@log.example:8443/add?x='", b"", digest) == (
        "log.example"
    )
    assert name_of_answer("'/opt/my tools/notary' --now", b"seen", digest) == "notary"
    assert name_of_answer("git -C /srv/notary commit -m", b"[main 5af1]", digest) == "git"


def test_tsa_by_hand(capsys):
    """
    Digits that are none are a slip; no run is there that could go on.
    """
    assert main(["anchor", "tsa", "http://127.0.0.1:9/tsr", "AB" * 32]) == 2
    assert "64 hexadecimal digits" in " ".join(capsys.readouterr().err.split())
    assert main(["anchor", "tsa", "http://127.0.0.1:9/tsr", "ab" * 32]) == 3
    assert "the run goes on" not in capsys.readouterr().err


def test_the_run_has_an_end(run):
    """
    Else these tests prove nothing.
    """
    assert (run.path / FINISHED).exists()
    assert order_words(run) == "blind, anchored by notary"
