"""The records of options that several use cases share; plain data, so that a command line fills them quickly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from tflq.errors import UsageError

if TYPE_CHECKING:
    from tflq.graph import Array
    from tflq.sampling import Samples
    from tflq.sampling.samples import Span

Inputs: TypeAlias = "str | Sequence[str] | Array | Mapping[str, Array]"
"""Samples for a model's inputs: files as --input names them, or arrays [S, *shape], by name where there are several."""

SampleSource: TypeAlias = "SampleOptions | Samples | Inputs | tuple[Array, Array] | None"
"""Samples of a use case: options, samples of `tflq.samples`, files or arrays, (x, y) with labels y; None for random."""

LabelSource: TypeAlias = "str | Array | Sequence[int]"
"""Classes of samples: a file .npy or .csv, or integers [S]."""

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]
"""Called with what is done and how much of it there is; what it yields is called with each part that is finished."""

_Options = TypeVar("_Options")


def silent(what: str, total: int) -> AbstractContextManager[Callable[[int], object]]:  # noqa: ARG001 - a Progress
    """Show no progress."""
    return nullcontext(lambda _done: None)


def changed(options: _Options, changes: Mapping[str, object]) -> _Options:
    """Return a record of options with the fields that were given as keyword arguments.

    Raises:
        UsageError: There is no such field.
    """
    known = [field.name for field in fields(options)]  # type: ignore[arg-type]
    unknown = [name for name in changes if name not in known]
    if unknown:
        near = get_close_matches(unknown[0], known, 3, 0.5)
        meant = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
        raise UsageError(f"{type(options).__name__} has no field '{unknown[0]}'; {meant}")
    return replace(options, **changes)  # type: ignore[type-var]


@dataclass(frozen=True)
class SampleOptions:
    """Which samples.

    Attributes:
        inputs: files as --input names them ("NAME=FILE", or "FILE" where there is one input), or arrays; random samples
            where it is empty.
        real: they are real numbers, to be converted with each input's scale and zero point; otherwise an array must
            have the model's own type.
        count: Number of random samples; None for the default of the use case.
        seed: of random samples.
        data: the samples of a labeled data set instead, "[TASK=]DIR" (docs/guides/mlperf_tiny.md).
        take: Which of the samples to use; None for all.
    """

    inputs: Inputs = ()
    real: bool = False
    count: int | None = None
    seed: int = 0
    data: str | None = None
    take: Span | None = None

    @property
    def is_random(self) -> bool:
        """Whether no samples are named."""
        return self.data is None and isinstance(self.inputs, (str, Sequence, Mapping)) and not self.inputs


def is_random(samples: SampleSource) -> bool:
    """Whether a use case is given no samples."""
    return samples is None or (isinstance(samples, SampleOptions) and samples.is_random)


@dataclass(frozen=True)
class TargetOptions:
    """A target and how it quantizes.

    Attributes:
        name: of the target; None for the model as it is, or where a use case names its targets itself.
        settings: "KEY=VALUE" for the whole graph.
        layers: "PATTERN:KEY=VALUE" for single layers, later ones win.
        file: settings as `search` wrote them, in front of the others.
    """

    name: str | None = None
    settings: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    file: str | None = None


@dataclass(frozen=True)
class CalibrationOptions:
    """How tensors get their ranges before a target quantizes them (docs/guides/calibration.md).

    Attributes:
        samples: as `SampleOptions.inputs`; none where it is empty.
        strategy: how a range follows from them; None for "extrema".
        batch_size: samples of a batch; None for 10.
        momentum: share of the old value in moving averages; None for 0.9.
        bins: of histograms; None for 2048.
        shuffle: seed to shuffle the samples with; None keeps their order.
        ranges: a file of ranges, which win.
        template: a file of settings and ranges of each layer, as `convert` writes it; its ranges win over those of the
            samples.
        real: the samples are real numbers.
    """

    samples: Inputs = ()
    strategy: str | None = None
    batch_size: int | None = None
    momentum: float | None = None
    bins: int | None = None
    shuffle: int | None = None
    ranges: str | None = None
    template: str | None = None
    real: bool = False

    @property
    def has_samples(self) -> bool:
        """Whether there are samples."""
        return not SampleOptions(self.samples).is_random

    @property
    def has_statistics(self) -> bool:
        """Whether anything was said of the statistics."""
        said = (self.strategy, self.batch_size, self.momentum, self.bins, self.shuffle)
        return any(value is not None for value in said)

    @property
    def is_empty(self) -> bool:
        """Whether tensors keep the ranges that they have."""
        return not self.has_samples and not self.has_statistics and self.ranges is None and self.template is None
