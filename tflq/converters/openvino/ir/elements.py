"""XML as a tree of elements with their lines: no document types, no entities, no endless nesting."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

from tflq.errors import FormatError

MOST_ELEMENTS = 1 << 22
DEEPEST = 32
"""An IR nests six deep; bodies of loops, which are not read, a few more."""


@dataclass
class Element:
    """One element.

    Attributes:
        tag: its name.
        attributes: name -> value.
        line: where it starts.
        where: the file, for messages.
        children: elements inside it.
        text: characters inside it.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    where: str
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self, tag: str) -> list[Element]:
        """Return the children of a name."""
        return [child for child in self.children if child.tag == tag]

    def one(self, tag: str) -> Element:
        """Return the only child of a name.

        Raises:
            FormatError: there is none, or several.
        """
        found = self.all(tag)
        if len(found) != 1:
            raise self.error(f"<{self.tag}> has {len(found)} <{tag}>; exactly 1 is allowed")
        return found[0]

    def attribute(self, name: str) -> str:
        """Return an attribute.

        Raises:
            FormatError: it is missing.
        """
        if name not in self.attributes:
            raise self.error(f"<{self.tag}> has no attribute '{name}'")
        return self.attributes[name]

    def number(self, name: str) -> int:
        """Return an attribute that is a whole number of 0 or more.

        Raises:
            FormatError: it is missing, or something else.
        """
        return self.whole(self.attribute(name), name)

    def whole(self, text: str, what: str) -> int:
        """Return a text as a whole number of 0 or more.

        Raises:
            FormatError: it is something else.
        """
        stripped = text.strip()
        if not (stripped.isascii() and stripped.isdecimal()) or len(stripped) > 18:
            raise self.error(f"{what} is '{text[:40]}'; a whole number of 0 or more is allowed")
        return int(stripped)

    def error(self, message: str) -> FormatError:
        """Return an error with the file and line."""
        return FormatError(f"{self.where}, line {self.line}: {message}")


def parse(data: bytes | memoryview, where: str) -> Element:
    """Return the root element.

    Raises:
        FormatError: no XML, a document type or an entity, or nesting beyond any IR: with the line.
    """
    parser = expat.ParserCreate()
    tree = _Tree(parser, where)
    parser.StartElementHandler = tree.start
    parser.EndElementHandler = tree.end
    parser.CharacterDataHandler = tree.characters
    parser.StartDoctypeDeclHandler = tree.doctype
    parser.EntityDeclHandler = tree.doctype
    try:
        parser.Parse(bytes(data), True)
    except expat.ExpatError as error:
        raise FormatError(f"{where}, line {error.lineno}: no XML: {expat.ErrorString(error.code)}") from None
    assert tree.root is not None  # expat refuses a document without a root
    return tree.root


class _Tree:
    """Builds the tree from expat's calls."""

    def __init__(self, parser: expat.XMLParserType, where: str) -> None:
        self._parser = parser
        self._where = where
        self._open: list[Element] = []
        self._count = 0
        self.root: Element | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Open an element."""
        element = Element(tag, attributes, self._parser.CurrentLineNumber, self._where)
        self._count += 1
        if len(self._open) >= DEEPEST or self._count > MOST_ELEMENTS:
            raise element.error(f"more than {DEEPEST} levels or {MOST_ELEMENTS} elements; no IR has as many")
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def end(self, _tag: str) -> None:
        """Close an element."""
        self._open.pop()

    def characters(self, text: str) -> None:
        """Take text."""
        if len(self._open[-1].text) < 1 << 16:
            self._open[-1].text += text

    def doctype(self, *_details: object) -> None:
        """Refuse document types and entities."""
        line = self._parser.CurrentLineNumber
        raise FormatError(f"{self._where}, line {line}: a document type or entity is declared; an IR has none")
