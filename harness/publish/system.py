"""
What a bundle discloses, from stored files alone: `system.json`, and `disclosure.md` for people.

docs/disclosure.md has every field and where it comes from.  One that cannot be had is a text
``not known: why``, never left out.
"""

from __future__ import annotations

import re

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from html import unescape
from typing import Any

from harness.base.documents.document import Section, Text
from harness.base.documents.formats import render_markdown
from harness.base.documents.wording import percent
from harness.base.hadoop.properties import SEAL
from harness.base.hadoop.site import block_bytes, client_properties
from harness.base.hadoop.slots import effective
from harness.base.records.manifest import Manifest
from harness.clusters import PROVIDERS
from harness.clusters.existing.cluster import ExistingCluster
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.model import Experiment
from harness.core.reports.data import ReportData
from harness.core.reports.sections import make_document
from harness.core.reports.sections.method import flatten
from harness.core.reports.sections.scores import frame_share
from harness.core.run.manifest import installed_packages
from harness.core.store import Run
from harness.core.store.evidence import DISCARDED
from harness.core.store.trials import read_trial
from harness.observe.storage.files import folders
from harness.publish.data import hardware

_OPTIONS = {
    "map": "mapreduce.map.java.opts",
    "reduce": "mapreduce.reduce.java.opts",
    "application master": "yarn.app.mapreduce.am.command-opts",
}
_DISK = "file_system, mount_options, device, model, rotational, size_bytes, scheduler"
_JVM = "options, heap, collector"
_NODE = {
    "processor": "model, architecture, sockets, cores, threads, usable_threads, caches, microcode,"
    " governor, frequency_limits_hz, numa_nodes",
    "memory": "total_bytes, huge_pages, huge_page_bytes, transparent_huge_pages,"
    " transparent_huge_pages_defrag, swap_bytes, swappiness",
    "disks": {"hdfs": _DISK, "local": _DISK},
    "network": {"*": "mtu, bits_per_s"},
    "virtualisation": "hypervisor_flag, vendor, product, hypervisor, container",
    "control_groups": "version, limits",
    "kernel": "release, version, command_line, clock_source",
    "os": None,
    "python": None,
    "java": "implementor, implementor_version, java_runtime_version, java_version",
}
# All fields of a system: their names, `*` for any, and below each its own; `None`: it has a value.
FIELDS: Mapping[str, Any] = {
    "nodes": {"*": _NODE},
    "client": "architecture, cpu, cores, cores_usable, memory_bytes, kernel, os",
    "gpus": "offered, found",
    "clusters": {
        "*": "topology, hardware, slots offered by a worker, slots effective, tasks per core,"
        " block_bytes, replication"
    },
    "jvm": {"tasks": dict.fromkeys(_OPTIONS, _JVM), "daemons": None},
    "hadoop": "version, jars, on the nodes, properties of all jobs, properties of a cell's jobs",
    "harness": "version, commit, python, packages, packages read",
    "measured": "rates, limits, network, gpus",
}
# What a machine need not say, and what is measured only where a model or a limit asks for it.
_MAY_BE_UNKNOWN = re.compile(
    r".*\.(microcode|governor|frequency_limits_hz|caches|numa_nodes|huge\w+|transparent\w+"
    r"|disks\.\w+\.(device|model|rotational|size_bytes|scheduler)|clock_source|implementor\w*"
    r"|heap|collector|(network|virtualisation|properties of a cell's jobs|measured)\..*)"
)
_MISSING = "not known: it is not there"
_CONCEALED = re.compile(r"\bsecret-\d+\b")  # what was taken for a secret tells nothing
_NOT_ASKED = "not known: the run was measured by a harness that did not ask"
_NO_CONF = "not known: no configuration of such a job is stored"
_NO_GPU = "none was asked for"
_PROPERTY = re.compile(
    r"<property><name>([^<]*)</name><value>([^<]*)</value><final>\w+</final><source>([^<]*)<"
)
_PARTS = ("comparisons", "cells", "machine", "method", "failed")  # of the report


def system_document(runs: Sequence[Run]) -> dict[str, Any]:
    """What each run was measured on, by the name of its experiment: `system.json`."""
    experiments = dict[str, Any]()
    for evaluation in map(Evaluation.of, sorted(runs, key=lambda run: run.id)):
        name = evaluation.experiment.name
        while name in experiments:
            name += " again"
        system = system_of(evaluation, evaluation.run.read_manifest())
        experiments[name] = complete(system, FIELDS, _NOT_ASKED)
    return {"version": 1, "experiments": experiments}


def undisclosed(system: Mapping[str, Any]) -> list[str]:
    """Dotted names of what a `system_document` has to tell, and does not, or conceals."""
    experiments = system.get("experiments") or {"of any": {}}
    whole = {name: complete(fields, FIELDS, _MISSING) for name, fields in experiments.items()}
    names = list[str]()
    for name, value in flatten({"experiments": whole}):
        is_known = "not known" not in str(value)
        is_concealed = _CONCEALED.search(str(value)) is not None
        is_missing = value == _MISSING or not _MAY_BE_UNKNOWN.fullmatch(name)
        if is_concealed or (not is_known and is_missing):
            names.append(name)
    return names


def complete(value: Any, fields: Any, unsaid: str) -> Any:
    """*value* with all *fields* and no others; *unsaid*, or its own reason, where it has none."""
    value = unsaid if value in (None, "", {}) else value
    if fields is None or (fields is _NODE and str(value).startswith("the same as ")):
        return value
    if not isinstance(value, dict):
        unsaid = value if str(value).startswith("not known") else unsaid
        value = {}
    if isinstance(fields, str):
        fields = dict.fromkeys(fields.split(", "))
    elif "*" in fields:
        fields = dict.fromkeys(value, fields["*"])
    completed = {name: complete(value.get(name), below, unsaid) for name, below in fields.items()}
    return completed or unsaid


def system_of(evaluation: Evaluation, manifest: Manifest) -> dict[str, Any]:
    """The system of a run, field by field as in `FIELDS`, which may lack some."""
    stored = manifest.model_dump(mode="json")
    gpus = stored["gpus_found"]
    confs = {label: _conf(evaluation, key) for key, label in evaluation.labels.items()}
    return {
        "nodes": node_facts(stored["systems"] or {"every node": _NOT_ASKED}),
        "client": stored["machine"],
        "gpus": {
            "offered": stored["gpus"] or "none",
            "found": {node: found["devices"] for node, found in gpus.items()} or _NO_GPU,
        },
        "clusters": cluster_facts(evaluation, manifest),
        "jvm": jvm_facts(stored, [*confs.values()]),
        "hadoop": hadoop_facts(stored, confs),
        "harness": {
            "version": stored["harness"],
            "commit": stored["commit"] or "not known: it did not run from a source tree",
            "python": stored["python"],
            "packages": stored["packages"] or installed_packages(),
            "packages read": "when measured" if stored["packages"] else "when published",
        },
        "measured": measured_facts(stored),
    }


def measured_facts(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Rates and limits of the machines, as they were measured."""
    copies = ("h2d_bps", "d2h_bps", "rates_missing")
    rates_of_gpus = dict[str, Any]()
    for node, found in stored["gpus_found"].items():
        rates_of_gpus[node] = {name: found[name] for name in copies}
    return {
        "rates": stored["rates"] or "not known: no model asked for rates of disks and memory",
        "limits": stored["limits"] or "not known: nothing was limited on purpose",
        "network": "not known: only the rate of a limited network is measured: `limits`",
        "gpus": rates_of_gpus or _NO_GPU,
    }


def node_facts(systems: Mapping[str, Any]) -> dict[str, Any]:
    """What each node says of itself, or which one it is the same as."""
    nodes = dict[str, Any]()
    for node, answer in systems.items():
        if str(answer) in systems:
            nodes[node] = f"the same as {answer}"
        else:
            nodes[node] = complete(answer, _NODE, "not known: the node did not say")
    return nodes


def jvm_facts(stored: Mapping[str, Any], confs: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """What is known of the JVMs of tasks, by the *confs* of cells, and of daemons."""
    tasks = dict[str, Any]()
    for kind, name in _OPTIONS.items():
        # A cell without a trial that is done has no configuration.
        options = {conf.get(name, "as Hadoop sets them") for conf in confs if conf}
        tasks[kind] = _jvm(options or {_NO_CONF})
    daemons = {kind: _jvm({options}) for kind, options in stored["daemon_options"].items()}
    return {"tasks": tasks, "daemons": daemons or (stored["systems"] and "not known: not ours")}


def hadoop_facts(stored: Mapping[str, Any], confs: Mapping[str, dict[str, str]]) -> dict[str, Any]:
    """Hadoop's version and files, and what the *confs* of cells set, in common and beside."""
    versions = stored["versions"] or {}
    known_confs = [set(conf.items()) for conf in confs.values() if conf]
    common = set.intersection(*known_confs) if known_confs else set()
    cell_properties = dict[str, Any]()
    for cell, conf in confs.items():
        cell_properties[cell] = dict(sorted(conf.items() - common)) if conf else _NO_CONF
    return {
        "version": versions.get("hadoop"),
        "jars": versions.get("jars"),
        "on the nodes": stored["nodes"],
        "properties of all jobs": dict(sorted(common)) or _NO_CONF,
        "properties of a cell's jobs": cell_properties,
    }


def _jvm(option_texts: Collection[str]) -> Any:
    """What the options of JVMs of a kind say of them."""
    options = " | ".join(sorted(option_texts))
    heap = re.search(r"-Xmx(\S+)", options)
    collector = re.search(r"-XX:\+Use(\w+)GC", options)
    facts = {"options": options, "heap": heap and heap[1], "collector": collector and collector[1]}
    return complete(facts, _JVM, "not known: no option says so, and the JVM chose")


def cluster_facts(evaluation: Evaluation, manifest: Manifest) -> dict[str, Any]:
    """What the cluster of each cell was; one entry where all are the same."""
    entries = dict[str, Any]()
    for key, cell in evaluation.cells.items():
        spec = cell.cluster
        entry: dict[str, Any] = {"hardware": hardware(cell), "block_bytes": block_bytes(spec)}
        entry["replication"] = client_properties(spec).get("dfs.replication", _NO_CONF)
        provider = PROVIDERS.get(spec.provider, ExistingCluster)  # of imported jobs: not ours
        if provider.sets_site:
            entry |= slot_facts(evaluation.resolved[key], manifest)
        unsaid = "not known: the cluster is not ours"
        entries[evaluation.labels[key]] = complete(entry, FIELDS["clusters"]["*"], unsaid)
    first = next(iter(entries.values()))
    return {"all cells": first} if all(entry == first for entry in entries.values()) else entries


def slot_facts(cell: ResolvedCell, manifest: Manifest) -> dict[str, Any]:
    """What a worker of a cluster of ours runs at once, and on how many cores."""
    spec = cell.cell.cluster
    slots = effective(spec, cell.configuration)
    tasks = {"map": slots.map_slots, "reduce": slots.reduce_slots}
    cores = sum(machine.cores for machine in manifest.machines.values())
    if PROVIDERS[spec.provider].on_this_machine:
        cores = manifest.machine.get("cores_usable", 0)
    if spec.node.cores:
        cores = spec.node.cores * spec.workers
    tasks_per_core = {kind: round(count / cores, 3) for kind, count in tasks.items() if cores}
    return {
        "topology": "a master, and workers that each have a DataNode and a NodeManager",
        "slots offered by a worker": {
            "map": spec.node.map_slots,
            "reduce": spec.node.reduce_slots,
        },
        "slots effective": tasks,
        "tasks per core": tasks_per_core or "not known: the cores of the nodes are not recorded",
    }


def _conf(evaluation: Evaluation, cell: str) -> dict[str, str]:
    """Properties that Hadoop says are not its defaults, of all stored jobs of a cell."""
    values_by_job: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for key, job, value in stored_properties(evaluation, cell):
        values_by_job[key][job].add(value)
    conf = dict[str, str]()
    for key, by_job in values_by_job.items():
        texts = dict[str, None]()
        for values in by_job.values():
            texts[values.pop() if len(values) == 1 else "(another in each trial)"] = None
        conf[key] = " | ".join(texts)
    return conf


def stored_properties(evaluation: Evaluation, cell: str) -> Iterator[tuple[str, str, str]]:
    """Each property of each stored job of a cell: its name, the file of the job, and its value."""
    folder = re.compile(rf"run-{evaluation.run.id}-[0-9a-f]{{8}}")
    done = [key for key, record in evaluation.done.items() if record.trial.cell.id == cell]
    for raw in map(evaluation.run.raw, done):
        for name in filter(re.compile(r"job-\d+-conf\.xml").fullmatch, raw.names()):
            with raw.open(name) as file:
                text = folder.sub("CLUSTER", file.read().decode("utf-8", "replace"))
            for key, value, source in _PROPERTY.findall(text):
                if not source.endswith("-default.xml") and key != SEAL:
                    yield unescape(key), name, unescape(value)


def disclosure(runs: Sequence[Run]) -> str:
    """How each run was measured, what was dropped, how far it reaches: `disclosure.md`."""
    texts = []
    for evaluation in map(Evaluation.of, sorted(runs, key=lambda run: run.id)):
        run = evaluation.run
        experiment = evaluation.experiment
        results = evaluation.report_data(with_tasks=False)
        manifest = run.read_manifest()
        lists = {
            "Attempts that do not count": dropped_attempts(run, manifest) or ["None."],
            "Threats to validity": threats(experiment, manifest, results),
            "Inputs and their licences": input_licences(experiment),
        }
        report = make_document(results)
        sections = [section for section in report.sections if section.id in _PARTS]
        for title, sentences in lists.items():
            sections.append(Section(title, title, [*map(Text, sentences)]))
        name = f"{experiment.name} ({run.id})"
        texts.append(render_markdown(replace(report, name=name, sections=sections)))
    return "\n".join(texts)


def dropped_attempts(run: Run, manifest: Manifest) -> list[str]:
    """A sentence for each attempt that was discarded, and each trial that another run measured."""
    sentences = list[str]()
    for kind in DISCARDED:
        for folder in folders(run.path / kind):
            record = read_trial(run.opener, folder, folder.name.split("-")[0])
            reason = record.reason or record.disturbed or record.state
            sentences.append(f"{kind}: trial {record.trial.id}, {reason}.")
    for trial, source in manifest.reused.items():
        sentences.append(f"Trial {trial} was measured by run {source}.")
    return sentences


def threats(experiment: Experiment, manifest: Manifest, results: ReportData) -> list[str]:
    """Sentences on what limits the claim; empty ones, which are not shown, for what does not."""
    starts = {trial.job_ids[0].split("_")[1] for trial in results.trials if trial.job_ids}
    is_one_machine = experiment.cluster.provider == "local" or len(manifest.machines) == 1
    disturbed = results.disturbed_trials.items()
    sentences = {
        "All nodes are of one machine: they share its processors, memory and disks, and no packet"
        " leaves it.": is_one_machine,
        "Profiling trials come first: slow drift of the machine is not spread over both"
        " uses.": experiment.predict.order == "blind",
        "All trials ran on one start of a cluster: what differs between starts is in no"
        " floor.": len(starts) == 1,
    }
    return [
        *(sentence if is_true else "" for sentence, is_true in sentences.items()),
        f"Of the job times {percent(frame_share(results, '*'))} passes around tasks.",
        *(f"Disturbed: trial {trial}, {rule}." for trial, rule in disturbed),
        "Taken on trust: Hadoop's counters, the nodes' clocks, that no run was left out.",
    ]


def input_licences(experiment: Experiment) -> list[str]:
    """Sentences on where the inputs come from, and who may use them."""
    if experiment.was_imported:
        return ["Inputs are those of jobs that had run before: nobody knows what is in them."]
    sentences = [
        "Inputs are generated, by programs under Apache-2.0; nobody's data are in them.",
        "Those of terasort are made by TeraGen of Hadoop, others by ours, from a seed.",
    ]
    for spec in experiment.workloads:
        if spec.code:
            code = f"the user's own {spec.code.class_name}"
            sentences.append(f"{spec.name}: {code}; its licence is not known.")
    return sentences
