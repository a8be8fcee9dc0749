"""`tflq.runtimes`: the runtimes of a .tflite file, and the rules of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.api.result import Result
from tflq.interpreter.runtimes import REFERENCE as REFERENCE
from tflq.interpreter.runtimes import RUNTIME_NAMES as RUNTIME_NAMES
from tflq.interpreter.runtimes import Runtime, find_runtime
from tflq.report import Column, Table, Verdict, identifier, keys


@dataclass(frozen=True)
class RuntimesResult(Result):
    """Runtimes.

    Attributes:
        runtimes: Runtimes in the order of the table, `ref` first.
    """

    runtimes: tuple[Runtime, ...]

    @property
    def verdict(self) -> Verdict:
        """Number of runtimes."""
        return Verdict("", len(self.runtimes), "runtime" + "s" * (len(self.runtimes) != 1))

    def tables(self) -> Sequence[Table]:
        """Return the runtimes, and for each the operators that differ from `ref`."""
        rules = (
            Table("", _RULES, tuple(r.rules.items()), f"{r.name}: {r.runs_in}; compared with {r.oracle}", _notes(r))
            for r in self.runtimes
        )
        return [Table("runtimes", _RUNTIMES, self.runtimes, terminal="never"), *rules]


def _notes(runtime: Runtime) -> tuple[str, ...]:
    return tuple(f"not modelled: {part}" for part in runtime.not_modelled)


_RULES = (
    identifier("", "operator", get=lambda row: row[0]),
    Column("", "rule", get=lambda row: row[1]),
)
_RUNTIMES = (identifier("name", "runtime"), *keys("runs_in", "arithmetic", "rules", "not_modelled", "oracle"))


def runtimes(*names: str) -> RuntimesResult:
    """Return runtimes with their programs, their differences from `ref` and their oracles.

    Args:
        *names: Runtimes to return (default: all).

    Raises:
        OptionError: An unknown runtime.
    """
    return RuntimesResult(tuple(find_runtime(name) for name in names or RUNTIME_NAMES))
