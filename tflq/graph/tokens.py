"""Tokens of the text form of a graph, read one after the other."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn, TypeVar

from tflq.errors import FormatError

_TOKEN = re.compile(
    r"""(?P<space>[ \t]+|\#\ [^\n]*)|(?P<line>\n)
    |(?P<tensor>%(?:[A-Za-z_][\w./;-]*|"(?:[^"\\\n]|\\.)*")(?:\#\d+)?)
    |(?P<bytes>b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*")|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>[+-]?(?:inf|nan|\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)(?![A-Za-z_]))
    |(?P<checksum>\.\.\.(?:[ ]\#[0-9a-f]+)?)|(?P<word>[A-Za-z_][\w./;-]*)|(?P<sign>[\[\](){}:,=?])""",
    re.VERBOSE | re.ASCII,
)

Item = TypeVar("Item")


class TokenReader:
    """A text as tokens, with a current place.

    Args:
        text: Text form of a graph.

    Raises:
        FormatError: No token starts at a place of the text.
    """

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str, int]] = []
        self._place, number, position = 0, 1, 0
        while position < len(text):
            token = _TOKEN.match(text, position)
            if token is None:
                raise FormatError(
                    f"graph text: line {number}: found {text[position : position + 20]!r}; no token starts so"
                )
            kind = str(token.lastgroup)
            if kind != "space":
                self._tokens.append((kind, token.group(), number))
            number += kind == "line"
            position = token.end()
        self._tokens.append(("line", "\n", number))

    def _peek(self, offset: int = 0) -> str:
        place = self._place + offset
        return self._tokens[place][1] if place < len(self._tokens) else ""

    def _kind(self) -> str:
        return self._tokens[self._place][0] if self._place < len(self._tokens) else "end"

    def _next(self) -> str:
        text = self._peek()
        self._place += 1
        return text

    @property
    def line(self) -> int:
        """Number of the line of the current token."""
        return self._tokens[min(self._place, len(self._tokens) - 1)][2]

    def _fail(self, allowed: str) -> NoReturn:
        shown = "the end of the line" if self._peek() in ("\n", "") else repr(self._peek())
        raise FormatError(f"graph text: line {self.line}: found {shown}; allowed is {allowed}")

    def _expect(self, text: str) -> None:
        if self._peek() != text:
            self._fail(repr(text))
        self._place += 1

    def _take(self, text: str) -> bool:
        taken = self._peek() == text
        self._place += taken
        return taken

    def _skip_lines(self) -> None:
        while self._kind() == "line":
            self._place += 1

    def _in_brackets(self, item: Callable[[], Item]) -> list[Item]:
        self._expect("(")
        items = list[Item]()
        while not self._take(")"):
            items.append(item())
            if self._peek() != ")":
                self._expect(",")
        return items
