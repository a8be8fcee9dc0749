"""Flatbuffers as declared tables: one verified decoder and one encoder for any such table."""

from tflq.schemas.flatbuffer.decoder import Decoded, decode
from tflq.schemas.flatbuffer.encoder import MAX_SIZE, encode
from tflq.schemas.flatbuffer.table import Table, Union

__all__ = ["MAX_SIZE", "Decoded", "Table", "Union", "decode", "encode"]
