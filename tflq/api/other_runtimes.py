"""Comparisons with a side in another runtime: dumps that one reproduces, and the two rules of a layer."""

from __future__ import annotations

from dataclasses import replace

from tflq.diagnosis.compare import Comparison, Dump, Running, compare_sides
from tflq.graph import Model
from tflq.interpreter.kernels.tflite.runtimes import RULES
from tflq.interpreter.runtimes import REFERENCE, RUNTIME_NAMES, RUNTIMES, RuntimeName, rule_of
from tflq.parallel.executions import Execution, as_is

_SCREENED = 2
"""Samples on which a runtime is tried before all of them."""


def runtime_of(execution: Execution) -> RuntimeName:
    """Return the runtime of a model in its own encoding."""
    return next((name for name in RUNTIME_NAMES if name == execution.name), REFERENCE)


def find_dump_runtimes(model: Model, side: Running, dump: Dump, samples: int) -> tuple[RuntimeName, ...]:
    """Return the runtimes with the integers of a dump; empty if none reproduces all elements.

    Args:
        model: Model of the dump.
        side: The model as it ran; runtimes with its rules are not tried.
        dump: Dump that differs from it.
        samples: Number of samples to compare.
    """
    if not side.execution.is_as_is:
        return ()
    tried = [RULES.get(runtime_of(side.execution), {})]
    matches: list[RuntimeName] = []
    for name in RUNTIME_NAMES:
        rules = RULES.get(name, {})
        if rules in tried:
            continue
        tried.append(rules)
        other = replace(side, execution=as_is(model, "independent", name))
        counts = dict.fromkeys((min(samples, _SCREENED), samples))  # a faulty dump differs in the first samples
        if all(compare_sides(other, dump, count).is_equal for count in counts):
            matches += [n for n in RUNTIME_NAMES if RULES.get(n, {}) == rules]
    return tuple(matches)


def describe_dump_runtimes(names: tuple[RuntimeName, ...], model: str) -> str:
    """Return the sentence on a dump that has the integers of these runtimes."""
    if not names:
        return ""
    settings = "; ".join(dict.fromkeys(RUNTIMES[name].to_get_reference for name in names))
    return (
        f"the dump has the integers of runtime {' or '.join(names)}: it is correct, not faulty. Compare with "
        f"{model}@{names[0]}; to get the reference kernels' integers: {settings}"
    )


def describe_rules(found: Comparison, first: Running, second: Running) -> str:
    """Return the two rules of the first layer in which two runtimes differ; empty for other sides."""
    names = [runtime_of(side.execution) for side in (first, second)]
    is_known = all(side.execution.is_as_is for side in (first, second)) and names[0] != names[1]
    if not is_known or not found.diverging:
        return ""
    tensor = found.diverging[0]
    rules = [f"{name}: {rule_of(name, tensor.operator)}" for name in names]
    return f"the runtimes differ first in {tensor.place} ({tensor.operator}); {'; '.join(rules)}"
