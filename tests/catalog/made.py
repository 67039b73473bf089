"""Histories and configurations of past jobs, made from recorded ones."""

import re

from pathlib import Path

from tests.parsing.histories import DATA, JSON

CONF = (DATA / "terasort_conf.xml").read_bytes()
MAPPER = "org.example.Words$Mapper"


def history(number, name="word count", recorded="wordcount", times=1.0):
    """
    The recorded job under another id and name; counters that are *times* as large where they are of
    the maps' output.
    """
    text = re.sub(rb"1795224441974_\d{4}", b"1795224441974_%04d" % number, JSON[recorded])
    text = re.sub(rb'"jobName":"[^"]*"', lambda _: b'"jobName":"%s"' % name.encode(), text)
    return re.sub(
        rb'("name":"MAP_OUTPUT_BYTES","displayName":"[^"]*","value":)(\d+)',
        lambda match: b"%s%d" % (match[1], round(int(match[2]) * times)),
        text,
    )


def configuration(**properties):
    """
    A job configuration of these properties, whose dots are written as two underscores.
    """
    rows = "".join(
        f"<property><name>{name.replace('__', '.')}</name><value>{value}</value></property>\n"
        for name, value in properties.items()
    )
    return f"<configuration>\n{rows}</configuration>\n".encode()


def words(mapper=MAPPER, combiner="org.example.Sum", reducer="org.example.Sum"):
    """
    The configuration of a job with these classes, of the new interface.
    """
    return configuration(
        **{
            "mapred__mapper__new-api": "true",
            "mapred__reducer__new-api": "true",
            "mapreduce__job__map__class": mapper,
            "mapreduce__job__combine__class": combiner,
            "mapreduce__job__reduce__class": reducer,
        },
    )


def put(folder, number, text=None, conf=None, **changes):
    """
    Write a history into a done tree below *folder*, and the configuration beside it.
    """
    job_id = f"job_1795224441974_{number:04d}"
    place = Path(folder, "2026/11/26", f"{number // 1000:06d}")
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{job_id}-1795224567936-root-word+count-1795224600369-3-2-SUCCEEDED.jhist"
    path.write_bytes(history(number, **changes) if text is None else text)
    if conf is not None:
        (place / f"{job_id}_conf.xml").write_bytes(conf)
    return job_id
