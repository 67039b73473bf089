"""
Names that are not for the public, and the pseudonym of each: the same in every file of a bundle.

Hosts, users and queues are known by a field, a property or a form in which Hadoop writes them
(`"hostname":`, `user.name`, `name/10.0.0.5`, an owner in a listing), and replaced wherever they
stand; a host that none of these names is text.  Addresses (IPv4, IPv6, MAC, mail) and absolute
paths are known by their form; an end of a path that is everybody's stays: `/data/acme/dn7/userlogs`
is `/path-1/userlogs`.

Names that say nothing of anybody stay: those that our own clusters give (`master`, `worker1`, the
network 198.18.0.0/15, HDFS below `/harness`), accounts of Hadoop and of every system (`hadoop`,
`hdfs`, `yarn`, `mapred`, `root`, `nobody`), the queues `root` and `default`, loopback and netmasks,
folders of every system (`/usr/lib/jvm`, `/proc`), and names of one character.  A name that is a
word of Hadoop's or of this program (a host called `data`) is replaced where it stands alone, but
in no property, class or key.
"""

from __future__ import annotations

import html
import ipaddress
import json
import os
import re

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from harness.base.errors import DataError
from harness.base.records.trial import Cell
from harness.base.text import excerpt
from harness.core.store import Run
from harness.core.store.seal import PLAN
from harness.observe.storage.opener import Opener
from harness.pseudonyms.contents import KEYS, is_open, pieces, published, rewrite
from harness.pseudonyms.forms import conceal, encoded, secrets_in

# Files that name hosts, users and queues, whether they are published or not.
_NAMING = re.compile(r"trace/(job\.json|attempts\.parquet)|raw/job-\d{1,6}-conf\.xml\.gz")
_PROPERTY = re.compile(
    r"<property>\s*<name>([^<]*)</name>\s*<value>([^<]*)</value>(.*?)</property>", re.DOTALL
)
_SECRET_NAME = re.compile("TOKEN|KEY|PASSW|SECRET|CREDENTIAL")
_LEAST_SECRET = 6
_LEAST_WITHIN = 6  # characters of a user's name that is found within other words
_MOST_NAME = 255
_MOST_WORDS = 10**6  # characters; words that are remembered
_MOST_FOOTER = 2**20  # bytes of a table that are not packed

_COMMON = re.compile(
    r"master|worker\d*|this machine|localhost(\.localdomain)?|hadoop|hdfs|yarn|mapred|mapreduce"
    r"|harness|root|nobody|nogroup|daemon|users|history|default|java|kernel|true|false|null|none|all"
    r"|(host|user|queue|secret)-\d+(\.example)?|_HOST|dr\.who|[\d.:*]*|.?|[^A-Za-z0-9]*|.*\$.*",
    re.IGNORECASE | re.DOTALL,
)
_COMMON_NETWORKS = [
    ipaddress.ip_network(net)
    for net in ("0.0.0.0/8", "127.0.0.0/8", "198.18.0.0/15", "192.0.2.0/24", "224.0.0.0/3",
                "::/127", "2001:db8::/32")
]  # fmt: skip
_PUBLIC_PATH = re.compile(
    r"/(usr/lib/jvm|(usr/(local/)?)?s?bin|lib(64)?|usr/(lib|share)|proc|sys|dev|harness"
    r"|default-rack)(/[\w.+-]+)*"
)
_PUBLIC_PART = re.compile(
    r"~?|tmp|var|lib|logs?|data|home|opt|srv|mnt|usr|bin|share|conf|etc|local|nodes?|userlogs"
    r"|usercache|appcache|filecache|dfs|name|current|input|output|history|done|intermediate"
    r"|\.?staging|user|hadoop|hdfs|yarn|mapreduce|root|results|clusters|(master|worker)\d*"
    r"|(host|user|path|queue)-\d+|(application|container|appattempt|attempt|job|task)_[\w.+%-]+"
    r"|part-[mr]-\d+|syslog(\.shuffle)?|std(out|err)|prelaunch\.\w+|gc\.log|job\.\w+"
    r"|_partition\.lst|jetty-[\w-]+|webapps?|launch_container\.sh|directory\.info|\d{1,5}"
)

# Kinds of names: by the field of a text, in a word of it, and in all of it.
_FIELDS = {
    "host": re.compile(
        r"(.*[.-])?(hosts?|hostname|(http-|https-|rpc-)?address(es)?|quorum)|nodeManagerHost"
        rf"|.*submithostname|{KEYS}(rates|gpus_found|machines|nodes|loads|disk_bytes)"
    ),
    "user": re.compile(r"user|userName|.*\.(user|user\.name|principal|administrators|acl(-.*)?)"),
    "queue": re.compile(r"queue|jobQueueName|.*\.(queuename|queues)"),
    "path": re.compile(r"key|.*[.-](dirs?|path|keytab)"),
}
_IN_WORDS = {
    "host": re.compile(
        r"(?<![\w.-])([A-Za-z][\w.-]*)/(?=\d{1,3}(?:\.\d{1,3}){3})"
        r"|\b(?:hdfs|viewfs|s?webhdfs|s3[an]?|abfss?|gs|o3?fs)://(?:[^/@]*@)?([A-Za-z][\w.-]*)"
        r"|://(?:[^/@]*@)?([A-Za-z][\w.-]*):\d"
        r"|(?<![\w.-])(ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?:\.[\w.-]+)?)"
        r"|\braw/containers/([^/]+)/|\braw/(?:speed|machine|processes)-([^/]+)\.(?:txt|jsonl)"
    ),
    "user": re.compile(
        r"(?<![\w./-])/(?:home|Users|user)/([\w.-]+)|\busercache/([\w.-]+)"
        r"|\b(?:ugi|user)=([\w.-]+)"
    ),
    "queue": re.compile(r"\bqueue(?:Name)?=(root\.[\w.-]+)"),
}
_IN_TEXT = {
    "host": re.compile(r"NM_HOST=\"([\w.-]+)"),
    "user": re.compile(
        r"(?:USER|LOGNAME)=\"([\w.-]+)|user\.name[:=]\s?([\w.-]+)"
        r"|[bcdlps-](?<!\S.)(?:[r-][w-][xsStT-]){3}[.+@]?\s+\d+\s+([^\s/]+)\s+([^\s/]+)\s+\d"
    ),
}
# The names in one entry of a list of names of a kind.
_NAMES_IN_ENTRY: dict[str, Callable[[str], list[str]]] = {
    "host": lambda entry: [re.sub(r"^\w+://|^[^@]*@|[:/].*$", "", entry)],
    "user": lambda entry: re.split("[/@]", entry)[:1],
    "queue": lambda entry: entry.split("."),
}
_RATE = re.compile(r"[\d.]*[kKMGT]?i?(B|bit)/s\W*")
_LETTERS = re.compile("[a-z]+")
_WORD = re.compile(r"<?[^\s\"'<>,;]+(?:\"\s*:)?")

# A name begins where no letter or digit is before it, or the escape of a control or of a byte.
_LEFT = r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=%[0-9A-F]{2}))"
_PART = r"[^\s/\"'<>:;,|&(){}\[\]*?$`\\#!]+"
_BELOW = rf"(?:/+{_PART})*"
_MAIL_AND_PATHS = (
    r"(?P<mail>(?:(?<![\w.+@-])|(?<=\\[bfnrt]))[\w.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}"
    r"[A-Za-z]{2,24}(?![A-Za-z0-9]))"
    rf"|(?P<uri>{_LEFT}(?:hdfs|viewfs|s?webhdfs|file|har|s3[an]?|abfss?|wasbs?|gs|ofs|o3fs):(?=/)"
    rf"(?://[^\s/\"'<>,;]*)?)(?P<below>{_BELOW})"
    r"|(?P<path>(?:(?<![\w./<>*)~%\\}])|(?<=>)|(?<=\\[bfnrt]))(?:/|~[\w.-]*/)(?!/)"
    rf"{_PART}{_BELOW})"
)
_ADDRESSES = (
    rf"(?P<mac>{_LEFT}(?<![:-])(?:[0-9A-Fa-f]{{2}}[:-]){{5}}[0-9A-Fa-f]{{2}}(?![A-Za-z0-9:-]))"
    rf"|(?P<v6>{_LEFT}(?<![:.])(?:[0-9A-Fa-f]{{0,4}}:){{2,7}}[0-9A-Fa-f]{{0,4}}(?![\w:]|\.\d))"
    # Four numbers are a version in the name of a package.
    rf"|(?P<v4>{_LEFT}(?<!\d\.)(?:\d{{1,3}}\.){{3}}\d{{1,3}}(?![A-Za-z0-9+]|\.\d|-SNAPSHOT"
    r"|(?:-[A-Za-z]+)*\.(?:jar|war|zip|tar|tgz|pom|so)\b))"
)


class _Patterns(NamedTuple):
    """
    Patterns of all names that have a pseudonym, and the pseudonym of each form of such a name.

    *names* finds hosts, users, queues and so on, *names_and_paths* paths, too; *words* also finds
    what is known by its form alone (addresses, paths); *spaced* finds forms that are no one word
    (`None`: there are none).
    """

    pseudonyms: dict[str, str]
    names: re.Pattern[str]
    names_and_paths: re.Pattern[str]
    words: re.Pattern[str]
    spaced: re.Pattern[str] | None


def _compile_patterns(
    pseudonyms: Iterable[tuple[str, str]], vocabulary: Collection[str]
) -> _Patterns:
    """Make the patterns of names with *pseudonyms*; a name of the *vocabulary* must stand alone."""
    pseudonym_by_form = dict[str, str]()
    forms_by_kind = defaultdict[str, set[str]](set)
    for name, pseudonym in pseudonyms:
        kind = "name"
        if pseudonym.startswith("/path-"):
            kind = "known"
        elif name.isalpha() and (len(name) < 4 or name.lower() in vocabulary):
            kind = "word"
        for form in written_forms(name, is_of_any_case=pseudonym.startswith(("host-", "user-"))):
            pseudonym_by_form.setdefault(form, pseudonym)
            forms_by_kind[kind if _WORD.fullmatch(form) else "spaced"].add(form)
        for form in coded_forms(name, pseudonym):
            pseudonym_by_form.setdefault(form, pseudonym)
            forms_by_kind["code"].add(form)
    patterns = {kind: pattern_of(forms) for kind, forms in forms_by_kind.items()}
    nothing = "(?!)"
    paths = (
        rf"(?P<known>(?:(?=/)|{_LEFT})(?:{patterns.get('known', nothing)})"
        rf"(?![A-Za-z0-9-]){_BELOW})"
    )
    names = (
        rf"(?P<name>{_LEFT}(?:{patterns.get('name', nothing)})(?![A-Za-z0-9]))"
        rf"|(?P<word>(?<![\w.$-])(?:{patterns.get('word', nothing)})(?![\w$-]|\.\w|\"\s*:))"
        rf"|(?P<code>{patterns.get('code', nothing)})"
    )
    spaced = patterns.get("spaced")
    return _Patterns(
        pseudonyms=pseudonym_by_form,
        names=re.compile(names),
        names_and_paths=re.compile(f"{paths}|{names}"),
        # Mail addresses and paths have names in them, and names may have an address.
        words=re.compile(f"{_MAIL_AND_PATHS}|{paths}|{names}|{_ADDRESSES}"),
        spaced=re.compile(f"(?P<name>{spaced})") if spaced else None,
    )


def written_forms(name: str, *, is_of_any_case: bool) -> set[str]:
    """*name* as it stands in text, XML, JSON and URLs; names of hosts and users in any one case."""
    forms = {name, html.escape(name), json.dumps(name)[1:-1], quote(name), quote(name, "")}
    return forms | {name.lower(), name.upper(), name.capitalize()} if is_of_any_case else forms


def coded_forms(name: str, pseudonym: str) -> set[str]:
    """
    *name* as it stands in other codes, and of a user also within other words: found anywhere.

    An address is eight hexadecimal digits, of which programs and `/proc/net` have two orders; as
    one number it could be any count of bytes, so that stays.
    """
    if pseudonym.startswith("user-") and len(name) >= _LEAST_WITHIN and re.search(r"\d", name):
        return {name, name.upper(), *encoded(name)}
    if pseudonym.startswith(("host-", "user-")):
        return {*encoded(name)}
    if re.fullmatch(r"(\d{1,3}\.){3}\d{1,3}", name):
        packed = ipaddress.IPv4Address(name).packed
        digits = {packed.hex(), packed[::-1].hex()}
        return {
            form
            for digit_text in digits
            for form in (digit_text, digit_text.upper())
            if re.search("[a-f]", digit_text) and digit_text not in ("0" * 8, "f" * 8)
        }
    return set()


class Pseudonyms:
    """
    The pseudonym of every name in the runs of a bundle: `originals`, by what it stands for.

    `ids` are hashes that follow from such names (of cells that name their hosts), old and new.
    Names are first collected from all files, by kind; then hosts, users and queues are numbered in
    their order, so that the pseudonyms do not depend on the order of the files.
    """

    def __init__(self, keep: Collection[str] = ()) -> None:
        """Know no name yet; of the kinds in *keep* (hosts, users, queues, paths) all stay."""
        self.originals: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self._kept_kinds = {kind.removesuffix("s") for kind in keep}
        if "host" in self._kept_kinds:
            self._kept_kinds |= {"v4", "v6", "mac"}
        self._collected_names = defaultdict[str, set[str]](set)
        self._last_numbers = defaultdict[str, int](int)
        self._versions = set[str]()
        self._disclosed = set[str]()
        self._vocabulary = set(own_words())
        self.secrets_by_form = set[str]()
        self._collect_from_word = lru_cache(_MOST_WORDS)(partial(self._collect_matches, _IN_WORDS))
        self._compile()

    @classmethod
    def of(cls, runs: Sequence[Run], keep: Collection[str] = (), level: str = "raw") -> Pseudonyms:
        """Give a pseudonym to each name in what is published of *runs* at *level*."""
        self = cls(keep)
        for run in runs:
            self._collect_from_run(run, level)
        self._number_names()
        self._disclosed = {text for run in runs for text in disclosed_texts(run)}
        for value in self._environment_secrets():
            # What is a short word may be anything: it is searched for, and not replaced.
            if not value.isalnum() or len(value) > 2 * _LEAST_SECRET:
                self._pseudonym_of("secret", value)
        self._compile()
        for run in runs:
            for line in run.opener.read(run.path / PLAN, "").splitlines():
                old = Cell.model_validate(json.loads(line)["cell"])
                new = Cell.model_validate(json.loads(self.data(line))["cell"])
                pairs = ((old.id, new.id), (old.cluster.id, new.cluster.id))
                self.ids |= {before: after for before, after in pairs if before != after}
        self._compile()
        return self

    @classmethod
    def of_files(cls, files: Iterable[bytes], job_names: Mapping[str, str]) -> Pseudonyms:
        """Give a pseudonym to each name in *files*; *job_names* are those of the names of jobs."""
        self = cls()
        for data in files:
            rewrite(data, self._collect)
        self._number_names()
        self.originals |= {name: job_names[name] for name in job_names if name.strip()}
        self._compile()
        return self

    def text(self, text: str) -> str:
        """*text* with each name and secret replaced, also as XML, JSON or a URL has it."""
        text = conceal(text, self._conceal)
        if self._patterns.spaced is not None:
            text = self._patterns.spaced.sub(self._replacement, text)
        return _WORD.sub(lambda match: self._replace_in_word(match[0]), text)

    def change(self, text: str, key: str) -> str:
        """*text* of the field *key* with each name replaced; a key that is a word stays."""
        is_word = key.startswith(KEYS) and text.lower() in self._vocabulary
        return text if is_word else self.text(text)

    def data(self, data: bytes) -> bytes:
        """Contents of a file with each name replaced; `DataError`: they cannot be looked into."""
        return rewrite(data, self.change)

    def file_name(self, path: str) -> str:
        """Name of a file, from the folder of its run, with each name replaced."""
        return "/".join(self.text(part).strip("/").replace("/", "-") for part in path.split("/"))

    def found_in(self, folder: Path) -> Iterator[tuple[str, str]]:
        """Each name, each secret of the environment and each private key in a file of *folder*."""
        opener = Opener(folder)
        remains = set[str]()
        secrets = self._environment_secrets()

        def search(text: str, _: str) -> str:
            remains.update(self._private_parts(text, secrets))
            return text

        for name in sorted(opener.names(folder)):
            search(name, "")
            for data in pieces(opener, folder / name):
                plain = data
                if not is_open(data):
                    rewrite(data, search)
                    plain = data[-_MOST_FOOTER:]
                search(plain.decode("utf-8", "surrogateescape"), "")
            yield from ((name, what) for what in sorted(remains))
            remains.clear()

    def _environment_secrets(self) -> dict[str, str]:
        """Secrets of the environment; not what a run has to tell, such as the kernel's version."""
        secrets = environment_secrets()
        return {value: name for value, name in secrets.items() if value not in self._disclosed}

    def _private_parts(self, text: str, secrets: Mapping[str, str]) -> Iterator[str]:
        """What of *text* is not for the public, in words; *secrets* are variables by values."""
        for match in self._patterns.names_and_paths.finditer(text):
            if match.lastgroup != "word" and match[0] not in self.ids:
                yield f"the name {excerpt(match[0])}"
        for value, variable in secrets.items():
            if any(form in text for form in (value, *encoded(value))):
                yield f"the value of {variable}"
        for number, kind in secrets_in(text):
            yield f"line {number}: {kind}"

    def _collect_from_run(self, run: Run, level: str) -> None:
        """Collect the names in what is published of *run* at *level*, and in what names hosts."""
        names = {*published(run, level), *filter(_NAMING.search, run.opener.names(run.path))}
        for name in sorted(names):
            self._collect(name, "")
            with suppress(DataError):  # whoever copies the file says what is wrong
                for data in pieces(run.opener, run.path / name):
                    rewrite(data, self._collect)

    def _collect(self, text: str, key: str) -> str:
        """Collect the names in *text* of the field *key*; give it as it is."""
        self._vocabulary.update(_LETTERS.findall(key.lower()))
        for kind in kinds_of(key):
            self._collect_names(kind, text)
        if key in ("hadoop", "java"):
            self._versions.update(re.findall(r"\d+(?:\.\d+)+", text))
        elif key == "command":
            for word in text.split():
                if not _RATE.fullmatch(value := word.rpartition("=")[2]):  # `10 MiB/s`
                    self._collect_names("path", value)
        if "<property>" in text:
            for name, value, source in _PROPERTY.findall(text):
                self._vocabulary.update(_LETTERS.findall(name.lower()))
                if "-default.xml<" not in source:  # Hadoop's own
                    self._collect(html.unescape(value), name)
            return text
        for word in _WORD.findall(text):
            self._collect_from_word(word)
        self._collect_matches(_IN_TEXT, text)
        self.text(text)  # which numbers what is known by its form
        return text

    def _collect_matches(self, patterns: Mapping[str, re.Pattern[str]], text: str) -> None:
        """Collect the names that *patterns*, by kind, find in *text*."""
        for kind, pattern in patterns.items():
            for match in pattern.finditer(text):
                for name in filter(None, match.groups()):
                    self._collect_names(kind, name)

    def _collect_names(self, kind: str, text: str) -> None:
        """Collect what is named by *text*, which a field or a context says to be of *kind*."""
        if kind == "path":
            for path in map(str.strip, text.split(",")):
                if "/" in path and ":" not in path:
                    self._replace_path(path, is_known=True)  # which gives it a number
            return
        if _COMMON.fullmatch(text):
            return
        for entry in re.split(r"[,;\s]+", text):
            for name in _NAMES_IN_ENTRY[kind](entry):
                if len(name) <= _MOST_NAME and not _COMMON.fullmatch(name):
                    self._collected_names[kind].add(name)

    def _number_names(self) -> None:
        """Give all collected hosts, users and queues their numbers, in the order of their names."""
        for kind in ("host", "user", "queue"):
            if kind in self._kept_kinds:
                continue
            names = self._collected_names[kind]
            width = len(str(len(names)))
            number = 0
            # `dn1.example.org` is before `dn1`, and gives it its number.
            for name in sorted(names, key=lambda name: ("." not in name, name)):
                if name in self.originals:
                    continue
                number += 1
                pseudonym = f"{kind}-{number:0{width}}"
                first = name
                if kind == "host" and "." in name:
                    first, _, domain = name.partition(".")
                    self.originals[name] = f"{pseudonym}.example"
                    if "." in domain:
                        self.originals[domain] = "example"
                if not _COMMON.fullmatch(first):
                    self.originals.setdefault(first, pseudonym)

    def _conceal(self, secret: str) -> str:
        """The pseudonym of a *secret* that is known by its form."""
        self.secrets_by_form.add(secret)
        return self._pseudonym_of("secret", secret)

    def _pseudonym_of(self, kind: str, name: str) -> str:
        """Pseudonym of *name*, one with the next number of its *kind* where it has none."""
        if kind in self._kept_kinds:
            return name
        if name not in self.originals:
            self._last_numbers[kind] += 1
            number = self._last_numbers[kind]
            high, low = divmod(number, 256)
            forms = {
                "v4": f"240.0.{high}.{low}" if high else f"192.0.2.{low}",
                "v6": f"2001:db8::{number:x}",
                "mac": f"00:00:5e:00:{high:02x}:{low:02x}",
                "mail": f"mail-{number}@example.org",
                "path": f"/path-{number}",
            }
            self.originals[name] = forms.get(kind, f"{kind}-{number}")
        return self.originals[name]

    def _replacement(self, match: re.Match[str]) -> str:
        """What stands in the place of a *match* of the patterns."""
        text = match[0]
        kind = match.lastgroup or ""
        if kind in ("name", "word", "code"):
            return self._patterns.pseudonyms[text]
        if kind in ("path", "known"):
            return self._replace_path(text, is_known=kind == "known")
        if kind == "below":
            below = self._replace_path(match["below"], is_known=True)
            return self._replace_known(match["uri"]) + below
        is_common = text.startswith("00:00:5e:") or text.endswith("@example.org")
        if kind in ("v4", "v6"):
            is_common = self._is_common_address(text)
        return self._replace_known(text) if is_common else self._pseudonym_of(kind, text)

    def _replace_known(self, text: str) -> str:
        """*text* with the names and paths replaced that have a pseudonym already."""
        return self._patterns.names_and_paths.sub(self._replacement, text)

    def _is_common_address(self, text: str) -> bool:
        """Whether what looks like an address is everybody's, or none: a moment, a version."""
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return True
        return text in self._versions or any(address in network for network in _COMMON_NETWORKS)

    def _replace_path(self, text: str, *, is_known: bool = False) -> str:
        """A path whose parts are replaced down to the last that is not everybody's."""
        parts = text.rstrip(".").split("/")
        private = [place for place, part in enumerate(parts) if not _PUBLIC_PART.fullmatch(part)]
        is_short = len(parts) < 3 and text[:1] == "/" and not is_known
        replace_names = partial(self._patterns.names.sub, self._replacement)
        if not private or is_short or _PUBLIC_PATH.fullmatch(text) or "path" in self._kept_kinds:
            return replace_names(text)
        head = "/".join(parts[: private[-1] + 1])
        return self._pseudonym_of("path", head) + replace_names(text[len(head) :])

    def _compile(self) -> None:
        """Make the patterns of all names that have a pseudonym now; forget what words became."""
        pseudonyms = chain(self.originals.items(), self.ids.items())
        self._patterns = _compile_patterns(pseudonyms, self._vocabulary)
        replace = partial(self._patterns.words.sub, self._replacement)
        self._replace_in_word = lru_cache(_MOST_WORDS)(replace)


def pattern_of(texts: Collection[str], depth: int = 4) -> str:
    """Give a pattern of any of *texts*, longer ones first, in branches by their first letters."""
    longest_first = sorted(texts, key=lambda text: (-len(text), text))
    if depth == 0 or len(longest_first) < 2 or "" in texts:
        return "|".join(map(re.escape, longest_first))
    branches = list[str]()
    for letter, branch in groupby(sorted(texts), key=itemgetter(0)):
        rests = pattern_of({text[1:] for text in branch}, depth - 1)
        branches.append(f"{re.escape(letter)}(?:{rests})")
    return "|".join(branches)


def disclosed_texts(run: Run) -> Iterator[str]:
    """Texts of *run* that a bundle has to tell: what its machines and its programs are."""
    manifest = run.read_manifest()
    left: list[Any] = [manifest.machine, manifest.systems, manifest.nodes, manifest.python]
    if manifest.versions is not None:
        left.append(manifest.versions.model_dump())
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list | tuple):
            left += value
        elif isinstance(value, str):
            yield value


def environment_secrets() -> dict[str, str]:
    """Variables that hold a secret by their names, by each line of their values but plain words."""
    secrets = dict[str, str]()
    for variable, value in os.environ.items():
        if not _SECRET_NAME.search(variable.upper()):
            continue
        for line in map(str.strip, value.splitlines()):
            if len(line) >= _LEAST_SECRET and line not in own_words():
                secrets[line] = variable
    return secrets


@cache
def kinds_of(key: str) -> list[str]:
    """Kinds of names that a field of the name *key* holds."""
    return [kind for kind, fields in _FIELDS.items() if fields.fullmatch(key)]


@cache
def own_words() -> frozenset[str]:
    """Words of this program, which it may write without having them from a run."""
    sources = (path.read_text() for path in Path(__file__).parents[1].rglob("*.py"))
    return frozenset(chain.from_iterable(_LETTERS.findall(source.lower()) for source in sources))
