"""Option records shared by several use cases; plain data, so that a command line fills them quickly."""

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
"""Samples for a model's inputs: files, "NAME=FILE" or "FILE", or arrays [S, *shape], by name for several inputs."""

SampleSource: TypeAlias = "SampleOptions | Samples | Inputs | tuple[Array, Array] | None"
"""Samples of a use case: options, samples of `tflq.samples`, files or arrays, (x, y) with labels y; None for random."""

LabelSource: TypeAlias = "str | Array | Sequence[int]"
"""Classes of samples: a file .npy or .csv, or integers [S]."""

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]
"""Called with the name of the work and its total; the context yields a function to call with each finished part."""

_Options = TypeVar("_Options")


def silent(what: str, total: int) -> AbstractContextManager[Callable[[int], object]]:  # noqa: ARG001 - a Progress
    """Show no progress."""
    return nullcontext(lambda _done: None)


def replace_options(options: _Options, changes: Mapping[str, object]) -> _Options:
    """Return options with some fields replaced.

    Raises:
        UsageError: A field is unknown.
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
    """Options that select samples; `inputs` may also be arrays, by name for several inputs.

    Attributes:
        inputs: Samples for the inputs: files, NAME=FILE, or FILE for single-input models (default: random samples).
            FILE is .npy, .npz, raw .bin in the model's encoding (samples in sequence), a folder of .bin files, or a
            data description .json of images or WAV files (docs/guides/data.md).
        real: True for floating-point samples, which are converted with each input's scale and zero point; otherwise an
            array must have the model's own type.
        count: Number of random samples, if no samples are named.
        seed: Seed of the random samples.
        data: Labeled data set: TASK=DIR for a task of `tflq bench`, or DIR, a folder with y_labels.csv and files in the
            format of the model's input, or a data description .json (docs/guides/mlperf_tiny.md).
        take: Range of samples to use (default: all).
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
    """Return whether no samples are named."""
    return samples is None or (isinstance(samples, SampleOptions) and samples.is_random)


@dataclass(frozen=True)
class TargetOptions:
    """A target and its settings.

    Attributes:
        name: Name of the target; None for the unchanged model, or if the use case has a separate list of targets.
        settings: Settings KEY=VALUE for the whole graph; `tflq targets` lists them.
        layers: Settings PATTERN:KEY=VALUE for single layers. PATTERN is an operator's number, a name or a glob of
            names, or an operator; later settings override earlier ones.
        file: File of settings, as `tflq search -o` writes it; the other settings override it.
    """

    name: str | None = None
    settings: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    file: str | None = None


@dataclass(frozen=True)
class CalibrationOptions:
    """Options for the ranges of tensors before a target quantizes them (docs/guides/calibration.md).

    `samples` may also be arrays, by name for several inputs.

    Attributes:
        samples: Samples for the ranges of a model that has none: files in the same forms as input samples, or TASK=DIR,
            a data set of `tflq bench`.
        strategy: Statistic that maps samples to a range: extrema (default; mean for aipu), mean, weighted-mean, 3std,
            kld, 99.99percentile, aciq-laplace, aciq-gauss, mse and more (docs/guides/calibration.md).
        batch_size: Number of samples in a calibration batch (default: 10; 1 for aipu).
        momentum: Weight of the old value in moving averages (default: 0.9).
        bins: Number of histogram bins (default: 2048).
        shuffle: Seed for shuffling the samples (default: the given order, which moving averages depend on).
        ranges: File of ranges: lines tensor,min,max, or JSON {tensor: [min, max]}; these override all other ranges.
        template: File of settings and ranges of each layer, as `tflq convert --write-template` writes it; other layer
            settings and ranges from a file override it, its ranges override calibrated ones.
        real: True for floating-point samples.
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
        """Whether an option of the statistics is set."""
        values = (self.strategy, self.batch_size, self.momentum, self.bins, self.shuffle)
        return any(value is not None for value in values)

    @property
    def is_empty(self) -> bool:
        """Whether tensors keep the ranges that they have."""
        return not self.has_samples and not self.has_statistics and self.ranges is None and self.template is None
