"""
What a bundle discloses, from stored files alone: `system.json`, and `disclosure.md` in sentences.

docs/disclosure.md has every field and where it comes from.  One that cannot be had is a text
``not known: why``, never left out.
"""

from __future__ import annotations

import re

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from html import unescape
from statistics import fmean
from typing import Any

from harness.evaluate.flow import Evaluation
from harness.evaluate.model_inputs import effective_configuration, workload_of
from harness.hadoop.properties import SEAL
from harness.hadoop.site import block_bytes, client_properties
from harness.hadoop.slots import effective
from harness.monitor.machine import MOST_OTHERS, MOST_STEAL
from harness.providers import PROVIDERS
from harness.publish.data import hardware, hardware_of
from harness.records.manifest import Manifest
from harness.reports.answer import facts
from harness.reports.data import ReportData
from harness.reports.formats import escape
from harness.reports.sections.machine import correction_text
from harness.reports.sections.method import flatten, noise_text
from harness.reports.wording import count, floor_percent, moment, percent
from harness.run.manifest import installed_packages
from harness.scoring.comparisons import FAMILY_ERROR, MOST_FRAME
from harness.store import Run
from harness.store.files import folders
from harness.store.trials import read_trial
from harness.text import excerpt
from harness.units import format_bytes

# What a node tells of itself (harness.node.system): parts, and the fields of each.
FIELDS = {
    "processor": "model architecture sockets cores threads usable_threads caches microcode governor"
    " frequency_limits_hz numa_nodes",
    "memory": "total_bytes huge_pages huge_page_bytes transparent_huge_pages"
    " transparent_huge_pages_defrag swap_bytes swappiness",
    "disks": "hdfs local",
    "network": "",
    "virtualisation": "hypervisor_flag vendor product hypervisor container",
    "control_groups": "version limits",
    "kernel": "release version command_line clock_source",
    "os": "",
    "python": "",
    "java": "implementor implementor_version java_runtime_version java_version",
}
SECTIONS = ("nodes", "client", "gpus", "clusters", "jvm", "hadoop", "harness", "measured")
# What a machine need not say, and what is measured only where a model or a limit asks for it.
_MAY_BE_UNKNOWN = re.compile(
    r".*\.(processor\.(microcode|governor|frequency_limits_hz|caches|numa_nodes)"
    r"|memory\.(huge|transparent)\w+|disks\.\w+\.(device|model|rotational|size_bytes|scheduler)"
    r"|network\..*|virtualisation\..*|kernel\.clock_source|java\.implementor(_version)?"
    r"|jvm\..*\.(heap|collector)|properties of a cell's jobs\..*|measured\..*)"
)
_NOT_ASKED = "not known: the run was measured by a harness that did not ask"
_NO_CONF = "not known: no configuration of such a job is stored"
_OPTIONS = {
    "map": "mapreduce.map.java.opts",
    "reduce": "mapreduce.reduce.java.opts",
    "application master": "yarn.app.mapreduce.am.command-opts",
}
_KINDS = {
    "retried": "it does not count, and was made again",
    "disturbed": "it does not count, and was repeated because others used the machine",
    "warmup": "a warm-up trial, which never counts",
}
_OF_OURS = ("topology", "slots offered by a worker", "slots effective", "tasks per core")
_CONF, _MOST_CONF_BYTES, _MOST_VALUE = re.compile(r"job-\d{1,6}-conf\.xml"), 2**26, 2000
_RULES = f"""\
How the harness measures (its `docs/design.md`, section 7), in short:

- A trial is a real client whose jobs run alone on Hadoop's own daemons, and whose output is \
checked. Its times are those of Hadoop's job history.
- A probe of fixed work runs on every core meanwhile: times stand as measured (raw), and at the \
median speed of the profiling trials (reference) where those bear such a correction.
- Where others used more than {MOST_OTHERS:.0%} of the processors, or other virtual machines \
{MOST_STEAL:.0%}, or memory was swapped, a trial is marked as disturbed, and counts.
- A noise floor is the standard deviation of the mean of a cell's repeats.
- Models are told apart by the jackknife over inputs, or cells, with the uncertainty of their \
profile and Holm's correction: wrongly so in {FAMILY_ERROR:.0%} of such runs at most. Cells with \
more than {MOST_FRAME:.0%} of start-up and gaps count in no verdict on job times."""
_ASSUMED = (
    "Hadoop's history and counters are right, and so are the clocks of the nodes.",
    "The speed probe feels what slows a job; it shares cores and caches with it, and not its disk.",
    "Of runs that were not published nothing is known: only their authors can say that none is.",
)
_PROPERTY = re.compile(
    r"<property><name>([^<]*)</name><value>([^<]*)</value><final>\w+</final><source>([^<]*)<"
)


def system_document(runs: Sequence[Run]) -> dict[str, Any]:
    """What each run was measured on, by the name of its experiment: `system.json`."""
    experiments = dict[str, Any]()
    for run in sorted(runs, key=lambda each: each.id):
        evaluation = Evaluation.of(run)
        name = evaluation.experiment.name
        while name in experiments:
            name += " again"
        experiments[name] = _system(evaluation, run.read_manifest())
    return {"version": 1, "experiments": experiments}


def undisclosed(system: Mapping[str, Any]) -> list[str]:
    """Dotted names of what a `system_document` has to tell, and does not; also where it is gone."""
    lacking = [
        name
        for name, value in flatten(system)
        if "not known" in str(value) and not _MAY_BE_UNKNOWN.fullmatch(name)
    ]
    for name, known in (system.get("experiments") or {"of any": {}}).items():
        lacking += [f"experiments.{name}.{part}" for part in SECTIONS if not known.get(part)]
        for node, parts in (known.get("nodes") or {}).items():
            for part, names in FIELDS.items() if isinstance(parts, Mapping) else ():
                if not parts.get(part) or any(key not in parts[part] for key in names.split()):
                    lacking.append(f"experiments.{name}.nodes.{node}.{part}")
    return lacking


def _system(evaluation: Evaluation, manifest: Manifest) -> dict[str, Any]:
    nodes = dict[str, Any]()
    for node, answer in (manifest.systems or {"every node": _NOT_ASKED}).items():
        if isinstance(answer, str) and answer in manifest.systems:
            nodes[node] = f"the same as {answer}"
            continue
        parts = answer if isinstance(answer, dict) else {}
        unsaid = "not known: the node did not say" if parts else answer
        nodes[node] = {part: parts.get(part, unsaid) for part in FIELDS}
        for part, names in FIELDS.items():
            value = nodes[node][part] if isinstance(nodes[node][part], dict) else {}
            if names:
                nodes[node][part] = dict.fromkeys(names.split(), unsaid) | value
    confs = {label: _conf(evaluation, key) for key, label in evaluation.labels.items()}
    known = [conf for conf in confs.values() if conf]  # none of cells without a trial that is done
    common = set.intersection(*[set(conf.items()) for conf in known] or [set()])
    daemons = {kind: _jvm({options}) for kind, options in manifest.daemon_options.items()}
    versions, limits = manifest.versions, [each.model_dump() for each in manifest.limits]
    client = ("architecture", "cpu", "cores", "cores_usable", "memory_bytes", "kernel", "os")
    return {
        "nodes": nodes,
        "client": {name: manifest.machine.get(name, _NOT_ASKED) for name in client},
        "gpus": {
            "offered": manifest.gpus.model_dump() if manifest.gpus else "none",
            "found": {name: list(gpus.devices) for name, gpus in manifest.gpus_found.items()}
            or "none was asked for",
        },
        "clusters": _clusters(evaluation, manifest),
        "jvm": {
            "tasks": {
                kind: _jvm({conf.get(name, "as Hadoop sets them") for conf in known} or {_NO_CONF})
                for kind, name in _OPTIONS.items()
            },
            "daemons": daemons or ("not known: not ours" if manifest.systems else _NOT_ASKED),
        },
        "hadoop": {
            "version": versions.hadoop if versions else _NOT_ASKED,
            "jars": versions.jars if versions else _NOT_ASKED,
            "on the nodes": manifest.nodes or _NOT_ASKED,
            "properties of all jobs": dict(sorted(common)) or _NO_CONF,
            "properties of a cell's jobs": {
                label: dict(sorted(conf.items() - common)) if conf else _NO_CONF
                for label, conf in confs.items()
            },
        },
        "harness": {
            "version": manifest.harness or _NOT_ASKED,
            "commit": manifest.commit or "not known: it did not run from a source tree",
            "python": manifest.python or _NOT_ASKED,
            "packages": manifest.packages or installed_packages(),
            "packages read": "when measured" if manifest.packages else "when published",
        },
        "measured": {
            "rates": {name: rates.model_dump() for name, rates in manifest.rates.items()}
            or "not known: no model asked for rates of disks and memory",
            "limits": limits or "not known: nothing was limited on purpose",
            "network": "not known: only the rate of a limited network is measured: `limits`",
            "gpus": {name: gpus.model_dump(include={"h2d_bps", "d2h_bps", "rates_missing"})
                     for name, gpus in manifest.gpus_found.items()} or "none was asked for",
        },
    }  # fmt: skip


def _jvm(several: Collection[str]) -> dict[str, str]:
    """What the options of JVMs of a kind say of them."""
    options = " | ".join(sorted(several))
    heap, collector = re.search(r"-Xmx(\S+)", options), re.search(r"-XX:\+Use(\w+)GC", options)
    unsaid = "not known: no option says so, and the JVM chose"
    return {
        "options": options,
        "heap": heap[1] if heap else unsaid,
        "collector": collector[1] if collector else unsaid,
    }


def _clusters(evaluation: Evaluation, manifest: Manifest) -> dict[str, Any]:
    """What the cluster of each cell was; one entry where all are the same."""
    entries = dict[str, Any]()
    for key, cell in evaluation.cells.items():
        spec, provider = cell.cluster, PROVIDERS.get(cell.cluster.provider)
        entry: dict[str, Any] = dict.fromkeys(_OF_OURS, "not known: the cluster is not ours")
        if provider and provider.sets_site:
            slots = effective(spec, effective_configuration(cell))
            tasks = {"map": slots.map_slots, "reduce": slots.reduce_slots}
            cores = sum(machine.cores for machine in manifest.machines.values())
            cores = manifest.machine.get("cores_usable", 0) if provider.on_this_machine else cores
            cores = spec.node.cores * spec.workers if spec.node.cores else cores
            per_core = {kind: round(most / cores, 3) for kind, most in tasks.items() if cores}
            entry = {
                "topology": "a master (NameNode, ResourceManager, history server) and workers"
                " (DataNode, NodeManager); racks: "
                + spec.site.get("net.topology.script.file.name", "none are told to Hadoop"),
                "slots offered by a worker": {
                    "map": spec.node.map_slots, "reduce": spec.node.reduce_slots,
                },
                "slots effective": tasks,
                "tasks per core": per_core or "not known: the cores of the nodes are not recorded",
            }  # fmt: skip
        entry |= {"hardware": hardware(cell), "block_bytes": block_bytes(spec)}
        replication = client_properties(spec).get("dfs.replication", _NO_CONF)
        entries[evaluation.labels[key]] = entry | {"replication": replication}
    first, *others = entries.values()
    return {"all cells": first} if all(other == first for other in others) else entries


def _conf(evaluation: Evaluation, cell: str) -> dict[str, str]:
    """Properties that Hadoop says are not its defaults, of all stored jobs of a cell."""
    known: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    folder = re.compile(rf"run-{re.escape(evaluation.run.id)}-[0-9a-f]{{8}}")
    for trial, record in evaluation.done.items():
        if record.trial.cell.id != cell:
            continue
        raw = evaluation.run.raw(trial)
        for name in filter(_CONF.fullmatch, raw.names()):
            with raw.open(name) as file:
                text = file.read(_MOST_CONF_BYTES).decode("utf-8", "replace")
            for key, value, source in _PROPERTY.findall(folder.sub("CLUSTER", text)):
                if not source.endswith("-default.xml") and key != SEAL:
                    known[unescape(key)][name].add(excerpt(unescape(value), _MOST_VALUE))
    return {
        key: " | ".join(dict.fromkeys(
            values.pop() if len(values) == 1 else "(another in each trial)"
            for values in by_job.values()
        ))
        for key, by_job in known.items()
    }  # fmt: skip


def disclosure(runs: Sequence[Run]) -> str:
    """How each run was measured, what was dropped, how far it reaches: `disclosure.md`."""
    blocks = ["# Disclosure", _RULES]
    for run in sorted(runs, key=lambda each: each.id):
        evaluation = Evaluation.of(run)
        blocks.append(f"## {escape(evaluation.experiment.name)} ({escape(run.id)})")
        for title, sentences in _sections(evaluation, evaluation.report_data()).items():
            listed = "\n".join(f"- {escape(sentence)}" for sentence in sentences if sentence)
            blocks += [f"### {title}", listed]
    return "\n\n".join(blocks) + "\n"


def _sections(evaluation: Evaluation, results: ReportData) -> dict[str, Sequence[str]]:
    """Sentences about one run, by the title that they stand under."""
    experiment, manifest = results.experiment, evaluation.run.read_manifest()
    trials, where = results.ordered_trials, hardware_of(evaluation)
    first, last = (moment(end) for end in (trials[0].started_s, max(t.finished_s for t in trials)))
    starts = {each.job_ids[0].removeprefix("job_").split("_")[0] for each in trials if each.job_ids}
    profiled = sum(trial.profiling for trial in evaluation.plan)
    repeats = f"{experiment.repeat} repeats of each cell"
    if experiment.is_until_decided:
        repeats = f"repeats until decided, at the end of which: {manifest.repeats_ended}"
    started = f"From {first} to {last}; {count(len(starts), 'start')} of a cluster, each with"
    started += f" {count(experiment.warmup, 'warm-up trial')}, never counted."
    order = f"Order {experiment.predict.order}, shuffled with seed {experiment.seed} and repeats"
    order += f" interleaved: {count(profiled, 'profiling trial')}, which are not scored, and"
    order += f" {len(evaluation.plan) - profiled} scored ones; {repeats}."
    floors = {
        f"{results.label(score.cell)}, {speed}: {floor_percent(score.floor)} over"
        f" {count(score.trials, 'trial')}.": speed
        for speed in results.speeds()
        for score in results.scores(results.answered, speed)
    }
    return {
        "Method": [
            f"Asked: {experiment.question}",
            f"Harness {manifest.harness}, commit {manifest.commit or 'not known'}, on {where}.",
            started,
            order,
            f"Tasks were traced ({experiment.tracing.mode}), in all trials alike.",
            *(correction_text(name, profile.speed) for name, profile in results.profiles.items()),
        ],
        "What was dropped, and why": _dropped(evaluation.run, results)
        or ["Nothing: each attempt is a trial that counts."],
        "Noise floors": [noise_text(results), *floors],
        "How far the conclusions reach": [
            *facts(results).rests_on,
            *(f"{pair.better} and {pair.worse}, {pair.verdict}: {pair.reason}."
              for pair in results.score_book.comparisons
              if (pair.quantity, pair.speed) == (results.answered, "raw") and pair.reason),
            f"Nothing is said of other systems than {where}, nor of other sizes and settings.",
        ],
        "Threats to validity": _threats(evaluation, results, len(starts)),
        "Inputs and their licences": _inputs(evaluation),
        "Assumptions": _ASSUMED,
    }  # fmt: skip


def _threats(evaluation: Evaluation, results: ReportData, starts: int) -> list[str]:
    """What may make the conclusions of a run, of so many starts, wrong."""
    machines, cell = evaluation.run.read_manifest().machines, results.trials[0].trial.cell
    shares = defaultdict[str, list[float]](list)
    for each in results.measurements:
        if "frame_s" in each.raw_s and each.raw_s.get("job_s"):
            shares[results.label(each.cell)].append(each.raw_s["frame_s"] / each.raw_s["job_s"])
    threats = {
        "All nodes are of one machine: they share its processors, memory and disks, and no packet"
        " leaves it.": cell.cluster.provider == "local" or len(machines) == 1,
        "Profiling trials come first: slow drift of the machine is not spread over both"
        " uses.": results.experiment.predict.order == "blind",
        "All trials ran on one start of a cluster: what differs between starts is in no"
        " floor.": starts == 1,
    }
    return [
        *facts(results).caveats,
        *(threat for threat, is_there in threats.items() if is_there),
        *(f"{label}: {percent(fmean(each))} of the job passes around its tasks."
          for label, each in shares.items()),
        *(f"Disturbed: trial {trial}, {rule}."
          for trial, rule in results.disturbed_trials.items()),
    ]  # fmt: skip


def _dropped(run: Run, results: ReportData) -> list[str]:
    """Each trial that failed, and each attempt that does not count, with its reason."""
    sentences = [
        f"Trial {each.trial.id} ({results.label(each.trial.cell.id)}), {each.state}:"
        f" {each.reason or 'no reason was recorded'}. It is in no score."
        for each in results.failed_trials
    ]
    for kind, why in _KINDS.items():
        for folder in folders(run.path / kind):
            attempt = read_trial(run.opener, folder, folder.name.split("-")[0])
            reason = attempt.reason or attempt.disturbed or attempt.state
            sentences.append(f"An attempt at trial {attempt.trial.id} ({reason}): {why}.")
    reused = run.read_manifest().reused
    return sentences + [f"Trial {key} was measured by run {by}." for key, by in reused.items()]


def _inputs(evaluation: Evaluation) -> list[str]:
    """What made the input of each workload, and under which licence that is."""
    sizes = defaultdict[str, set[int]](set)
    for cell in evaluation.cells.values():
        spec = cell.workload
        command = workload_of(cell).generate(spec, block_bytes(cell.cluster), "/input")
        origin = f"{command.program} of Apache Hadoop's examples (Apache-2.0), without a seed"
        if command.jar:
            origin = f"{command.main_class} of the harness (Apache-2.0), from seed {spec.seed}"
        if spec.code is not None:
            origin = f"the user's own {spec.code.class_name}, whose licence is not known"
        sizes[f"{spec.name}: generated by {origin}"].add(spec.input_bytes)
    return [
        f"{text}; {', '.join(map(format_bytes, sorted(several)))}. Nobody's data are in it."
        for text, several in sizes.items()
    ]
