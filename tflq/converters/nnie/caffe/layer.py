"""One layer of a Caffe network: what a builder sees of the graph, its text, and its bytes in the .caffemodel.

Source: BVLC Caffe, src/caffe/proto/caffe.proto; protobuf's encoding guide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Union

import numpy as np
from numpy.typing import NDArray

from tflq.errors import UnsupportedError
from tflq.graph import Array, Graph, Node
from tflq.graph.rewriting import fused_activation
from tflq.quoting import prototxt_string

Parameter = Union[int, float, bool, str, "tuple[int, ...]", "Mapping[str, Parameter]"]
"""A field of the prototxt; text is the name of an enumeration's member, a tuple a repeated field."""


@dataclass(frozen=True, eq=False)
class CaffeLayer:
    """A layer.

    Attributes:
        name: unique.
        type: Caffe's name.
        bottoms: blobs it reads.
        tops: blobs it writes.
        parameters: message -> its fields.
        blobs: weights, then bias, for the .caffemodel.
    """

    name: str
    type: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    blobs: tuple[NDArray[np.float32], ...] = ()


Step = tuple[str, "Mapping[str, Parameter]", "tuple[NDArray[np.float32], ...]"]
"""Type, parameters and blobs of a layer with one input and one output."""
Image = tuple[int, int, int, int]


def image_of(shape: tuple[int, ...], batch: int) -> Image:
    """Return the image [N, H, W, C] that a tensor is in Caffe: sequences [N, L, C] have one row, [N, K] one pixel.

    Raises:
        UnsupportedError: more than 4 axes, or entries that do not belong to single samples.
    """
    if len(shape) == 4 and shape[0] == batch:
        return shape[0], shape[1], shape[2], shape[3]
    if len(shape) in (2, 3) and shape[0] == batch:
        return batch, 1, shape[1] if len(shape) == 3 else 1, shape[-1]
    if batch == 1 and len(shape) in (1, 2, 3):  # entries of the one sample side by side
        height, width, channels = ((1,) * (3 - len(shape)) + shape)[:3]
        return 1, height, width, channels
    raise UnsupportedError(f"a tensor of {len(shape)} axes, {shape}; NNIE's blobs are images of one sample each")


@dataclass(frozen=True)
class Site:
    """Where a node stands.

    Attributes:
        graph: of real numbers.
        node: the node.
        name: of the layer to make.
        bottoms: blobs of its computed inputs, in order.
        sources: for each of them the tensor that the blob holds: in front of a reshape that only flattens.
        top: blob to write.
        batch: first axis of the graph's inputs.
    """

    graph: Graph
    node: Node
    name: str
    bottoms: tuple[str, ...]
    sources: tuple[int, ...]
    top: str
    batch: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first input's blob, as the graph has it (channels last)."""
        return self.graph.tensors[self.sources[0]].shape

    def image(self) -> tuple[int, int, int]:
        """Return height, width and channels of the first input; raises as `image_of`."""
        return image_of(self.shape, self.batch)[1:]

    def output_image(self, position: int = 0) -> Image:
        """Return an output's shape as an image; raises as `image_of`."""
        return image_of(self.graph.tensors[self.node.outputs[position]].shape, self.batch)

    def computed_images(self) -> list[Image]:
        """Return the images of the computed inputs; raises as `image_of`."""
        return [image_of(self.graph.tensors[t].shape, self.batch) for t in self.sources]

    def axis(self, axis: int, rank: int) -> int:
        """Return which axis of [N, C, H, W] an axis of a tensor of `rank` axes is; raises for the batch.

        Raises:
            UnsupportedError: it is the batch, or nothing of an image.
        """
        place = {4: (0, 2, 3, 1), 3: (0, 3, 1), 2: (0, 1)}.get(rank, ())
        found = place[axis % rank] if place else 0
        if not found:
            raise UnsupportedError(f"it works on the first of {rank} sizes; NNIE has no operation on the batch")
        return found

    def constant(self, position: int) -> Array | None:
        """Return the value of an operand; None where it is absent.

        Raises:
            UnsupportedError: it is computed at run time.
        """
        if position >= len(self.node.inputs) or self.node.inputs[position] < 0:
            return None
        tensor = self.graph.tensors[self.node.inputs[position]]
        if tensor.data is None:
            raise UnsupportedError(f"operand '{tensor.name}' is computed at run time; Caffe takes a constant there")
        return tensor.data

    def layer(
        self, kind: str, parameters: Mapping[str, Parameter] | None = None, blobs: tuple[NDArray[np.float32], ...] = ()
    ) -> CaffeLayer:
        """Return a layer from the inputs to the top."""
        return CaffeLayer(self.name, kind, self.bottoms, (self.top,), parameters or {}, blobs)

    def chain(self, *steps: Step) -> list[CaffeLayer]:
        """Return layers one behind the other, from the inputs to the top; all but the last have numbers in names."""
        layers, bottoms = [], self.bottoms
        for number, (kind, parameters, blobs) in enumerate(steps, 1):
            name = self.name if number == len(steps) else f"{self.name}_{number}"
            top = self.top if number == len(steps) else name
            layers.append(CaffeLayer(name, kind, bottoms, (top,), parameters, blobs))
            bottoms = (top,)
        return layers

    def rectifier(self) -> list[CaffeLayer]:
        """Return the layers of a fused activation, in place; nothing where there is none.

        min(ReLU(x - low), high - low) + low is high - ReLU(high - low - ReLU(x - low)): Caffe 1.0 has no ReLU6.

        Raises:
            UnsupportedError: another activation.
        """
        fused = fused_activation(self.node)
        if fused == "none":
            return []
        if fused not in RECTIFIERS:
            raise UnsupportedError(f"fused activation {fused}; known are none, {', '.join(RECTIFIERS)}")
        return [
            CaffeLayer(
                f"{self.name}_relu" if number == 0 else f"{self.name}_relu_{number}",
                kind,
                (self.top,),
                (self.top,),
                fields,
            )
            for number, (kind, fields, _) in enumerate(RECTIFIERS[fused])
        ]


def power_step(scale: float = 1.0, shift: float = 0.0, power: float = 1.0) -> Step:
    """Return (shift + scale * x)^power, numbers as float32 has them."""
    given = {"power": power, "scale": scale, "shift": shift}
    return ("Power", {"power_param": {key: float(np.float32(value)) for key, value in given.items()}}, ())


RELU: Step = ("ReLU", {}, ())


def _clipping(low: float, high: float) -> tuple[Step, ...]:
    front = (power_step(1, -low),) if low else ()
    return (*front, RELU, power_step(-1, high - low), RELU, power_step(-1, high))


RECTIFIERS: Mapping[str, tuple[Step, ...]] = {
    "relu": (RELU,),
    "relu6": _clipping(0, 6),
    "relu_n1_to_1": _clipping(-1, 1),
    "relu_0_to_1": _clipping(0, 1),
}
"""Activations that clamp, as layers; none has blobs."""


def prototxt(name: str, layers: Sequence[CaffeLayer]) -> str:
    """Return the .prototxt."""
    lines = [f"name: {prototxt_string(name)}"]
    for layer in layers:
        lines += ["layer {", f"  name: {prototxt_string(layer.name)}", f'  type: "{layer.type}"']
        lines += [f"  bottom: {prototxt_string(blob)}" for blob in layer.bottoms]
        lines += [f"  top: {prototxt_string(blob)}" for blob in layer.tops]
        lines += _fields(layer.parameters, "  ")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _fields(fields: Mapping[str, Parameter], indent: str) -> Iterator[str]:
    for key, value in fields.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key} {{"
            yield from _fields(value, indent + "  ")
            yield f"{indent}}}"
        elif isinstance(value, tuple):
            yield from (f"{indent}{key}: {item}" for item in value)
        else:
            yield f"{indent}{key}: {str(value).lower() if isinstance(value, bool) else value}"


_NET_NAME, _NET_LAYER = 1, 100
_LAYER_NAME, _LAYER_TYPE, _LAYER_BOTTOM, _LAYER_TOP, _LAYER_BLOBS = 1, 2, 3, 4, 7
_BLOB_DATA, _BLOB_SHAPE = 5, 7
_SHAPE_DIM = 1
_LENGTH_DELIMITED = 2


def encode_net(name: str, layers: Sequence[CaffeLayer]) -> bytes:
    """Return the .caffemodel, a NetParameter: its name, and the layers that have blobs."""
    return _text(_NET_NAME, name) + b"".join(_message(_NET_LAYER, _layer(layer)) for layer in layers if layer.blobs)


def varint(value: int) -> bytes:
    """Return a whole number of 0 or more in base 128, low groups first, all but the last with the high bit set."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _layer(layer: CaffeLayer) -> bytes:
    parts = [_text(_LAYER_NAME, layer.name), _text(_LAYER_TYPE, layer.type)]
    parts += [_text(_LAYER_BOTTOM, name) for name in layer.bottoms]
    parts += [_text(_LAYER_TOP, name) for name in layer.tops]
    return b"".join([*parts, *(_message(_LAYER_BLOBS, _blob(blob)) for blob in layer.blobs)])


def _blob(data: NDArray[np.float32]) -> bytes:
    """Return a BlobProto: packed floats, little-endian, and packed dimensions."""
    dims = b"".join(varint(size) for size in data.shape)
    return _message(_BLOB_DATA, data.astype("<f4").tobytes()) + _message(_BLOB_SHAPE, _message(_SHAPE_DIM, dims))


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | _LENGTH_DELIMITED) + varint(len(content)) + content
