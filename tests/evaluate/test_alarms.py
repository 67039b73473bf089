"""
Tests for alarms: what moved, since when, why; and what is never said.
"""

import re

from pathlib import Path

import numpy as np
import pytest

from harness.base.errors import DataError
from harness.base.records.profile import Profile, Statistic
from harness.nightly import alarms, columns
from harness.nightly.alarms import Judge, current, judged, tables
from harness.nightly.columns import read_csv, seconds_of
from harness.nightly.nights import cost_points, levels
from harness.nightly.power import first_week
from harness.nightly.records import Acceptance, Night, Point, Series

SERIES = Series(machine="m", experiment="e", hadoop="3.5.0", workers="3")
NIGHTS, SINCE = 40, 31  # nights, and the first of a change
CELLS = ("48 MiB", "80 MiB", "112 MiB", "144 MiB")
CONTROLS = {"dfsio": "disk", "shuffle": "network", "sleep": "framework"}


def nights(changes=None, *, count=NIGHTS, noise=0.02, seed=1):
    """
    Nights whose numbers *changes* multiplies from night SINCE on, by what they begin with.
    """
    random, lines = np.random.default_rng(seed), []
    for number in range(1, count + 1):
        points = []

        def add(kind, seconds, points=points, number=number, **names):
            point = Point(kind=kind, **names, raw=(1.0,))
            sizes = [size for name, size in (changes or {}).items() if point.name.startswith(name)]
            factor = sizes[0] if sizes and number >= SINCE else 1.0
            raw = tuple(seconds * factor * np.exp(noise * random.standard_normal(2)))
            points.append(point.model_copy(update={"raw": raw}))

        for place, cell in enumerate(CELLS):
            names = {"workload": "terasort", "cell": cell}
            add("measured", 10.0 + 3 * place, quantity="job_s", **names)
            add("measured", 4.0 + place, quantity="map_main_s", **names)
            add("measured", 3.0 + place, quantity="reduce_rest_s", **names)
            for model in ("whatif", "scaling"):
                add("residual", 1.1, quantity="body_s", model=model, **names)
        for workload in CONTROLS:
            add("control", 12.0, workload=workload, cell=workload, quantity="job_s")
        add("control", 900.0, quantity="processor")
        for cost in ("map_cpu_s_per_byte", "hdfs_write_s_per_byte"):
            add("cost", 1e-8, workload="terasort", quantity=cost)
        facts = {"kernel": "6.1" if number < SINCE else "6.2", "java": "17"}
        facts |= {f"input of {cell}": f"{cell}, 100 records" for cell in CELLS}
        line = {"time_s": 86400.0 * number, "run": f"run{number}", "series": SERIES}
        lines.append(Night.model_validate({**line, "facts": facts, "points": tuple(points)}))
    return lines


SLOWER = {"measured | terasort": 1.2}
CAUSES = {
    "machine": {**SLOWER, "control | processor": 1 / 1.25, "control": 1.2},
    "cluster: disk": {**SLOWER, "control | dfsio": 1.5},
    "cluster: network": {**SLOWER, "control | shuffle": 1.5},
    "cluster: framework": {"control | sleep": 1.3},
    "profile": {"cost | terasort | hdfs": 1.3, "residual": 0.9},
    "model": {**SLOWER, "residual": 1.2},
    "unknown": SLOWER,
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_follows_from_what_moved_with_it(cause):
    """
    One alarm, since the night of the change, with the facts that changed then.
    """
    alarms, notes = judged(nights(CAUSES[cause]))
    assert [(alarm.cause, abs(alarm.since - SINCE) <= 2) for alarm in alarms] == [(cause, True)]
    (alarm,) = alarms
    assert SINCE < alarm.raised <= SINCE + 5
    assert alarm.since != SINCE or alarm.suspects == ("kernel: 6.1 before, 6.2 since",)
    assert notes == []


def test_every_cause_has_a_row_and_nights():
    """
    The table of the page has all of them in their order, after those that are exact.
    """
    page = (Path(__file__).parents[2] / "docs/nightly.md").read_text(encoding="utf-8")
    table = page.partition("| cause | where |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)[^`]*` \|", table, re.MULTILINE)

    assert rows == ["code", "input", "spread", *alarms.CAUSES]
    assert {cause.partition(":")[0] for cause in CAUSES} == {*alarms.CAUSES}


@pytest.mark.process
def test_quiet_nights_raise_nothing():
    """
    Of ten histories with 20 series each nine at least: half an alarm a year is the price.
    """
    raised = [bool(judged(nights(seed=seed))[0]) for seed in range(10)]
    assert sum(raised) <= 1


def test_the_highest_factor_that_leaves_nothing_is_named():
    """
    All cells where all moved by as much, one cell where one did.
    """
    (common,) = judged(nights({"measured": 1.15}))[0]
    (single,) = judged(nights({"measured | terasort | 80 MiB": 1.3}))[0]
    assert (common.series, common.cells) == ("terasort", CELLS)
    assert common.low < 0.15 < common.high
    assert single.cells == ("80 MiB",)


def test_two_cells_that_part_are_both_named():
    """
    One slower, one faster since the same night: neither hides the other.
    """
    changes = {"measured | terasort | 48 MiB": 1.4, "measured | terasort | 112 MiB": 0.7}
    alarms, _ = judged(nights(changes))
    assert {alarm.series for alarm in alarms} >= {"48 MiB", "112 MiB"}
    assert {alarm.since for alarm in alarms} == {SINCE}


def test_code_and_input_are_exact():
    """
    Raised in their first night, with what they change; known shifts raise no second alarm.
    """
    lines = nights({"residual | terasort | 48 MiB | body_s | whatif": np.exp(-0.3)})
    for place in range(SINCE - 1, NIGHTS):
        name = "residual | terasort | 48 MiB | body_s | whatif"
        update = {"code": ("whatif",), "offsets": {name: -0.3}}
        lines[place] = lines[place].model_copy(update=update)
    (code,) = judged(lines)[0]
    assert (code.cause, code.since, code.raised) == ("code: whatif", SINCE, SINCE)
    assert code.change == pytest.approx(np.expm1(-0.3))
    assert code.state == "confirmed"
    lines = nights({"measured | terasort | 48 MiB": 2.0})
    for place in range(SINCE - 1, NIGHTS):
        facts = {**lines[place].facts, "input of 48 MiB": "48 MiB, 200 records"}
        lines[place] = lines[place].model_copy(update={"facts": facts})
    (other,) = judged(lines)[0]
    assert (other.cause, other.since, other.cells) == ("input", SINCE, ("48 MiB",))


@pytest.mark.parametrize("count", [SINCE + 2, SINCE + 6, NIGHTS])
def test_later_nights_never_move_an_alarm(count):
    """
    The alarms of so many nights are the first ones of all of them.
    """
    changes = {**SLOWER, "control | dfsio": 1.5}
    first, every = (judged(nights(changes, count=n))[0] for n in (count, NIGHTS))
    assert first == every[: len(first)]


def test_what_went_back_is_gone_and_what_was_accepted_stays():
    """
    A level as before ends an alarm without another; an acceptance is a line of its own.
    """
    lines = nights({**SLOWER, "control | dfsio": 1.5}, count=60)
    back = nights(count=60, seed=2)
    alarms, _ = judged([*lines[:45], *back[45:]])
    assert [(alarm.cause, alarm.state) for alarm in alarms] == [("cluster: disk", "gone")]
    (alarm,) = judged(lines)[0]
    lines[-1] = lines[-1].model_copy(update={"alarms": (alarm,)})
    accepted = Acceptance(time_s=1.0, alarm=alarm.id, reason="new disks")
    assert [each.state for each in current([*lines, accepted])[0]] == ["accepted"]


def test_an_alarm_that_was_raised_stays_whatever_is_made_of_it_later():
    """
    Also where the detector of today would raise none.
    """
    (alarm,) = judged(nights(SLOWER))[0]
    lines = nights()
    lines[-1] = lines[-1].model_copy(update={"alarms": (alarm,)})
    assert current(lines)[0] == [alarm]


def test_series_and_nights_that_are_not_whole_are_kept_apart():
    """
    Two machines in turn, of which one is slower by half, raise nothing; notes name them.
    """
    lines = nights(count=60)
    other = Series(machine="other", experiment="e", hadoop="3.5.0", workers="3")
    for place in range(1, 60, 2):
        points = [
            point.model_copy(update={"raw": tuple(1.5 * each for each in point.raw)})
            for point in lines[place].points
        ]
        lines[place] = lines[place].model_copy(update={"series": other, "points": tuple(points)})
    lines[20] = lines[20].model_copy(update={"whole": False, "lacks": ("6 of 8 trials",)})
    alarms, notes = judged(lines)
    assert alarms == []
    assert notes[0] == "night 21 is in no comparison: 6 of 8 trials"
    assert notes[1].startswith("2 series are kept apart")


def test_few_nights_and_constant_series_are_named(tmp_path):
    """
    Nothing confident is said of them.
    """
    alarms, notes = judged(nights(count=5))
    assert (alarms, len(notes)) == ([], 1)
    assert "8 nights show a shift at the soonest" in notes[0]
    path = tmp_path / "x.csv"
    path.write_text("time,a,b\n" + "\n".join(f"{n},7,{n % 3 + 1}" for n in range(40)))
    (table,) = read_csv(path)
    assert Judge(table).judge() == []
    assert table.notes == ["measured | a | job_s never varies: nothing is said of it"]
    assert judged([]) == ([], [])


def test_one_cell_suspected_tonight():
    """
    A single night that lies far off is to be measured again; a usual one is not.
    """
    lines = nights({"measured | terasort | 80 MiB": 1.5}, count=SINCE)
    (table,) = tables(lines)
    assert "80 MiB" in Judge(table).suspected()
    (table,) = tables(nights(count=SINCE))
    assert Judge(table).suspected() == []


def test_what_an_alarm_says_is_not_measured_again_each_night():
    """
    Six nights after all cells became slower, they are no news.
    """
    (table,) = tables(nights(SLOWER, count=SINCE + 6))
    assert Judge(table).suspected() == []


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("", "is '', and not time,NAME", 1),
        ("a,b\n1,2\n", "is 'a,b', and not time,NAME", 1),
        ("time,a,a\n1,2,3\n", "and not time,NAME", 1),
        ("time,a\n1,x\n", "'x' in column 'a' is no number", 2),
        ("time,a\n1,inf\n", "infinite", 2),
        ("time,a\n1,2\n2\n", "1 values, and 2 names", 3),
        ("time,a\n2,2\n1,2\n", "time '1' is not after", 3),
        ("time,a\nnight,2\n", "'night' is no time", 2),
        ("time,a\nnan,2\n1,2\n", "time 'nan' is not after", 2),
        ("time,commit\n1,2\n", "and not time,NAME", 1),
        ("time,a\n1," + 200_000 * "1" + "\n", "field larger", 2),
    ],
)
def test_bad_columns_are_named(text, words, line, tmp_path):
    """
    With the line, and what stands there.
    """
    path = tmp_path / "nights.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=words) as raised:
        read_csv(path)
    assert raised.value.where == f"{path}:{line}"


@pytest.mark.parametrize("content", [None, b"time,a\n1,\xff\n"])
def test_what_is_no_text_is_named_without_a_line(content, tmp_path):
    """
    A file that is not there, or not UTF-8.
    """
    path = tmp_path / "nights.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match="it cannot be read") as raised:
        read_csv(path)
    assert raised.value.where == str(path)


def test_columns_together_and_each_by_itself(tmp_path):
    """
    Dates, gaps, a column of commits, and numbers of any sign; `each` column raises its own alarm.
    """
    random = np.random.default_rng(3)
    values = random.standard_normal((60, 3))
    values[40:] += 4
    rows = []
    for night, row in enumerate(values):
        texts = ["" if night == 50 else f"{value}" for value in row]
        rows.append(
            f"2026-10-{1 + night // 2:02d}T{12 * (night % 2):02d}:00:00Z,ab12,{','.join(texts)}"
        )
    path = tmp_path / "x.csv"
    path.write_text("time,commit,a,b,c\n" + "\n".join(rows))
    together, each = (
        [alarm for one in read_csv(path, separate=split) for alarm in Judge(one).judge()]
        for split in (False, True)
    )
    assert [(alarm.series, alarm.since) for alarm in together] == [("all cells", 41)]
    assert [alarm.cells for alarm in each] == [("a",), ("b",), ("c",)]
    assert together[0].low < 4 < together[0].high


OTAVA = [  # the samples of Apache Otava's documentation and tests, of other numbers
    "time,commit,metric1\n2026.01.01 3:00:00 +0100,aaa1,151\n2026.01.02 3:00:00 +0100,aaa2,152\n",
    "time;metric1\n2026-01-01T02:00:00Z;151\n2026-01-02T02:00:00Z;152\n",
    "time;commit;metric1\n2026.01.01 3:00:00 +0100;aaa;151\n2026.01.02 3:00:00 +0100;bb;152\n",
    "time,metric1\n1767232800,151\n1767319200,152\n",
    "time,commit,branch,metric1\n2026.01.01 3:00 +0100,1,main,151\n2026/1/2 02:00Z,2,main,152\n",
    "commit,time,metric1\n'a, b','2026-01-01 02:00:00.5+00:00',151\nc,2026-01-02 03:00+01:00,152\n"
    .replace("commit", "'commit'", 1),
    "host\ttime\tmetric1\nnode-1\t2026-01-01\t151\n\nnode-1\t2026-01-02\t152\n",
    '\ufefftime,note,metric1\n2026-01-01,"two\nlines",151\n2026-01-02,,152\n',
]  # fmt: skip


@pytest.mark.parametrize("text", OTAVA)
def test_forms_of_otava_are_read(text, tmp_path):
    """
    Dates with dots and a zone, semicolons, attributes, single quotes, seconds since 1970.
    """
    path = tmp_path / "nights.csv"
    path.write_text(text)
    (table,) = read_csv(path)

    assert [point.name for point in table.points] == ["measured | metric1 | job_s"]
    assert np.exp(table.values).ravel() == pytest.approx([151, 152])
    textual = [name for name in ("host", "note") if name in text]
    assert table.notes == [f"column '{name}' has no number, and is left out" for name in textual]


@pytest.mark.parametrize(
    "text",
    [
        "2026.01.01 3:00:00 +0100", "2026-01-01T02:00:00Z", "2026-01-01 02:00:00.0+00:00",
        "2026/1/1 2:00Z", "2026-01-01T03:00:00.000000+0100",
    ],
)  # fmt: skip
def test_moments_of_any_form_are_one(text):
    """
    Whatever stands between their parts.
    """
    assert seconds_of(text) == 1767232800


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("time,branch,a\n1,main,2\n2,other,3\n", "2 branches are no series: main, other", 1),
        ("time,a\n2026.13.01 3:00:00,2\n", "is no time", 2),
        ('time,note,a\n1,"two\nlines",2\n2,x,y\n', "'y' in column 'a' is no number", 4),
        ("time;a\n1;10,43\n", "'10,43' in column 'a' is no number", 2),
        ("Tag=x,2.616,2.385\nTag=y,1,2\n", "and not time,NAME", 1),
        ("time,a\n" + 100 * "9" + " o'clock,1\n", "is no time", 2),
    ],
)
def test_what_is_no_night_is_refused_in_words(text, words, line, tmp_path):
    """
    With its line, also behind a text of several lines.
    """
    path = tmp_path / "nights.csv"
    path.write_text(text)

    with pytest.raises(DataError, match=words) as raised:
        read_csv(path)
    assert raised.value.where == f"{path}:{line}"


def test_a_file_of_columns_is_read_to_a_bound(tmp_path, monkeypatch):
    """
    It may be anybody's.
    """
    monkeypatch.setattr(columns, "_MOST_BYTES", 2**20)
    path = tmp_path / "nights.csv"
    path.write_text("time,a\n" + 2**20 * "1")

    with pytest.raises(DataError, match="larger than 1 MiB"):
        read_csv(path)


def test_a_difference_that_went_back_is_gone(tmp_path):
    """
    Also of numbers around 0, whose changes are no shares.
    """
    values = np.random.default_rng(5).standard_normal(90)
    values[30:60] += 6
    path = tmp_path / "x.csv"
    path.write_text("time,a\n" + "\n".join(f"{n},{value}" for n, value in enumerate(values)))
    (alarm,) = Judge(read_csv(path)[0]).judge()
    assert (alarm.since, alarm.state) == (31, "gone")
    assert alarm.low < 6 < alarm.high


def test_common_factors_have_more_of_the_chance_of_a_false_alarm():
    """
    So that what all cells share is seen before what one of many shows.
    """
    (table,) = tables(nights())
    judge = Judge(table)
    limits = dict(zip((factor.kind for factor in judge.factors), judge.thresholds, strict=True))
    assert [*limits] == ["workload", "phase", "resource", "cell", "cost", "model"]
    assert limits["workload"] == min(limits.values())


@pytest.mark.process
def test_a_wider_spread_is_called_that():
    """
    Of ten columns whose nights lie three times as far apart since, more often than a shift: three
    nights that happen to lie on one side are told from none.
    """
    first_causes = []
    for seed in range(10):
        values = np.random.default_rng(seed).standard_normal((70, 5))
        values[30:, 0] *= 3
        raised = Judge(columns.csv_table("abcde", 100 * np.exp(0.03 * values))).judge()
        first_causes += [alarm.cause for alarm in raised if alarm.series == "a"][:1]
    assert 2 * first_causes.count("spread") > len(first_causes)


def test_a_disturbed_repeat_counts_a_quarter():
    """
    In the mean of its night, and in what the night counts among others.
    """
    names = {"workload": "terasort", "cell": "48 MiB", "quantity": "job_s"}
    point = Point(kind="measured", **names, raw=(10.0, 20.0), disturbed=(1,))
    assert point.weights == (1.0, 0.25)
    assert point.weight == 0.625
    assert levels([point], {}) == {point.name: pytest.approx(np.log(12.0))}


def test_nights_without_controls_are_named():
    """
    With what is to be written; nothing is the cluster's then.
    """
    lines = nights()
    for place, line in enumerate(lines):
        points = tuple(point for point in line.points if point.kind != "control")
        lines[place] = line.model_copy(update={"points": points})
    _, notes = judged(lines)
    assert len(notes) == 1
    assert "has no control" in notes[0]
    assert "nightly.controls" in notes[0]


@pytest.mark.process
def test_a_first_week_says_what_it_can():
    """
    One night has no spread, four have one; of eight the alarms speak.
    """
    (one,) = first_week(nights(count=1))
    (four,) = first_week(nights(count=4))
    sizes = [int(size) for size in re.findall(r"steps of (\d+) %", four)]
    assert one.startswith("one night says nothing")
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 2
    assert first_week(nights(count=8)) == first_week([]) == []


@pytest.mark.parametrize("moved", ["a", "b"])
def test_one_of_two_columns_is_not_most_of_them(moved, tmp_path):
    """
    Half of a step is in the mean of both: the one that moved is named, and by how much it did.
    """
    random = np.random.default_rng(3)
    lines = ["time,a,b"]
    for number in range(30):
        step = 1.31 if number >= 20 else 1.0
        levels_of = {"a": 100.0, "b": 50.0}
        levels_of[moved] *= step
        row = [
            f"{level * np.exp(0.024 * random.standard_normal()):.2f}"
            for level in levels_of.values()
        ]
        lines.append(f"2026-01-{number + 1:02d},{','.join(row)}")
    path = tmp_path / "two.csv"
    path.write_text("\n".join(lines))

    (table,) = read_csv(path)
    (alarm,) = Judge(table).judge()
    assert alarm.series == moved
    assert alarm.low < 0.31 < alarm.high


def test_a_cost_that_no_machine_has_is_named():
    """
    A profile may hold any number; the history of nights holds none that its means cannot bear.
    """
    cost = Statistic(value=1e300, count=3, spread=0.1, source="fit")
    profile = Profile(workload="terasort", costs={"map_cpu_s_per_record": cost})
    with pytest.raises(DataError, match=r"terasort map_cpu_s_per_record: .* and it is 1e\+300"):
        list(cost_points("terasort", profile))
