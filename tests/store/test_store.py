"""
Tests for `harness.core.store.Store`: which run is opened.
"""

import json
import os
import re

import pytest

from harness.base.errors import DataError, MachineError
from harness.base.records.trial import SCHEMA_VERSION
from harness.core.store import Store, check_name
from tests.run.fakes import VERSIONS


def shelf(tmp_path, *times):
    """
    A store whose clock shows the given seconds, one after the other.
    """
    return Store(tmp_path, clock=iter(times).__next__)


class TestOpenRun:
    def test_continues_the_unfinished_run(self, store, make):
        """
        The same experiment, opened again, is the same run with the same trials.
        """
        first = store.open_run(make.experiment(), "text")
        make.commit(first, make.trials()[0])

        again = store.open_run(make.experiment(), "text")

        assert again.path == first.path
        assert list(again.trials()) == [make.trials()[0].id]

    def test_opens_a_new_run_after_a_finished_one(self, store, make):
        """
        What has come to its end is never added to.
        """
        first = store.open_run(make.experiment(), "text")
        first.finish()

        second = store.open_run(make.experiment(), "text")

        assert (first.finished, second.finished) == (True, False)
        assert second.id > first.id

    def test_opens_a_new_run_where_it_is_asked_to(self, store, make):
        """
        An unfinished run can be left as it is.
        """
        first = store.open_run(make.experiment(), "text")

        assert store.open_run(make.experiment(), "text", new=True).id > first.id

    def test_opens_a_new_run_for_another_content(self, store, make):
        """
        Trials of different experiments never share a run; the new one says which it left.
        """
        first = store.open_run(make.experiment(), "text")

        other = store.open_run(make.experiment(repeat=5), "text")
        back = store.open_run(make.experiment(), "text")

        assert (other.id != first.id, back.id) == (True, first.id)
        assert first.id in other.note
        assert (first.note, back.note) == ("", "")

    @pytest.mark.parametrize("java", [VERSIONS.java, "17.0.99"])
    def test_continues_a_run_whose_nodes_have_another_java(self, store, make, java):
        """
        Trials are planned with what this machine has, and the manifest says what the nodes had:
        only where this machine has changed is it another run.
        """
        planned = VERSIONS.model_copy(update={"java": java})
        first = store.open_run(make.experiment(), "text", versions=VERSIONS)
        first.write_plan(make.trials())
        first.update_manifest(versions=VERSIONS.model_copy(update={"java": "17.0.50"}))

        again = store.open_run(make.experiment(), "text", versions=planned)

        assert (again.path == first.path) == (java == VERSIONS.java)
        assert ("the Hadoop, Java or jars differ" in again.note) == (java != VERSIONS.java)

    def test_keeps_the_experiment_as_given_and_as_resolved(self, store, make):
        """
        A run can be evaluated without its experiment file.
        """
        run = store.open_run(make.experiment(), "schema: 1 # é\n")

        assert (run.path / "experiment.yaml").read_text() == "schema: 1 # é\n"
        assert run.experiment() == make.experiment()

    def test_ids_sort_by_time(self, tmp_path, make):
        """
        An id is the time of its opening; ids within a second, and after the clock went back, too.
        """
        s = shelf(tmp_path, 0.0, 0.0, 0.25, 0.25, 86400.0, 86400.0, 5.0, 5.0)

        ids = [s.open_run(make.experiment(), "", new=True).id for _ in range(4)]

        assert ids == [
            "19700101T000000Z-0000",
            "19700101T000000Z-4000",
            "19700102T000000Z-0000",
            "19700102T000000Z-0001",
        ]

    def test_a_killed_opening_leaves_no_run(self, store, make):
        """
        What was left half-made is no run, and does not hinder the next.
        """
        left = store.results_dir / "small" / ".new"
        left.mkdir(parents=True)
        (left / "manifest.json").write_text("{")

        assert store.runs("small") == ()
        assert store.open_run(make.experiment(), "").read_manifest().run

    @pytest.mark.parametrize("name", ["../up", "..", ".", "", "a/b", "-x", "a\0b", "é", "a" * 200])
    def test_names_never_leave_the_folder(self, store, make, name):
        """
        A name that is no plain part of a path is refused.
        """
        with pytest.raises(DataError, match="cannot name an experiment"):
            store.open_run(make.experiment(name=name), "")

    def test_names_of_hadoop_are_good(self):
        """
        Ids of containers and names of hosts are allowed.
        """
        names = ["container_e01_1700000000000_0001_01_000001", "node-1.example.org", "job_1.jhist"]

        assert [check_name(n, "it") for n in names] == names


class TestLatest:
    def test_is_the_newest_run(self, store, make):
        """
        Finished or not, the newest run is looked at.
        """
        store.open_run(make.experiment(), "").finish()
        newest = store.open_run(make.experiment(), "")

        assert store.latest("small").id == newest.id

    def test_says_that_there_is_none(self, store):
        """
        Without a run the error says how to make one.
        """
        with pytest.raises(DataError, match="no run of experiment small") as caught:
            store.latest("small")

        assert caught.value.exit_status == 7
        assert "harness run FILE" in caught.value.fix


class TestDisk:
    def test_a_folder_that_cannot_be_written_is_an_unfit_machine(self, tmp_path, make):
        """
        The error names the path and another way, with exit status 3.
        """
        (tmp_path / "file").write_text("")

        with pytest.raises(MachineError) as caught:
            Store(tmp_path / "file").open_run(make.experiment(), "")

        assert caught.value.exit_status == 3
        assert str(tmp_path / "file") in caught.value.where
        assert "--results-dir" in caught.value.fix

    def test_a_full_disk_loses_nothing(self, run, make, monkeypatch):
        """
        Where a write finds no space, what was there before stays, and nothing half is left.
        """
        run.update_manifest(seed=7)

        def full(_handle):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(MachineError, match="no space left on device") as caught:
            run.update_manifest(seed=8)
        with pytest.raises(MachineError, match="no space left"):
            make.commit(run, make.trials()[0])

        assert "free some space" in caught.value.fix
        assert run.read_manifest().seed == 7
        assert run.trials() == {}

    def test_how_much_is_free_is_told(self, run, monkeypatch):
        """
        A disk that is full says so with its bytes; one that is damaged has no such number.
        """
        for number, message in ((28, r"no space left on device \(.*B free\)$"), (5, "error$")):

            def refuse(_handle, number=number):
                raise OSError(number, os.strerror(number))

            monkeypatch.setattr(os, "fsync", refuse)
            with pytest.raises(MachineError) as caught:
                run.update_manifest(seed=8)
            assert re.search(message, caught.value.what)

    def test_a_trial_needs_room(self, run, monkeypatch):
        """
        What is asked for and what is there stand in the error.
        """
        run.require_space()

        monkeypatch.setattr("harness.core.store.run.LEAST_FREE_BYTES", 10 * 2**60)
        with pytest.raises(MachineError, match=r"free for results, and a trial needs 10.* TiB"):
            run.require_space()

    def test_a_newer_format_is_refused(self, run):
        """
        A file of a later harness is not guessed at.
        """
        path = run.path / "manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": 99}))

        with pytest.raises(
            DataError, match=f"schema_version 99 is newer than {SCHEMA_VERSION}"
        ) as caught:
            run.read_manifest()

        assert caught.value.where == str(path)

    @pytest.mark.parametrize("text", ["", "[1]", "{", "null", "\x00", '{"a": 1}', "[" * 100_000])
    def test_a_damaged_file_is_named(self, run, text):
        """
        What is not ours is refused with its path.
        """
        (run.path / "manifest.json").write_text(text)

        with pytest.raises(DataError, match=r"manifest\.json|schema_version"):
            run.read_manifest()
