"""`tflq.compare_runtimes`: one model in several runtimes, in groups with equal tensors, and the rules that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.api.options import Progress, SampleOptions, SampleSource, silent
from tflq.api.other_runtimes import runtime_of
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.result import Result
from tflq.api.run_record import record_call
from tflq.api.samples import samples as choose_samples
from tflq.benchmarks.accuracy import measure
from tflq.benchmarks.scoring import load_named
from tflq.diagnosis.compare import ComparedTensor, Comparison, Running, compare_sides
from tflq.errors import UsageError
from tflq.interpreter.runtimes import RuntimeName, rule_of
from tflq.parallel.executions import Execution, as_is
from tflq.report import Column, Table, Verdict, identifier, number
from tflq.sampling import Samples

DEFAULT_SAMPLES = 100


@dataclass(frozen=True)
class RuntimeRow:
    """One runtime.

    Attributes:
        name: Runtime.
        group: Number of the group of runtimes that are equal in all tensors, from 1.
        comparison: Comparison with the first runtime of the call.
        reference: That runtime.
        accuracy_percent: Accuracy on labeled samples; None without labels.
    """

    name: RuntimeName
    group: int
    comparison: Comparison
    reference: RuntimeName
    accuracy_percent: float | None

    @property
    def first(self) -> ComparedTensor | None:
        """First tensor that differs from the first runtime."""
        return next(iter(self.comparison.diverging), None)

    @property
    def layer(self) -> str:
        """Layer that writes that tensor."""
        return "" if self.first is None else self.first.place

    @property
    def differing(self) -> int:
        """Number of elements of all tensors that differ."""
        return sum(t.figures.differing for t in self.comparison.tensors)

    @property
    def elements(self) -> int:
        """Number of elements compared."""
        return sum(t.figures.elements for t in self.comparison.tensors)

    @property
    def largest_lsb(self) -> float:
        """Largest difference in any tensor."""
        return max((t.figures.largest for t in self.comparison.tensors), default=0.0)

    @property
    def rules(self) -> tuple[str, str]:
        """Rules of that layer in the first runtime and in this one; empty if no layer differs."""
        if self.first is None:
            return "", ""
        return rule_of(self.reference, self.first.operator), rule_of(self.name, self.first.operator)


@dataclass(frozen=True)
class CompareRuntimesResult(Result):
    """One model in several runtimes.

    Attributes:
        model: Name of the model.
        samples: Number of samples.
        runtimes: Rows, in the order of the call; all are compared with the first one.
    """

    FACTS = (Column("model", "model"), Column("samples", "samples"), Column("groups", get=lambda r: r.groups))
    MAIN = "runtimes"

    model: str
    samples: int
    runtimes: tuple[RuntimeRow, ...]

    @property
    def groups(self) -> list[list[str]]:
        """Runtimes that are equal in all tensors, by group."""
        numbers = dict.fromkeys(row.group for row in self.runtimes)
        return [[row.name for row in self.runtimes if row.group == n] for n in numbers]

    @property
    def is_equal(self) -> bool:
        """Whether all runtimes are equal in all tensors."""
        return len(self.groups) == 1

    @property
    def verdict(self) -> Verdict:
        """Groups of equal runtimes."""
        words = " | ".join(", ".join(group) for group in self.groups)
        return Verdict("", len(self.groups), f"different results of {len(self.runtimes)} runtimes: {words}")

    @property
    def title(self) -> str:
        """Model and runtimes."""
        return f"{self.model} in {', '.join(row.name for row in self.runtimes)}"

    def tables(self) -> Sequence[Table]:
        """Return a row per runtime, and the two rules of each first layer that differs."""
        differing = [row for row in self.runtimes if row.first is not None]
        return [Table("runtimes", _ROWS, self.runtimes, "Runtimes"), Table("rules", _RULES, differing, "Rules")]


_ROWS = (
    identifier("name", "runtime"),
    number("group", "group"),
    number("differing", "differing"),
    number("elements", "elements", rank=2),
    number("largest_lsb", "largest", unit="LSB"),
    identifier("layer", "first layer"),
    number("accuracy_percent", "accuracy", form=".2f", unit="%"),
)
_RULES = (
    identifier("layer", "first layer"),
    Column("operator", "operator", get="first.operator"),
    identifier("reference", "runtime"),
    Column("reference_rule", "its rule", get=lambda row: row.rules[0]),
    identifier("name", "other runtime"),
    Column("rule", "its rule", get=lambda row: row.rules[1]),
)


@record_call
def compare_runtimes(
    model: ModelSource,
    runtimes: Sequence[RuntimeName],
    samples: SampleSource = None,
    *,
    progress: Progress = silent,
) -> CompareRuntimesResult:
    """Run a model in several runtimes and compare every tensor with the first one's.

    Args:
        model: Model in its own encoding.
        runtimes: At least two runtimes; two that are equal to each other in all tensors are in one group.
        samples: Samples to run on (default: 100 random ones); labeled samples (`data`) add accuracies.
        progress: Shows how far it is.

    Raises:
        UsageError: Fewer than two runtimes, or one twice.
        OptionError: An unknown runtime.
        InputError: Samples that do not fit.
    """
    if len(runtimes) < 2 or len(set(runtimes)) < len(runtimes):
        raise UsageError("name at least two runtimes, each once")
    graph = read_model(model)
    chosen = choose_samples(graph, samples, count=DEFAULT_SAMPLES)
    sides = [Running(as_is(graph, "independent", name), chosen, name) for name in runtimes]
    labeled = isinstance(samples, SampleOptions) and samples.data is not None
    rows: list[RuntimeRow] = []
    with progress("compare", len(sides)) as advance:
        for side in sides:
            comparison = compare_sides(side, sides[0], chosen.count)
            group = 1 if comparison.is_equal else _find_group(side, sides[: len(rows)], rows, chosen)
            accuracy = _measure(side.execution, samples) if labeled else None
            rows.append(RuntimeRow(runtime_of(side.execution), group, comparison, runtimes[0], accuracy))
            advance(1)
    return CompareRuntimesResult(name_of(model), chosen.count, tuple(rows))


def _find_group(side: Running, earlier: Sequence[Running], rows: Sequence[RuntimeRow], samples: Samples) -> int:
    """Return the group of a runtime that differs from the first one: the first equal group, or a new one."""
    groups: dict[int, Running] = {}
    for row, other in zip(rows, earlier, strict=True):
        groups.setdefault(row.group, other)
    for group, other in groups.items():
        if group > 1 and compare_sides(side, other, samples.count).is_equal:
            return group
    return len(groups) + 1


def _measure(execution: Execution, samples: SampleSource) -> float:
    assert isinstance(samples, SampleOptions)
    assert samples.data is not None
    return measure(execution, load_named(samples.data, execution.source)).percent
