"""The serial protocol of MLPerf Tiny between a host and a device under test (docs/guides/mlperf_tiny.md).

Commands end in '%', their words are separated by spaces, and a device keeps the first 80 characters of one. Replies are
lines that end in CR LF; each command's last one is `m-ready`. Source: mlcommons/tiny, benchmark/api.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal

import numpy as np
from numpy.typing import NDArray

END_OF_COMMAND = "%"
END_OF_LINE = "\r\n"
COMMAND_CHARACTERS = 80
READY = "m-ready"
INIT_DONE = "m-init-done"
LOAD_DONE = "m-load-done"
PERFORMANCE_MODE = "m-timestamp-mode-performance"
PROFILE = "ULPMark for tinyML Firmware V0.0.1"
BUFFER_BYTES = 96 * 96 * 3
"""Size of the largest input of the reference devices (MAX_DB_INPUT_SIZE): vww01's."""

DEFAULT_WARMUPS = 10
"""Warm-up inferences of `infer N`."""

BYTES_A_COMMAND = 31
"""Bytes that mlcommons' runner puts into one `db` command."""

NAME_PATTERN = re.compile(r"m-name-dut-\[([^]]+)\]")
MODEL_PATTERN = re.compile(r"m-model-\[([^]]+)\]")
LAP_PATTERN = re.compile(r"m-lap-us-(\d+)")
TIME_PATTERN = re.compile(r"m-time-\[(.*)\]")
"""Origin of a virtual device's times; real devices do not send this line."""

RESULTS_PATTERN = re.compile(r"m-results-\[((?:-?\d+\.\d+,?)+)\]")


def results_line(values: NDArray[np.float32]) -> str:
    """Return `m-results-[f,f,...]` with three decimals each, rounded as C's %.3f does."""
    return f"m-results-[{','.join(f'{value:.3f}' for value in values.tolist())}]"


def parse_results(line: str) -> tuple[str, ...] | None:
    """Return the numbers of a results line as text, or None for another line.

    A comma after the last number is ignored: the reference device of vww01 sends it.
    """
    match = RESULTS_PATTERN.fullmatch(line)
    return tuple(match.group(1).rstrip(",").split(",")) if match else None


def is_shown_as(value: float, text: str) -> bool:
    """Whether a device that has computed `value` may write `text`.

    The decimals are rounded (reference devices of ic01, vww01 and ad01) or truncated (kws01).
    """
    exact, unit = Decimal(value), Decimal(1).scaleb(-len(text.partition(".")[2]))
    return Decimal(text) in (exact.quantize(unit, rounding) for rounding in (ROUND_HALF_EVEN, ROUND_DOWN))


def agree(values: NDArray[np.float32], texts: Sequence[str]) -> bool:
    """Whether a device that has computed `values` may write `texts`."""
    return len(values) == len(texts) and all(map(is_shown_as, values.tolist(), texts))


def load_commands(data: bytes) -> list[str]:
    """Return the commands, without their ends, that fill a device's buffer with `data`."""
    starts = range(0, len(data), BYTES_A_COMMAND)
    return [f"db load {len(data)}", *(f"db {data[start : start + BYTES_A_COMMAND].hex()}" for start in starts)]
