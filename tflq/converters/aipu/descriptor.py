"""What one layer of Compass is to the target: a row of its family's table in operators/.

Source: docs/rules/aipu/values.md, docs/rules/aipu/operators.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tflq.converters.aipu.emitted import Emission
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.ranges import range_of, type_of_range
from tflq.converters.aipu.translation import Translation
from tflq.graph import Affine, DType, Graph, Node, Operands, Quantization, Tensor
from tflq.graph.attributes import Attribute
from tflq.interpreter.kernels.aipu.scales import affine_of, is_signed

ARITHMETIC = "aipu"

OutputType = tuple[DType, Quantization | None]
Signed = Callable[[Node, Operands], bool]
"""Whether the values of an output are signed; the inputs of the operands have their types."""

Types = Callable[[Node, Operands, LayerOptions], tuple[OutputType, ...] | None]
"""The type of each output by a rule of the layer; None where the range decides after all."""

Constants = Callable[[Node, Operands, LayerOptions], Mapping[str, Tensor]]
"""Key -> constant of a layer as integers; inputs and outputs have their types."""

Requested = Callable[[Node, Operands, LayerOptions], dict[str, Attribute]]
"""Requested options of a layer that its operands decide."""


@dataclass(frozen=True)
class Internal:
    """What a layer computes within itself and quantizes by its own range: a node's intermediates.

    Attributes:
        names: in order.
        signed: whether they may be below 0.
        each_step: name of one more a time step; "" for none.
        methods: of the layer that have them; none for all.
    """

    names: tuple[str, ...]
    signed: bool = True
    each_step: str = ""
    methods: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layer:
    """One layer; its name in the table is that of its kernel in arithmetic `aipu`.

    Its outputs have the type of `types`, else by their range, signed as `signed` says, else the input's own type.

    Attributes:
        type: as in the IR.
        signed: for a type by the range.
        types: a rule of its own.
        paper_types: the rule of the whitepaper, where it has another.
        emitted: its parts in the quantized IR.
        internal: what it quantizes within itself.
        constants: how its constants become integers.
        passed: outputs that have the input's own type all the same.
        keeps_whole: whether whole numbers in give whole numbers out, at scale 1.
        needs_range: whether a rule of its own reads the output's range; by method where it is a function.
        is_linear: whether it has weights and biases on the scale of its input.
        requested: requested options that the kernel reads, which follow from the layer's own.
        has_width: whether `multiplier_bits` is for it.
        has_own_scales: whether its parts hold the scales of its weights and biases, several a tensor.
    """

    type: str
    signed: Signed | None = None
    types: Types | None = None
    paper_types: Types | None = None
    emitted: Emission = ()
    internal: Internal | None = None
    constants: Constants | None = None
    passed: tuple[int, ...] = ()
    keeps_whole: bool = False
    needs_range: bool | Callable[[Node], bool] = False
    is_linear: bool = False
    has_width: bool | Callable[[Node], bool] = False
    requested: Requested | None = None
    has_own_scales: bool = False

    @property
    def passes(self) -> bool:
        """Whether the output has the input's own type."""
        return self.signed is None and self.types in (None, all_values)


@dataclass(frozen=True)
class Row:
    """Layers with one formula, for the table of docs/rules/aipu/operators.md, which scripts/worked_layers writes.

    Attributes:
        paper: sections of the whitepaper, "4.24 to 4.26, 4.28"; "-" where it has none.
        operator: its names there; in brackets what others call it.
        formula: of the quantized values.
        tests: marks of the page's legend.
        layer: types in the IR, with methods and conditions; "" where they are the operator's own names.
        tflite: operators that become it.
        signed: what the output is; "" where `Layer.signed` says it.
        restriction: what the layer must be.
    """

    paper: str
    operator: str
    formula: str
    tests: str
    layer: str = ""
    tflite: str = "none"
    signed: str = ""
    restriction: str = "-"

    @property
    def types(self) -> tuple[str, ...]:
        """The types in the IR alone."""
        plain = re.sub(r"\(.*?\)|quantize_method=\w+", "", self.layer or self.operator)
        return tuple(re.split(r"[ ;]", part.strip())[0] for part in re.split("[,;]", plain) if part.strip())


@dataclass(frozen=True)
class Source:
    """One operator of TFLite: how it becomes layers, and what it must be for that.

    Attributes:
        translate: adds its layers.
        operands: how many there must be, where the constants do not say.
        constants: operands that must be constants.
        data: the operand whose type counts.
        any_type: whether that may be integers.
        is_image: whether it must have 4 axes.
        refuse: says what else stands in the way; "" for nothing.
    """

    translate: Callable[[Translation, Node], None]
    operands: int = 1
    constants: tuple[int, ...] = ()
    data: int = 0
    any_type: bool = False
    is_image: bool = False
    refuse: Callable[[Graph, Node], str] | None = None


def says(flag: bool | Callable[[Node], bool], node: Node) -> bool:
    """Return a flag, by the node where it is a function."""
    return flag(node) if callable(flag) else flag


def never(_node: Node, _operands: Operands) -> bool:
    """Unsigned."""
    return False


def always(_node: Node, _operands: Operands) -> bool:
    """Signed."""
    return True


def follows_input(_node: Node, operands: Operands) -> bool:
    """Signed where any input that is no constant is."""
    return any(is_signed(t) for t in operands.inputs if t is not None and not t.is_constant)


def code_type(affine: Affine) -> DType:
    """Return the element type that holds quantized values."""
    bits = next(b for b in (8, 16, 32, 64) if affine.bits <= b)
    return DType(f"{'int' if affine.signed else 'uint'}{bits}")


def typed(affine: Affine) -> OutputType:
    """Return a type with its element type."""
    return code_type(affine), affine


def plain(bits: int, signed: bool = False, zp: int = 0) -> OutputType:
    """Return the type of counts, indices and truth values: scale 1."""
    return typed(affine_of(np.float32(1), zp, bits, signed))


def like(tensor: Tensor) -> OutputType:
    """Return the type of another tensor."""
    return tensor.dtype, tensor.quantization


def all_values(_node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """Pass the input's type, but with all quantized values, whose limits the Optimizer does not hand on here."""
    return (with_all_values(operands.input(0)),) * len(operands.outputs)


def with_all_values(tensor: Tensor) -> OutputType:
    """Return the type of another tensor, with no quantized value left out."""
    quantization = tensor.quantization
    return tensor.dtype, replace(quantization, narrow_range=False) if isinstance(quantization, Affine) else None


def by_range(tensor: Tensor, signed: bool, options: LayerOptions, is_symmetric: bool | None = None) -> OutputType:
    """Return the type of a tensor by its range, symmetric as requested unless told otherwise."""
    low, high = range_of(tensor)
    symmetric = options.is_symmetric if is_symmetric is None else is_symmetric
    return typed(type_of_range(low, high, options.activation_bits, signed, symmetric, options.restricted))
