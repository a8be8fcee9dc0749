"""Integer constants: weights, biases and constant activations; equal uses of one constant share it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.converters.passes.rewrite import constant
from tflq.converters.tflite_quantizer.options import LayerOptions
from tflq.converters.tflite_quantizer.prepare import Prepared
from tflq.converters.tflite_quantizer.rules import Filter
from tflq.converters.tflite_quantizer.scales import bias_codes, codes, weight_codes, weights
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Affine, Array, DType, Graph, Node, Tensor

_Encode = Callable[[Array], Array]
_LARGEST_HALF = 65504.0
_ACTIVATION_TYPES = {8: DType.INT8, 16: DType.INT16}


def type_of(affine: Affine) -> DType:
    """Return int8, int16 or uint8."""
    return _ACTIVATION_TYPES[affine.bits] if affine.signed else DType.UINT8


@dataclass
class Constants:
    """Adds integer constants to a graph.

    Attributes:
        prepared: the float network, with the real values.
        graph: the graph that is written.
    """

    prepared: Prepared
    graph: Graph
    _known: dict[tuple[int, DType, bytes, bytes], int] = field(default_factory=dict)

    def activation(self, t: int, affine: Affine) -> int:
        """Return a constant activation in the given quantization."""
        return self._add(t, type_of(affine), affine, lambda values: codes(values, affine))

    def half(self, t: int) -> int:
        """Return a constant as float16, cut to 65504 (infinity, too), as TFLiteConverter does."""
        if (t, DType.FLOAT16, b"", b"") not in self._known:
            tensor = self.prepared.graph.tensors[t]
            kept = np.clip(np.asarray(tensor.data), -_LARGEST_HALF, _LARGEST_HALF).astype(np.float16)
            made = constant(tensor.name, kept)
            self._known[t, DType.FLOAT16, b"", b""] = self.graph.add_tensor(replace(made, has_rank=tensor.has_rank))
        return self._known[t, DType.FLOAT16, b"", b""]

    def weights(self, node: Node, found: Filter, kind: str, layer: LayerOptions, input_scale: float) -> int:
        """Return the int8 or int4 weights of a node; `input_scale` is 0 where the bias stays float."""
        t = node.inputs[found.weights]
        tensor = self.prepared.graph.tensors[t]
        bias = self._bias(node, found)
        assert tensor.data is not None
        stated = self.prepared.stated.get(t)
        axis = found.axis if layer.per_channel else None
        half_range = None if stated is None else max(abs(stated.minimum), abs(stated.maximum))
        bits = layer.weight_bits if stated is None else min(layer.weight_bits, stated.bits)
        steps = (1 << (bits - 1)) - 1
        reals = None if bias is None or bias.data is None else bias.data.astype(np.float64)
        try:
            scales = weights(tensor.data, axis, reals, input_scale, kind, half_range, steps)
        except UnsupportedError as error:
            raise UnsupportedError(f"weights '{tensor.name}': {error}") from None
        narrow = layer.weight_bits == 4
        affine = replace(scales.affine, bits=4) if narrow else scales.affine
        dtype = DType.INT4 if narrow else DType.INT8
        return self._add(t, dtype, affine, lambda values: weight_codes(values, scales, not input_scale))

    def bias(self, node: Node, found: Filter, kind: str, input_scale: np.float32, weights: int) -> int:
        """Return the bias in units of input scale * weight scale; ABSENT where the node has none."""
        if self._bias(node, found) is None:
            return ABSENT
        scale = float(input_scale) * self.graph.tensors[weights].affine.scale.astype(np.float64)
        dtype = DType.INT32 if kind == "int8" else DType.INT64
        size = self.prepared.graph.tensors[node.inputs[found.bias]].size
        scales = np.broadcast_to(scale, size) if scale.size > 1 else scale
        rounded = scales.astype(np.float32)
        affine = Affine(rounded, np.zeros(scale.size, np.int64), 0 if scale.size > 1 else None, dtype.bits)
        return self._add(node.inputs[found.bias], dtype, affine, lambda values: bias_codes(values, scales, kind))

    def _bias(self, node: Node, found: Filter) -> Tensor | None:
        position = found.bias
        if position >= len(node.inputs) or node.inputs[position] == ABSENT:
            return None
        return self.prepared.graph.tensors[node.inputs[position]]

    def _add(self, t: int, dtype: DType, affine: Affine, encode: _Encode) -> int:
        key = (t, dtype, affine.scale.tobytes(), affine.zero_point.tobytes())
        if key not in self._known:
            tensor = self.prepared.graph.tensors[t]
            assert tensor.data is not None
            if np.isnan(tensor.data).any():
                raise UnsupportedError(f"constant '{tensor.name}' holds NaN; its values must be numbers")
            made = constant(tensor.name, encode(tensor.data), affine, dtype)
            self._known[key] = self.graph.add_tensor(replace(made, has_rank=tensor.has_rank))
        return self._known[key]
