"""Mutants: small changes of a file's arithmetic and conditions, which its tests should notice (scripts/mutants)."""

from __future__ import annotations

import ast
from dataclasses import dataclass

_OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
_CALLS = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "floor": "ceil", "ceil": "floor",
    "rint": "floor", "round": "floor", "trunc": "floor", "any": "all", "all": "any", "argmin": "argmax",
    "argmax": "argmin", "exp": "expm1", "abs": "negative",
}  # fmt: skip
_BUILTIN = ("min", "max", "any", "all")
_NO_MEANING = {"strict", "frozen", "eq", "slots", "repr", "copy", "write"}
"""Keywords whose value no result depends on."""


@dataclass(frozen=True)
class Mutation:
    """One change of a file.

    Attributes:
        line: where, from 1.
        start: first byte that is replaced.
        stop: the byte behind the last one.
        text: what takes their place.
        what: the change in words.
        functions: first lines (with decorators) of the functions around the place, as Python's code objects have them;
            empty at the level of the module or of a class.
    """

    line: int
    start: int
    stop: int
    text: bytes
    what: str
    functions: tuple[int, ...] = ()

    def apply(self, source: bytes) -> bytes:
        """Return the changed file."""
        return source[: self.start] + self.text + source[self.stop :]


def mutations(source: bytes) -> list[Mutation]:
    """Return every mutation of a module, in the order of its text.

    Messages, docstrings, annotations, decorators and assertions are left alone: nothing is computed there. So is the
    size -1 of a reshape, but for its sign: numpy takes any negative size for the one to find.
    """
    found = _Finder(source)
    found.visit(ast.parse(source))
    return sorted(found.mutations, key=lambda m: (m.start, m.text))


class _Finder(ast.NodeVisitor):
    def __init__(self, source: bytes) -> None:
        self.source = source
        self.mutations: list[Mutation] = []
        self._functions: tuple[int, ...] = ()
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._between(node.left, node.right, node.op)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            self._between(left, right, op)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._between(node.values[0], node.values[1], node.op)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
            self._without_sign(node)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        start, stop = self._start(node.test), self._stop(node.test)
        self._add(node, start, stop, b"not (" + self.source[start:stop] + b")", "condition negated")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if not all(isinstance(inner, ast.Raise) for inner in node.body):
            start, stop = self._start(node.test), self._stop(node.test)
            self._add(node, start, stop, b"not (" + self.source[start:stop] + b")", "condition negated")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in (_CALLS if isinstance(node.func, ast.Attribute) else _BUILTIN):
            stop = self._stop(node.func)
            self._add(node, stop - len(name), stop, _CALLS[name].encode(), f"{name} -> {_CALLS[name]}")
        self.visit(node.func)
        for argument in node.args:
            if name == "reshape" and isinstance(argument, ast.UnaryOp):
                self._without_sign(argument)
            else:
                self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg not in _NO_MEANING:
                self.visit(keyword.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        value, other = node.value, None
        if isinstance(value, bool):
            other = repr(not value)
        elif isinstance(value, int):
            other = repr(value + 1)
        elif isinstance(value, float):
            other = repr(value * 2 or 1.0)
        if other is not None:
            start, stop = self._start(node), self._stop(node)
            self._add(node, start, stop, other.encode(), f"{self.source[start:stop].decode()} -> {other}")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            self.visit(default)
        outside = self._functions
        self._functions = (*outside, min([node.lineno, *(d.lineno for d in node.decorator_list)]))
        for statement in node.body:
            self.visit(statement)
        self._functions = outside

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Messages."""

    visit_JoinedStr = visit_Assert = visit_Raise  # type: ignore[assignment]

    def _without_sign(self, node: ast.UnaryOp) -> None:
        start, inner = self._start(node), self._start(node.operand)
        self._add(node, start, inner, b"", f"without {self.source[start:inner].decode().strip()}")

    def _between(self, left: ast.expr, right: ast.expr, op: ast.AST) -> None:
        symbol, other = _OPERATORS.get(type(op), ("", ""))
        start = self._stop(left)
        place = self.source.find(symbol.encode(), start, self._start(right)) if symbol else -1
        if place >= 0:
            self._add(left, place, place + len(symbol), other.encode(), f"{symbol} -> {other}")

    def _add(self, node: ast.expr | ast.stmt, start: int, stop: int, text: bytes, what: str) -> None:
        self.mutations.append(Mutation(node.lineno, start, stop, text, what, self._functions))

    def _start(self, node: ast.expr) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _stop(self, node: ast.expr) -> int:
        return self._lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)


def compiles(source: bytes, mutation: Mutation) -> bool:
    """Whether Python still takes the module."""
    try:
        compile(mutation.apply(source), "mutant", "exec")
    except SyntaxError:
        return False
    return True
