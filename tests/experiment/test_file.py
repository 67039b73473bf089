"""
Tests for `harness.core.experiment.file` and the overrides.
"""

import json

from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import SpecError
from harness.base.records.trial import Versions
from harness.core.experiment.file import KnownNames, places, read_experiment
from harness.core.experiment.grid import expand, order
from harness.core.experiment.model import Experiment
from harness.core.run.preflight import known_names
from harness.scoring.design import TYPICAL, Design, decide
from tests.experiment.editor_schema import experiment_schema

FOLDER = Path(__file__).parents[2] / "experiments"
EXPERIMENTS = sorted({*FOLDER.glob("*.yaml")} - {FOLDER / "budgets.yaml"})
KNOWN = KnownNames(("wordcount", "terasort"), ("whatif", "whatif-mr2"), ("local",))

TEXT = """\
schema: 1
name: small
question: How far off?
cluster:
  workers: [1, 2]
  node: {map_slots: 1, task_memory: 512 MiB}
  site: {dfs.blocksize: 32 MiB}
workloads:
  - {name: wordcount, input: [32 MiB, 64 MiB]}
  - {name: terasort, input: 200 MB, seed: 3}
configuration:
  mapreduce.job.reduces: [1, 2]
  mapreduce.map.output.compress: [true, False]
  mapreduce.map.sort.spill.percent: 0.80
repeat: 2
trial_limit: 10 min
predict:
  models: whatif
  profile_on: {mapreduce.job.reduces: 1}
"""


def read(*overrides, text=TEXT, known=KNOWN):
    """
    The experiment in *text*, called f.yaml.
    """
    return read_experiment(text, "f.yaml", overrides, known=known)


def complaint(*overrides, text=TEXT, known=KNOWN):
    """
    What is said of an experiment that cannot be used.
    """
    with pytest.raises(SpecError) as caught:
        read(*overrides, text=text, known=known)
    return str(caught.value)


class TestReading:
    def test_units_become_bytes_and_seconds(self):
        """
        Sizes and durations are records in bytes and seconds, a scalar is a list of one.
        """
        e = read()

        assert e.workloads[0].input_bytes == (32 * 2**20, 64 * 2**20)
        assert e.workloads[1].input_bytes == (200_000_000,)
        assert e.cluster.node.task_memory_bytes == (512 * 2**20,)
        assert (e.cluster.workers, e.trial_limit_s) == ((1, 2), 600.0)

    @pytest.mark.parametrize(
        ("written", "gpus", "result"),
        [
            ("1", (1,), False),
            ("[0, 2]", (0, 2), False),
            ("auto", (6,), True),
            ("[0, auto]", (0, 6), True),
        ],
    )
    def test_gpus_are_declared_or_found(self, written, gpus, result):
        """
        A number is taken as it is; for auto the provider tells what each of its nodes has, where
        there are as many as in the largest cluster of the grid.
        """
        known = replace(KNOWN, gpus=lambda provider, workers: {("local", 2): 6}[provider, workers])

        node = read(f"cluster.node.gpus={written}", known=known).cluster.node

        assert (node.gpus, node.gpus_found) == (gpus, result)

    @pytest.mark.parametrize("written", ["-1", "65", "1.5", "some"])
    def test_other_numbers_of_gpus_are_refused(self, written):
        """
        The error says what may stand there.
        """
        assert "write how many a node has, or auto" in complaint(f"cluster.node.gpus={written}")

    @pytest.mark.parametrize(
        ("name", "good"),
        [
            ("mapreduce.map.resource.yarn.io/gpu", True),
            ("mapreduce.map.resource.yarn.io/../gpu", False),
            ("a//b", False),
        ],
    )
    def test_names_of_resources_have_a_slash(self, name, good):
        """
        One, and a word behind it.
        """
        text = TEXT.replace("configuration:\n", f"configuration:\n  {name}: 1\n")

        if good:
            assert read(text=text).configuration[name] == ("1",)
        else:
            assert "is not the name of a property" in complaint(text=text)

    def test_properties_become_the_text_that_hadoop_reads(self):
        """
        Truth is lower case, numbers stay as written, sizes are bytes.
        """
        e = read()

        assert e.configuration == {
            "mapreduce.job.reduces": ("1", "2"),
            "mapreduce.map.output.compress": ("true", "false"),
            "mapreduce.map.sort.spill.percent": ("0.80",),
        }
        assert e.cluster.site == {"dfs.blocksize": ("33554432",)}

    def test_without_predict_nothing_is_predicted(self):
        """
        An experiment may only measure.
        """
        assert read(text=TEXT.partition("predict:")[0]).predict.models == ()

    def test_arguments_of_a_workload_are_axes(self):
        """
        Further keys of a workload are its arguments, where it takes them.
        """
        known = KnownNames(KNOWN.workloads, KNOWN.models, KNOWN.providers, {"wordcount": ["zipf"]})

        e = read("workloads.wordcount.zipf=[1, 1.1, big]", known=known)

        assert e.workloads[0].parameters == {"zipf": (1, 1.1, "big")}

    @pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda p: p.stem)
    def test_shipped_experiments_are_read(self, path):
        """
        Every file under experiments/ is good, is called like its file, and names its schema.
        """
        text = path.read_text()

        e = read_experiment(text, path.name, known=known_names())

        assert e.name == path.stem
        assert text.startswith(
            "# yaml-language-server: $schema=../harness/core/experiment/experiment.sch"
        )

    def test_the_demo_is_small_and_decides(self):
        """
        At most 21 trials, repeats that show the noise, sentinels, and what it asks can be told.
        """
        e = read_experiment((EXPERIMENTS[0].parent / "demo.yaml").read_text(), "demo.yaml")
        cells = expand(e)
        trials = order(e, cells, Versions(hadoop="3", java="17"))
        scored = {trial.cell.id for trial in trials if trial.use == "score"}
        design = Design(len(scored), "cell", len(scored), e.repeat, pairs=1)

        assert len(trials) <= 21
        assert e.profiling_repeats >= 2
        assert sum(trial.sentinel for trial in trials) >= 2
        assert decide(design, TYPICAL, e.question).tells_perfection


class TestErrors:
    def test_say_everything_at_once_in_the_order_of_the_file(self):
        """
        One reading finds all mistakes, each with place, path, value and fix.
        """
        text = (
            TEXT.replace("workers:", "wrokers:")
            .replace("wordcount, input", "wordcout, inptu")
            .replace("200 MB", "200 mbit")
            .replace("repeat: 2", "repeat: none")
        )

        lacks = "workloads.0 lacks 'input'; add input: a size such as 32 MiB, a named size such as"
        lacks += " tiny, or a list of them"
        size = "'200 mbit' is not a size; write 32 MiB, 200 MB or a number of bytes"
        count = "'none' is not a whole number from 1 to 1000000; write one such as 3"
        count += ", or until decided"
        name = "there is no workload 'wordcout'; did you mean wordcount?"
        assert complaint(text=text).splitlines()[1:-2] == [
            "  f.yaml:5:3: unknown key 'wrokers' in cluster; did you mean workers?",
            f"  f.yaml:9:5: {lacks}",
            f"  f.yaml:9:12: workloads.0.name: {name}",
            "  f.yaml:9:22: unknown key 'inptu' in workloads.0; did you mean input?",
            f"  f.yaml:10:29: workloads.1.input: {size}",
            f"  f.yaml:15:9: repeat: {count}",
        ]

    def test_a_single_one_has_three_parts(self):
        """
        What, where and fix each have their line.
        """
        assert complaint(text=TEXT.replace("repeat", "repaet")) == (
            "unknown key 'repaet' in the experiment\n"
            "  at:  f.yaml:15:1\n"
            "  fix: did you mean repeat?"
        )

    @pytest.mark.parametrize(
        ("old", "new", "what"),
        [
            ("schema: 1", "schema: 2", "schema 2 is not one that this harness reads; it reads 1"),
            ("schema: 1", "schema: [1]", "is not one that this harness reads"),
            ("schema: 1\n", "", "the experiment lacks 'schema'"),
            ("name: small", "name: ../up", "'../up' cannot name the experiment"),
            ("name: small", "name: [a]", "name is not a single value"),
            ("question: How far off?", "question: ''", "there is no text"),
            ("question: How far off?", r'question: "\e[2J"', r"'\x1b[2J' cannot be passed on"),
            ("workers: [1, 2]", "workers: []", "cluster.workers is an empty list"),
            ("workers: [1, 2]", "workers: [1, 1]", "cluster.workers: '1' is given twice"),
            ("workers: [1, 2]", "workers: [1, true]", "'true' is not a whole number"),
            ("workers: [1, 2]", "provider: loacl", "did you mean local?"),
            ("[32 MiB, 64 MiB]", "[32 MiB, 33554432]", "'33554432' is given twice"),
            ("[32 MiB, 64 MiB]", "0", "'0' is not a size to work with"),
            ("200 MB, seed: 3", "200 MB, sede: 3", "did you mean seed?"),
            ("reduces: [1, 2]", "reduces:", "mapreduce.job.reduces: there is no value"),
            ("mapreduce.job.reduces: [", "a b: [", "'a b' is not the name of a property"),
            ("spill.percent: 0.80", "io.sort.mb: 16 MiB", "'16 MiB' for a number of MiB"),
            ("trial_limit: 10 min", "trial_limit: 10 mins", "'10 mins' is not a duration"),
            ("trial_limit: 10 min", "trial_limit: 5", "write 5 s or 5 min"),
            ("trial_limit: 10 min", "trial_limit: '5'", "write 5 s or 5 min"),
            ("task_memory: 512 MiB", "task_memory: 512", "write 512 MiB, or 512 B"),
            ("200 MB, seed: 3", "64, seed: 3", "write 64 MiB, or 64 B"),
            ("models: whatif", "models: what-if", "did you mean whatif?"),
            ("{mapreduce.job.reduces: 1}", "{}", "selects no cell of terasort"),
            ("{mapreduce.job.reduces: 1}", "{seed: [1, 3]}", "none is left to score"),
            ("{mapreduce.job.reduces: 1}", "{reduces: 1}", "the grid has no axis 'reduces'"),
            ("{mapreduce.job.reduces: 1}", "{input: 1 GiB}", "its values are 32 MiB, 64 MiB, 2000"),
            ("{mapreduce.job.reduces: 1}", "{input: 32 MiB}", "selects no cell of terasort"),
            ("models: whatif", "profile_repeat: 1\n  models: whatif", "write 2 or more"),
            ("models: whatif", "profile_repeat: 3\n  from: R\n  models: whatif", "another run's"),
            ("models: whatif", "profile_repeat: 101\n  models: whatif", "from 0 to 100"),
            ("repeat: 2", "repeat: 90000", "more than 100000 trials"),
            ("repeat: 2", "design: {halton: 3}", "write full, {sobol: 32} or {latin: 32}"),
            ("repeat: 2", "budgets: {mape: 0.2}", "unknown key 'budgets'"),
            ("repeat: 2", "verbose: on", "unknown key 'verbose'"),
            ("repeat: 2", "workers: 2", "it stands in cluster: write cluster.workers"),
            ("repeat: 2", "map_slots: 2", "write cluster.node.map_slots"),
        ],
    )  # fmt: skip
    def test_name_what_is_wrong(self, old, new, what):
        """
        Each mistake is refused with words that fit it, and a place.
        """
        assert old in TEXT

        message = complaint(text=TEXT.replace(old, new))

        assert what in message
        assert "at:  f.yaml:" in message

    def test_a_grid_that_nobody_could_measure_is_refused_unexpanded(self):
        """
        Thirty axes of ten values are refused at once.
        """
        axes = "".join(f"  a{i}: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n" for i in range(30))

        message = complaint(text=TEXT.replace("configuration:\n", f"configuration:\n{axes}"))

        assert "more than 10000 cells" in message

    @given(st.integers(0, len(TEXT)), st.integers(0, 8), st.text(max_size=4))
    def test_any_change_gives_an_experiment_or_an_error(self, at, cut, put):
        """
        Whatever happens to a good file, the answer is an experiment or `SpecError`.
        """
        with suppress(SpecError):
            e = read(text=TEXT[:at] + put + TEXT[at + cut :])
            assert isinstance(e, Experiment)


class TestOverrides:
    def test_dots_of_a_property_are_its_own(self):
        """
        After configuration, site and profile_on the rest of the path is one name.
        """
        e = read(
            "configuration.mapreduce.job.reduces=[1, 4]",
            "cluster.site.dfs.blocksize=16 MiB",
            "predict.profile_on.mapreduce.job.reduces=4",
        )

        assert e.configuration["mapreduce.job.reduces"] == ("1", "4")
        assert e.cluster.site["dfs.blocksize"] == ("16777216",)
        assert e.predict.profile_on == {"mapreduce.job.reduces": ("4",)}

    @pytest.mark.parametrize("item", ["0", "wordcount"])
    def test_a_workload_has_a_number_and_a_name(self, item):
        """
        Both mean the same item of the list.
        """
        assert read(f"workloads.{item}.input=[1 MiB]").workloads[0].input_bytes == (2**20,)

    def test_make_what_is_missing(self):
        """
        A part that the file does not have is made on the way.
        """
        text = TEXT.replace("  node: {map_slots: 1, task_memory: 512 MiB}\n", "")

        assert read("cluster.node.reduce_slots=2", text=text).cluster.node.reduce_slots == (2,)

    def test_narrowing_an_axis_narrows_what_is_profiled(self):
        """
        It is enough that an override leaves one of the values that feed the profiles.
        """
        e = read(
            "predict.profile_on={input: [32 MiB, 200 MB]}",
            "workloads.wordcount.input=[32 MiB, 1 B]",
        )
        with pytest.raises(SpecError, match="no cell has input 1 MiB, 2 MiB"):
            read("predict.profile_on={input: [1 MiB, 2 MiB]}")

        assert e.predict.profile_on == {"input": ("33554432", "200000000")}

    @pytest.mark.parametrize("name", ["mapreduce.task.io.sort.mb", "dfs.blocksize"])
    def test_a_bare_property_is_told_its_place(self, name):
        """
        Forgetting `configuration.` is the likeliest slip, and a near key no help.
        """
        assert "put configuration. before it" in complaint(f"{name}=600")

    @pytest.mark.parametrize(
        ("override", "what"),
        [
            ("cluster.workers=two", "'two' is not a whole number"),
            ("cluster.wrokers=2", "did you mean workers?"),
            ("workloads.sort.input=1", "name one of wordcount, terasort, or a number below 2"),
            ("workloads.2.input=1", "nothing is at '2'"),
            ("name.x=1", "a single value stands there"),
            ("repeat=[", "this is not YAML"),
            ("repeat", "write KEY=VALUE"),
            ("=3", "write KEY=VALUE"),
        ],
    )
    def test_errors_point_at_the_override(self, override, what):
        """
        The place of a mistake is the option, not a line of the file.
        """
        message = complaint(override)

        assert what in message
        assert "at:  --set" in message

    @given(st.text(max_size=30), st.text(max_size=20))
    def test_any_override_is_used_or_refused(self, key, value):
        """
        Whatever is overridden, the answer is an experiment or `SpecError`.
        """
        with suppress(SpecError):
            assert isinstance(read(f"{key}={value}"), Experiment)


class TestSchema:
    def test_shipped_copy_is_current(self):
        """
        The file that editors use says what the reader accepts; `editor_schema` writes it again.
        """
        shipped = files("harness.core.experiment").joinpath("experiment.schema.json").read_text()

        assert json.loads(shipped) == experiment_schema()

    def test_knows_every_key_of_a_file(self):
        """
        The keys of the sample are among those of the schema, and no other key is allowed.
        """
        schema = experiment_schema()
        used = {line.partition(":")[0] for line in TEXT.splitlines() if line[0].isalpha()}

        assert used <= schema["properties"].keys()
        assert schema["additionalProperties"] is False


def test_keys_can_be_found_later():
    """
    An error that is found after reading can still point at its key.
    """
    assert places(TEXT, "f.yaml")["dfs.blocksize"] == "f.yaml:7:10"
    assert places("[", "f.yaml") == {}
