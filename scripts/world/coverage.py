"""Which targets take a .tflite file: converted, or refused and for what (scripts/coverage)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from tflq.converters.calibration import calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_model
from tflq.converters.targets import find_target, problems_of
from tflq.converters.tflite import model_from_bytes
from tflq.errors import TflqError
from tflq.graph import Affine, Graph, Model
from tflq.parallel.executions import for_target
from tflq.sampling import RandomSamples, Samples, given_inputs

_OPERATOR = re.compile(r"operator \d+ \((?P<operator>\w+) '.*?'\): (?P<reason>.*)", re.DOTALL)
_SHAPE_WORDS = re.compile(r"\b(shapes?|ranks?|axes|axis|dimensions?|elements)\b")
_RANGE_WORDS = "no range"


class Outcome(Enum):
    """What a target makes of a file; the last four are failures: no refusal of an operator that is not covered."""

    CONVERTED = "converted"
    NOT_COVERED = "not covered"
    NOT_READ = "not read"
    NOT_CALIBRATED = "not calibrated"
    SHAPE = "refused for a shape"
    BORDER = "refused for a range"
    OTHER = "refused for no operator"
    FAILED = "internal error"

    @property
    def is_failure(self) -> bool:
        """Whether the file is not converted for a reason that is no operator."""
        return self in (Outcome.SHAPE, Outcome.BORDER, Outcome.OTHER, Outcome.FAILED)


@dataclass(frozen=True)
class Refusal:
    """One reason why a target does not take a file.

    Attributes:
        operator: that it names; empty where it names none.
        reason: in one line, without the operator's number and name.
        outcome: of what kind the reason is.
    """

    operator: str
    reason: str
    outcome: Outcome


@dataclass(frozen=True)
class Coverage:
    """One file for one target.

    Attributes:
        file: its path below the folder.
        target: the target's name.
        refusals: every reason; none where it was converted.
    """

    file: str
    target: str
    refusals: tuple[Refusal, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The worst of the refusals' outcomes."""
        order = list(Outcome)
        return max((r.outcome for r in self.refusals), key=order.index, default=Outcome.CONVERTED)


def cover(path: Path, name: str, targets: Sequence[str], samples: int = 8, seed: int = 1) -> Iterator[Coverage]:
    """Convert a file for each target, with the target's defaults: quantize, lower, emit, run one sample.

    A model without quantized activations is calibrated: on NAME.samples.npz beside the file, where NAME is the file's
    name up to one of its dots, else on random samples.

    Args:
        path: of the file.
        name: how rows call it.
        targets: their names.
        samples: how many random ones a calibration takes.
        seed: of the random samples.
    """
    try:
        model = settled_model(model_from_bytes(path.read_bytes(), str(path)))
    except TflqError as error:
        refusals = (Refusal("", _line(str(error)), Outcome.NOT_READ),)
    else:
        try:
            ranged, drawn = _calibrated(model, path, samples, seed)
        except TflqError as error:
            refusals = (Refusal("", _line(str(error)), Outcome.NOT_CALIBRATED),)
        else:
            yield from (Coverage(name, target, _converted(ranged, target, drawn)) for target in targets)
            return
    yield from (Coverage(name, target, refusals) for target in targets)


def samples_beside(path: Path) -> Path | None:
    """Return the samples that lie beside a model: "net.samples.npz" of net.tflite and of net.float.tflite."""
    parts = path.name.split(".")
    names = (".".join(parts[:count]) for count in range(len(parts) - 1, 0, -1))
    return next((found for n in names if (found := path.with_name(f"{n}.samples.npz")).is_file()), None)


def _calibrated(model: Model, path: Path, count: int, seed: int) -> tuple[Model, Samples]:
    graph, beside = model.main, samples_beside(path)
    if _is_quantized(graph):
        return model, RandomSamples(graph, 1, seed=seed)
    names = {name: t for s in model.signatures if s.graph == 0 for name, t in s.inputs.items()}
    drawn: Samples = RandomSamples(graph, count, seed=seed)
    if beside is not None:
        drawn = given_inputs(graph, [str(beside)], names)
    arrays = drawn.take(0, drawn.count)
    ranged = calibrate(graph, list(arrays), graphs=model.graphs, state="independent")
    return replace(model, graphs=[ranged, *model.graphs[1:]]), drawn


def _is_quantized(graph: Graph) -> bool:
    return any(isinstance(t.quantization, Affine) and not t.is_constant for t in graph.tensors)


def _converted(model: Model, target: str, samples: Samples) -> tuple[Refusal, ...]:
    found = find_target(target)
    settings = parse_settings(found.settings)
    try:
        problems = problems_of(found, model.main, settings)
        if not problems:
            execution = for_target(model.main, found, settings)
            found.emit(execution.graph, model)
            execution.engine.run(execution.encode(samples.take(0, 1)))
    except TflqError as error:
        problems = (str(error),)
    except Exception as error:  # a folder holds whatever the world wrote: the row says what happened
        return (Refusal("", _line(f"{type(error).__name__}: {error}"), Outcome.FAILED),)
    return tuple(_refusal(line) for line in problems)


def _refusal(words: str) -> Refusal:
    match = _OPERATOR.search(words)
    operator, reason = (match["operator"], match["reason"]) if match else ("", words)
    if _RANGE_WORDS in reason:
        outcome = Outcome.BORDER
    elif _SHAPE_WORDS.search(reason):
        outcome = Outcome.SHAPE
    else:
        outcome = Outcome.NOT_COVERED if operator else Outcome.OTHER
    return Refusal(operator, _line(reason), outcome)


def _line(words: str) -> str:
    return " ".join(words.split())
