"""C for loops and expressions. A program collects what its functions share: helpers, primitives, sums over windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tflq.emit.c99.bounds import bounds_of_type, smallest_type
from tflq.emit.c99.expression import (
    Axis,
    Buffer,
    Constant,
    Expression,
    Fold,
    Index,
    Load,
    LookUp,
    Nest,
    Operation,
    WindowFold,
    order_parts,
    parts_of,
)
from tflq.emit.c99.operations import operation_text
from tflq.emit.c99.recorder import Call
from tflq.emit.c99.words import array, atom, bare, identifier, number, stored_type
from tflq.errors import UnsupportedError
from tflq.graph import Array
from tflq.interpreter.recording.tape import Tape

if TYPE_CHECKING:
    from tflq.emit.c99.shared import Shared

_LOOPS = "ijklmnpq"


class FunctionText:
    """Writes one function: constants in front of it, and its statements."""

    def __init__(self, shared: Shared, prefix: str, tape: Tape, arguments: Collection[str]) -> None:
        """Start.

        Args:
            shared: what the program shares.
            prefix: of the names of the function's constants.
            tape: whose expressions are written.
            arguments: names of the function's arguments.
        """
        self.constants: dict[str, str] = {}
        self._shared = shared
        self._prefix = prefix
        self._tape = tape
        self._names: dict[Expression, str] = {}
        self._loops: dict[Axis, str] = {}
        calls = (r.operation.rule.function for r in tape.records if isinstance(r.operation, Call))
        self._reserved = {identifier(f.__name__) for f in calls} | set(arguments)
        self._taken: set[str] = set(self._reserved)
        self._outside: set[str] = set()  # names in front of the loops, which stand to the function's end
        self._by_content: dict[tuple[bytes, str, str], str] = {}

    def declared_tables(self) -> list[str]:
        """Return the constants as lines within a function."""
        return [f"    {line}" for text in self.constants.values() for line in text.splitlines()]

    def nest(self, nest: Nest) -> list[str]:
        """Return the lines of loops that fill a part of a buffer."""
        self._names, self._taken = {}, self._reserved | set(self.constants) | self._outside
        self._loops = _named_loops(nest)
        self._taken.update(self._loops.values())
        open_loops: list[Axis] = []
        lines = self.statements(nest.value, open_loops)
        self._outside.update(self._names.values())
        for axis in nest.axes:
            lines.append(self._loop(axis, len(open_loops)))
            open_loops.append(axis)
            lines += self.statements(nest.value, open_loops)
        pad = "    " * (len(open_loops) + 1)
        lines.append(f"{pad}{self.place(nest.target, nest.index)} = {self._stored(nest.value, nest.target)};")
        lines += ["    " * (n + 1) + "}" for n in reversed(range(len(open_loops)))]
        return lines

    def statements(self, root: Expression, open_loops: Sequence[Axis] = ()) -> list[str]:
        """Return the declarations of what can be computed within these loops and is not yet."""
        uses = Counter(x for e in order_parts(root) for x in parts_of(e))
        pad = "    " * (len(open_loops) + 1)
        lines: list[str] = []
        for expression in order_parts(root):
            if expression in self._names or not expression.axes <= set(open_loops) or expression is root:
                continue
            if isinstance(expression, (Fold, WindowFold, LookUp)) or _has_own_line(expression, uses[expression]):
                lines += self._declared(expression, open_loops, pad)
        if root.axes <= set(open_loops) and isinstance(root, Fold):
            lines += self._declared(root, open_loops, pad)
        return lines

    def of(self, expression: Expression, wanted: str = "") -> str:
        """Return the text of an expression, converted to a type where it is of another."""
        kind = expression.c_type
        if isinstance(expression, Constant) and not expression.order:
            wanted = wanted or kind
            value = expression.values.item()
            if wanted in ("double", "float") or not expression.is_real:
                return number(value, wanted)
        text = self._names.get(expression) or self._text(expression)
        if not wanted or wanted == kind or (kind, wanted) == ("int32_t", "int64_t"):
            return text
        return f"({wanted}){atom(text)}"

    def place(self, buffer: Buffer, index: Index) -> str:
        """Return an element of a buffer."""
        return buffer.name if buffer.is_scalar else f"{buffer.name}[{self._index(index)}]"

    def _declared(self, expression: Expression, open_loops: Sequence[Axis], pad: str) -> list[str]:
        kind = expression.c_type
        if isinstance(expression, Fold):
            return self._folded(expression, open_loops, pad)
        text = self._text(expression)
        name = self._new_name(expression)
        return [f"{pad}{kind} {name} = {bare(text)};"]

    def _folded(self, fold: Fold, open_loops: Sequence[Axis], pad: str) -> list[str]:
        kind = fold.c_type
        if fold.is_real and not fold.is_ordered and fold.function in ("sum", "product"):
            raise UnsupportedError("a sum of real numbers in numpy's own order")
        before = dict(self._names)
        name = self._new_name(fold)
        start = {"sum": 0, "product": 1, "largest": fold.body.low, "smallest": fold.body.high}[fold.function]
        if fold.is_real and fold.function in ("largest", "smallest"):  # as reduction.py has it
            most = float(np.finfo(fold.dtype.name).max)
            start = min(max(float(start), -most), most)
        lines = [f"{pad}{kind} {name} = {number(start, kind)};"]
        inner = list(open_loops)
        for axis in fold.inner:
            self._loops[axis] = self._new_loop()
            lines.append(self._loop(axis, len(inner)))
            inner.append(axis)
            lines += self.statements(fold.body, inner)
        body = self.of(fold.body, kind)
        if fold.function in ("largest", "smallest"):
            helper = self._shared.helper("larger" if fold.function == "largest" else "smaller", kind)
            text = f"{name} = {helper}({name}, {bare(body)});"
        else:
            text = f"{name} {'+' if fold.function == 'sum' else '*'}= {bare(body)};"
        lines.append("    " * (len(inner) + 1) + text)
        lines += ["    " * (n + 1) + "}" for n in reversed(range(len(open_loops), len(inner)))]
        self._names = {**before, fold: name}
        return lines

    def _text(self, expression: Expression) -> str:
        if isinstance(expression, Constant):
            return self._constant(expression)
        if isinstance(expression, Load):
            return self.place(expression.buffer, expression.index)
        if isinstance(expression, LookUp):
            return self._looked_up(expression)
        if isinstance(expression, WindowFold):
            return self._window(expression)
        assert isinstance(expression, Operation)
        if isinstance(expression.operation, Call):
            return self._called(expression, expression.operation)
        return operation_text(expression, self.of, self._shared.helper)

    def _called(self, expression: Operation, call: Call) -> str:
        name, arguments, result = self._shared.primitive(call, call.examples)
        given = [self.of(x, kind) for x, (_, kind) in zip(expression.operands, arguments, strict=True)]
        text = f"{name}({', '.join(map(bare, given))})"
        return text if result == expression.c_type else f"({expression.c_type}){text}"

    def _window(self, fold: WindowFold) -> str:
        image = stored_type(fold.buffer.dtype)
        kind = fold.c_type
        weights = ""
        arguments = [fold.buffer.name]
        images = self._index(fold.place[0])
        if images != "0":
            arguments = [f"{fold.buffer.name} + {atom(images)} * {int(np.prod(fold.shape[1:]))}"]
        channel = self._index(fold.place[3])
        if fold.weights is not None:
            dtype = smallest_type(int(fold.weights.min()), int(fold.weights.max()))
            weights = stored_type(dtype)
            size = int(np.prod(fold.weights.shape[1:]))
            arguments.append(f"{self._array(fold.weights, 'weights')} + {atom(channel)} * {size}")
        window = self._window_constant(fold)
        arguments += [f"&{window}", self._index(fold.place[1]), self._index(fold.place[2])]
        if fold.weights is None:
            arguments.append(channel)
            if fold.function == "window_largest":
                arguments.append(number(bounds_of_type(fold.buffer.dtype)[0], kind))
        elif fold.function == "convolution_sum":
            depth = fold.weights.shape[3]
            one_group = fold.outputs_per_group == fold.weights.shape[0]
            group = "0" if one_group else _divided(channel, fold.outputs_per_group)
            first = "0" if one_group else group if depth == 1 else f"{atom(group)} * {depth}"
            arguments += [first, str(depth), number(fold.outside or 0, kind)]
        name = self._shared.window(fold.function, image, weights, kind)
        return f"{name}({', '.join(map(bare, arguments))})"

    def _window_constant(self, fold: WindowFold) -> str:
        at, (_, height, width, channels) = fold.window, fold.shape
        numbers = [height, width, channels, *at.kernel, *at.stride, *at.dilation, at.top, at.left]
        words = ", ".join(map(str, numbers))
        return self._declare("window", "struct window", "", words, "{ " + words + " }")

    def _constant(self, constant: Constant) -> str:
        name = self._array(constant.values, constant.name)
        index, stride = [], 1
        for axis in reversed(constant.order):
            index.append(self._loops[axis] if stride == 1 else f"{self._loops[axis]} * {stride}")
            stride *= axis.size
        return f"{name}[{' + '.join(reversed(index))}]" if index else f"{name}[0]"

    def _looked_up(self, found: LookUp) -> str:
        table = found.table.name if isinstance(found.table, Buffer) else self._array(found.table, found.name)
        index = self.of(found.index)
        words = [index if found.stride == 1 else f"{atom(index)} * {found.stride}"]
        base = self._index(found.base)
        words += [base] if base != "0" else []
        return f"{table}[{bare(words[0]) if len(words) == 1 else ' + '.join([atom(words[0]), base])}]"

    def _array(self, values: Array, label: str) -> str:
        if values.dtype.kind == "f":
            kind = stored_type(values.dtype)
        else:
            kind = stored_type(smallest_type(int(values.min()), int(values.max())))
        text = "{\n" + array(values, kind) + "\n}"
        return self._declare(identifier(label, 24), kind, f"[{values.size}]", values.tobytes().hex(), text)

    def _declare(self, label: str, kind: str, size: str, content: str, text: str) -> str:
        key = (content.encode(), kind, size)
        if key not in self._by_content:
            base = f"{self._prefix}_{label}" if self._prefix else label
            name, n = base, 2
            while name in self.constants or name in self._taken:
                name, n = f"{base}_{n}", n + 1
            self.constants[name] = f"static const {kind} {name}{size} = {text};"
            self._by_content[key] = name
            self._taken.add(name)
        return self._by_content[key]

    def _index(self, index: Index) -> str:
        words = []
        for term in index.terms:
            loop = self._loops[term.axis]
            if term.table is not None:
                words.append(f"{self._array(term.table, 'places')}[{loop}]")
            elif term.stride < 0:
                words.append(f"{loop} * ({term.stride})")
            else:
                words.append(loop if term.stride == 1 else f"{loop} * {term.stride}")
        if index.start or not words:
            words.append(str(index.start))
        return " + ".join(words)

    def _stored(self, value: Expression, target: Buffer) -> str:
        kind = stored_type(target.dtype)
        text = self.of(value)
        if kind == value.c_type:
            return bare(text)
        return f"({kind}){atom(text)}"

    def _loop(self, axis: Axis, depth: int) -> str:
        name = self._loops[axis]
        return f"{'    ' * (depth + 1)}for (int32_t {name} = 0; {name} < {axis.size}; {name}++) {{"

    def _new_loop(self) -> str:
        name: str = next(c for c in (*_LOOPS, *(f"k{n}" for n in range(99))) if c not in self._taken)
        self._taken.add(name)
        return name

    def _new_name(self, expression: Expression) -> str:
        label = expression.label if isinstance(expression, Operation) else ""
        if isinstance(expression, WindowFold):
            label = "largest" if expression.function == "window_largest" else "sum"
        elif isinstance(expression, Fold):
            label = expression.function
        elif isinstance(expression, LookUp):
            label = expression.name
        base = identifier(label or "x", 24)
        name, n = base, 2
        while name in self._taken:
            name, n = f"{base}_{n}", n + 1
        self._taken.add(name)
        self._names[expression] = name
        return name


def _has_own_line(expression: Expression, uses: int) -> bool:
    if isinstance(expression, Constant):
        return False
    if isinstance(expression, Load):
        return uses > 1 and not expression.buffer.is_scalar
    if isinstance(expression, Operation) and (
        isinstance(expression.operation, Call) or expression.operation == "select"
    ):
        return True
    return uses > 1 or not expression.axes


def _divided(text: str, by: int) -> str:
    return text if by == 1 else f"{atom(text)} / {by}"


def _named_loops(nest: Nest) -> dict[Axis, str]:
    """Return names of the loops: row, column and channel where a window says which is which; else i, j, k."""
    names: dict[Axis, str] = {}
    for expression in order_parts(nest.value):
        if isinstance(expression, WindowFold):
            for word, index in zip(("image", "row", "column", "channel"), expression.place, strict=True):
                if len(index.terms) == 1 and word not in names.values():
                    names.setdefault(index.terms[0].axis, word)
    letters = iter(_LOOPS)
    return {axis: names.get(axis) or next(letters) for axis in nest.axes}
