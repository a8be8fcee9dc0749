"""`tflq compare`: two models, targets, arithmetics or tensor dumps over the same samples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.calibration_options import CalibrationChoice, calibration, refuse_calibration_without_target
from tflq.cli.common import choose_samples, reporting, sampling
from tflq.cli.comparison_output import comparison_report, print_comparison
from tflq.cli.report_options import report_option, write_report
from tflq.cli.sides import SIDE_HELP, Choices, Named, model_of, open_dump, parse_side, running
from tflq.cli.target_options import refuse_settings_without_target, target_settings

if TYPE_CHECKING:
    from tflq.analysis.compare import Column, Comparison, Dump, Running, Side
    from tflq.analysis.inputs import Samples
    from tflq.graph import Model

DEFAULT_SAMPLES = 100


@click.command("compare", epilog=f"A and B: {SIDE_HELP}")
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", default="@float")
@sampling(DEFAULT_SAMPLES)
@click.option("--isolated", is_flag=True, help="Feed each layer of A with B's tensors: its own error alone.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="LSB",
    help="Differences up to it do not count as such (0: any difference counts).",
)
@click.option("--tensor", "only", multiple=True, metavar="NAME", help="Compare this tensor of A only. Repeat it.")
@click.option("--map", "map_path", metavar="FILE", help="Where the tensors lie in a .bin dump (docs/commands.md).")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Layers to rank in the text.")
@report_option
@click.option(
    "--model-explorer",
    "node_data_path",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.json",
    help="Write the noise of each tensor as node data of Model Explorer, too.",
)
@target_settings
@calibration
@reporting
def command(
    first: str,
    second: str,
    inputs: tuple[str, ...],
    real: bool,
    samples: int | None,
    seed: int,
    isolated: bool,
    tolerance: float,
    only: tuple[str, ...],
    map_path: str | None,
    top: int,
    report: Path | None,
    node_data_path: Path | None,
    assignments: tuple[str, ...],
    layers: tuple[str, ...],
    as_json: bool,
    calibration: CalibrationChoice,
) -> int:
    """Compare A with the reference B, tensor by tensor, and rank the layers by what they add.

    Without B the reference is A's model in floating point. Exit status 1 if a tensor differs.
    """
    a, b = parse_side(first), parse_side(second, may_lack_model=True)
    _refuse_what_nothing_uses(a, b, assignments, layers, calibration, map_path)
    choices = Choices(assignments, layers, calibration, real)
    sides = _sides(a, b, map_path, choices, (inputs, samples, seed))
    found = _compare(*sides, isolated, tolerance, only)
    _write(found, sides[0], report, node_data_path)
    if as_json:
        output.json_report(comparison_report(found))
    else:
        print_comparison(found, top)
    return 0 if found.is_equal else 1


def _write(found: Comparison, first: Side, report: Path | None, node_data_path: Path | None) -> None:
    if report is not None:
        from tflq.analysis.compare import Running
        from tflq.report.comparison import comparison_page

        graph = first.execution.graph if isinstance(first, Running) else None
        write_report(report, comparison_page(found, graph))
    if node_data_path is not None:
        from tflq.files import write_bytes
        from tflq.report.model_explorer import node_data

        write_bytes(node_data_path, node_data(found))


def _refuse_what_nothing_uses(
    a: Named,
    b: Named,
    assignments: tuple[str, ...],
    layers: tuple[str, ...],
    calibration: CalibrationChoice,
    map_path: str | None,
) -> None:
    if not (a.is_target or b.is_target):
        refuse_settings_without_target(assignments, layers)
        refuse_calibration_without_target(calibration)
    if map_path is not None and not any(n.is_dump and n.path.lower().endswith(".bin") for n in (a, b)):
        raise click.UsageError("--map is for a .bin dump; none is given")


def _sides(
    a: Named, b: Named, map_path: str | None, choices: Choices, sampled: tuple[tuple[str, ...], int | None, int]
) -> tuple[Side, Side, int]:
    """Return both sides and the number of samples to compare."""
    inputs, samples, seed = sampled
    if a.is_dump and b.is_dump:
        if inputs:
            raise click.UsageError("--input is for models; both sides are dumps")
        both = [open_dump(n, map_path).as_it_is() for n in (a, b)]
        return _known_names(both[0], both[1]), both[1], samples or _fewest(*both)
    model = model_of(b if a.is_dump else a)
    if not (a.is_dump or b.is_dump):
        chosen = choose_samples(model, inputs, choices.real, samples or DEFAULT_SAMPLES, seed)
        sides = [running(n, model_of(n, model) if n is b else model, chosen, model, choices) for n in (a, b)]
        return sides[0], sides[1], chosen.count
    return _with_dump(a, b, map_path, choices, model, sampled)


def _with_dump(
    a: Named,
    b: Named,
    map_path: str | None,
    choices: Choices,
    model: Model,
    sampled: tuple[tuple[str, ...], int | None, int],
) -> tuple[Side, Side, int]:
    inputs, samples, seed = sampled
    dump, named = open_dump(a if a.is_dump else b, map_path), b if a.is_dump else a
    probe = choose_samples(model, (), False, 1, seed)
    side = running(named, model, probe, model, choices)
    fitted = dump.fitted(_counterparts(dump, side))
    chosen = _samples_of(fitted, side, inputs, samples)
    if chosen is None:
        chosen = choose_samples(model, inputs, choices.real, samples or DEFAULT_SAMPLES, seed)
    side = replace(side, samples=chosen)
    return (fitted, side, chosen.count) if a.is_dump else (side, fitted, chosen.count)


def _samples_of(dump: Dump, side: Running, inputs: tuple[str, ...], samples: int | None) -> Samples | None:
    """Return the inputs that a dump holds; None where the options say what it is a dump of."""
    from tflq.analysis.inputs import GivenSamples

    if inputs or samples is not None:
        return None
    names = [side.columns[i].name for i in range(len(side.execution.graph.inputs))]
    plain = side.execution.target is None and side.execution.name == "as is"
    if not plain or not all(name in dump.arrays for name in names):
        raise click.UsageError(
            f"{dump.name}: say which samples it is a dump of, with --input (or --samples and --seed for random ones "
            f"of `tflq run`); a dump that holds the model's inputs in its own encoding needs neither"
        )
    return GivenSamples([dump.arrays[name] for name in names])


def _counterparts(dump: Dump, side: Running) -> dict[str, Column]:
    """Return the tensors that a dump's names mean: those of tensors, else of the operators that write them."""
    from tflq.analysis.compare import require_known

    names = {c.name: c for c in side.columns}
    known = {**{c.node: c for c in side.columns if c.node}, **names}
    if [c.name for c in dump.columns] == [""]:
        outputs = [c for c in side.columns if c.index in side.execution.graph.outputs]
        if len(outputs) != 1:
            raise click.UsageError(f"{dump.name}: write TENSOR={dump.name}; the model has {len(outputs)} outputs")
        return {"": outputs[0]}
    require_known([c.name for c in dump.columns], list(known), dump.name)
    return {c.name: known[c.name] for c in dump.columns}


def _known_names(first: Dump, second: Dump) -> Dump:
    from tflq.analysis.compare import require_known

    require_known([c.name for c in first.columns], [c.name for c in second.columns], second.name)
    return first


def _fewest(*dumps: Dump) -> int:
    return min(dump.count or 0 for dump in dumps)


def _compare(
    first: Side, second: Side, samples: int, isolated: bool, tolerance: float, only: tuple[str, ...]
) -> Comparison:
    from tflq.analysis.compare import compare_sides, require_known

    if only:
        require_known(only, [c.name for c in first.columns], first.name)
    with output.Bar("compare", samples) as bar:
        return compare_sides(
            first, second, samples, isolated=isolated, tolerance=tolerance, only=only, progress=bar.advance
        )
