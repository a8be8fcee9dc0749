"""kws01: mel-frequency cepstra of the first thousand clips of Speech Commands' test set.

Source: mlcommons/tiny, benchmark/training/keyword_spotting (make_bin_files.py, get_dataset.py). The clips have the
order of TensorFlow Datasets: sorted by the MD5 of "test" and WORD_FILE, in four shards that are read 16 clips at a
time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.datasets.archive import read_members, read_names
from tflq.benchmarks.labels import Label
from tflq.benchmarks.tasks import TASKS
from tflq.errors import InputError
from tflq.sampling.described.audio import mfcc, read_wave
from tflq.sampling.described.description import Features

_WORDS = ("down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes", "_silence_", "_unknown_")
_RATE = 16_000
_FEATURES = Features("mfcc", 480, 320, 10, 40, 20.0, 4000.0)
_SHARDS, _BLOCK = 4, 16
_BELOW_ZERO = (1, 5)
"""Coefficients of a frame without sound that are just below zero in the published files.

All 40 logarithms of such a frame are equal, so that all coefficients except the first are zero. TensorFlow's float32
FFT of that time returned slightly less in these two, and the truncating cast turns 83 - 1e-5 into 82.
"""


def build(sources: Sequence[Path], labels: Sequence[Label]) -> dict[str, bytes]:
    """Return each file of the labels: int8[49, 10], trunc(feature / scale + zero_point) in float32.

    Args:
        sources: Path of speech_commands_test_set_v0.02.tar.gz, or of its folder.
        labels: Labels in the order of the clips.

    Raises:
        InputError: Too few clips, another order than the labels', or other files than WAV files of 16 kHz.
        MissingExtraError: Package scipy is not installed.
    """
    source = sources[0]
    names = clip_order([name for name in read_names(source) if name.endswith(".wav")])[: len(labels)]
    classes = [_class_of(name) for name in names]
    wanted = [label.true_class for label in labels]
    if classes != wanted:
        raise InputError(
            f"{source}: is not the test set of Speech Commands v0.02: {len(classes)} of {len(labels)} clips, the "
            "classes "
            f"of {sum(map(int.__eq__, classes, wanted))} match the labels"
        )
    places = {name: label.file for name, label in zip(names, labels, strict=True)}
    made = {
        places[name]: quantize_features(_features(read_wave(Path(name), _RATE, channels=1, content=content)))
        for name, content in read_members(source, places.__contains__)
    }
    return {label.file: made[label.file] for label in labels}


def clip_order(names: Sequence[str]) -> list[str]:
    """Return paths WORD/FILE in the order of a TensorFlow Datasets test set with these clips."""
    ordered = sorted(names, key=digest)
    edges = [round(len(ordered) * n / _SHARDS) for n in range(_SHARDS + 1)]
    shards = [ordered[start:stop] for start, stop in pairwise(edges)]
    rounds = range(0, max(map(len, shards)), _BLOCK)
    return [name for start in rounds for shard in shards for name in shard[start : start + _BLOCK]]


def quantize_features(features: NDArray[np.float32]) -> bytes:
    """Return int8[49, 10] of features with the reference model's scale and zero point."""
    task = TASKS["kws01"]
    real = features / np.float32(task.scale) + np.float32(task.zero_point)
    return bytes(np.trunc(real).astype(np.int32).astype(np.int8))


def _features(clip: NDArray[np.float64]) -> NDArray[np.float32]:
    peak = clip.max() if clip.size else 0.0
    padded = np.zeros(max(_RATE, clip.size))
    padded[: clip.size] = clip / peak if peak > 0 else clip
    cepstra = mfcc(padded[:_RATE], _FEATURES, _RATE).astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(padded[:_RATE], _FEATURES.window)[:: _FEATURES.stride]
    for coefficient in _BELOW_ZERO:
        cepstra[~frames.any(axis=1), coefficient] = -1e-5
    return cepstra


def digest(name: str) -> bytes:
    """Return the sort key of a path WORD/FILE."""
    path = PurePosixPath(name)
    return hashlib.md5(f"test{path.parent.name}_{path.name}".encode(), usedforsecurity=False).digest()


def _class_of(name: str) -> int:
    word = PurePosixPath(name).parent.name
    return _WORDS.index(word) if word in _WORDS else len(_WORDS) - 1
