"""A serial port: what a host needs of it, and pyserial's."""

from __future__ import annotations

from typing import Protocol

from tflq.errors import DeviceError, MissingExtraError

_POLL_S = 0.05
_WRITE_TIMEOUT_S = 2.0


class Stream(Protocol):
    """What a host needs of a serial port; pyserial's Serial has it."""

    @property
    def in_waiting(self) -> int:
        """Number of bytes that can be read at once."""

    def read(self, size: int = 1) -> bytes:
        """Return up to `size` bytes, fewer after a short timeout."""

    def write(self, data: bytes, /) -> int | None:
        """Send bytes."""

    def close(self) -> None:
        """Give the port back."""


def open_port(port: str, baud: int) -> Stream:
    """Open a serial port for 8 data bits, no parity and one stop bit.

    Raises:
        MissingExtraError: pyserial is not installed.
        DeviceError: the port cannot be opened.
    """
    try:
        import serial
    except ImportError:
        raise MissingExtraError("a serial port needs pyserial; install tflq[mlperf]") from None
    try:
        opened: Stream = serial.Serial(port, baud, timeout=_POLL_S, write_timeout=_WRITE_TIMEOUT_S)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DeviceError(f"{port}: cannot be opened: {reason}; name the serial port of a board") from None
    return opened
