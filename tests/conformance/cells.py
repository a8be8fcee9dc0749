"""One cell of the conformance table: an operator in a type."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import DType


@dataclass(frozen=True)
class Kind:
    """The type of a cell.

    Written as the name of the element type of the operator's data, then `q` where its integers are quantized, then
    `*` and the type of the weights where it is another one: int8, int8q, int8q*int4, float32*int8.

    Attributes:
        dtype: of the data.
        is_quantized: whether it carries scales and zero points.
        weights: type of the weights; the data's where None.
    """

    dtype: DType
    is_quantized: bool = False
    weights: DType | None = None

    def __str__(self) -> str:
        return self.dtype.value + "q" * self.is_quantized + ("" if self.weights is None else f"*{self.weights.value}")

    @classmethod
    def of(cls, label: str) -> Kind:
        """Parse what `str` writes."""
        data, _, weights = label.partition("*")
        return cls(DType(data.removesuffix("q")), data.endswith("q"), DType(weights) if weights else None)


@dataclass(frozen=True)
class Cell:
    """An operator (TFLite's name in lower case, or the code of a custom one) in a type."""

    operator: str
    kind: Kind

    def __str__(self) -> str:
        return f"{self.operator} {self.kind}"

    @property
    def dtype(self) -> DType:
        return self.kind.dtype

    @property
    def is_quantized(self) -> bool:
        return self.kind.is_quantized
