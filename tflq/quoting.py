"""Escaping of names, file names and metadata: one function per output format.

Content of files is data. A name may contain an escape sequence of a terminal, a bidirectional override, a quote, a line
break or `../`: code that writes it calls the function of the output's format. Characters that are not printable for
Python's `str.isprintable` (control and format characters, surrogates, separators except the space) do not occur in any
text of tflq; each one is escaped in the way of the format.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""Values that `json_text` writes."""

LONGEST_FILE_NAME = 100
"""Largest length of a name that becomes a file name: file systems limit names to 255 bytes, with additions."""

_NOT_FILE_NAME = re.compile(r"[^\w.-]|^[.-]")
_NOT_IDENTIFIER = re.compile(r"\W", re.ASCII)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_COMPASS_SIGNS = frozenset("=,[]")
_NO_COMPASS_NAME = re.compile(r"""[^0-9a-zA-Z.:/_;'"]""")


def escape_unprintable(text: str) -> str:
    r"""Return a text for terminals, reports and messages: unprintable characters as \n, \x1b or \u202e."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def json_text(value: object, indent: int | None = 1, *, allow_nan: bool = True) -> str:
    r"""Return JSON; letters of all scripts are unchanged, unprintable characters are \uXXXX.

    Raises:
        ValueError: A number is not finite, without `allow_nan`.
    """
    lines = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=allow_nan).split("\n")
    return "\n".join(line if line.isprintable() else _json_escaped(line) for line in lines)


def plain_json(value: Json) -> Json:
    """Return a value in JSON's own types; NaN and infinities become "nan", "inf" and "-inf"."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: plain_json(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain_json(item) for item in value]
    return value


def _json_escaped(line: str) -> str:
    # Outside of strings JSON has printable characters only, so every unprintable one can be escaped in place.
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)


def xml_text(text: str) -> str:
    r"""Return a text between tags: `<`, `>`, `&` and unprintable characters as references.

    Characters without a reference in XML 1.0, such as U+0001, are written as by `escape_unprintable`.
    """
    escaped = escape(_NOT_XML.sub(lambda match: escape_unprintable(match[0]), text))
    return "".join(c if c.isprintable() else f"&#x{ord(c):x};" for c in escaped)


def xml_attribute(text: str) -> str:
    """Return an attribute's value in double quotes."""
    return '"' + xml_text(text).replace('"', "&quot;") + '"'


def shell_word(text: str) -> str:
    """Return a text as one word of a POSIX shell."""
    return shlex.quote(escape_unprintable(text))


def prototxt_string(text: str) -> str:
    r"""Return a text in the quotes of protobuf's text format; unprintable characters as octal bytes of UTF-8."""
    signs = {'"': '\\"', "\\": "\\\\"}
    return '"' + "".join(signs.get(c) or (c if c.isprintable() else _octal(c)) for c in text) + '"'


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogatepass"))


def compass_word(text: str) -> str:
    """Return a text as a word of Compass IR: its own signs, white space and unprintable characters as "_"."""
    return "".join("_" if c in _COMPASS_SIGNS or c.isspace() or not c.isprintable() else c for c in text)


def compass_name(text: str) -> str:
    """Return a text as a layer's name in Compass IR: all except ASCII letters, digits and . : / _ ; ' " as "_".

    Source: Compass Parser, misc.py, special_character_conversion.
    """
    return _NO_COMPASS_NAME.sub("_", text)


def markdown_code(text: str) -> str:
    """Return a text as code within a line of Markdown, with enough grave accents around it."""
    plain = escape_unprintable(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", plain)), default=0))
    space = " " if plain[:1] == "`" or plain[-1:] == "`" else ""
    return f"{fence}{space}{plain}{space}{fence}"


def c_comment(text: str, longest: int = 200) -> str:
    """Return a text for a comment of C: printable ASCII that cannot end it; a long text is shortened in the middle."""
    plain = "".join(c if " " <= c <= "~" else "?" for c in text)
    for sign, apart in (("*/", "* /"), ("/*", "/ *"), ("??", "? ?")):  # "??" could begin a trigraph
        plain = plain.replace(sign, apart)
    return plain if len(plain) <= longest else f"{plain[: longest // 2]}...{plain[-longest // 3 :]}"


def c_string(text: str) -> str:
    r"""Return a text in the quotes of C: all except printable ASCII, and ", ? and the backslash, as octal bytes.

    A long text is shortened in the middle: C99 compilers need not support more than 4095 characters.
    """
    text = text if len(text) <= 500 else f"{text[:250]}...{text[-167:]}"
    return '"' + "".join(c if " " <= c <= "~" and c not in '"\\?' else _octal(c) for c in text) + '"'


def c_identifiers(names: Sequence[str]) -> list[str]:
    """Return a C and Verilog identifier for each name; all are unique, also without the case of letters.

    A name keeps its ASCII letters and digits; all other characters become "_". A name that is empty, begins with a
    digit, is longer than `LONGEST_FILE_NAME` or is equal to another one becomes `layer_<position>`.
    """
    plain = [_NOT_IDENTIFIER.sub("_", name) for name in names]
    folded = [name.lower() for name in plain]
    taken = {name for name in folded if folded.count(name) == 1}
    identifiers = []
    for position, name in enumerate(plain):
        if not (0 < len(name) <= LONGEST_FILE_NAME) or name[0].isdigit() or name.lower() not in taken:
            name = f"layer_{position}"
            while name in taken:
                name += "_"
            taken.add(name)
        identifiers.append(name)
    return identifiers


class Names:
    """Source of unique names: a name in use gets the first free number as suffix, counted from `first`."""

    def __init__(self, first: int = 2, between: str = "_") -> None:
        self._first, self._between = first, between
        self._taken: set[str] = set()

    def fresh(self, wanted: str) -> str:
        """Return the requested name, with a number as suffix if it is in use."""
        name, number = wanted, self._first
        while name in self._taken:
            name, number = f"{wanted}{self._between}{number}", number + 1
        self._taken.add(name)
        return name


def file_name(text: str) -> str:
    """Return a file name: letters, digits and `_ . -`, without leading dot or hyphen, at most `LONGEST_FILE_NAME` long.

    A changed name ends in eight digits of its SHA-256, so that two names have different file names.
    """
    plain = _NOT_FILE_NAME.sub("_", text)[:LONGEST_FILE_NAME]
    while len(plain.encode("utf-8", "replace")) > 2 * LONGEST_FILE_NAME:
        plain = plain[:-1]
    if plain == text:
        return plain
    return f"{plain.rstrip('_')}_{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
