"""A graph under construction: tensors in several types, and conversions made where they are first needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tflq.converters.passes.rewrite import constant
from tflq.converters.settings import Options
from tflq.converters.tpu_mlir.options import LayerOptions
from tflq.converters.tpu_mlir.passes.engines import F16, F32, INT8, Engine, Ranges
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, Attributes, DType, Graph, Node, Tensor
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter.kernels.tpu_mlir.multiplier import MANUAL

ARITHMETIC = "tpu_mlir"
_SUFFIX = {DType.INT8: "si8", DType.UINT8: "ui8", DType.FLOAT16: "f16", DType.FLOAT32: "f32"}


def code_type(affine: Affine) -> DType:
    """Return int8 or uint8."""
    return DType.INT8 if affine.signed else DType.UINT8


def kind_of(dtype: DType) -> str:
    """Return what a layer that writes a type computes in."""
    return {DType.FLOAT16: F16, DType.FLOAT32: F32}.get(dtype, INT8)


@dataclass
class Assembly:
    """A graph under construction.

    Attributes:
        source: fused float graph.
        ranges: names, ranges and types of its tensors.
        options: of the target.
        graph: what is being built.
        made: tensor of the source -> the tensors that hold it, in one type each; first the one that its layer writes.
        behind: tensor of the source -> its reals, which are permuted as integers.
        unrounded: tensors of float32 that TPU-MLIR calls float16.
    """

    source: Graph
    ranges: Ranges
    options: Options[LayerOptions]
    graph: Graph = field(default_factory=lambda: Graph([], [], (), ()))
    made: dict[int, list[int]] = field(default_factory=dict)
    behind: dict[int, int] = field(default_factory=dict)
    unrounded: set[int] = field(default_factory=set)

    @cached_property
    def chains(self) -> GraphEditor:
        """Writers and readers of the tensors of the source."""
        return GraphEditor(self.source)

    @property
    def names(self) -> Mapping[int, str]:
        """Tensor of the source -> what TPU-MLIR calls it."""
        return self.ranges.seen.names

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
            if tensor.dtype is dtype and tensor.quantization == affine:
                return found
        name = f"{self.names[t]}{reader}_{_SUFFIX[dtype]}"
        if dtype is DType.FLOAT16 and self.made[t][0] in self.unrounded:
            return self.made[t][0]
        new = self.add(t, dtype, affine, name)
        self._convert(self.made[t][0], new, affine)
        return new

    def _convert(self, source: int, target: int, affine: Affine | None) -> None:
        tensor = self.graph.tensors[target]
        marks = Attributes({"half": True}) if source in self.unrounded else None
        kind = "quantize" if affine else "dequantize"
        self.append(kind, (source,), target, tensor.name, Engine(kind_of(tensor.dtype)), marks)

    def operand(self, t: int, dtype: DType, node: Node) -> int:
        """Return the tensor as reals for a layer; what is permuted on the way there has been integers."""
        reader = self.names[node.outputs[0]]
        if (node.outputs[0], t) not in self.ranges.seen.operands:
            return self.fetch(t, dtype, None, reader)
        codes = self.integers(t, reader)
        if self.made[t][0] == codes:
            return self.fetch(t, dtype, None, reader)
        name = f"{self.names[t]}_permuted{reader}_{_SUFFIX[dtype]}"
        new = self.graph.add_tensor(Tensor(name, self.source.tensors[t].shape, dtype))
        self.append("dequantize", (codes,), new, name, Engine(kind_of(dtype)))
        return new

    def core(self, t: int) -> str:
        """Return TPU-MLIR's name of what an operator computes, in front of the layer that permutes it."""
        return self.ranges.seen.cores.get(t, self.names[t])

    def result(self, t: int, dtype: DType) -> int:
        """Add a tensor of reals that a layer computes; integers stand behind it where it is permuted then.

        Args:
            t: of the source.
            dtype: of the reals.
        """
        if t not in self.ranges.seen.results:
            return self.add(t, dtype, None, self.core(t))
        self.behind[t] = self.graph.add_tensor(Tensor(self.core(t), self.source.tensors[t].shape, dtype))
        return self.behind[t]

    def settle(self, t: int) -> None:
        """Add the integers of a result that is permuted."""
        values = self.behind.pop(t, None)
        if values is not None:
            affine, name = self.types[t], f"{self.core(t)}{self.names[t]}_quantized"
            self._convert(values, self.add(t, code_type(affine), affine, name), affine)

    def integers(self, t: int, reader: str) -> int:
        """Return the tensor in its own integers.

        Raises:
            UnsupportedError: they stand for no real numbers.
        """
        if t not in self.types:
            tensor = self.source.tensors[t]
            raise UnsupportedError(
                f"'{reader}' reads '{tensor.name}', plain {tensor.dtype.value}; TPU-MLIR takes quantized values "
                f"there: compute it outside of the model"
            )
        return self.fetch(t, code_type(self.types[t]), self.types[t], reader)

    def constant(self, name: str, data: Array, dtype: DType, affine: Affine | None = None) -> int:
        """Add a constant."""
        value = np.ascontiguousarray(data, dtype.storage).reshape(np.shape(data))
        return self.graph.add_tensor(constant(name, value, affine, dtype))

    def append(
        self,
        operator: str,
        inputs: tuple[int, ...],
        output: int | Sequence[int],
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
        outputs = (output,) if isinstance(output, int) else tuple(output)
        self.graph.nodes.append(Node(operator, inputs, outputs, marked, name, arithmetic=arithmetic))
