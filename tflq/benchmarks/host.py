"""The host's side of the serial protocol: control a device under test, real or virtual."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tflq.benchmarks.protocol import (
    END_OF_COMMAND,
    LAP_PATTERN,
    LOAD_DONE,
    MODEL_PATTERN,
    NAME_PATTERN,
    READY,
    TIME_PATTERN,
    load_commands,
    parse_results,
)
from tflq.benchmarks.serial_port import Stream
from tflq.errors import DeviceError
from tflq.quoting import escape_unprintable

_ASK_AGAIN_S = 2.0  # a board that restarts when its port is opened misses commands in the meantime
_QUIET_S = 0.2
_SHOWN_CHARACTERS = 80
_LONGEST_LINE = 1 << 16
_MOST_LINES = 1 << 13  # `db print` of the largest buffer has 3456


@dataclass(frozen=True)
class Identity:
    """Replies of a device to `name` and `profile`.

    Attributes:
        name: Name of the device.
        model: Task that the device runs.
        simulation: A virtual device's remark on the origin of its times; empty for a real device.
    """

    name: str
    model: str
    simulation: str = ""


@dataclass(frozen=True)
class Reply:
    """Reply of a device to `infer`.

    Attributes:
        start_us: Device's clock before the first inference, in microseconds.
        stop_us: Device's clock after the last inference, in microseconds.
        results: Numbers as written by the device.
    """

    start_us: int
    stop_us: int
    results: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """Duration of the inferences on the device's clock."""
        return (self.stop_us - self.start_us) / 1e6


class Host:
    """A conversation with a device.

    Args:
        stream: Open port.
        port: Name of the port, for messages.
        timeout: Seconds without a line of the protocol until the device counts as silent.
        listen: Called with each line of the conversation; commands start with "> ".
        clock: Function that returns seconds since any moment.
    """

    def __init__(
        self,
        stream: Stream,
        port: str,
        timeout: float,
        listen: Callable[[str], object] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream, self._port, self._timeout = stream, port, timeout
        self._listen, self._clock = listen, clock
        self._pending = b""
        self._stray = ""

    def identify(self) -> Identity:
        """Wait for the device, which may just be starting, and query its name and task.

        Raises:
            DeviceError: The device is silent or violates the protocol.
        """
        name = self._wait_for_name()
        self._drain()
        lines = self.command("profile")
        models = [match.group(1) for match in map(MODEL_PATTERN.fullmatch, lines) if match]
        times = [match.group(1) for match in map(TIME_PATTERN.fullmatch, lines) if match]
        if not models:
            raise self._violation("profile", "m-model-[...]")
        return Identity(name, models[0], *times[:1])

    def load(self, data: bytes) -> None:
        """Fill the device's buffer.

        Raises:
            DeviceError: The reply is an error, or does not confirm the last byte.
        """
        done = False
        for command in load_commands(data):
            done = LOAD_DONE in self.command(command)
        if not done:
            raise self._violation("db", LOAD_DONE)

    def infer(self, count: int, warmups: int, seconds: float = 0.0) -> Reply:
        """Run the loaded sample `count` times after `warmups`; `seconds` of silence are expected above the timeout.

        Raises:
            DeviceError: The reply is an error, lacks results, or lacks two readings of the clock.
        """
        lines = self.command(f"infer {count} {warmups}", self._timeout + seconds)
        laps = [int(match.group(1)) for match in map(LAP_PATTERN.fullmatch, lines) if match]
        results = [texts for texts in map(parse_results, lines) if texts is not None]
        if len(laps) != 2 or len(results) != 1:
            raise self._violation("infer", "two lines m-lap-us-N and one m-results-[f,f,...]", lines)
        return Reply(laps[0], laps[1], results[0])

    def command(self, text: str, timeout: float | None = None) -> list[str]:
        """Send a command and return its lines up to m-ready, which is omitted.

        Raises:
            DeviceError: An error line, silence, or lines outside the protocol until the timeout.
        """
        self._send(text)
        lines: list[str] = []
        while (line := self._line(timeout or self._timeout)) != READY:
            if line is None:
                raise self._silent(text)
            if len(lines) == _MOST_LINES:
                raise self._violation(text, f"at most {_MOST_LINES} lines", lines)
            if line.startswith("e-"):
                raise DeviceError(f"{self._port}: the device replies '{_abbreviate(line)}' to '{_abbreviate(text)}%'")
            lines.append(line)
        return lines

    def _wait_for_name(self) -> str:
        end = self._clock() + self._timeout
        while self._clock() < end:
            self._send("name")
            name, again = None, min(self._clock() + _ASK_AGAIN_S, end)
            while (now := self._clock()) < again and (line := self._line(again - now)) is not None:
                match = NAME_PATTERN.fullmatch(line)
                name = match.group(1) if match else name
                if name is not None and line == READY:
                    return name
        raise self._silent("name", "m-name-dut-[...]")

    def _drain(self) -> None:
        """Discard the replies to a command that was sent twice."""
        end = self._clock() + self._timeout
        while self._clock() < end and self._line(_QUIET_S) is not None:
            pass

    def _send(self, text: str) -> None:
        self._listen(f"> {text}{END_OF_COMMAND}")
        self._stray = ""
        try:
            self._stream.write(f"{text}{END_OF_COMMAND}".encode("ascii"))
        except OSError as error:
            raise DeviceError(f"{self._port}: cannot be written: {error}; is the board still connected?") from None

    def _line(self, timeout: float) -> str | None:
        """Return the next line of the protocol, None after `timeout` seconds; other lines are stored for messages."""
        end = self._clock() + timeout
        while True:
            while b"\n" in self._pending:
                raw, _, self._pending = self._pending.partition(b"\n")
                line = raw.decode("ascii", "backslashreplace").strip("\r\0")
                self._listen(line)
                if line.startswith(("m-", "e-")):
                    return line
                self._stray = line or self._stray
            if self._clock() >= end:
                return None
            self._pending = (self._pending + self._read())[-_LONGEST_LINE:]

    def _read(self) -> bytes:
        try:
            return self._stream.read(max(1, self._stream.in_waiting))
        except OSError as error:
            raise DeviceError(f"{self._port}: cannot be read: {error}; is the board still connected?") from None

    def _silent(self, command: str, expected: str = READY) -> DeviceError:
        rest = self._pending.decode("ascii", "backslashreplace")
        received = rest or self._stray
        advice = "check the port, the speed (--baud) and that the board's firmware runs"
        if not received:
            return DeviceError(
                f"{self._port}: no reply to '{_abbreviate(command)}%' within {self._timeout:g} s; {advice}"
            )
        return DeviceError(
            f"{self._port}: the reply to '{_abbreviate(command)}%' is '{_abbreviate(received)}', expected {expected} "
            f"within {self._timeout:g} s; {advice}"
        )

    def _violation(self, command: str, expected: str, lines: list[str] | None = None) -> DeviceError:
        received = self._stray or (lines[-1] if lines else "")
        reply = f"'{_abbreviate(received)}'" if received else f"only {READY}"
        return DeviceError(f"{self._port}: the reply to '{command}%' is {reply}, expected {expected}")


def _abbreviate(text: str) -> str:
    printable = escape_unprintable(text)
    return printable if len(printable) <= _SHOWN_CHARACTERS else f"{printable[:_SHOWN_CHARACTERS]}..."
