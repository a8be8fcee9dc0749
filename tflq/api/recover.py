"""`tflq.recover`: weights and biases that a target's integers reconstruct best, as a float model.

Source: docs/guides/recover.md.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tflq import __version__
from tflq.api.calibrate import calibrate
from tflq.api.options import Progress, SampleSource, TargetOptions, changed, is_random, silent
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.recovered_layers import METADATA
from tflq.api.result import Result
from tflq.api.samples import open_samples
from tflq.api.target import choose_target, complete
from tflq.api.trials import JudgeOptions, Span, with_labels
from tflq.arrays import same
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

_RANDOM_SAMPLES = 200

Tell = Callable[[str], object]


def quiet(_text: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class RecoverOptions(JudgeOptions):
    """How a model is recovered, with the fields of `JudgeOptions`; labels are for the report alone.

    Attributes:
        verify: samples that nothing is fitted to or chosen by, for the report.
        bias_only: leave all weights as they are.
        rows: output positions of a layer that are fitted to.
        seed: of their choice.
        random: take random samples where none are named, which are refused otherwise.
        jobs: threads that run samples; results do not depend on them.
        results: a file that keeps each layer as it comes; what is in it is not found again.
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
        """The part that layers are recovered by."""
        return RecoverySettings(self.rows, self.seed, self.bias_only, jobs=self.jobs)


@dataclass(frozen=True)
class RecoverResult(Result):
    """A recovered model.

    Attributes:
        source: how reports call the model.
        target: with its settings.
        cost: what it took at most.
        recovery: the network before and after, and what was done to each layer.
        outcomes: results before and after, on the samples that were fitted to, on those kept aside, and on those of
            `verify`.
        content: the float .tflite.
        output: where it was written, or None.
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
        reason = f"nothing is kept: {self.recovery.reason}" if self.recovery.reason else ""
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
    **changes: object,
) -> RecoverResult:
    """Find weights and biases of few bits that the target's integers reconstruct best, without training or labels.

    The result is a float model with its ranges, of which the target's own quantizer makes exactly the quantized weights
    that were found: every other use case takes it, with the same target and settings.

    Args:
        model: float with ranges (or `calibration`), or quantized.
        target: with its settings, or its name.
        samples: like those that the device will see; one of ten is kept aside to decide what stays.
        options: which of them, and how.
        output: a .tflite to write.
        progress: shows how far it is.
        tell: gets a line with the cost before it starts, and one for each layer.
        **changes: fields of the options.

    Warns:
        TflqWarning: random samples; fewer than 100.

    Raises:
        UsageError: no samples, or labeled samples and others.
        LimitError: a layer needs more memory than the limits allow.
        InputError, OptionError, FormatError: samples, settings or files that do not fit.
        UnsupportedError: operators that the target or the float network cannot take; weights that the target's
            quantizer does not give back.
        OutputError: the file cannot be written.
    """
    samples, options = with_labels(samples, changed(options, changes))
    wanted = complete(target, options.calibration)
    source = read_model(model)
    found, labels = _read_samples(source, samples, options)
    span = options.span or Span(0, options.verify.start if options.verify and not options.span else found.count)
    chosen = span.select(found)
    known, settings = choose_target(wanted.name or "", wanted, recovers=True)
    ranged = calibrate(source, options.calibration, target=known.name, progress=progress)
    recovered = recover_ranged((source, ranged), known, settings, wanted, chosen, options, tell)
    recovery, content = recovered.recovery, model_to_bytes(recovered.model)
    _require_same(for_target(model_from_bytes(content).main, known, settings).graph, recovery.execution.graph)
    outcomes = _outcomes(recovery, source, found, labels, span, options.verify)
    if output is not None:
        write_bytes(Path(output), content)
    where = None if output is None else Path(output)
    return RecoverResult(name_of(model), wanted, recovered.cost, recovery, outcomes, content, where)


@dataclass(frozen=True)
class Recovered:
    """What recovery gave.

    Attributes:
        recovery: the network before and after.
        model: the float network, with the entry of its metadata that says how it was made.
        cost: what it took at most.
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
    """Recover a model that has ranges: what every command with `--recover` does.

    Args:
        models: the one that the samples are for, and the same with ranges.
        target: whose integers count.
        settings: complete.
        wanted: target and settings as the user gave them.
        samples: to fit to; one of ten is kept aside.
        options: how.
        tell: as for `recover`.

    Warns:
        TflqWarning: fewer than 100 samples.

    Raises:
        InputError, UnsupportedError, OptionError, LimitError: as `recover`.
        UsageError: `bias_only`, where the settings' objective leaves biases.
    """
    if options.bias_only and not objective_of(settings).moves_bias:
        raise UsageError("adaround leaves biases as they are: --bias-only leaves nothing to be found")
    source, network = models[0], dequantized(models[1])
    if any(node.arithmetic is not None for node in network.main.nodes):
        raise UnsupportedError(
            "recovery does not know the layers of a vendor's file: give the .tflite that it was made of"
        )
    prepared = prepare(source, network, split(samples), options.how)
    tell(cost_text(prepared.reference.cost))
    journal = None
    if options.results is not None:
        about = (__version__, network.main, wanted.settings, wanted.layers, tuple(samples.arrays), _settings(options))
        journal = JournalFile(options.results, digest_of(wanted.name, about))
    recovery = recover_network(prepared, target, settings, lambda layer: tell(layer_text(layer)), journal)
    return Recovered(recovery, _described(recovery, wanted, options, samples), prepared.reference.cost)


def cost_text(cost: Cost) -> str:
    """Say what a recovery takes."""
    return (
        f"{cost.layers} layers, at most {cost.macs / 1e9:.1f} G multiply-accumulates and "
        f"{cost.peak_bytes / 2**20:.0f} MiB beside the samples that run"
    )


def layer_text(layer: LayerRecovery) -> str:
    """Say what was done to a layer: the error before and after."""
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
    """Return the results on the samples that were fitted to, kept aside, and verified."""
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
            "recovery fits weights to samples like those that the device will see: give --data or --input; "
            "--random takes random ones all the same"
        )
    if options.data is None and is_random(samples):
        warnings.warn(
            "weights are fitted to random samples: the result is for trying out, not for use", TflqWarning, stacklevel=3
        )
    stops = [span.stop for span in (options.span, options.verify) if span is not None]
    count = max(stops, default=_RANDOM_SAMPLES)
    opened = open_samples(model, samples, labels=options.labels, data=options.data, count=count, are_classes=True)
    return opened.samples, opened.labels if isinstance(opened.labels, np.ndarray) else None


def _described(recovery: Recovery, target: TargetOptions, options: RecoverOptions, samples: GivenSamples) -> Model:
    """Return the float network with the entry of its metadata that says how it was made."""
    about = {
        "tflq": __version__,
        "target": target.name,
        "settings": target.settings,
        "layers": target.layers,
        "samples": samples.count,
        "samples_sha256": digest_of(tuple(samples.arrays)),
        **_settings(options),
        "labels_used": False,
        "recovered": [{k: _known(v) for k, v in asdict(layer).items()} for layer in recovery.layers],
    }
    metadata = {**recovery.network.metadata, METADATA: json.dumps(about, ensure_ascii=False).encode()}
    return replace(recovery.network, metadata=metadata)


def _known(value: Json) -> Json:
    """Return a value with None for numbers that are not known."""
    if isinstance(value, (list, tuple)):
        return [_known(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def require_named(samples: SampleSource, *others: object) -> None:
    """Refuse random samples.

    Args:
        samples: as of a use case.
        *others: other ways to name samples; any that is not empty will do.

    Raises:
        UsageError: none are named.
    """
    if is_random(samples) and not any(others):
        raise UsageError("recovery fits weights to samples like those that the device will see: name them")


def _require_same(written: Graph, found: Graph) -> None:
    """Check that the target makes the same constants of the file as were found.

    Raises:
        UnsupportedError: it does not.
    """
    pairs = zip(written.tensors, found.tensors, strict=False)
    if len(written.tensors) != len(found.tensors) or not all(same(a.data, b.data) for a, b in pairs):
        raise UnsupportedError("the target makes other integers of the file than were found; nothing is written")
