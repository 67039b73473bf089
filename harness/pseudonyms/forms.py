"""
Secrets that are known by their form: keys, tokens, passwords in addresses, private keys.

A task may print what it was given.  Names of secrets are in no field there, and their values are in
no variable here, so they are told by what they look like.  What looks like nothing stays: a
password on a line of its own is a word.
"""

from __future__ import annotations

import base64
import re

from collections.abc import Callable, Iterator
from functools import lru_cache
from urllib.parse import quote

# A value behind a name: no blank, quote, comma or bracket, which end it in logs, JSON and shells.
_VALUE = r"[^\s\"'\\,;&<>()\[\]{}|]"
_NAMED = (
    r"(?:aws_?secret_?access_?key|secret_?access_?key|secret[_.-]?key|shared_?access_?key"
    r"|account[_.-]?key(?:\.[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8})?"
    r"|api[_.-]?key|access[_.-]?key|private_?key|auth_?token|access_?token|refresh_?token"
    r"|session[_.-]?token|id_?token|client_?secret|consumer_?secret|passwd|password|passphrase|pwd|credentials?|secret"
    r"|token)"
)
# Of base64 whatever ASCII makes: four characters are three of it, whose highest bits are not set.
_THREE = r"[A-Za-f][A-HQ-Xg-nw-z0-3][A-Za-z0-9+/]{2}"
# Each form with the kind of secret that it is; of one with a group the group alone is secret.
_FORMS = {
    "a private key": r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----[\s\S]{0,20000}?"
    r"(?:-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    "an OpenSSH key": r"b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=]{20,}",
    "an AWS key": r"(?<![A-Za-z0-9])(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA|ABIA|ACCA)[A-Z0-9]{16}"
    r"(?![A-Za-z0-9])",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})",
    "a GitLab token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "a Slack token": r"\bxox[abeposr]-[A-Za-z0-9-]{10,}",
    "a Google key": r"\b(?:AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20,})",
    "a Stripe key": r"\b[rs]k_(?:live|test)_[0-9a-zA-Z]{16,}",
    "a package index's token": r"\b(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,})",
    "a model service's key": r"\b(?:hf_[A-Za-z]{30,}|sk-(?:ant-|proj-)?[A-Za-z0-9_-]{20,})",
    "a SendGrid key": r"\bSG\.[\w-]{16,}\.[\w-]{16,}",
    "a web token": r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    "a header": r"(?i:\bauthorization\b\"?\s*[:=]\s*\"?(?:bearer|basic|negotiate|digest)\s+)"
    r"([^\s\"'\\]+)",
    "a bearer token": r"(?i:\bbearer\s+)([A-Za-z0-9._~+/=-]{16,})",
    "a header of a secret": r"(?i:\bx-[a-z-]{0,40}(?:secret|token|key)\"?\s*:\s*\"?)"
    rf"({_VALUE}{{4,}})",
    "a password in an address": r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{0,100}:([^\s/@\"']{1,200})@",
    "a password of Oracle": r"\bjdbc:oracle:[a-z]{1,9}:[^\s/@:]{1,100}/([^\s@]{1,200})@",
    "a cookie": r"(?i:\b(?:set-)?cookie\"?\s?:\s?)([^\r\n]{6,4000})",
    "a hook of a messenger": r"\bhooks\.slack\.com/services/([A-Za-z0-9/]{20,200})",
    "a password of a command": r"(?i:\b(?:mysql|mariadb|sshpass)\w{0,20} (?:[^\r\n|;]{0,200}? )?-p)"
    r"(\S{4,200})|(?i:\bcurl (?:[^\r\n|;]{0,400}? )?(?:-u|--user)[= ]?[\"']?[^\s:\"'/]{1,100}:)"
    r"([^\s\"']{4,200})",
    "a password in words": r"(?i:\b(?:password|passphrase|passwd) (?:is|was|to) )[\"']?"
    r"((?=[^\s\"']{0,100}\d)[^\s\"']{4,100})",
    "a signature": r"[?&](?:sig|[Ss]ignature|X-Amz-Signature|X-Amz-Security-Token|delegation)="
    r"([A-Za-z0-9%/+=_-]{16,})",
    "a login in base64": rf"(?<![A-Za-z0-9+/=_-])(?P<base64>(?:{_THREE}){{2,60}}"
    r"(?:[A-Za-f][A-HQ-Xg-nw-z0-3](?:[A-Za-z0-9+/]=|==))?)(?![A-Za-z0-9+/=_-])",
    "an argument": rf"(?i:(?<!\S)--?{_NAMED}[= ])[\"']?({_VALUE}{{4,}})",
    "a named secret": rf"(?i:(?<![A-Za-z0-9.-])[A-Za-z0-9_.-]{{0,80}}?{_NAMED}[\"']?\s{{0,3}}[:=]"
    rf"\s{{0,3}}[\"']?)({_VALUE}{{6,}})",
}
_ANY = re.compile("|".join(f"(?:{form})" for form in _FORMS.values()))
_LOGIN = re.compile(rb"[\w.@\\-]{1,64}:[!-~]{4,200}")
# What stands behind such names and is none: switches, numbers, classes, places, our own words.
_PLAIN = re.compile(
    r"true|false|null|none|yes|no|\d+(\.\d+)?|\*+|\$\{?.*|org\.apache\..*|com\.sun\..*|java\..*"
    r"|[/~.].*|[a-z]+://.*|(host|user|queue|secret|mail)-\d+(\.example)?|(secret:)?[0-9a-f]{16}|<.*|\[.*"
    r"|(redacted|hidden|masked|removed)\W*"
    r"|.*\.(class|java|jar|xml|keytab|jceks)",
    re.IGNORECASE | re.DOTALL,
)
_LEAST_ENCODED = 8  # characters of what is looked for in other codes: less is found everywhere


def conceal(text: str, pseudonym_of: Callable[[str], str]) -> str:
    """*text* with *pseudonym_of* each secret that is known by its form in its place."""

    def replace(match: re.Match[str]) -> str:
        secret = next(filter(None, match.groups()), match[0])
        if _is_plain(match, secret):
            return match[0]
        start = match.start(match.lastindex) if match.lastindex else match.start()
        before = match[0][: start - match.start()]
        after = match[0][start - match.start() + len(secret) :]
        return f"{before}{pseudonym_of(secret)}{after}"

    return _ANY.sub(replace, text)


def secrets_in(text: str) -> Iterator[tuple[int, str]]:
    """Line and kind of each secret in *text* that is known by its form."""
    for match in _ANY.finditer(text):
        secret = next(filter(None, match.groups()), match[0])
        if not _is_plain(match, secret):
            kinds = (kind for kind, form in _FORMS.items() if re.search(form, match[0]))
            yield text.count("\n", 0, match.start()) + 1, next(kinds, "a secret")


def _is_plain(match: re.Match[str], secret: str) -> bool:
    """Whether what stands behind a name is no secret, or base64 is no login's."""
    if match.lastgroup == "base64":
        return len(secret) % 4 > 0 or not _LOGIN.fullmatch(base64.b64decode(secret))
    return match.lastindex is not None and _PLAIN.fullmatch(secret) is not None


@lru_cache(1024)
def encoded(value: str) -> frozenset[str]:
    """
    *value* as it stands in other codes: base64 at each of its three offsets, hexadecimal, percent.

    Of base64 what no neighbour changes; nothing of a short value, which any text may hold.
    """
    if len(value) < _LEAST_ENCODED:
        return frozenset()
    data = value.encode("utf-8", "surrogatepass")
    forms = {data.hex(), data.hex().upper(), quote(value, ""), value[::-1]}
    forms |= {"".join(f"%{byte:02X}" for byte in data), "".join(f"%{byte:02x}" for byte in data)}
    for offset in range(3):
        code = base64.b64encode(bytes(offset) + data).decode().rstrip("=")
        inner = code[(0, 2, 3)[offset] : len(code) - 1]
        forms |= {inner, inner.replace("+", "-").replace("/", "_")}
    return frozenset(forms - {value})
