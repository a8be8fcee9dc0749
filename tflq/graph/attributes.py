"""Attributes of an operator: the schema's field names with plain values, read through typed getters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tflq.arrays import is_same
from tflq.errors import GraphError

Attribute = bool | int | float | str | bytes | tuple[int, ...] | tuple[float, ...] | np.ndarray | None


class Attributes(Mapping[str, Attribute]):
    """An immutable mapping from attribute name to value.

    Enumerations are their names in lower case (`padding="same"`, `fused_activation_function="relu6"`).
    The getters raise GraphError where the value is absent (and no default is given) or has another type.
    """

    def __init__(self, values: Mapping[str, Attribute] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, name: str) -> Attribute:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attributes) and is_same(self._values, other._values)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._values)))

    def __repr__(self) -> str:
        return f"Attributes({self._values!r})"

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a whole number."""
        value = self._get(name, default)
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return int(value)
        raise self._wrong(name, value, "a whole number")

    def real(self, name: str, default: float | None = None) -> float:
        """Return a real number (the float32 of the file, widened)."""
        value = self._get(name, default)
        if isinstance(value, (int, float, np.floating)) and not isinstance(value, bool):
            return float(value)
        raise self._wrong(name, value, "a number")

    def boolean(self, name: str, default: bool | None = None) -> bool:
        """Return true or false."""
        value = self._get(name, default)
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        raise self._wrong(name, value, "true or false")

    def text(self, name: str, default: str | None = None) -> str:
        """Return a name, such as that of an enumeration's member."""
        value = self._get(name, default)
        if isinstance(value, str):
            return value
        raise self._wrong(name, value, "a name")

    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        value = self._get(name, default)
        if isinstance(value, tuple) or (isinstance(value, np.ndarray) and value.ndim == 1):
            return tuple(int(v) for v in value)
        raise self._wrong(name, value, "a list of whole numbers")

    def reals(self, name: str, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """Return a list of real numbers."""
        value = self._get(name, default)
        if isinstance(value, (tuple, np.ndarray)):
            return tuple(float(v) for v in value)
        raise self._wrong(name, value, "a list of numbers")

    def updated(self, **changes: Attribute) -> Attributes:
        """Return a copy with some values replaced or added."""
        return Attributes({**self._values, **changes})

    def _get(self, name: str, default: Attribute) -> Attribute:
        value = self._values.get(name)
        return default if value is None else value

    def _wrong(self, name: str, value: Attribute, allowed: str) -> GraphError:
        found = "nothing" if value is None else repr(value)
        return GraphError(f"attribute {name}: found {found}, allowed is {allowed}; has {', '.join(self._values)}")
