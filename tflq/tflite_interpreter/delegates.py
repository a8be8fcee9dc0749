"""What LiteRT lets callers choose below the operators: resolvers, which make no difference here, and delegates."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique

from tflq.errors import OptionError


@unique
class OpResolverType(Enum):
    """Which of its kernels LiteRT uses; tflq has those of BUILTIN_REF alone."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


class DelegateError(OptionError, ValueError, OSError):
    """No delegate can be loaded.

    LiteRT raises OSError where the library is missing and ValueError where it refuses: scripts catch the one or the
    other, and go on without a delegate.
    """


class Delegate:
    """A library that would run operators in LiteRT's place; none can be loaded."""

    def __init__(self, library: str, options: Mapping[str, object] | None = None) -> None:  # noqa: ARG002
        """Refuse.

        Raises:
            DelegateError: always.
        """
        raise DelegateError(f"delegate '{library}': tflq loads none, its kernels are its own; leave the delegate away")


def load_delegate(library: str, options: Mapping[str, object] | None = None) -> Delegate:
    """Refuse, as a script expects it where the library is not installed.

    Raises:
        DelegateError: always.
    """
    return Delegate(library, options)
