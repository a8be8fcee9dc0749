"""Serial ports: a board's, by pyserial, and a virtual device's, a pseudo-terminal that programs open like one."""

from __future__ import annotations

import os
import select
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from tflq.benchmarks.device import Device
from tflq.benchmarks.protocol import END_OF_LINE
from tflq.errors import DeviceError, MissingExtraError, OutputError, UnsupportedError

_POLL_S = 0.05
_WRITE_TIMEOUT_S = 2.0


class Stream(Protocol):
    """The part of a serial port that a host uses; pyserial's Serial provides it."""

    @property
    def in_waiting(self) -> int:
        """Number of bytes that can be read at once."""

    def read(self, size: int = 1) -> bytes:
        """Return up to `size` bytes, fewer after a short timeout."""

    def write(self, data: bytes, /) -> int | None:
        """Send bytes."""

    def close(self) -> None:
        """Close the port."""


def open_port(port: str, baud: int) -> Stream:
    """Open a serial port for 8 data bits, no parity and one stop bit.

    Raises:
        MissingExtraError: Pyserial is not installed.
        DeviceError: The port cannot be opened.
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


_BLOCK_BYTES = 4096


class PseudoTerminal:
    """A pair of ends: `path` for the host, and the end that `serve` reads and writes.

    The host's end also stays open here, so that one host may close it and the next one open it.

    Raises:
        UnsupportedError: The system has no pseudo-terminals.
    """

    def __init__(self) -> None:
        try:
            import pty
            import tty
        except ImportError:
            raise UnsupportedError(
                "a virtual device needs pseudo-terminals: use Linux, macOS or another Unix"
            ) from None
        self._device_end, self._host_end = pty.openpty()
        tty.setraw(self._host_end)
        self.path = os.ttyname(self._host_end)
        self._stop_reader, self._stop_writer = os.pipe()

    def serve(self, device: Device) -> None:
        """Boot the device and process commands until `stop` is called."""
        self._write(device.boot())
        while True:
            ready, _, _ = select.select([self._device_end, self._stop_reader], [], [])
            if self._stop_reader in ready:
                return
            self._write(device.receive(os.read(self._device_end, _BLOCK_BYTES)))

    def stop(self) -> None:
        """End `serve`, from any thread."""
        os.write(self._stop_writer, b"x")

    def close(self) -> None:
        """Close both ends."""
        for end in (self._device_end, self._host_end, self._stop_reader, self._stop_writer):
            with suppress(OSError):
                os.close(end)

    def _write(self, lines: Iterable[str]) -> None:
        for line in lines:
            data = f"{line}{END_OF_LINE}".encode("ascii", "replace")
            while data:
                ready, _, _ = select.select([self._stop_reader], [self._device_end], [])
                if ready:
                    return
                data = data[os.write(self._device_end, data) :]


@contextmanager
def create_link(path: str, link: Path | None) -> Iterator[None]:
    """Create a symbolic link to a port, as a constant name, and remove it at the end.

    Raises:
        OutputError: A file with that name exists, or the folder cannot be written.
    """
    if link is None:
        yield
        return
    if link.exists() and not link.is_symlink():
        raise OutputError(f"{link}: already exists and is not a link; choose another --link")
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(path)
    except OSError as error:
        raise OutputError(f"{link}: cannot be created: {error.strerror or error}") from None
    try:
        yield
    finally:
        link.unlink(missing_ok=True)
