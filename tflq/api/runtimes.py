"""`tflq.runtimes`: the runtimes of a .tflite file, and the rules of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tflq.api.result import TableResult, picked
from tflq.interpreter.runtimes import REFERENCE as REFERENCE
from tflq.interpreter.runtimes import RUNTIME_NAMES as RUNTIME_NAMES
from tflq.interpreter.runtimes import Runtime, find_runtime
from tflq.quoting import Json


@dataclass(frozen=True)
class RuntimesResult(TableResult):
    """Runtimes.

    Attributes:
        runtimes: In the order of the table, `ref` first.
    """

    runtimes: tuple[Runtime, ...]

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return a row for each operator that differs from `ref`."""
        return [
            {"runtime": runtime.name, "operator": operator, "rule": rule}
            for runtime in self.runtimes
            for operator, rule in runtime.rules.items()
        ]

    def report(self) -> Mapping[str, Json]:
        """Return the runtimes with their rules."""
        words = [picked(r, "name", "runs_in", "arithmetic", "rules", "not_modelled", "oracle") for r in self.runtimes]
        return {"runtimes": words}


def runtimes(*names: str) -> RuntimesResult:
    """Return runtimes with their programs, their differences from `ref` and their oracles.

    Args:
        *names: Runtimes to return (default: all).

    Raises:
        OptionError: an unknown runtime.
    """
    return RuntimesResult(tuple(find_runtime(name) for name in names or RUNTIME_NAMES))
