"""A graph under construction: tensors in several types, and conversions made where they are first needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tflq.converters.passes.rewrite import constant
from tflq.converters.settings import Options
from tflq.converters.tpu_mlir.options import LayerOptions
from tflq.converters.tpu_mlir.passes.engines import F16, F32, INT8, Engine
from tflq.converters.tpu_mlir.passes.unify import Span
from tflq.graph import Affine, Array, Attributes, DType, Graph, Node, Tensor
from tflq.interpreter.kernels.tpu_mlir.multiplier import MANUAL

ARITHMETIC = "tpu_mlir"
_SUFFIX = {DType.INT8: "si8", DType.UINT8: "ui8", DType.FLOAT16: "f16", DType.FLOAT32: "f32"}


def code_type(affine: Affine) -> DType:
    """Return int8 or uint8."""
    return DType.INT8 if affine.signed else DType.UINT8


def kind_of(dtype: DType) -> str:
    """Return what a layer that writes a type computes in."""
    return {DType.FLOAT16: F16, DType.FLOAT32: F32}.get(dtype, INT8)


@dataclass(frozen=True)
class Ranges:
    """What is known of a fused graph's tensors.

    Attributes:
        names: tensor -> what TPU-MLIR calls it.
        permuted: tensors that ONNX reaches through a Transpose which the model does not have.
        spans: ranges after unification.
        types: what they become in integers.
    """

    names: Mapping[int, str]
    permuted: frozenset[int]
    spans: Mapping[int, Span]
    types: Mapping[int, Affine]


@dataclass
class Assembly:
    """A graph under construction.

    Attributes:
        source: fused float graph.
        ranges: names, ranges and types of its tensors.
        options: of the target.
        graph: what is being built.
        made: tensor of the source -> the tensors that hold it, in one type each; first the one that its layer writes.
    """

    source: Graph
    ranges: Ranges
    options: Options[LayerOptions]
    graph: Graph = field(default_factory=lambda: Graph([], [], (), ()))
    made: dict[int, list[int]] = field(default_factory=dict)

    @property
    def names(self) -> Mapping[int, str]:
        """Tensor of the source -> what TPU-MLIR calls it."""
        return self.ranges.names

    @property
    def types(self) -> Mapping[int, Affine]:
        """Tensor of the source -> its type in integers."""
        return self.ranges.types

    def add(self, t: int, dtype: DType, affine: Affine | None, name: str = "") -> int:
        """Add a tensor that holds a computed tensor of the source in a type."""
        old = self.source.tensors[t]
        new = self.graph.add_tensor(Tensor(name or self.names[t], old.shape, dtype, affine, old.range))
        self.made.setdefault(t, []).append(new)
        return new

    def fetch(self, t: int, dtype: DType, affine: Affine | None, reader: str) -> int:
        """Return the tensor in a type; a conversion in front of its first reader where it is not there yet."""
        for found in self.made[t]:
            tensor = self.graph.tensors[found]
            if tensor.dtype is dtype and tensor.quantisation == affine:
                return found
        name = f"{self.names[t]}{reader}_{_SUFFIX[dtype]}"
        new = self.add(t, dtype, affine, name)
        self.append("quantize" if affine else "dequantize", (self.made[t][0],), new, name, Engine(kind_of(dtype)))
        return new

    def integers(self, t: int, reader: str) -> int:
        """Return the tensor in its own integers."""
        return self.fetch(t, code_type(self.types[t]), self.types[t], reader)

    def constant(self, name: str, data: Array, dtype: DType, affine: Affine | None = None) -> int:
        """Add a constant."""
        value = np.ascontiguousarray(data, dtype.storage).reshape(np.shape(data))
        return self.graph.add_tensor(constant(name, value, affine, dtype))

    def append(
        self,
        operator: str,
        inputs: tuple[int, ...],
        output: int,
        name: str,
        engine: Engine,
        attributes: Attributes | None = None,
        arithmetic: str = ARITHMETIC,
    ) -> None:
        """Add a node."""
        marked = (attributes or Attributes()).updated(
            engine=engine.kind,
            engine_reason=engine.reason,
            asked=engine.is_asked,
            asymmetric=self.options.whole.asymmetric,
            formulas=MANUAL if self.options.whole.manual else "tool",
        )
        self.graph.nodes.append(Node(operator, inputs, (output,), marked, name, arithmetic=arithmetic))
