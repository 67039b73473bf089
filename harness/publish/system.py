"""
What a bundle discloses, from stored files alone: `system.json`, and `disclosure.md` for people.

docs/disclosure.md has every field and where it comes from.  One that cannot be had is a text
``not known: why``, never left out.
"""

from __future__ import annotations

import re

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from html import unescape
from typing import Any

from harness.evaluate.flow import Evaluation
from harness.hadoop.properties import SEAL
from harness.hadoop.site import block_bytes, client_properties
from harness.hadoop.slots import effective
from harness.providers import PROVIDERS
from harness.providers.existing.cluster import ExistingCluster
from harness.publish.data import hardware
from harness.records.manifest import Manifest
from harness.reports.document import Section, Text
from harness.reports.formats import render_markdown
from harness.reports.sections import make_document
from harness.reports.sections.method import flatten
from harness.reports.sections.scores import frame_share
from harness.reports.wording import percent
from harness.run.manifest import installed_packages
from harness.store import Run
from harness.store.files import folders
from harness.store.trials import DISCARDED, read_trial

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
_NOT_ASKED = "not known: the run was measured by a harness that did not ask"
_NO_CONF = "not known: no configuration of such a job is stored"
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
        system = _system(evaluation, evaluation.run.read_manifest())
        experiments[name] = complete(system, FIELDS, _NOT_ASKED)
    return {"version": 1, "experiments": experiments}


def undisclosed(system: Mapping[str, Any]) -> list[str]:
    """Dotted names of what a `system_document` has to tell, and does not; also where it is gone."""
    experiments = system.get("experiments") or {"of any": {}}
    whole = {name: complete(known, FIELDS, _MISSING) for name, known in experiments.items()}
    return [
        name
        for name, value in flatten({"experiments": whole})
        if "not known" in str(value) and (value == _MISSING or not _MAY_BE_UNKNOWN.fullmatch(name))
    ]


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
    known = {name: complete(value.get(name), below, unsaid) for name, below in fields.items()}
    return known or unsaid


def _system(evaluation: Evaluation, manifest: Manifest) -> dict[str, Any]:
    stored = manifest.model_dump(mode="json")
    systems = stored["systems"] or {"every node": _NOT_ASKED}
    gpus = stored["gpus_found"]
    versions = stored["versions"] or {}
    copies = ("h2d_bps", "d2h_bps", "rates_missing")
    confs = {label: _conf(evaluation, key) for key, label in evaluation.labels.items()}
    known = [conf for conf in confs.values() if conf]  # none of cells without a trial that is done
    common = set.intersection(*(set(conf.items()) for conf in known)) if known else set()
    return {
        "nodes": {
            node: f"the same as {answer}"
            if str(answer) in systems
            else complete(answer, _NODE, "not known: the node did not say")
            for node, answer in systems.items()
        },
        "client": stored["machine"],
        "gpus": {
            "offered": stored["gpus"] or "none",
            "found": {node: each["devices"] for node, each in gpus.items()} or "none was asked for",
        },
        "clusters": _clusters(evaluation, manifest),
        "jvm": {
            "tasks": {
                kind: _jvm({conf.get(name, "as Hadoop sets them") for conf in known} or {_NO_CONF})
                for kind, name in _OPTIONS.items()
            },
            "daemons": {kind: _jvm({each}) for kind, each in stored["daemon_options"].items()}
            or (stored["systems"] and "not known: not ours"),
        },
        "hadoop": {
            "version": versions.get("hadoop"),
            "jars": versions.get("jars"),
            "on the nodes": stored["nodes"],
            "properties of all jobs": dict(sorted(common)) or _NO_CONF,
            "properties of a cell's jobs": {
                label: dict(sorted(conf.items() - common)) if conf else _NO_CONF
                for label, conf in confs.items()
            },
        },
        "harness": {
            "version": stored["harness"],
            "commit": stored["commit"] or "not known: it did not run from a source tree",
            "python": stored["python"],
            "packages": stored["packages"] or installed_packages(),
            "packages read": "when measured" if stored["packages"] else "when published",
        },
        "measured": {
            "rates": stored["rates"] or "not known: no model asked for rates of disks and memory",
            "limits": stored["limits"] or "not known: nothing was limited on purpose",
            "network": "not known: only the rate of a limited network is measured: `limits`",
            "gpus": {node: {name: each[name] for name in copies} for node, each in gpus.items()}
            or "none was asked for",
        },
    }


def _jvm(several: Collection[str]) -> Any:
    """What the options of JVMs of a kind say of them."""
    options = " | ".join(sorted(several))
    heap = re.search(r"-Xmx(\S+)", options)
    collector = re.search(r"-XX:\+Use(\w+)GC", options)
    known = {"options": options, "heap": heap and heap[1], "collector": collector and collector[1]}
    return complete(known, _JVM, "not known: no option says so, and the JVM chose")


def _clusters(evaluation: Evaluation, manifest: Manifest) -> dict[str, Any]:
    """What the cluster of each cell was; one entry where all are the same."""
    entries = dict[str, Any]()
    for key, cell in evaluation.cells.items():
        spec = cell.cluster
        node = cell.cluster.node
        provider = PROVIDERS.get(spec.provider, ExistingCluster)  # of imported jobs: not ours
        entry: dict[str, Any] = {"hardware": hardware(cell), "block_bytes": block_bytes(spec)}
        entry["replication"] = client_properties(spec).get("dfs.replication", _NO_CONF)
        if provider.sets_site:
            slots = effective(spec, evaluation.resolved[key].configuration)
            tasks = {"map": slots.map_slots, "reduce": slots.reduce_slots}
            offered = {"map": node.map_slots, "reduce": node.reduce_slots}
            cores = sum(watched.cores for watched in manifest.machines.values())
            cores = manifest.machine.get("cores_usable", 0) if provider.on_this_machine else cores
            cores = node.cores * spec.workers if node.cores else cores
            shares = {kind: round(most / cores, 3) for kind, most in tasks.items() if cores}
            entry |= {
                "topology": "a master, and workers that each have a DataNode and a NodeManager",
                "slots offered by a worker": offered,
                "slots effective": tasks,
                "tasks per core": shares or "not known: the cores of the nodes are not recorded",
            }
        unsaid = "not known: the cluster is not ours"
        entries[evaluation.labels[key]] = complete(entry, FIELDS["clusters"]["*"], unsaid)
    first, *others = entries.values()
    return {"all cells": first} if all(other == first for other in others) else entries


def _conf(evaluation: Evaluation, cell: str) -> dict[str, str]:
    """Properties that Hadoop says are not its defaults, of all stored jobs of a cell."""
    known: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    folder = re.compile(rf"run-{evaluation.run.id}-[0-9a-f]{{8}}")
    done = [key for key, record in evaluation.done.items() if record.trial.cell.id == cell]
    for raw in map(evaluation.run.raw, done):
        for name in filter(re.compile(r"job-\d+-conf\.xml").fullmatch, raw.names()):
            with raw.open(name) as file:
                text = folder.sub("CLUSTER", file.read().decode("utf-8", "replace"))
            for key, value, source in _PROPERTY.findall(text):
                if not source.endswith("-default.xml") and key != SEAL:
                    known[unescape(key)][name].add(unescape(value))
    return {
        key: " | ".join(
            dict.fromkeys(
                values.pop() if len(values) == 1 else "(another in each trial)"
                for values in by_job.values()
            )
        )
        for key, by_job in known.items()
    }


def disclosure(runs: Sequence[Run]) -> str:
    """How each run was measured, what was dropped, how far it reaches: `disclosure.md`."""
    texts = []
    for evaluation in map(Evaluation.of, sorted(runs, key=lambda run: run.id)):
        run = evaluation.run
        experiment = evaluation.experiment
        results = evaluation.report_data(with_tasks=False)
        manifest = run.read_manifest()
        attempts = [
            (kind, read_trial(run.opener, folder, folder.name.split("-")[0]))
            for kind in DISCARDED
            for folder in folders(run.path / kind)
        ]
        starts = {trial.job_ids[0].split("_")[1] for trial in results.trials if trial.job_ids}
        is_one_machine = experiment.cluster.provider == "local" or len(manifest.machines) == 1
        own = {
            "Attempts that do not count": [
                *(
                    f"{kind}: trial {each.trial.id}, {each.reason or each.disturbed or each.state}."
                    for kind, each in attempts
                ),
                *(f"Trial {key} was measured by run {by}." for key, by in manifest.reused.items()),
            ]
            or ["None."],
            "Threats to validity": [
                "All nodes are of one machine: they share its processors, memory and disks, and no"
                " packet leaves it."
                if is_one_machine
                else "",
                "Profiling trials come first: slow drift of the machine is not spread over both"
                " uses."
                if experiment.predict.order == "blind"
                else "",
                "All trials ran on one start of a cluster: what differs between starts is in no"
                " floor."
                if len(starts) == 1
                else "",
                f"Of the job times {percent(frame_share(results, '*'))} passes around tasks.",
                *(
                    f"Disturbed: trial {key}, {rule}."
                    for key, rule in results.disturbed_trials.items()
                ),
                "Taken on trust: Hadoop's counters, the nodes' clocks, that no run was left out.",
            ],
            "Inputs and their licences": [
                "Inputs are those of jobs that had run before: nobody knows what is in them."
            ]
            if experiment.was_imported
            else [
                "Inputs are generated, by programs under Apache-2.0; nobody's data are in them.",
                "Those of terasort are made by TeraGen of Hadoop, others by ours, from a seed.",
                *(
                    f"{spec.name}: the user's own {spec.code.class_name}; its licence is not known."
                    for spec in experiment.workloads
                    if spec.code
                ),
            ],
        }
        report = make_document(results)
        sections = [section for section in report.sections if section.id in _PARTS]
        sections += [Section(title, title, [*map(Text, each)]) for title, each in own.items()]
        name = f"{experiment.name} ({run.id})"
        texts.append(render_markdown(replace(report, name=name, sections=sections)))
    return "\n".join(texts)
