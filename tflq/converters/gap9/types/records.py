"""What an operator, its forms, and a decision are, where types are chosen (docs/gap9.md, 8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tflq.arrays import Reals
from tflq.converters.gap9.types.choice import Choice, Codes
from tflq.graph import Range


@dataclass(frozen=True)
class Decision:
    """What an operator takes and writes, constants left out."""

    inputs: tuple[Choice, ...]
    outputs: tuple[Choice, ...]


@dataclass(frozen=True)
class Operator:
    """One operator as its forms see it.

    Attributes:
        name: of the operator.
        in_ranges: the file's range of each computed input.
        out_ranges: the file's range of each output.
        on_ne16: whether its types may be NE16's.
        bits: of NE16's activations.
        pads: whether it pads.
        behind: whether it stands inside a fusion, behind its first member.
        short: whether a softmax writes 8 bits.
        as_nntool: whether it has NNTool's flaws (docs/gap9.md, 17).
        lost_bits: how many bits a 16-bit input of this scale gives up.
        behind_filter: whether that first member is a filter; behind a global pool a curve has signed types.
    """

    name: str
    in_ranges: tuple[Range, ...]
    out_ranges: tuple[Range, ...]
    on_ne16: bool
    bits: int = 8
    pads: bool = False
    behind: bool = False
    short: bool = False
    as_nntool: bool = False
    lost_bits: Callable[[Reals], int] = lambda _scale: 0
    behind_filter: bool = False

    @property
    def unsigned(self) -> Codes:
        """NE16's type of activations."""
        return Codes(self.bits, False)


@dataclass(frozen=True)
class Request:
    """What one form is to decide from.

    Attributes:
        operator: whose form it is.
        given: types that arrive and are taken into account; None where they were dropped.
        arrived: types that arrive, also where they were dropped.
        demands: what readers want, one an output.
    """

    operator: Operator
    given: tuple[Choice | None, ...]
    arrived: tuple[Choice, ...]
    demands: tuple[Choice | None, ...]

    def own_input(self, codes: Codes, is_symmetric: bool = False) -> Choice:
        """The form's own input: on the file's range, asymmetric if what arrives is."""
        return Choice.made(self.operator.in_ranges[0], codes, is_symmetric or self.arrived[0].is_symmetric)

    def first(self, codes: Codes, is_symmetric: bool = False) -> Choice:
        """What arrives, or the form's own input."""
        return self.given[0] or self.own_input(codes, is_symmetric)


@dataclass(frozen=True)
class Form:
    """One way to work.

    Attributes:
        inputs: integer types of inputs that it accepts.
        demands: integer types of demands that it accepts; None: those of the inputs.
        decide: returns what is taken and written, or None where the form fails.
    """

    inputs: frozenset[Codes]
    demands: frozenset[Codes] | None
    decide: Callable[[Request], Decision | None]

    def matches(self, given: Sequence[Choice | None], demands: Sequence[Choice | None]) -> bool:
        """Whether it accepts these."""
        allowed = self.demands
        if allowed is None:
            allowed = frozenset(c.codes for c in given if c is not None) or self.inputs
        return all(c is None or c.codes in self.inputs for c in given) and all(
            d is None or d.codes in allowed for d in demands
        )
