"""`tflq explain`: every step of one output element."""

from __future__ import annotations

import click

from tflq.api.explain import ExplainOptions, ExplainResult, explain
from tflq.api.options import SampleOptions, changed
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import (
    MODEL_ARGUMENT,
    SIDE_HELP,
    calibration_options,
    dump_options,
    reporting,
    sample_options,
    target_options,
)
from tflq.diagnosis.explain import Explanation, Pair, SideBySide, Step, Value
from tflq.diagnosis.explain.side_by_side import at

_NUMBERS_A_LINE = 16


def _index(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    """Read whole numbers between commas, as "0,12,3,17" or "[0, 12, 3, 17]"."""
    try:
        return tuple(int(part) for part in value.strip("[]() ").split(",") if part.strip())
    except ValueError:
        raise click.BadParameter(
            f"'{value}' is no index; write whole numbers with commas, as 0,12,3,17", ctx, param
        ) from None


@click.command("explain", cls=SectionedCommand, epilog=f"B: {SIDE_HELP}")
@MODEL_ARGUMENT
@click.option(
    "--tensor", required=True, metavar="NAME", help="A tensor's name or number in the model, or its operator's name."
)
@click.option("--index", required=True, metavar="i,j,k", callback=_index, help="The element, in the model's own axes.")
@click.option("--sample", type=click.IntRange(min=0), default=0, show_default=True, help="Which of the samples.")
@sample_options(1)
@click.option("--arithmetic", type=click.Choice(("tflite",)), help="TFLite's integers, the default.")
@click.option("--against", metavar="B", help="Another computation of the same element, side by side; or a dump.")
@dump_options
@target_options("The integers of this target.")
@calibration_options
@reporting
def command(
    model: str, tensor: str, index: tuple[int, ...], samples: SampleOptions, as_json: bool, **options: object
) -> int:
    """Show every step of one element of MODEL: inputs, weights, products, bias, multiplier, roundings, clamp.

    Exit status 1 if --against differs.
    """
    found = explain(model, tensor, index, samples, changed(ExplainOptions(), options), progress=output.progress)
    output.show(found, as_json, lambda: _print(found))
    return 0 if found.is_equal else 1


def _print(found: ExplainResult) -> None:
    if found.against is None:
        _print_steps(found.explanation)
        if found.device is not None:
            same = "the same" if found.is_equal else f"{found.device.value:g}; {found.device.words}"
            output.line(f"{found.device.dump} has {same}")
    else:
        _print_side_by_side(found.against, *found.names)
    if found.recovered:
        output.line(found.recovered)


def _print_steps(found: Explanation) -> None:
    """Print each part: a heading, then the steps with formula and value."""
    for part in found.parts:
        output.line(_heading(part))
        width = max(len(step.label) for step in part.steps)
        for step in part.steps:
            output.lines(_lines(step, width))
        output.line()
    real = "" if found.real is None else f", as a real number {found.real:.6g}"
    output.line(f"'{found.tensor}' {list(found.index)} of sample {found.sample} is {found.stored}{real}")


def _print_side_by_side(found: SideBySide, first: str, second: str) -> None:
    """Print both computations next to each other; the step where they part is marked."""
    output.line(f"A: {first}: {_heading(found.first)}")
    output.line(f"B: {second}: {_heading(found.second)}")
    output.line()
    parting = found.parting
    rows = [_row(pair, pair is parting) for pair in found.pairs]
    output.table(("", "step", "A", "B", "formula of A"), rows, right=("A", "B"))
    output.line()
    output.line(found.words())


def _heading(part: Explanation) -> str:
    """Name the element, its node and where the formula stands."""
    return (
        f"'{part.tensor}' {list(part.index)}, sample {part.sample}: {part.node} ({part.operator}, arithmetic "
        f"{part.arithmetic}); formula: {part.source}"
    )


def _lines(step: Step, width: int) -> list[str]:
    """Write a step: a number behind its formula, rows of numbers below it."""
    head = f"  {step.label:<{width}}  "
    if not isinstance(step.value, tuple):
        return [f"{head}{step.formula + ' = ' if step.formula else ''}{step.value}"]
    return [f"{head}{step.formula}".rstrip(), *(f"  {'':<{width}}    {row}" for row in _rows(step.value))]


def _rows(value: Value) -> list[str]:
    if not isinstance(value, tuple):
        return [str(value)]
    if any(isinstance(item, tuple) for item in value):
        inner = [_rows(item) for item in value]
        if all(len(rows) == 1 for rows in inner) and all(isinstance(item, tuple) and len(item) == 1 for item in value):
            return [" ".join(rows[0] for rows in inner)]
        return [line for rows in inner for line in rows]
    numbers = [str(item) for item in value]
    width = max(map(len, numbers), default=0)
    return [
        " ".join(f"{n:>{width}}" for n in numbers[i : i + _NUMBERS_A_LINE])
        for i in range(0, len(numbers), _NUMBERS_A_LINE)
    ]


def _row(pair: Pair, is_parting: bool) -> tuple[str, ...]:
    mark = "->" if is_parting else "*" if pair.differs else ""
    formula = pair.first.formula if pair.first is not None else ""
    return mark, _label(pair), _cell(pair, pair.first), _cell(pair, pair.second), formula


def _label(pair: Pair) -> str:
    return f"{pair.label} {list(pair.place)}" if pair.place else pair.label


def _cell(pair: Pair, step: Step | None) -> str:
    if step is None:
        return ""
    value = at(step.value, pair.place) if pair.place else step.value
    return "equal" if isinstance(value, tuple) and not pair.differs and pair.first and pair.second else _short(value)


def _short(value: Value) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{text[:21]}..."
