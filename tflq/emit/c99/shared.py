"""What the functions of one program share: helpers, primitives, sums over windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tflq.emit.c99.bounds import bounds_of_type
from tflq.emit.c99.builder import Builder
from tflq.emit.c99.expression import Buffer
from tflq.emit.c99.helpers import HELPERS, NEEDS, WINDOWS
from tflq.emit.c99.recorder import Call, ProgramOperations
from tflq.emit.c99.text import FunctionText
from tflq.emit.c99.words import identifier, stored_type
from tflq.errors import UnsupportedError
from tflq.interpreter.recording.primitive import Primitive
from tflq.interpreter.recording.tape import Kind, Tape
from tflq.interpreter.recording.traced import Traced
from tflq.quoting import c_comment

_SUFFIX = {"int32_t": "i32", "int64_t": "i64", "float": "f32", "double": "f64"}
_MOST = {"int32_t": "INT32_MAX", "int64_t": "INT64_MAX", "float": "FLT_MAX", "double": "DBL_MAX"}


@dataclass
class Shared:
    """What the functions of one program share, in the order in which it must stand.

    Attributes:
        helpers: text by name.
        primitives: text by name.
        windows: text by name.
    """

    helpers: dict[str, str] = field(default_factory=dict)
    primitives: dict[str, str] = field(default_factory=dict)
    windows: dict[str, str] = field(default_factory=dict)
    _names: dict[tuple[object, ...], str] = field(default_factory=dict)

    def helper(self, name: str, c_type: str) -> str:
        """Return the name of a helper for a type."""
        suffix = _SUFFIX[c_type]
        for needed in NEEDS.get(name, ()):
            self.helper(needed, c_type)
        self.helpers.setdefault(f"{name}_{suffix}", HELPERS[name].format(t=c_type, n=suffix, most=_MOST[c_type]))
        return f"{name}_{suffix}"

    def window(self, kind: str, image: str, weights: str, total: str) -> str:
        """Return the name of a sum over windows for types of elements, weights and sums."""
        parts = [_short(t) for t in (image, weights, total) if t]
        suffix = "_".join(parts)
        text = WINDOWS[kind].format(a=total, x=image, w=weights, n=suffix)
        self.windows.setdefault(f"{kind}_{suffix}", text)
        return f"{kind}_{suffix}"

    def primitive(self, call: Call, examples: Mapping[str, object]) -> tuple[str, tuple[tuple[str, str], ...], str]:
        """Return a primitive's name, the names and types of its arguments, and the type of its result.

        Its text is made from its Python: the same function, run once on traced numbers.
        """
        fixed = [(k, v.tobytes() if isinstance(v, np.ndarray) else v) for k, v in call.fixed.items()]
        key = (call.rule.function, tuple(fixed), call.part, tuple((k, d.str) for k, d in call.dtypes.items()))
        is_whole = bool(call.rule.body)
        arguments = tuple(
            (k, "int64_t" if is_whole or d.kind in "biu" else stored_type(d)) for k, d in call.dtypes.items()
        )
        if key not in self._names:
            result, body = self._body(call, examples)
            name = identifier(call.rule.function.__name__)
            specialized = [str(v) for _, v in fixed if isinstance(v, int) and not isinstance(v, bool)]
            while any(name == other or name == f"{other}_" for other in self._names.values()):
                name = identifier("_".join([name, *specialized]) if specialized else f"{name}_other")
                specialized = []
            self._names[key] = name
            inputs = ", ".join(f"{kind} {identifier(k)}" for k, kind in arguments)
            head = f"/* {c_comment(_first_line(call.rule))} */\nstatic inline {result} {name}({inputs})"
            self.primitives[name] = f"{head}\n{{\n{body}\n}}"
            self._results[name] = result
        name = self._names[key]
        return name, arguments, self._results[name]

    _results: dict[str, str] = field(default_factory=dict)

    def _body(self, call: Call, examples: Mapping[str, object]) -> tuple[str, str]:
        if call.rule.body:
            return "int64_t", call.rule.body.strip("\n")
        tape = Tape()
        operations = ProgramOperations(tape)
        buffers, given = [], {}
        for position, (name, dtype) in enumerate(call.dtypes.items()):
            wide = np.dtype(np.int64) if dtype.kind in "biu" else dtype
            low, high = bounds_of_type(wide)
            buffers.append(Buffer(identifier(name), wide, low, high, 1, is_scalar=True))
            given[name] = operations.source(
                Kind.INPUT, np.asarray(examples[name]).astype(wide), name, position=position
            )
        tables = {
            name: operations.source(Kind.PARAM, value, name) if isinstance(value, np.ndarray) else value
            for name, value in call.fixed.items()
        }
        with np.errstate(all="ignore"), operations.recording():
            result = call.rule.function(**given, **tables)
        result = result if call.part is None else result[call.part]
        if not isinstance(result, Traced) or result.ids is None:
            raise UnsupportedError(f"{call.rule.function.__name__} has no form in C")
        found = Builder(tape, buffers).build(result.ids.reshape(()), ())
        text = FunctionText(self, "", tape, {b.name for b in buffers})
        lines = text.statements(found)
        kind = found.c_type if found.is_real else "int64_t"
        return kind, "\n".join([*text.declared_tables(), *lines, f"    return {text.of(found, kind)};"])


def _short(c_type: str) -> str:
    return c_type.replace("uint", "u").replace("int", "i").replace("_t", "")


def _first_line(rule: Primitive) -> str:
    return (rule.function.__doc__ or rule.formula).strip().splitlines()[0]
