"""`tflq.recover`: weights and biases for the best reconstruction by a target's integers, as a float model.

Source: docs/guides/recover.md.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tflq import __version__
from tflq.api.calibrate import calibrate
from tflq.api.options import Progress, SampleSource, TargetOptions, is_random, replace_options, silent
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.recovered_layers import METADATA
from tflq.api.result import Result
from tflq.api.samples import open_samples
from tflq.api.target import choose_target, merge_settings
from tflq.api.trials import JudgeOptions, Span, with_labels
from tflq.arrays import is_same
from tflq.converters.settings import Settings
from tflq.converters.settled import dequantized
from tflq.converters.targets import Target
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.errors import TflqWarning, UnsupportedError, UsageError
from tflq.files import write_bytes
from tflq.graph import Graph, Model
from tflq.parallel.executions import for_target
from tflq.precision.recover import LayerRecovery, Outcome, Recovery, RecoverySettings, outcome, prepare, recover_network
from tflq.precision.recover.journal import JournalFile
from tflq.precision.recover.records import Cost, objective_of
from tflq.precision.recover.reference import split, split_numbers, taken
from tflq.precision.results_file import digest_of
from tflq.quoting import Json
from tflq.report import Column, Table, Verdict, identifier, keys, number
from tflq.sampling import GivenSamples, Samples
from tflq.units import size as size_text

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tflq.api.keywords import RecoverKeywords

DEFAULT_SAMPLES = 200
"""Number of random samples."""

Tell = Callable[[str], object]


def quiet(_text: str) -> None:
    """Ignore the text."""


@dataclass(frozen=True)
class RecoverOptions(JudgeOptions):
    """Options of a recovery, with the fields of `JudgeOptions`; labels are used in the report only.

    Attributes:
        verify: Range of samples for the report, which are neither fitted to nor used for any choice.
        bias_only: True to keep all weights and fit biases only.
        rows: Number of output positions of a layer to fit to.
        seed: Seed of the choice of positions.
        random: True to accept random samples; otherwise samples must be named.
        jobs: Number of threads that run samples; results do not depend on it.
        results: File that stores each finished layer; layers that are in the file are not computed again.
    """

    verify: Span | None = None
    bias_only: bool = False
    rows: int = RecoverySettings.rows
    seed: int = RecoverySettings.seed
    random: bool = False
    jobs: int = 1
    results: Path | None = None

    @property
    def how(self) -> RecoverySettings:
        """The part of the options that the recovery of a layer needs."""
        return RecoverySettings(self.rows, self.seed, self.bias_only, jobs=self.jobs)


@dataclass(frozen=True)
class RecoverResult(Result):
    """A recovered model.

    Attributes:
        source: Name of the model in reports.
        target: Target with its settings.
        cost: Upper bound of the cost.
        recovery: Network before and after, and the changes of each layer.
        outcomes: Results before and after, on the samples fitted to, on the samples kept aside, and on the samples of
            `verify`.
        content: Content of the float .tflite.
        output: Path of the file, or None.
    """

    FACTS = (
        Column("model", "model", get="source"),
        Column("target", "target", get="target.name"),
        Column("output", "written", get=lambda r: None if r.output is None else str(r.output)),
        Column("size_bytes", get=lambda r: len(r.content)),
        Column("cost", get=lambda r: asdict(r.cost)),
        Column("left", "nothing kept", get=lambda r: r.recovery.reason or None),
    )

    source: str
    target: TargetOptions
    cost: Cost
    recovery: Recovery
    outcomes: tuple[Outcome, ...]
    content: bytes
    output: Path | None

    @property
    def model(self) -> Model:
        """The float network with the new weights and biases, and its ranges."""
        return model_from_bytes(self.content, str(self.output or self.source))

    @property
    def verdict(self) -> Verdict:
        """Signal-to-noise ratio after the recovery, on the last samples that were measured."""
        last = self.outcomes[-1] if self.outcomes else None
        reason = f"no layer is changed: {self.recovery.reason}" if self.recovery.reason else ""
        if last is None:
            return Verdict("", len(self.recovery.layers), "layers with weights", advice=reason)
        before = f"{last.sqnr_db[0]:.1f} dB before"
        return Verdict("", last.sqnr_db[1], f"dB SQNR on samples {last.samples}", before, last.count, reason)

    @property
    def notes(self) -> Sequence[str]:
        """The file."""
        size = size_text(len(self.content))
        return [f"{self.output}: {size}, only for {self.target.name} with these settings"] if self.output else []

    def tables(self) -> Sequence[Table]:
        """Return the layers, and the results before and after."""
        layers = Table("layers", _LAYERS, self.recovery.layers, "Layers")
        return [layers, Table("results", _RESULTS, self.outcomes, "Results before and after")]


def _arrow(values: Sequence[float] | None) -> str:
    return "" if values is None or math.isnan(values[0]) else f"{values[0]:.1f} -> {values[1]:.1f}"


_LAYERS = (
    number("index", "#"),
    identifier("name", "layer"),
    *keys("operator"),
    number("bits", "bits"),
    Column("kept", "new"),
    Column("", "reason", get="reason", rank=1),
    *keys("reason", "fit_db", "bias_db"),
    number("held_out_db", "kept aside", form=lambda layer: _arrow(layer.held_out_db), unit="dB"),
    *keys("changed", "bias_steps"),
)
_RESULTS = (
    Column("samples", "samples"),
    number("count", "count"),
    number("sqnr_db", "SQNR", form=lambda o: _arrow(o.sqnr_db), unit="dB"),
    number("accuracy_percent", "accuracy", form=lambda o: _arrow(o.accuracy_percent), unit="%"),
)


def recover(
    model: ModelSource,
    target: TargetOptions | str,
    samples: SampleSource = None,
    options: RecoverOptions = RecoverOptions(),
    output: str | Path | None = None,
    *,
    progress: Progress = silent,
    tell: Tell = quiet,
    **changes: Unpack[RecoverKeywords],
) -> RecoverResult:
    """Find weights and biases of few bits that the target's integers reconstruct best, without training or labels.

    The result is a float model with ranges; the target's own quantizer maps it to exactly the recovered quantized
    weights. Every other use case accepts it, with the same target and settings.

    Args:
        model: Float model with ranges (or with `calibration`), or quantized model.
        target: Target with its settings, or its name.
        samples: Samples similar to the device's input; one of ten is kept aside to decide which layers are changed.
        options: Selection of samples, and settings of the recovery.
        output: Path of a .tflite to write.
        progress: Progress callback.
        tell: Callback for one line with the cost before the start, and one line per layer.
        **changes: Fields of the options, by name.

    Warns:
        TflqWarning: Random samples; fewer than 100 samples.

    Raises:
        UsageError: No samples, or labeled samples in addition to other samples.
        LimitError: A layer needs more memory than the limits allow.
        InputError, OptionError, FormatError: Samples, settings or files that do not fit.
        UnsupportedError: Operators that the target or the float network does not support; weights that the target's
            quantizer does not reproduce.
        OutputError: The file cannot be written.
    """
    samples, options = with_labels(samples, replace_options(options, changes))
    wanted = merge_settings(target, options.calibration)
    source = read_model(model)
    every, labels = _read_samples(source, samples, options)
    span = options.span or Span(0, options.verify.start if options.verify and not options.span else every.count)
    chosen = span.select(every)
    known, settings = choose_target(wanted.name or "", wanted, recovers=True)
    ranged = calibrate(source, options.calibration, target=known.name, progress=progress)
    recovered = recover_ranged((source, ranged), known, settings, wanted, chosen, options, tell)
    recovery, content = recovered.recovery, model_to_bytes(recovered.model)
    _require_same(for_target(model_from_bytes(content).main, known, settings).graph, recovery.execution.graph)
    outcomes = _outcomes(recovery, source, every, labels, span, options.verify)
    if output is not None:
        write_bytes(Path(output), content)
    where = None if output is None else Path(output)
    return RecoverResult(name_of(model), wanted, recovered.cost, recovery, outcomes, content, where)


@dataclass(frozen=True)
class Recovered:
    """Result of a recovery.

    Attributes:
        recovery: Network before and after.
        model: Float network, with a record of the recovery in its metadata.
        cost: Upper bound of the cost.
    """

    recovery: Recovery
    model: Model
    cost: Cost


def recover_ranged(
    models: tuple[Model, Model],
    target: Target,
    settings: Settings,
    wanted: TargetOptions,
    samples: GivenSamples,
    options: RecoverOptions,
    tell: Tell = quiet,
) -> Recovered:
    """Recover a model that has ranges; used by every command with `--recover`.

    Args:
        models: Model that the samples are for, and the same model with ranges.
        target: Target with the integers to match.
        settings: Complete settings.
        wanted: Target and settings in the user's notation.
        samples: Samples to fit to; one of ten is kept aside.
        options: Settings of the recovery.
        tell: Callback, as for `recover`.

    Warns:
        TflqWarning: Fewer than 100 samples.

    Raises:
        InputError, UnsupportedError, OptionError, LimitError: As for `recover`.
        UsageError: `bias_only` together with an objective that keeps biases.
    """
    if options.bias_only and not objective_of(settings).moves_bias:
        raise UsageError("adaround does not change biases, --bias-only does not change weights; omit one of them")
    source, network = models[0], dequantized(models[1])
    if any(node.arithmetic is not None for node in network.main.nodes):
        raise UnsupportedError(
            "recovery does not support the layers of a vendor's file: pass the .tflite that it was converted from"
        )
    prepared = prepare(source, network, split(samples), options.how)
    tell(cost_text(prepared.reference.cost))
    journal = None
    if options.results is not None:
        about = (__version__, network.main, wanted.settings, wanted.layers, tuple(samples.arrays), _settings(options))
        journal = JournalFile(options.results, digest_of(wanted.name, about))
    recovery = recover_network(prepared, target, settings, lambda layer: tell(layer_text(layer)), journal)
    return Recovered(recovery, _add_record(recovery, wanted, options, samples), prepared.reference.cost)


def cost_text(cost: Cost) -> str:
    """Describe the cost of a recovery."""
    return (
        f"{cost.layers} layers, at most {cost.macs / 1e9:.1f} G multiply-accumulates and "
        f"{cost.peak_bytes / 2**20:.0f} MiB in addition to the running samples"
    )


def layer_text(layer: LayerRecovery) -> str:
    """Describe the changes of a layer: the error before and after."""
    ratio = "" if math.isnan(layer.held_out_db[0]) else ": {:.1f} -> {:.1f} dB".format(*layer.held_out_db)
    return f"{layer.name}{ratio}, new: {layer.kept}"


def _outcomes(
    recovery: Recovery,
    source: Model,
    samples: Samples,
    labels: NDArray[np.int64] | None,
    span: Span,
    verify: Span | None,
) -> tuple[Outcome, ...]:
    """Return the results on the samples fitted to, kept aside, and verified."""
    fitted, aside = split_numbers(span.stop - span.start)
    sets = [("fitted to", span, fitted), ("kept aside", span, aside)]
    if verify is not None:
        sets.append(("verified", verify, np.arange(verify.stop - verify.start)))
    outcomes = []
    for name, part, numbers in sets:
        classes = None if labels is None else labels[part.start : part.stop][numbers]
        outcomes.append(outcome(recovery, source, name, taken(part.select(samples), numbers), classes))
    return tuple(outcomes)


def _settings(options: RecoverOptions) -> Mapping[str, Json]:
    return {name: getattr(options, name) for name in ("rows", "seed", "bias_only")}


def _read_samples(
    model: Model, samples: SampleSource, options: RecoverOptions
) -> tuple[Samples, NDArray[np.int64] | None]:
    if options.data is None and is_random(samples) and not options.random:
        raise UsageError(
            "recovery fits weights to samples similar to the device's input: name them with --data or --input, or "
            "accept random samples with --random"
        )
    if options.data is None and is_random(samples):
        warnings.warn(
            "weights are fitted to random samples: use the result for experiments only", TflqWarning, stacklevel=3
        )
    stops = [span.stop for span in (options.span, options.verify) if span is not None]
    count = max(stops, default=DEFAULT_SAMPLES)
    opened = open_samples(model, samples, labels=options.labels, data=options.data, count=count, are_classes=True)
    return opened.samples, opened.labels if isinstance(opened.labels, np.ndarray) else None


def _add_record(recovery: Recovery, target: TargetOptions, options: RecoverOptions, samples: GivenSamples) -> Model:
    """Return the float network with a record of the recovery in its metadata."""
    about = {
        "tflq": __version__,
        "target": target.name,
        "settings": target.settings,
        "layers": target.layers,
        "samples": samples.count,
        "samples_sha256": digest_of(tuple(samples.arrays)),
        **_settings(options),
        "labels_used": False,
        "recovered": [{k: _replace_nonfinite(v) for k, v in asdict(layer).items()} for layer in recovery.layers],
    }
    metadata = {**recovery.network.metadata, METADATA: json.dumps(about, ensure_ascii=False).encode()}
    return replace(recovery.network, metadata=metadata)


def _replace_nonfinite(value: Json) -> Json:
    """Return a value with None for numbers that are not finite."""
    if isinstance(value, (list, tuple)):
        return [_replace_nonfinite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def require_named(samples: SampleSource, *others: object) -> None:
    """Refuse random samples.

    Args:
        samples: Samples, as passed to a use case.
        *others: Other sources of samples; one that is not empty is sufficient.

    Raises:
        UsageError: No samples are named.
    """
    if is_random(samples) and not any(others):
        raise UsageError(
            "recovery fits weights to samples similar to the device's input: name them with --data or --input"
        )


def _require_same(written: Graph, recovered: Graph) -> None:
    """Check that the target quantizes the file to the recovered constants.

    Raises:
        UnsupportedError: A constant differs.
    """
    pairs = zip(written.tensors, recovered.tensors, strict=False)
    if len(written.tensors) != len(recovered.tensors) or not all(is_same(a.data, b.data) for a, b in pairs):
        raise UnsupportedError("the target's integers of the file differ from the recovered ones; no file is written")
