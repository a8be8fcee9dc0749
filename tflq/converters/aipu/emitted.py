"""Emitted keys: the params of a layer in the quantized IR, their names, and how they are read back.

A layer's row lists its parts in the IR's order. A part writes the keys and constants of params, and reads the imported
params of a file under the same names, so that written and read keys cannot differ (docs/rules/aipu/compass_ir.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.imported import Imported, multiplier_bits
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.tables import Table
from tflq.schemas.aipu import Value

LARGEST_SHIFT = 127

_NIBBLE, _BYTE, _TWELVE = 4, 8, 12

LINEAR = ("scale_value", "shift_value", "shift_type", "scale_type")
ADDITIVE = ("scale_value", "shift_value", "scale_type", "shift_type")
CURVED = ("shift_value", "shift_type", "scale_value", "scale_type")
TYPED = ("scale_value", "scale_type", "shift_value", "shift_type")

PLAIN = "{0}_{1}"
"""How the keys of one multiplier are named: {0} is scale or shift, {1} value or type."""

Params = dict[str, Multiplier | Array]


@dataclass(frozen=True, eq=False)
class Emitted:
    """What one layer of the quantized IR holds beside its own constants and attributes.

    Attributes:
        constants: computed tensors, in order.
        keys: computed keys, in order.
        changed: keys of the float IR with a new value; None for one that goes.
        added: keys that a rewrite of the graph gave the layer.
        real_offsets: outputs whose zero point the Optimizer writes as 0.0.
        of_output: which of the computed tensors have the element type of the first output.
    """

    constants: Mapping[str, Array] = field(default_factory=dict)
    keys: Mapping[str, Value] = field(default_factory=dict)
    changed: Mapping[str, Value | None] = field(default_factory=dict)
    added: Mapping[str, Value] = field(default_factory=dict)
    real_offsets: tuple[int, ...] = ()
    of_output: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lowered:
    """A lowered layer."""

    node: Node
    operands: Operands

    def param(self, name: str) -> object:
        """Return one of the kernel's params; None where it has none of that name."""
        return getattr(self.node.params, name, None)

    def number(self, name: str) -> int:
        """Return a param that is a whole number."""
        found = self.param(name)
        assert isinstance(found, int)
        return found

    def multipliers(self, name: str) -> tuple[Multiplier, ...]:
        """Return a param of one or several multipliers; none where the layer needs none."""
        found = self.param(name)
        each = found if isinstance(found, (tuple, list)) else (found,)
        return tuple(one for one in each if isinstance(one, Multiplier))


@dataclass(frozen=True, eq=False)
class FromFile(Imported):
    """The params of a layer that a quantized file decided, and what stood there.

    Attributes:
        name: of the layer.
        keys: computed keys.
        constants: computed tensors.
    """

    name: str = ""
    keys: Mapping[str, Value] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)

    def numbers(self, key: str) -> Integers | None:
        """Return a computed key, one number or several, as int64[n]; None where there is none.

        Raises:
            UnsupportedError: the key holds something else than whole numbers.
        """
        if key not in self.keys:
            return None
        value = self.keys[key]
        is_flat = not isinstance(value, tuple) or not any(isinstance(item, tuple) for item in value)
        values = np.atleast_1d(np.asarray(value if is_flat else ""))
        if values.dtype.kind not in "iu":
            raise UnsupportedError(f"layer '{self.name}': {key}={value}: allowed are whole numbers")
        return values.astype(np.int64)

    def multiplier(self, names: str = PLAIN) -> Multiplier | None:
        """Return M and N: the constants scale and shift, else two keys.

        Raises:
            UnsupportedError: numbers of another form, or a shift beyond 63.
        """
        if names == PLAIN and "scale" in self.constants and "shift" in self.constants:
            m, n = (self.constants[key].astype(np.int64) for key in ("scale", "shift"))
        else:
            of_key = [self.numbers(names.format(part, "value")) for part in ("scale", "shift")]
            if of_key[0] is None or of_key[1] is None:
                return None
            m, n = of_key[0], of_key[1]
        if n.size not in (1, m.size):
            raise UnsupportedError(
                f"layer '{self.name}': {m.size} multipliers, {n.size} shifts; allowed is one for each"
            )
        if np.abs(n).max(initial=0) > LARGEST_SHIFT:
            largest = n[np.argmax(np.abs(n))]
            raise UnsupportedError(f"layer '{self.name}': a shift of {largest}; allowed is +-{LARGEST_SHIFT}")
        return Multiplier(m, n)


def stored_type(tensor: Tensor) -> str:
    """Return the element type by its name in the IR: aligned_int4 up to 4 bits, aligned_int12 of 9 to 12."""
    bits = tensor.affine.bits if isinstance(tensor.quantization, Affine) else tensor.dtype.bits
    kind = "int" if tensor.dtype.is_signed else "uint"
    if tensor.dtype.is_integer and (bits <= _NIBBLE or _BYTE < bits <= _TWELVE):
        return f"aligned_{kind}{_NIBBLE if bits <= _NIBBLE else _TWELVE}"
    return tensor.dtype.value


class Part(Protocol):
    """Some keys or constants of a layer."""

    def emit(self, layer: Lowered) -> Emitted:
        """Return what stands in the IR."""

    def read(self, file: FromFile) -> Params:
        """Return the params that a file decided."""


Emission = Sequence[Part] | Callable[[Node], Sequence[Part]]
"""The parts of a layer, or which parts a node has by its method."""


def emitted_by(emission: Emission, layer: Lowered) -> Emitted:
    """Return what a lowered layer emits."""
    each = [part.emit(layer) for part in _parts(emission, layer.node)]
    return Emitted(
        {key: value for one in each for key, value in one.constants.items()},
        {key: value for one in each for key, value in one.keys.items()},
        {key: value for one in each for key, value in one.changed.items()},
        {key: value for one in each for key, value in one.added.items()},
        tuple(place for one in each for place in one.real_offsets),
        tuple(key for one in each for key in one.of_output),
    )


def imported_by(emission: Emission, node: Node, file: FromFile) -> FromFile:
    """Return a file's layer with its imported params; raises as `FromFile.numbers` and `FromFile.multiplier`."""
    return FromFile(read_parts(_parts(emission, node), file), file.name, file.keys, file.constants)


def read_parts(parts: Iterable[Part], file: FromFile) -> Params:
    """Return the params that several parts read."""
    return {name: value for part in parts for name, value in part.read(file).items()}


def _parts(emission: Emission, node: Node) -> Sequence[Part]:
    return emission(node) if callable(emission) else emission


def factor_keys(
    order: Sequence[str], found: Multiplier | Sequence[Multiplier], kind: str, names: str = PLAIN, shift: str = "int8"
) -> dict[str, Value]:
    """Return the four keys of one multiplier, or of several as lists, in a layer's order.

    Args:
        order: of scale_value, scale_type, shift_value, shift_type.
        found: M and N.
        kind: type of M.
        names: of the keys, as `PLAIN`.
        shift: type of N.
    """
    each = (found,) if isinstance(found, Multiplier) else found
    columns: dict[str, tuple[Value, ...]] = {
        "scale_value": tuple(f.first_m for f in each),
        "shift_value": tuple(f.first_n for f in each),
        "scale_type": (kind,) * len(each),
        "shift_type": (shift,) * len(each),
    }
    values = {key: column[0] if isinstance(found, Multiplier) else column for key, column in columns.items()}
    return {names.format(*key.split("_")): values[key] for key in order}


@dataclass(frozen=True)
class Factors:
    """M and N of a param, one or several.

    Attributes:
        order: of the keys.
        kind: type of M; "" for that of the requested width, or of the output's.
        name: of the param.
        names: of the keys, as `PLAIN`.
        shift: type of N.
        output: whose width counts.
    """

    order: Sequence[str] = CURVED
    kind: str = ""
    name: str = "rescale"
    names: str = PLAIN
    shift: str = "int8"
    output: int = 0

    def emit(self, layer: Lowered) -> Emitted:
        """Return four keys; nothing where the layer needs no multiplier."""
        found = layer.multipliers(self.name)
        if not found:
            return Emitted()
        kind = self.kind or type_of_multiplier(multiplier_bits(layer.node, layer.operands.output(self.output)))
        single = isinstance(layer.param(self.name), Multiplier)
        keys = factor_keys(self.order, found[0] if single else found, kind, self.names, self.shift)
        return Emitted(keys=keys)

    def read(self, file: FromFile) -> Params:
        """Return M and N."""
        found = file.multiplier(self.names)
        return {} if found is None else {self.name: found}


@dataclass(frozen=True)
class Lut:
    """A table.

    Attributes:
        key: of the constant.
        name: of the param.
        dtype: of the entries; None for the output's.
    """

    key: str = "lut"
    name: str = "table"
    dtype: type[np.generic] | None = None

    def emit(self, layer: Lowered) -> Emitted:
        """Return the entries; nothing where the layer has no such table."""
        found = layer.param(self.name)
        entries = found.entries if isinstance(found, Table) else found
        if not isinstance(entries, np.ndarray):
            return Emitted()
        if self.dtype is not None:
            return Emitted({self.key: entries.astype(self.dtype)})
        return Emitted({self.key: entries.astype(layer.operands.output().dtype.storage)}, of_output=(self.key,))

    def read(self, file: FromFile) -> Params:
        """Return the entries."""
        return {self.name: file.constants[self.key]} if self.key in file.constants else {}


@dataclass(frozen=True)
class Luts:
    """Tables of int16 for y and x that stand in one param.

    Attributes:
        keys: of the constants.
        names: of the imported params.
        param: that holds them.
    """

    keys: tuple[str, str]
    names: tuple[str, str]
    param: str

    def emit(self, layer: Lowered) -> Emitted:
        """Return the entries."""
        found = layer.param(self.param)
        assert isinstance(found, tuple)
        return Emitted({key: table.entries.astype(np.int16) for key, table in zip(self.keys, found, strict=True)})

    def read(self, file: FromFile) -> Params:
        """Return the entries."""
        pairs = zip(self.keys, self.names, strict=True)
        return {name: file.constants[key] for key, name in pairs if key in file.constants}


@dataclass(frozen=True)
class Number:
    """A whole number.

    Attributes:
        key: of the number.
        name: of the param.
        type_key: of its type; "" for none.
        kind: the type.
    """

    key: str
    name: str
    type_key: str = ""
    kind: str = "int8"

    def emit(self, layer: Lowered) -> Emitted:
        """Return the number and its type."""
        keys: dict[str, Value] = {self.key: layer.number(self.name)}
        return Emitted(keys={**keys, self.type_key: self.kind} if self.type_key else keys)

    def read(self, file: FromFile) -> Params:
        """Return the number."""
        found = file.numbers(self.key)
        return {} if found is None else {self.name: found}


@dataclass(frozen=True)
class Fixed:
    """Keys that always hold the same."""

    keys: Mapping[str, Value] = field(default_factory=dict)
    changed: Mapping[str, Value | None] = field(default_factory=dict)
    real_offsets: tuple[int, ...] = ()

    def emit(self, _layer: Lowered) -> Emitted:
        """Return them."""
        return Emitted(keys=self.keys, changed=self.changed, real_offsets=self.real_offsets)

    def read(self, _file: FromFile) -> Params:
        """Return nothing."""
        return {}


def _read_nothing(_file: FromFile) -> Params:
    return {}


@dataclass(frozen=True)
class Computed:
    """What a function of the layer says."""

    write: Callable[[Lowered], Emitted]
    reader: Callable[[FromFile], Params] = _read_nothing

    def emit(self, layer: Lowered) -> Emitted:
        """Return what the function says."""
        return self.write(layer)

    def read(self, file: FromFile) -> Params:
        """Return what the reader finds."""
        return self.reader(file)
