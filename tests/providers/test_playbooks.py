"""
The playbooks as files: modules of Ansible's own alone, and every wait with an end.
"""

import subprocess
import sys
import tempfile

from itertools import chain
from pathlib import Path

import pytest

from ruamel.yaml import YAML

from harness.clusters.ansible.playbook import PLAYBOOKS, _control_sockets

# What a task may have beside its module.
KEYWORDS = {
    "name", "when", "register", "become", "changed_when", "failed_when", "no_log", "vars", "loop",
    "until", "retries", "delay",
}  # fmt: skip
FILES = [*sorted(PLAYBOOKS.glob("roles/*/tasks/*.yml")), PLAYBOOKS / "teardown.yml"]
ROLES = {"java", "hadoop_home", "configuration", "hdfs", "yarn", "gpu", "tracer"}


def tasks(file):
    """
    The tasks of a file.
    """
    read = YAML(typ="safe").load(file.read_text())
    if "tasks" not in read[0]:  # a role's
        return read
    return [*chain.from_iterable(play["tasks"] for play in read)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PLAYBOOKS)))
class TestTasks:
    def test_have_names_and_modules_of_ansible_itself(self, file):
        """
        No collection has to be fetched.
        """
        modules = [sorted(task.keys() - KEYWORDS) for task in tasks(file)]

        assert [m for m in modules if len(m) != 1 or not m[0].startswith("ansible.builtin.")] == []
        assert all(task["name"] for task in tasks(file))

    def test_commands_end_by_themselves(self, file):
        """
        A playbook that is stopped does not stop what it runs on hosts: each command has its limit.
        """
        argvs = [t["ansible.builtin.command"]["argv"] for t in tasks(file)
                 if "ansible.builtin.command" in t]  # fmt: skip

        assert [argv for argv in argvs if argv[:2] != ["timeout", "-k"]] == []


def test_every_role_is_played():
    """
    In the order in which the site needs them.
    """
    read = YAML(typ="safe").load((PLAYBOOKS / "site.yml").read_text())

    roles = chain.from_iterable(play["roles"] for play in read)
    assert {role["role"] for role in roles} == ROLES


@pytest.mark.process
@pytest.mark.parametrize("name", ["site.yml", "teardown.yml"])
def test_ansible_reads_them(name, tmp_path):
    """
    Ansible's own check of the syntax.
    """
    program = Path(sys.executable).parent / "ansible-playbook"
    (tmp_path / "ansible.cfg").write_text("")
    done = subprocess.run(
        [program, "--syntax-check", "-i", "localhost,", PLAYBOOKS / name],
        env={
            "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"), "ANSIBLE_HOME": str(tmp_path),
            "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin",
        },
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr


@pytest.mark.process
def test_what_a_killed_harness_left_of_ansible_is_ended(tmp_path):
    """
    By the next playbook of the cluster, before it begins: workers and the folder of sockets.
    """
    left = Path(tempfile.mkdtemp(prefix="mrh-", dir="/tmp"))
    (tmp_path / "sockets").write_text(str(left))
    environment = {"ANSIBLE_SSH_CONTROL_PATH_DIR": str(left)}
    with (
        subprocess.Popen(["/bin/sleep", "60"], env=environment) as worker,
        _control_sockets(tmp_path) as sockets,
    ):
        assert (worker.wait(10), left.exists(), sockets.is_dir()) == (-9, False, True)

    assert not sockets.exists()
