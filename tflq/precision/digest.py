"""A checksum of graphs, arrays and settings: results that were kept belong to a problem only if it is the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

import numpy as np


def digest_of(*values: object) -> str:
    """Return the SHA-256 of some values, as hexadecimal digits.

    Dataclasses count with the name of their type and all fields but `extra`, arrays with type, shape and bytes,
    mappings in the order of their keys' texts, everything else as Python writes it.
    """
    digest = hashlib.sha256()
    _add(digest, values)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, value: object) -> None:
    if isinstance(value, np.ndarray):
        digest.update(f"array {value.dtype.str} {value.shape};".encode())
        digest.update(repr(value.tolist()).encode() if value.dtype == object else np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Enum):
        digest.update(f"{value};".encode())
    elif is_dataclass(value):
        digest.update(f"{type(value).__name__}(".encode())
        for field in fields(value):
            if field.name != "extra":
                digest.update(f"{field.name}=".encode())
                _add(digest, getattr(value, field.name))
        digest.update(b")")
    elif isinstance(value, Mapping):
        digest.update(b"{")
        for key in sorted(value, key=str):
            digest.update(f"{key}:".encode())
            _add(digest, value[key])
        digest.update(b"}")
    elif isinstance(value, (tuple, list)):
        digest.update(b"(")
        for item in value:
            _add(digest, item)
        digest.update(b")")
    else:
        digest.update(f"{type(value).__name__} {value!r};".encode())
