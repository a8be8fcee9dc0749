"""Caffe 1.0's network file: the parts of caffe.proto that weights need, and an encoder of protobuf's wire format.

Source: BVLC Caffe, src/caffe/proto/caffe.proto; protobuf's encoding guide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NET_NAME, NET_LAYER = 1, 100
LAYER_NAME, LAYER_TYPE, LAYER_BOTTOM, LAYER_TOP, LAYER_BLOBS = 1, 2, 3, 4, 7
BLOB_DATA, BLOB_SHAPE = 5, 7
SHAPE_DIM = 1

_LENGTH_DELIMITED = 2


@dataclass(frozen=True, eq=False)
class BlobLayer:
    """A layer of a .caffemodel.

    Attributes:
        name: by which the prototxt's layer finds it.
        type: Caffe's name of the layer.
        bottoms: blobs it reads.
        tops: blobs it writes.
        blobs: weights, then bias: float32 of any shape.
    """

    name: str
    type: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    blobs: tuple[NDArray[np.float32], ...]


def encode_net(name: str, layers: Sequence[BlobLayer]) -> bytes:
    """Return a NetParameter as bytes: its name and its layers with their blobs."""
    return _text(NET_NAME, name) + b"".join(_message(NET_LAYER, _layer(layer)) for layer in layers)


def varint(value: int) -> bytes:
    """Return a whole number of 0 or more in base 128, low groups first, all but the last with the high bit set."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _layer(layer: BlobLayer) -> bytes:
    parts = [_text(LAYER_NAME, layer.name), _text(LAYER_TYPE, layer.type)]
    parts += [_text(LAYER_BOTTOM, name) for name in layer.bottoms]
    parts += [_text(LAYER_TOP, name) for name in layer.tops]
    return b"".join([*parts, *(_message(LAYER_BLOBS, _blob(blob)) for blob in layer.blobs)])


def _blob(data: NDArray[np.float32]) -> bytes:
    """Return a BlobProto: packed floats, little-endian, and packed dimensions."""
    dims = b"".join(varint(size) for size in data.shape)
    return _message(BLOB_DATA, data.astype("<f4").tobytes()) + _message(BLOB_SHAPE, _message(SHAPE_DIM, dims))


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | _LENGTH_DELIMITED) + varint(len(content)) + content
