"""Where tflq is not TFLite's reference interpreter bit for bit, each with its reason. There are no others.

A test that allows a difference takes its bound from here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownDifference:
    """One exception.

    Attributes:
        operator: name.
        types: for which types of the input.
        what: what differs, or what is refused.
        reason: why.
        units: the largest difference in units in the last place; None where tflq refuses instead.
    """

    operator: str
    types: str
    what: str
    reason: str
    units: int | None = None


_LIBM = "TFLite calls the host's libm, whose last bit depends on the host; tflq computes in float64 and rounds once"
_ABORT = "TFLite's own process aborts there (a failed TFLITE_CHECK); tflq refuses in one line"

KNOWN_DIFFERENCES = (
    KnownDifference("softmax", "float32", "last bits", f"{_LIBM}; the sum passes it on", 4),
    KnownDifference("logistic", "float32", "last bits", f"{_LIBM}; the reciprocal doubles it", 3),
    KnownDifference("tanh", "float32", "last bits", _LIBM, 2),
    KnownDifference("add", "int8, uint8, int16", "an output multiplier of 1 or more", _ABORT),
    KnownDifference("sub", "int8, uint8, int16", "an output multiplier of 1", _ABORT),
    KnownDifference(
        "sub",
        "int8, uint8, int16",
        "an output multiplier above 1",
        "TFLite shifts by a negative count, undefined in C++: on x86 only the sign of the difference is left",
    ),
    KnownDifference("softmax", "int8, uint8", "beta * scale * 2^26 of 1 or less, NaN", _ABORT),
    KnownDifference("softmax", "int8, uint8", "an 8-bit output whose exponentials sum up to 512 or more", _ABORT),
)


def units_allowed(operator: str) -> int:
    """Return the largest difference that an operator's float32 results may show, in units in the last place."""
    return max((d.units or 0 for d in KNOWN_DIFFERENCES if d.operator == operator), default=0)
