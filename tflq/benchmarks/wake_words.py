"""sww01 on a stream of sound: windows of the reference device, and detections counted as by MLCommons' runner.

Source: mlcommons/tiny, benchmark/reference_submissions/streaming_wakeword (features, threshold, first frame),
benchmark/runner/streaming_ww_utils.py (counting), benchmark/runner/sww_data_dir (streams and their truth).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tflq.benchmarks.anomaly import concatenate_rows
from tflq.benchmarks.tasks import Quality, Task
from tflq.errors import InputError
from tflq.files import read_bytes
from tflq.graph import Affine, Array, DType, Graph, Tensor
from tflq.sampling.described.audio import lfbe, read_wave
from tflq.sampling.described.description import Features

RATE = 16_000
STRIDE = 512
"""Samples from one inference to the next, 32 ms; a frame of features has two strides."""
THRESHOLD = (115 + 128) / 256
"""Threshold of output 0 for a detection: above 115 in int8 (DETECT_THRESHOLD)."""
LIMIT = 8
"""Largest number of false positives, and of false negatives, that the benchmark allows."""
FRAME_MS = 1000 * STRIDE // RATE

_LONG = "sww_long_test.json"
_FEATURES = Features("lfbe", 2 * STRIDE, STRIDE, 40, 0, 0.0, RATE / 2)
_DELAY_S = 2.0
"""Largest delay of a detection after a wake word: the runner adds its delay of one second twice."""
_DEBOUNCE_MS = 1000


@dataclass(frozen=True)
class Stream:
    """One recording and the wake words in it.

    Attributes:
        file: WAV file of 16 kHz; its first channel is used.
        words: Start and end of each wake word, in seconds.
        seconds: Length of the recording.
    """

    file: Path
    words: tuple[tuple[float, float], ...]
    seconds: float


@dataclass(frozen=True)
class StreamWindows:
    """The model's inputs over streams: one window of 30 frames for each stride of sound.

    Attributes:
        tensor: Input of the model.
        views: Windows of each stream, [W, 30, 40], in the encoding of the tensor, without a copy.
    """

    tensor: Tensor
    views: tuple[Array, ...]

    @property
    def count(self) -> int:
        """Number of windows of all streams."""
        return sum(map(len, self.views))

    def take(self, start: int, stop: int) -> list[Array]:
        """Return windows start..stop-1."""
        taken = concatenate_rows(self.views, start, stop)
        return [taken.reshape(len(taken), *self.tensor.shape)]


@dataclass(frozen=True)
class LabeledStreams:
    """Streams with their wake words.

    Attributes:
        samples: Windows, stream by stream.
        streams: Recordings and their wake words.
    """

    samples: StreamWindows
    streams: tuple[Stream, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """The recordings."""
        return tuple(stream.file for stream in self.streams)


@dataclass(frozen=True)
class WakeWords:
    """Detections on streams.

    Attributes:
        name: Name of the execution.
        words: Number of wake words in the streams.
        true_positives: Number of detected wake words.
        false_positives: Number of detections without a wake word; detections within a second count once.
        seconds: Length of the streams.
    """

    name: str
    words: int
    true_positives: int
    false_positives: int
    seconds: float

    @property
    def false_negatives(self) -> int:
        """Wake words that were missed."""
        return self.words - self.true_positives

    @property
    def false_accepts_per_hour(self) -> float:
        """False positives an hour."""
        return 3600 * self.false_positives / self.seconds

    @property
    def false_rejects_per_hour(self) -> float:
        """Missed wake words an hour."""
        return 3600 * self.false_negatives / self.seconds

    @property
    def percent(self) -> float:
        """100 * true positives / words."""
        return 100.0 * self.true_positives / self.words if self.words else 100.0

    def meets(self, quality: Quality) -> bool:
        """Whether neither kind of error occurs more often than the benchmark allows."""
        return max(self.false_positives, self.false_negatives) <= quality.at_least


def holds_streams(path: Path) -> bool:
    """Whether a data set of sww01 consists of streams with their truth, and not of windows with y_labels.csv."""
    if path.is_dir():
        return not (path / "y_labels.csv").exists() and any(path.glob("*_test.json"))
    return path.suffix.lower() == ".json" and path.is_file() and isinstance(_content(path), list)


def read_streams(path: Path) -> tuple[Stream, ...]:
    """Read the truth of streams: a JSON file of the runner, or its folder (sww_long_test.json has precedence).

    Raises:
        InputError: Several files without the benchmark's; another format; a missing recording.
    """
    if path.is_dir():
        named = sorted(path.glob("*_test.json"))
        chosen = [file for file in named if file.name == _LONG] or named
        if len(chosen) > 1:
            raise InputError(f"{path}: contains {', '.join(file.name for file in chosen)}; name one of these files")
        path = chosen[0]
    content = _content(path)
    try:
        streams = tuple(_stream(path.parent, entry) for entry in content)  # type: ignore[attr-defined]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: is not a truth of streams: {type(error).__name__} {error}; allowed is a list of objects with "
            '"wav_file", "detection_windows" [[start, end], ...] and "length_sec"'
        ) from None
    missing = [stream.file.name for stream in streams if not stream.file.is_file()]
    if missing or not streams:
        raise InputError(f"{path.parent}: the recording {', '.join(missing) or 'of a stream'} is missing")
    return streams


def load_streams(task: Task, path: Path, graph: Graph) -> LabeledStreams:
    """Read streams for a model.

    Raises:
        InputError: The model does not fit the task; errors of `read_streams`.
    """
    streams = read_streams(path)
    return LabeledStreams(windows_of(task, graph, streams), streams)


def windows_of(task: Task, graph: Graph, streams: Sequence[Stream]) -> StreamWindows:
    """Return a model's inputs over recordings; errors as for `load_streams`."""
    tensor = task.check(graph)
    views = tuple(_windows(task, tensor, stream_features(read_wave(stream.file, RATE))) for stream in streams)
    return StreamWindows(tensor, views)


def stream_features(sound: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the features of each stride of sound, -1..1: float32[F, 40] between 0 and 1.

    Frame f ends with stride f: the first frame begins with zeros. Sound after the last complete stride is omitted.
    """
    whole = sound[: len(sound) // STRIDE * STRIDE]
    return lfbe(np.concatenate([np.zeros(STRIDE), whole]), _FEATURES, RATE).astype(np.float32)


def summarize_streams(name: str, values: NDArray[np.float64], data: LabeledStreams) -> WakeWords:
    """Count the detections in the results of all windows, real[W, 3]."""
    detected = false = 0
    ends = np.cumsum([len(view) for view in data.samples.views])[:-1]
    for stream, scores in zip(data.streams, np.split(values[:, 0], ends), strict=True):
        times = FRAME_MS * np.flatnonzero(scores > THRESHOLD)
        true, wrong = count_detections(times[times > 0], stream.words)
        detected, false = detected + true, false + wrong
    words = sum(len(stream.words) for stream in data.streams)
    return WakeWords(name, words, detected, false, sum(stream.seconds for stream in data.streams))


def count_detections(times_ms: NDArray[np.int64], words: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """Return true and false positives, as calc_detection_stats of the runner counts them.

    A wake word covers all detections from its start to two seconds after its end. Each remaining detection covers the
    detections of the second after it.
    """
    left, detected = times_ms, 0
    for start, end in words:
        hits = (left / 1000 >= start) & (left / 1000 <= end + _DELAY_S)
        detected += bool(hits.any())
        left = left[~hits]
    false = 0
    while len(left):
        false += 1
        left = left[left > left[0] + _DEBOUNCE_MS]
    return detected, false


def _windows(task: Task, tensor: Tensor, features: NDArray[np.float32]) -> Array:
    """Return windows of frames [F, frames, 40], newest frame last; the buffer is zero before the first frame.

    int8: q = low 8 bits of trunc(feature / scale + zero_point) in float32, as a cast in C on the reference device.
    """
    frames = task.shape[0]
    encoded: Array
    if tensor.dtype is DType.FLOAT32:
        zero = np.float32((0 - task.zero_point) * task.scale)
        encoded = features
    else:
        scale, offset = _encoding(tensor)
        zero = np.float32(0)
        encoded = np.trunc(features / scale + offset).astype(np.int32).astype(np.int8)
    before = np.full((frames - 1, encoded.shape[1]), zero, encoded.dtype)
    windows: Array = sliding_window_view(np.concatenate([before, encoded]), frames, axis=0).transpose(0, 2, 1)
    return windows


def _encoding(tensor: Tensor) -> tuple[np.float32, np.float32]:
    """Return scale and zero point of an input of one scale.

    Raises:
        InputError: The input has no scale, or several.
    """
    if not isinstance(tensor.quantization, Affine) or tensor.quantization.is_per_axis:
        raise InputError(f"input '{tensor.name}' needs a single scale and zero point for features of sound")
    scale, offset = tensor.quantization.along(0)
    return np.float32(scale), np.float32(offset)


def _content(path: Path) -> object:
    try:
        return json.loads(bytes(read_bytes(path)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON: {' '.join(str(error).split())}") from None


def _stream(folder: Path, entry: dict[str, object]) -> Stream:
    windows = entry["detection_windows"]
    if not isinstance(windows, list) or not isinstance(entry["length_sec"], (int, float)):
        raise TypeError("detection_windows or length_sec")
    words = tuple((float(start), float(end)) for start, end in windows)
    return Stream(folder / str(entry["wav_file"]), words, float(entry["length_sec"]))
