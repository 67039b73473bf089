"""
Text for messages: foreign text made safe to print, and the nearest known name to an unknown one.

Host names, reasons, keys of a file and lines of logs come from outside.  A terminal obeys some of
their characters, and others turn the direction of what follows; both are written out instead.
"""

from __future__ import annotations

import json
import unicodedata

from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

# Controls, marks of direction, surrogates, private and unassigned characters, line separators.
_WRITTEN_OUT = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


# What a spreadsheet takes for the beginning of a formula, as wide characters, too.
_FORMULA = tuple("=+-@\t\uff1d\uff0b\uff0d\uff20")


def printable(text: object) -> str:
    r"""
    *text* with each character written out that a terminal would obey; line feeds and tabs stay.

    >>> printable("a\x1b[31mb\u202ec\r\n")
    'a\\x1b[31mb\\u202ec\n'
    """
    plain = str(text)
    if plain.isprintable():  # nearly always, and then there is nothing to write out
        return plain
    return "".join(map(_visible, plain.replace("\r\n", "\n")))


def _visible(char: str) -> str:
    if char in "\n\t" or unicodedata.category(char) not in _WRITTEN_OUT:
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def excerpt(text: object, most_chars: int = 100) -> str:
    r"""
    *text* in one printable line of at most *most_chars* characters; bytes are read as UTF-8.

    A message puts its own quotation marks around it where it needs some.

    >>> excerpt(b"  two\nlines \x1b "), excerpt("abcdefgh", 6)
    ('two lines \\x1b', 'abc...')
    """
    # Cut before it is looked at: what came from outside may be a gigabyte.
    looked_at = 4 * most_chars  # a character has four bytes at most
    if isinstance(text, bytes):
        plain = text[:looked_at].decode(errors="replace")
        is_cut = len(text) > looked_at
    else:
        plain = str(text)
        is_cut = len(plain) > looked_at
    line = " ".join(printable(plain[:looked_at]).split())
    if is_cut or len(line) > most_chars:
        return f"{line[: most_chars - 3]}..."
    return line


def first_line(text: str, default: str = "it wrote nothing") -> str:
    r"""
    The first line of a program's output that is not blank, as an excerpt; else *default*.

    >>> first_line("\n  no such\tdevice \nat 0x1"), first_line(" \n")
    ('no such device', 'it wrote nothing')
    """
    return excerpt(text.strip().partition("\n")[0], 300) or default


def nearest_name(name: str, choices: Collection[str], *, cutoff: float = 0.6) -> str | None:
    """
    Give the one of *choices* that looks most like *name*, if any does, whatever its case.

    >>> nearest_name("Wordcuont", ["sort", "wordcount"])
    'wordcount'
    """
    by_lower_case = {choice.lower(): choice for choice in choices}
    close = get_close_matches(name[:100].lower(), by_lower_case, n=1, cutoff=cutoff)
    return by_lower_case[close[0]] if close else None


def did_you_mean(name: str, choices: Collection[str]) -> str:
    """
    Give the fix for an unknown *name*: the nearest of *choices*, or all of them.

    >>> did_you_mean("wordcuont", ["sort", "wordcount"]), did_you_mean("x", ["sort", "wordcount"])
    ('did you mean wordcount?', 'choose one of: sort, wordcount')
    """
    near = nearest_name(name, choices)
    return f"did you mean {near}?" if near else f"choose one of: {', '.join(choices)}"


def read_json(text: str | bytes, deepest: int = 32) -> Any:
    """
    Value of a foreign JSON *text*, which can be walked down; `ValueError` for anything else.

    >>> read_json('{"a": [1]}')
    {'a': [1]}
    """
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    level = [value]
    for _ in range(deepest + 1):
        level_below: list[Any] = []
        for member in level:
            if isinstance(member, dict):
                level_below += member.values()
            elif isinstance(member, list):
                level_below += member
        if not level_below:
            return value
        level = level_below
    raise ValueError("nested too deeply")


def without_formula(text: str) -> str:
    """
    *text* as a spreadsheet takes it for a text: with an apostrophe before what begins a formula.

    >>> without_formula("=1+1")
    "'=1+1"
    """
    return f"'{text}" if text.startswith(_FORMULA) else text
