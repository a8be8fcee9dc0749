"""Records of the choice of types: operators, their forms, types and decisions (docs/rules/gap9/types.md#types)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tflq.arrays import Reals
from tflq.converters.gap9.affine_types import asymmetric, nearly_equal, power_of_two, symmetric
from tflq.graph import Affine, Range

ALL_FIELDS = frozenset({"q", "dtype", "zero_point", "scale"})


@dataclass(frozen=True)
class Codes:
    """An integer type: bits and signedness."""

    bits: int
    signed: bool

    @classmethod
    def of(cls, affine: Affine) -> Codes:
        """Return the quantized values of a type."""
        return cls(affine.bits, affine.signed)


INT8, UINT8, INT16, UINT16, INT32 = (
    Codes(b, s) for b, s in ((8, True), (8, False), (16, True), (16, False), (32, True))
)


@dataclass(frozen=True)
class Choice:
    """A type that somebody writes or wants.

    Attributes:
        affine: scale, zero point, bits, sign.
        range: real range that it was made from.
        forced: fields that a reader insists on: "q", "dtype", "zero_point", "scale".
        is_symmetric: whether it was made so; an asymmetric type may have its zero point in the middle by chance, and
            a reader that wants a symmetric one still makes it anew, with another scale.
        made_with: the scale before it gave up bits, None where it never did.
    """

    affine: Affine
    range: Range
    forced: frozenset[str] = frozenset()
    is_symmetric: bool = True
    made_with: Reals | None = None

    @staticmethod
    def made(range_: Range, codes: Codes, is_symmetric: bool, forced: frozenset[str] = frozenset()) -> Choice:
        """Return scale and zero point for a range."""
        affine = (symmetric if is_symmetric else asymmetric)(range_, codes.bits, codes.signed)
        return Choice(affine, range_, forced, is_symmetric)

    @property
    def codes(self) -> Codes:
        """The integer type."""
        return Codes.of(self.affine)

    @property
    def zero_point(self) -> int:
        """Z."""
        return int(self.affine.zero_point[0])

    @property
    def scale(self) -> float:
        """S in float64."""
        return float(self.affine.scale[0])

    def agrees(self, other: Choice) -> bool:
        """Whether NNTool takes the two as equal: |S - S'| <= 1e-8 + 1e-5 S', all else the same."""
        return nearly_equal(self.affine, other.affine)

    def insisted(self, *fields: str) -> Choice:
        """Return the same with more forced fields."""
        return replace(self, forced=self.forced | set(fields))

    def symmetric(self, codes: Codes | None = None) -> Choice | None:
        """Symmetric, from the remembered range, all fields forced; unchanged if it is so. None where this is forced."""
        wanted = codes or self.codes
        if self.is_symmetric and wanted == self.codes:
            return self
        if self.forced & {"zero_point", "scale"}:
            return None
        return Choice.made(self.range, wanted, True, ALL_FIELDS)

    def widened(self, bits: int) -> Choice:
        """2^bits times the scale that it was made with, the zero point as it is; itself where no bit goes."""
        if not bits:
            return self
        made = self.affine.scale if self.made_with is None else self.made_with
        return replace(self, affine=replace(self.affine, scale=made * made.dtype.type(1 << bits)), made_with=made)

    def power_of_two(self) -> Choice:
        """S = 2^ceil(log2 S), all fields forced: what the integer softmax takes."""
        return Choice(power_of_two(self.affine), self.range, ALL_FIELDS)

    def distance(self, range_: Range) -> float:
        """How far the numbers that it can hold end from a range: |min - rmin| + |max - rmax|."""
        low, high = (
            (end - self.zero_point) * self.scale for end in (self.affine.minimum_code, self.affine.maximum_code)
        )
        return abs(low - float(range_.minimum[0])) + abs(high - float(range_.maximum[0]))


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
        as_nntool: whether it has NNTool's flaws (docs/differences/gap9.md).
        lost_bits: how many bits a 16-bit input of this scale gives up.
        behind_filter: whether that first member is a filter; behind a global pool a curve has signed types.
        behind_concatenation: whether what it reads is a concatenation's, as it stands or moved, or its maximum.
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
    behind_concatenation: bool = False

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
