"""
Names that are not for the public, and the pseudonym of each: the same in every file of a bundle.

Hosts, users and queues are found where a field, a property or a form that Hadoop writes says that
they are some (`"hostname":`, `user.name`, `name/10.0.0.5`, an owner in a listing), and replaced
wherever they stand.  Addresses (IPv4, IPv6, MAC), mail addresses and absolute paths are found by
their form.  So is none by its look alone: a host that no field ever names is text.

A path is replaced down to the last part that is not everybody's: `/data/acme/nodes/dn7/userlogs`
becomes `/path-1/userlogs`.  Names that say nothing of anybody stay: those that our own clusters
give (`master`, `worker1`, the network 198.18.0.0/15, HDFS below `/harness`), accounts of Hadoop and
of every system (`hadoop`, `hdfs`, `yarn`, `mapred`, `root`, `nobody`), the queues `root` and
`default`, loopback and netmasks, folders of every system (`/usr/lib/jvm`, `/proc`), and names of
one character.  A name that is a word of Hadoop's or ours (a host called `data`) is replaced where
it stands alone, and not where it is a part of a property or a key.
"""

from __future__ import annotations

import html
import ipaddress
import json
import os
import re

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from urllib.parse import quote

from harness.errors import DataError
from harness.publish.contents import KEYS, pieces, is_open, published, rewrite
from harness.records.trial import Cell
from harness.store import Run
from harness.store.opener import Opener
from harness.store.seal import PLAN
from harness.text import excerpt

# Files that name hosts, users and queues, whether they are published or not.
_NAMING = re.compile(r"trace/(job\.json|attempts\.parquet)|raw/job-\d{1,6}-conf\.xml\.gz")

_OURS = re.compile(
    r"master|worker\d*|this machine|localhost(\.localdomain)?|hadoop|hdfs|yarn|mapred|mapreduce"
    r"|harness|root|nobody|nogroup|daemon|users|history|default|java|kernel|true|false|null|none|all"
    r"|(secret|mail)-\d+|_HOST|dr\.who|string|[\d.:*]*|.?|[^A-Za-z0-9]*",
    re.IGNORECASE | re.DOTALL,
)
_FIELDS = {
    "host": re.compile(
        r"(.*[.-])?(hosts?|hostname|(http-|https-|rpc-)?address(es)?|quorum)"
        r"|nodeManagerHost|mapreduce\.job\.submithostname"
        rf"|{KEYS}(rates|gpus_found|machines|nodes|loads|disk_bytes)"
    ),
    "user": re.compile(
        r"user|userName|.*\.(user|user\.name|principal|owner|administrators|acl|acl-.*)"
    ),
    "queue": re.compile(r"queue|jobQueueName|.*\.(queuename|queues)"),
    "path": re.compile(r"key"),
}
# Of a word, and of a text.
_IN_WORDS = {
    "host": re.compile(
        r"(?<![\w.-])([A-Za-z][\w.-]*)/(?=\d{1,3}(?:\.\d{1,3}){3})"
        r"|\b(?:hdfs|viewfs|s?webhdfs|s3[an]?|abfss?|gs|o3?fs)://(?:[^/@]*@)?([A-Za-z][\w.-]*)"
        r"|://(?:[^/@]*@)?([A-Za-z][\w.-]*):\d"
        r"|\braw/containers/([^/]+)/|\braw/(?:speed|machine|processes)-([^/]+)\.(?:txt|jsonl)"
    ),
    "user": re.compile(
        r"(?<![\w./-])/(?:home|Users|user)/([\w.-]+)|\busercache/([\w.-]+)|\b(?:ugi|user)=([\w.-]+)"
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
_PROPERTY = re.compile(
    r"<property>\s*<name>([^<]*)</name>\s*<value>([^<]*)</value>(.*?)</property>", re.DOTALL
)
_WORD, _TOKEN = re.compile("[a-z]+"), re.compile(r"<?[^\s\"'<>,;]+")
_MOST_CHARACTERS = 255  # of a name

# A name begins where no letter or digit is before it, or the escape of a control or of a byte.
_OUR_NETWORKS = [
    ipaddress.ip_network(net)
    for net in ("0.0.0.0/8", "127.0.0.0/8", "198.18.0.0/15", "192.0.2.0/24", "224.0.0.0/3",
                "::/127", "2001:db8::/32")
]  # fmt: skip
_LEFT = r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=%[0-9A-F]{2}))"
_PART = r"[^\s/\"'<>:;,|&(){}\[\]*?$`\\#!]+"
_SCHEMES = r"(?:hdfs|viewfs|s?webhdfs|file|har|s3[an]?|abfss?|wasbs?|gs|ofs|o3fs)"
_PACKAGE = r"(?:-[A-Za-z]+)*\.(?:jar|war|zip|tar|tgz|pom|so)\b"
_FORMS = {
    "mail": r"(?:(?<![\w.+@-])|(?<=\\[bfnrt]))[\w.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}"
    r"[A-Za-z]{2,24}(?![A-Za-z0-9])",
    "uri": rf"{_LEFT}{_SCHEMES}:(?=/)(?://[^\s/\"'<>,;]*)?(?P<below>(?:/+{_PART})*)",
    "path": rf"(?:(?<![\w./<>*)~%\\}}])|(?<=>)|(?<=\\[bfnrt]))(?:/|~[\w.-]*/)(?!/){_PART}(?:/+{_PART})*",
    "mac": rf"{_LEFT}(?<![:-])(?:[0-9A-Fa-f]{{2}}[:-]){{5}}[0-9A-Fa-f]{{2}}(?![A-Za-z0-9:-])",
    "v6": rf"{_LEFT}(?<![:.])(?:[0-9A-Fa-f]{{0,4}}:){{2,7}}[0-9A-Fa-f]{{0,4}}(?![\w:])",
    "v4": rf"{_LEFT}(?<!\d\.)(?:\d{{1,3}}\.){{3}}\d{{1,3}}(?![A-Za-z0-9+]|\.\d|-SNAPSHOT|{_PACKAGE})",
    "dashed": rf"{_LEFT}ip(?:-\d{{1,3}}){{4}}(?![A-Za-z0-9])",
}
_PUBLIC_PATH = re.compile(
    r"/(?:usr/lib/jvm|(?:usr/(?:local/)?)?s?bin|lib(?:64)?|usr/(?:lib|share)|proc|sys|dev|harness"
    r"|default-rack)(?:/[\w.+-]+)*"
)
_PUBLIC_PART = re.compile(
    r"~?|tmp|var|lib|logs?|data|home|opt|srv|mnt|usr|bin|share|conf|etc|local|nodes?|userlogs"
    r"|usercache|appcache|filecache|dfs|name|current|input|output|history|done|intermediate"
    r"|\.?staging|user|hadoop|hdfs|yarn|mapreduce|root|results|clusters|(master|worker)\d*"
    r"|(host|user|path|queue)-\d+|(application|container|appattempt|attempt|job|task)_[\w.-]+"
    r"|part-[mr]-\d+|syslog(\.shuffle)?|std(out|err)|prelaunch\.\w+|gc\.log|job\.\w+|_partition\.lst|jetty-[\w-]+"
    r"|launch_container\.sh|directory\.info|container_tokens|\d{1,5}"
)
_PSEUDONYM = re.compile(r"(host|user|queue)-(\d+)(\.example)?")
_SECRET_NAME = re.compile("TOKEN|KEY|PASSW|SECRET|CREDENTIAL")
_LEAST_SECRET = 6  # characters
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----")


class Pseudonyms:
    """
    The pseudonym of every name in the runs of a bundle: `originals`, by what it stands for.

    `ids` are hashes that follow from such names (of cells that name their hosts), old and new.
    """

    def __init__(self, keep: Collection[str] = ()) -> None:
        """Know no name yet; of the kinds in *keep* (hosts, users, queues, paths) all stay."""
        self.originals: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self._kept = {kind.removesuffix("s") for kind in keep}
        self._kept |= {"v4", "v6", "mac", "dashed"} if "host" in self._kept else set()
        self._noted = defaultdict[str, set[str]](set)
        self._numbers = defaultdict[str, int](int)
        self._versions, self._words = set[str](), set(own_words())
        self._forms: dict[str, str] = {}  # pseudonyms by every form of a name
        self._compile()

    @classmethod
    def of(cls, runs: Sequence[Run], keep: Collection[str] = (), level: str = "raw") -> Pseudonyms:
        """Give a pseudonym to each name in what is published of *runs* at *level*."""
        self, seen = cls(keep), set[tuple[str, str]]()

        def collect(text: str, key: str) -> str:
            if (text, key) not in seen:
                self._collect(text, key)
            if len(text) <= _MOST_CHARACTERS:
                seen.add((text, key))
            return text

        for run in runs:
            names = {*published(run, level), *filter(_NAMING.search, run.opener.names(run.path))}
            for name in sorted(names):
                collect(name, "")
                with suppress(DataError):  # whoever copies the file says what is wrong
                    for data in pieces(run.opener, run.path / name):
                        rewrite(data, collect)
        for kind in ("host", "user", "queue"):
            self._number(kind)
        for variable, value in os.environ.items():
            has_letters = re.search("[A-Za-z]", value) and not value.isalpha()
            if _SECRET_NAME.search(variable.upper()) and has_letters:
                lines = (line.strip() for line in value.splitlines())
                for line in lines:
                    if len(line) >= _LEAST_SECRET:
                        self._named("secret", line)
        self._compile()
        for run in runs:
            for line in run.opener.read(run.path / PLAN, "").decode().splitlines():
                texts = (line, self.data(line.encode()).decode())
                old, new = (Cell.model_validate(json.loads(text)["cell"]) for text in texts)
                pairs = ((old.id, new.id), (old.cluster.id, new.cluster.id))
                self.ids |= {before: after for before, after in pairs if before != after}
        self._compile()
        return self

    def text(self, text: str) -> str:
        """*text* with each name replaced, also as XML, JSON or a URL has it."""
        if self._long.pattern:
            text = self._long.sub(self._replace, text)
        for token in self._new_tokens(text):
            self._tokens[token] = self._pattern.sub(self._replace, token)
        return _TOKEN.sub(lambda token: self._tokens[token[0]], text)

    def change(self, text: str, key: str) -> str:
        """*text* of the field *key* with each name replaced; a key that is a word stays."""
        is_word = key.startswith(KEYS) and text.lower() in self._words
        return text if is_word else self.text(text)

    def data(self, data: bytes) -> bytes:
        """Contents of a file with each name replaced; `DataError`: they cannot be looked into."""
        return rewrite(data, self.change)

    def name(self, path: str) -> str:
        """Name of a file, from the folder of its run, with each name replaced."""
        return "/".join(self.text(part).strip("/").replace("/", "-") for part in path.split("/"))

    def found_in(self, folder: Path) -> Iterator[tuple[str, str]]:
        """Each name, each secret of the environment and each private key in a file of *folder*."""
        opener, found = Opener(folder), set[str]()
        secrets = {
            value: variable
            for variable, value in os.environ.items()
            if _SECRET_NAME.search(variable.upper()) and len(value) >= _LEAST_SECRET
        }

        def look(text: str, _: str) -> str:
            for match in self._literals.finditer(text):
                if match.lastgroup != "word" and match[0] not in self.ids:
                    found.add(f"the name {excerpt(match[0])}")
            found.update(f"the value of {secrets[value]}" for value in secrets if value in text)
            found.update({"a private key"} if _PRIVATE_KEY.search(text) else ())
            return text

        for name in sorted(opener.names(folder)):
            look(name, "")
            for data in pieces(opener, folder / name):
                look(data.decode("utf-8", "surrogateescape"), "")
                if not is_open(data):
                    rewrite(data, look)
            yield from ((name, what) for what in sorted(found))
            found.clear()

    def _collect(self, text: str, key: str) -> None:
        """Note the names in *text* of the field *key*."""
        if key in ("hadoop", "java"):
            self._versions.update(re.findall(r"\d+(?:\.\d+)+", text))
        self._words.update(_WORD.findall(key.lower()))
        for kind, fields in _FIELDS.items():
            if fields.fullmatch(key):
                self._note(kind, text)
        if "<property>" in text:
            for name, value, rest in _PROPERTY.findall(text):
                self._words.update(_WORD.findall(name.lower()))
                if "-default.xml<" not in rest:  # Hadoop's own
                    self._collect(html.unescape(value), name)
            return
        tokens = self._new_tokens(text)
        found = [(kind, each, word) for kind, each in _IN_WORDS.items() for word in tokens]
        for kind, contexts, part in found + [(*each, text) for each in _IN_TEXT.items()]:
            for match in contexts.finditer(part):
                for name in filter(None, match.groups()):
                    self._note(kind, name)
        if key == "command":
            for word in text.split():
                self._note("path", word.rpartition("=")[2])
        self.text(text)  # which numbers what is known by its form

    def _note(self, kind: str, text: str) -> None:
        """Note what is named by *text*, which a field or a context says to be of *kind*."""
        if kind == "path":
            for path in re.split(rf",|^{_SCHEMES}:/*(?=/)", text):
                if "/" in path and "://" not in path:
                    self._path(path.strip(), is_known=True)
            return
        for name in [] if _OURS.fullmatch(text) else re.split(r"[,;\s]+", text):
            names = [name]
            if kind == "host":
                names = [re.sub(r"^\w+://|^[^@]*@|[:/].*$", "", name)]
            elif kind == "user":
                names = re.split("[/@]", name)[:1]
            elif kind == "queue":
                names = name.split(".")
            self._noted[kind].update(
                each for each in names
                if len(each) <= _MOST_CHARACTERS and "$" not in each and not _OURS.fullmatch(each)
            )  # fmt: skip

    def _number(self, kind: str) -> None:
        """Number all names of *kind* in their order, behind those that look like pseudonyms."""
        noted = self._noted[kind]
        taken = {name: int(match[2]) for name in noted if (match := _PSEUDONYM.fullmatch(name))}
        self._numbers[kind] = max(taken.values(), default=0)
        width = len(str(self._numbers[kind] + len(noted)))
        # Of `dn1` and `dn1.example.org` the second is first, and gives the first its number.
        for name in sorted(noted - taken.keys(), key=lambda each: ("." not in each, each)):
            if kind in self._kept or name in self.originals:
                continue
            self._numbers[kind] += 1
            pseudonym = f"{kind}-{self._numbers[kind]:0{width}}"
            first, dot, domain = name.partition(".")
            if dot and kind == "host":
                self.originals[name] = f"{pseudonym}.example"
                self.originals |= {domain: "example"} if "." in domain else {}
                if _OURS.fullmatch(first):
                    continue
                name = first
            self.originals.setdefault(name, pseudonym)

    def _named(self, kind: str, name: str) -> str:
        """Pseudonym of *name*, a new one where it has none."""
        if kind in self._kept or name in self.originals:
            return self.originals.get(name, name)
        self._numbers[kind] += 1
        number = self._numbers[kind]
        addresses = {
            # Those for documentation, and behind them ranges that nobody has.
            "v4": lambda: ipaddress.IPv4Address(
                (0xC0000263 if number < 156 else 0xF0000000) + number
            ),
            "v6": lambda: ipaddress.IPv6Address((0x20010DB8 << 96) + number),
            "mac": lambda: (
                f"00:00:5e:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
            ),
            "mail": lambda: f"mail-{number}@example.org",
            "path": lambda: f"/path-{number}",
        }
        self.originals[name] = str(addresses.get(kind, lambda: f"{kind}-{number}")())
        return self.originals[name]

    def _replace(self, match: re.Match[str]) -> str:
        """What stands in the place of a *match* of the pattern."""
        kind, text = match.lastgroup or "", match[0]
        if kind in ("name", "word"):
            return self._forms[text]
        if kind in ("path", "known"):
            return self._path(text, is_known=kind == "known")
        if kind == "uri":
            below = match["below"] or ""
            start = text.removesuffix(below)
            return self._known_in(start) + (self._path(below) if below else "")
        is_ours = False
        if kind in ("v4", "v6"):
            try:
                address = ipaddress.ip_address(text)
            except ValueError:
                is_ours = True  # a moment, a version
            else:
                is_ours = text in self._versions or any(address in net for net in _OUR_NETWORKS)
        is_ours |= kind == "mail" and text.endswith("@example.org")
        is_ours |= kind == "mac" and text.startswith("00:00:5e:")
        if is_ours or kind in self._kept:
            return self._known_in(text)
        return self._named("host" if kind == "dashed" else kind, text)

    def _path(self, text: str, *, is_known: bool = False) -> str:
        """A path whose parts are replaced down to the last that is not everybody's."""
        parts = text.rstrip(".").split("/")
        private = [at for at, part in enumerate(parts) if not _PUBLIC_PART.fullmatch(part)]
        is_short = len(parts) < 3 and text[0] == "/" and not is_known
        if not private or is_short or _PUBLIC_PATH.fullmatch(text) or "path" in self._kept:
            return self._known_in(text)
        head = "/".join(parts[: private[-1] + 1])
        return self._named("path", head) + self._known_in(text[len(head) :])

    def _new_tokens(self, text: str) -> list[str]:
        return [each for each in dict.fromkeys(_TOKEN.findall(text)) if each not in self._tokens]

    def _known_in(self, text: str) -> str:
        return self._literals.sub(self._replace, text)

    def _compile(self) -> None:
        """Make the patterns of all that is known: of its own forms, and with those of addresses."""
        groups = defaultdict[str, set[str]](set)
        for name, pseudonym in chain(self.originals.items(), self.ids.items()):
            escaped = {
                name,
                html.escape(name),
                json.dumps(name)[1:-1],
                quote(name),
                quote(name, ""),
            }
            if pseudonym.startswith("host-"):
                escaped |= {name.lower(), name.upper()}
            is_word = name.isalpha() and (len(name) < 4 or name.lower() in self._words)
            kind = "known" if pseudonym.startswith("/path-") else "word" if is_word else "name"
            for form in escaped:
                self._forms.setdefault(form, pseudonym)
                groups[kind].add(form)
        known = {kind: any_of(forms) for kind, forms in groups.items()}
        literals = [
            rf"(?P<known>(?:(?=/)|{_LEFT})(?:{known.get('known', '(?!)')})(?![A-Za-z0-9-])(?:/+{_PART})*)",
            rf"(?P<name>{_LEFT}(?:{known.get('name', '(?!)')})(?![A-Za-z0-9]))",
            rf"(?P<word>(?<![\w.$-])(?:{known.get('word', '(?!)')})(?![\w$-]|\.\w|\"\s*:))",
        ]
        self._literals = re.compile("|".join(literals))
        self._tokens = dict[str, str]()  # words that were looked at, and what became of them
        long = {form for forms in groups.values() for form in forms if not _TOKEN.fullmatch(form)}
        self._long = re.compile(f"(?P<name>{any_of(long)})" if long else "")
        forms = {kind: f"(?P<{kind}>{form})" for kind, form in _FORMS.items()}
        first = [forms.pop(kind) for kind in ("mail", "uri", "path")]
        self._pattern = re.compile("|".join([*first, *literals, *forms.values()]))


def any_of(texts: Collection[str], depth: int = 4) -> str:
    """A pattern of all *texts*, longer ones first; it branches by their first *depth* characters."""
    longest_first = sorted(texts, key=lambda text: (-len(text), text))
    if depth == 0 or len(longest_first) < 2 or "" in texts:
        return "|".join(map(re.escape, longest_first))
    groups = groupby(sorted(texts), key=itemgetter(0))
    branches = [(first, {text[1:] for text in group}) for first, group in groups]
    return "|".join(
        f"{re.escape(first)}(?:{any_of(rests, depth - 1)})" for first, rests in branches
    )


@cache
def own_words() -> frozenset[str]:
    """Words of this program, which it may write without having them from a run."""
    sources = Path(__file__).parents[1].rglob("*.py")
    return frozenset(
        chain.from_iterable(_WORD.findall(path.read_text().lower()) for path in sources)
    )
