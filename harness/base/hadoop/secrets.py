"""
Values of a configuration that are secret: which they are, and the digest that stands for each.

The digest is keyed: equal values have equal digests, so that trials are known again, and whoever
lacks the key, which no result holds, cannot try out passwords.
"""

from __future__ import annotations

import hmac
import json
import re

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from secrets import token_bytes
from xml.sax.saxutils import escape, unescape

from harness.base.errors import SpecError
from harness.base.text import excerpt

SENSITIVE_KEYS = "hadoop.security.sensitive-config-keys"
# Everybody who sees a cluster sees these of its jobs.
PUBLIC = frozenset({"mapreduce.job.name", "mapred.job.name", "mapreduce.job.tags"})
# The default of `SENSITIVE_KEYS` in Hadoop 3.5.0, but for that name itself, which is no secret.
HADOOPS_LIST = r"""
secret$ password$ ssl.keystore.pass$
fs.s3a.server-side-encryption.key fs.s3a.*.server-side-encryption.key
fs.s3a.encryption.algorithm fs.s3a.encryption.key fs.s3a.encryption.context
fs.s3a.secret.key fs.s3a.*.secret.key fs.s3a.session.key fs.s3a.*.session.key
fs.s3a.session.token fs.s3a.*.session.token fs.azure.account.key.* fs.azure.oauth2.*
fs.adl.oauth2.* fs.gs.encryption.* fs.gs.proxy.* fs.gs.auth.*
credential$ oauth.*secret oauth.*password oauth.*token
"""
DIGEST = re.compile(r"secret:[0-9a-f]{16}")
LEAST_SEARCHED = 6  # characters: what is shorter stands in any log, and would be replaced there
_REFERENCE = re.compile(r"\$\{(env|file):([^}]+)\}")
_PROPERTY = re.compile(
    rb"(<name>([^<]*)</name>\s*<value>)([^<]+)(</value>.*?</property>)", re.DOTALL
)
_URL_ESCAPED = re.compile(rb"[^\w.~-]")
_DEFAULT = b"-default.xml</source>"  # Hadoop's own defaults are no secrets


class Secrets:
    """
    The secrets that this process knows, by their digests.

    *find_key* gives the key of the digests, *read* the text of a reference by its kind (``env``,
    ``file``) and name, or `SpecError`; both are called where there is a need.
    """

    def __init__(self) -> None:
        self.find_key: Callable[[], bytes] = lambda: token_bytes(32)
        self.read: Callable[[str, str], str] = lambda kind, name: f"${{{kind}:{name}}}"
        self._key = b""
        self._values: dict[str, str] = {}
        self._sensitive = [re.compile(key) for key in HADOOPS_LIST.split()]
        self._searched: tuple[re.Pattern[bytes], dict[bytes, bytes], int] | None = None

    def add_keys(self, listed: str) -> None:
        """Count the keys of a list like that of `SENSITIVE_KEYS` as sensitive, too."""
        for key in filter(None, re.split(r"[,\s]+", listed)):
            try:
                self._sensitive.append(re.compile(key))
            except re.error as error:
                what = f"{SENSITIVE_KEYS}: '{excerpt(key)}' is no regular expression: {error}"
                raise SpecError(what, fix="write names of properties, with commas") from error

    def is_sensitive(self, property_name: str) -> bool:
        """Whether the value of a property is secret by its name."""
        is_listed = any(key.search(property_name) for key in self._sensitive)
        return is_listed and property_name != SENSITIVE_KEYS

    def resolve(self, text: str) -> str:
        """*text* with what its references stand for, which is secret from now on."""

        def read(match: re.Match[str]) -> str:
            value = self.read(match[1], match[2])
            self.hide(value)
            return value

        return _REFERENCE.sub(read, text)

    def hide(self, value: str) -> str:
        """The digest of *value*, which is secret from now on."""
        self._key = self._key or self.find_key()
        data = value.encode("utf-8", "surrogatepass")
        digest = f"secret:{hmac.digest(self._key, data, 'sha256').hex()[:16]}"
        if digest not in self._values:
            self._values[digest] = value
            self._searched = None
        return digest

    def conceal(self, property_name: str, value: str) -> str:
        """*value* of a property, or its digest where it is secret."""
        is_plain = not value.strip() or DIGEST.search(value) or not self.is_sensitive(property_name)
        return value if is_plain else self.hide(value)

    def conceal_all(self, properties: Mapping[str, str]) -> dict[str, str]:
        """*properties* with digests, also of what their own list of sensitive keys names."""
        self.add_keys(properties.get(SENSITIVE_KEYS, ""))
        return {name: self.conceal(name, value) for name, value in properties.items()}

    def clean_override(self, override: str) -> str:
        """``KEY=VALUE`` with digests."""
        key, equals, text = override.partition("=")
        name = key.strip().removeprefix("configuration.").removeprefix("cluster.site.")
        return self.clean(f"{key}{equals}{self.conceal(name, text.strip())}")

    def reveal(self, text: str) -> str:
        """*text* with values in the place of digests; `SpecError` for one that is unknown here."""

        def value_of(match: re.Match[str]) -> str:
            if match[0] in self._values:
                return self._values[match[0]]
            what = f"{match[0]} stands for a value that results do not hold"
            fix = "write the value, or ${env:NAME} or ${file:PATH}"
            raise SpecError(what, where="configuration, cluster.site", fix=fix)

        return DIGEST.sub(value_of, text)

    def clean(self, text: str) -> str:
        """*text* with digests in the place of values."""
        data = text.encode("utf-8", "surrogatepass")
        return b"".join(self.filter([data])).decode("utf-8", "surrogatepass")

    def filter(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Bytes of a log with digests in the place of values, wherever the log is cut."""
        pattern, digests, longest = self._find_searched()
        if not digests:
            yield from chunks
            return
        kept = b""
        start = 0  # what may hold the beginning of a value, and one byte before it
        for chunk in chain(chunks, [None]):
            kept += chunk or b""
            end = len(kept) if chunk is None else max(start, len(kept) - longest - 2)
            pieces = []
            at = start
            for match in pattern.finditer(kept, start):
                if match.start() >= end:
                    break
                pieces += [kept[at : match.start()], digests[match[0]]]
                at = match.end()
            end = max(end, at)
            yield b"".join([*pieces, kept[at:end]])
            kept = kept[max(end - 1, 0) :]
            start = min(end, 1)

    def clean_conf(self, xml: bytes) -> bytes:
        """A ``job.xml`` with digests: of sensitive properties, and of all values known here."""

        def conceal(match: re.Match[bytes]) -> bytes:
            if _DEFAULT in match[4]:
                return match[0]
            name = unescape(match[2].decode("utf-8", "replace"))
            value = unescape(match[3].decode("utf-8", "replace"))
            concealed = self.conceal(name, value)
            return match[0] if concealed == value else match[1] + concealed.encode() + match[4]

        return b"".join(self.filter([_PROPERTY.sub(conceal, xml)]))

    def _find_searched(self) -> tuple[re.Pattern[bytes], dict[bytes, bytes], int]:
        """
        What is looked for in texts, kept until another value becomes secret.

        It is a pattern, the digest of each text that it finds, and the bytes of the longest text.
        """
        if self._searched is None:
            digests: dict[bytes, bytes] = {}
            for digest, value in self._values.items():
                if len(value) >= LEAST_SEARCHED:
                    digests |= dict.fromkeys(_written_forms(value), digest.encode())
            words = map(_whole_word, sorted(digests, key=len, reverse=True))
            longest = max(map(len, digests), default=0)
            self._searched = re.compile(b"|".join(words)), digests, longest
        return self._searched


def _written_forms(value: str) -> set[bytes]:
    """*value* as texts hold it: as it is, in XML, in JSON, and each of them in a URL."""
    texts = {value, escape(value), json.dumps(value)[1:-1]}
    forms = {text.encode("utf-8", "surrogatepass") for text in texts}
    in_urls = {_URL_ESCAPED.sub(lambda match: b"%%%02X" % ord(match[0]), form) for form in forms}
    return forms | in_urls


def _whole_word(form: bytes) -> bytes:
    """Pattern of *form*; of letters alone it may be a part of any name: org.apache.hadoop."""
    if form.isalpha():
        return rb"(?<![\w.$/-])" + form + rb"(?![\w$/-]|\.\w)"
    return re.escape(form)


SECRETS = Secrets()  # of this process: whatever it writes down or prints is free of them
