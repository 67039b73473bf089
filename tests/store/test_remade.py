"""
What is made again of stored logs, why a run is another one, and where bundles are unpacked.
"""

from pathlib import Path

import pytest

from harness.base.errors import DataError, MachineError
from harness.core.store import Store
from harness.core.store.packed import ARCHIVE, opened
from harness.core.store.traces import remake_trace
from tests.run.fakes import recorded_history
from tests.store.test_packed import RUN, files, packed


def test_jobs_of_a_trial_are_in_the_order_of_their_numbers(tmp_path, make):
    """
    The eleventh comes after the tenth, not after the second.
    """
    run = Store(tmp_path).open_run(make.experiment(), "")
    trial = make.trials()[0]
    folder = run.start_trial(trial)
    histories = [recorded_history(number) for number in range(11)]
    for number, (history, _) in enumerate(histories):
        (folder.raw / f"job-{number}-history.jhist").write_bytes(history)
    folder.commit(make.record(trial))

    assert remake_trace(run, make.record(trial))
    jobs = [trace.job_id for trace in run.read_trace(trial.id)]
    assert jobs == [job_id for _, job_id in histories]


def test_a_done_trial_without_a_history_is_refused(tmp_path, make):
    """
    With what can be done.
    """
    run = Store(tmp_path).open_run(make.experiment(), "")
    trial = make.trials()[0]
    make.commit(run, trial)

    with pytest.raises(DataError) as caught:
        remake_trace(run, make.record(trial))
    assert (caught.value.what, caught.value.where, caught.value.fix) == (
        f"trial {trial.id} has no history",
        str(run.trial_dir(trial.id)),
        "its logs were removed: move the trial's folder away and run it again",
    )


class TestAnotherRun:
    def note(self, tmp_path, older, newer):
        """
        What is said where *newer* does not go on with the unfinished run of *older*.
        """
        store = Store(tmp_path)
        first = store.open_run(older, "")
        text = f" from that of the unfinished run {first.id}: new run"
        second = store.open_run(newer, "")
        assert second.path != first.path
        assert second.note.endswith(text)
        return second.note.removesuffix(text)

    def test_has_another_experiment(self, tmp_path, make):
        """
        That measures something else.
        """
        e = make.experiment()
        other = e.model_copy(update={"warmup": e.warmup + 1})

        assert self.note(tmp_path, e, other) == "the experiment differs"

    def test_has_another_secret(self, tmp_path, make):
        """
        And all else alike; only its digest is known.
        """
        older, newer = (
            make.experiment(configuration={"a.password": (f"secret:{digit * 16}",)})
            for digit in "ab"
        )

        assert self.note(tmp_path, older, newer) == "a secret of the experiment differs"


class TestUnpacked:
    @pytest.fixture
    def bundle(self, tmp_path):
        """
        A packed bundle.
        """
        packed(tmp_path / "quick" / ARCHIVE, files(RUN))
        return tmp_path / "quick"

    @pytest.mark.parametrize("cache", [None, "", "relative/cache"])
    def test_below_home_where_no_cache_is_named(self, bundle, tmp_path, monkeypatch, cache):
        """
        A relative one is none.
        """
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        if cache is not None:
            monkeypatch.setenv("XDG_CACHE_HOME", cache)

        assert opened(bundle).is_relative_to(tmp_path / "home/.cache/mapreduce-harness")

    def test_nowhere_where_the_cache_cannot_be_written(self, bundle, tmp_path, monkeypatch):
        """
        It says what the system says, and how to name another.
        """
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

        with pytest.raises(MachineError) as caught:
            opened(bundle)
        assert caught.value.what == "bundles cannot be unpacked there: not a directory"
        assert Path(caught.value.where).is_relative_to(tmp_path / "file")
        assert caught.value.fix == "set XDG_CACHE_HOME to a folder that this user can write"
