"""
Tests for ``scripts/machine``: what a machine that lacks something is told, and what root is spared.

Each test runs the real script in a folder of its own, on a ``PATH`` that holds nothing but links to
a few basic tools and stand-ins that answer like the programs they are named after.
"""

import os
import shutil
import stat
import subprocess

from pathlib import Path

import pytest

pytestmark = pytest.mark.process

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
BASIC = ("bash", "cat", "cut", "dirname", "getent", "mkdir", "readlink", "sed", "sort")
TOOLS = ("ip", "unshare", "nsenter", "flock")


class Machine:
    """
    A machine where all is well, until a test takes something away.
    """

    def __init__(self, folder):
        self.root, self.bin = folder / "project", folder / "bin"
        shutil.copytree(SCRIPTS, self.root / "scripts")
        common = self.root / "scripts" / "common.sh"
        # The script looks into the sbin folders of the real machine as well: not here.
        common.write_text(common.read_text().replace("PATH=$PATH:/usr/sbin:/sbin", ":"))
        self.bin.mkdir()
        for tool in BASIC:
            (self.bin / tool).symlink_to(shutil.which(tool))
        for tool in TOOLS:
            self.answer(tool, "")
        self.answer("uname", "echo Linux")
        self.answer("id", "echo 1000")
        self.python("python3", "3.11.2")
        self.answer("javac", "echo javac 17.0.15")
        self.answer("mvn", "echo Apache Maven 3.8.7")

    def answer(self, tool, line):
        """
        Make *tool* a program that runs one line of shell.
        """
        path = self.bin / tool
        path.unlink(missing_ok=True)
        path.write_text(f"#!{self.bin}/bash\n{line}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def python(self, name, version, *, venv=True):
        """
        Make *name* an interpreter that says its version and has the module venv, or not.
        """
        minor = version.rpartition(".")[0]
        self.answer(
            name,
            f'case "$2" in *ensurepip*) exit {0 if venv else 1};;'
            f" *-venv*) echo python{minor}-venv;; *) echo {version} {self.bin / name};; esac",
        )

    def take_away(self, *tools):
        """
        Remove programs.
        """
        for tool in tools:
            (self.bin / tool).unlink()

    def check(self, **environment):
        """
        Run the script: exit status, and what it said.
        """
        done = subprocess.run(
            [self.root / "scripts" / "machine"],
            env={"PATH": str(self.bin), "HOME": str(self.root), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    @property
    def chosen(self):
        """
        The interpreter that the script settled on.
        """
        return (self.root / ".cache/setup/python").read_text().strip()


@pytest.fixture
def machine(tmp_path):
    """
    A machine where all is well.
    """
    return Machine(tmp_path)


def test_fit_machine_is_left_alone(machine):
    """
    Nothing is said, and the interpreter is noted.
    """
    assert machine.check() == (0, "")
    assert machine.chosen == str(machine.bin / "python3")


def test_second_look_asks_nobody(machine):
    """
    As long as the same tools are there, they are not started again.
    """
    machine.check()
    machine.answer("mvn", "exit 1")

    assert machine.check() == (0, "")


def test_newer_python_beside_an_old_one_is_found(machine):
    """
    The name python3 may be the old one of the distribution.
    """
    machine.python("python3", "3.9.2")
    machine.python("python3.12", "3.12.1")

    assert machine.check()[0] == 0
    assert machine.chosen == str(machine.bin / "python3.12")


def test_shim_without_python_is_passed_over(machine):
    """
    A version manager leaves names that answer with an error.
    """
    machine.answer("python3", "echo not installed >&2; exit 127")
    machine.python("python3.11", "3.11.9")

    assert machine.check()[0] == 0
    assert machine.chosen == str(machine.bin / "python3.11")


def test_python_too_old(machine):
    """
    The message has the version found, where, and a command.
    """
    machine.python("python3", "3.9.2")
    machine.answer("apt-cache", 'case "$2" in python3.11-venv) exit 0;; *) exit 100;; esac')

    status, output = machine.check()

    assert status == 3
    assert f"Python 3.9.2 is too old ({machine.bin}/python3): the harness needs 3.11" in output
    assert "fix: sudo apt-get install -y --no-install-recommends python3.11-venv" in output


def test_chosen_python_that_does_not_run(machine):
    """
    PYTHON is the user's word: no other interpreter is taken in its stead.
    """
    status, output = machine.check(PYTHON="/none/python3")

    assert status == 3
    assert "PYTHON=/none/python3 is not a Python that runs" in output


@pytest.mark.parametrize(
    ("tool", "complaint", "package"),
    [
        ("python3", "there is no python3", "python3-venv"),
        ("javac", "there is no javac", "openjdk-17-jdk-headless"),
        ("mvn", "there is no mvn", "maven"),
        ("ip", "there is no ip", "iproute2"),
        ("nsenter", "there is no nsenter", "util-linux"),
    ],
)
def test_ordinary_user_gets_the_command(machine, tool, complaint, package):
    """
    Whoever may not install packages gets the line to type, with Debian's names.
    """
    machine.answer("apt-get", "exit 99")
    machine.answer("apt-cache", "exit 0")
    machine.take_away(tool)

    status, output = machine.check()

    assert status == 3
    assert complaint in output
    assert (
        f"fix: sudo apt-get update && sudo apt-get install -y --no-install-recommends {package}"
        in output
    )


def test_all_that_is_missing_is_said_at_once(machine):
    """
    One round is enough.
    """
    machine.take_away("javac", "mvn", "ip")

    status, output = machine.check()

    assert status == 3
    assert [line[4:8] for line in output.splitlines() if line.startswith("  - ")] == [
        "a JD",
        "Mave",
        "ipro",
    ]


def test_fedora_gets_its_own_names(machine):
    """
    The packages are called otherwise there.
    """
    machine.answer("dnf", "exit 99")
    machine.take_away("javac", "ip")

    assert "fix: sudo dnf install -y java-21-openjdk-devel iproute" in machine.check()[1]


def test_python_without_venv(machine):
    """
    Debian keeps the module in a package of its own, one for each version.
    """
    machine.python("python3", "3.11.2", venv=False)
    machine.answer("apt-get", "exit 99")

    status, output = machine.check()

    assert status == 3
    assert output.endswith(" python3.11-venv\n")


def test_jdk_too_old(machine):
    """
    The message has the version found.
    """
    machine.answer("javac", "echo javac 11.0.2 >&2")

    status, output = machine.check()

    assert status == 3
    assert "a JDK, 17 or newer: javac is 11.0.2" in output


def test_java_home_without_a_jdk(machine):
    """
    An explicit choice is not overruled by installing something else.
    """
    status, output = machine.check(JAVA_HOME="/none/jdk")

    assert status == 3
    assert "JAVA_HOME is /none/jdk" in output
    assert "fix: unset JAVA_HOME" in output


class TestRoot:
    """
    On Debian and Ubuntu root has the packages installed.
    """

    def with_apt(self, machine, *, known=True):
        """
        Give *machine* root and an apt that writes down its calls and brings what was asked for.
        """
        machine.answer("id", "echo 0")
        machine.answer("apt-cache", f"exit {0 if known else 100}")
        javac, log = machine.bin / "javac", machine.root / "apt.log"
        machine.answer(
            "apt-get",
            f'echo "$@" >>{log}; [ $1 = update ] || {{ echo "#!{machine.bin}/bash" >{javac};'
            f" echo 'echo javac 17.0.15' >>{javac}; {shutil.which('chmod')} +x {javac}; }}",
        )
        machine.take_away("javac")
        return log

    def test_has_packages_installed_after_they_are_named(self, machine):
        """
        The name is said before apt is started, and the machine is looked at again after it.
        """
        log = self.with_apt(machine)

        status, output = machine.check()

        assert status == 0
        assert "installing system packages: openjdk-17-jdk-headless" in output
        assert log.read_text().splitlines() == [
            "update -qq",
            "install -y -qq --no-install-recommends openjdk-17-jdk-headless",
        ]

    def test_gets_the_default_jdk_where_17_is_gone(self, machine):
        """
        Newer releases carry newer JDKs only.
        """
        log = self.with_apt(machine, known=False)

        machine.check()

        assert log.read_text().endswith("--no-install-recommends default-jdk-headless\n")

    def test_is_told_when_the_installation_brought_nothing(self, machine):
        """
        Still missing afterwards: the same message as for everybody.
        """
        self.with_apt(machine)
        machine.answer("apt-get", "exit 0")

        status, output = machine.check()

        assert status == 3
        assert "there is no javac" in output

    def test_does_not_have_python_replaced(self, machine):
        """
        An old Python is the distribution's own: that is for its owner to decide.
        """
        log = self.with_apt(machine)
        machine.python("python3", "3.9.2")

        assert machine.check()[0] == 3
        assert not log.exists()


def test_other_systems_are_refused(machine):
    """
    Namespaces are Linux's.
    """
    machine.answer("uname", "echo Darwin")

    status, output = machine.check()

    assert status == 3
    assert "this is Darwin" in output


def test_scripts_are_executable():
    """
    A lost mode bit would show only in a fresh clone.
    """
    scripts = [path for path in SCRIPTS.iterdir() if path.suffix != ".sh"]

    assert all(os.access(path, os.X_OK) for path in scripts)
