"""sww01: wake words of Speech Commands over speech and music of MUSAN, as one recording.

Source: mlcommons/tiny, benchmark/training/streaming_wakeword/build_long_wav.py.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.datasets.archive import read_members
from tflq.errors import InputError
from tflq.files import read_bytes
from tflq.sampling.described.audio import load_scipy, read_wave

RECORDING, TRUTH, SPECIFICATION = "long_wav.wav", "sww_long_test.json", "long_wav_spec.json"
_RATE = 16_000
_QUIET = 0.05
"""Sound below this fraction of its highest value is removed from both ends of a word."""
_FULL = 2.0**15
_ALLOWED = (
    '{"configs_background": [[file, start, stop, level], ...], "configs_wakeword": [[file, start, level], ...], '
    '"length_sec": seconds}'
)


def build(sources: Sequence[Path], specification: Path) -> dict[str, bytes]:
    """Return the recording (two equal channels of int16) and its truth in the runner's form.

    Each background is scaled to the specified standard deviation and added between start and stop; each word, without
    its quiet ends, likewise at its start. float32 sums are divided by their largest absolute value, multiplied by 2^15
    and truncated; the largest value itself wraps to -32768 if it is positive, as in numpy's cast.

    Args:
        sources: Speech Commands and MUSAN, archives or folders.
        specification: Schedule of the sounds: long_wav_spec.json, or a file in its format.

    Raises:
        InputError: Another format, or a recording that is missing, too short, or does not fit.
        MissingExtraError: Package scipy is not installed.
    """
    seconds, backgrounds, words = _read(specification)
    heard = _recordings(sources, [*(b[0] for b in backgrounds), *(w[0] for w in words)])
    mixed = np.zeros(int(seconds * _RATE), np.float32)
    for file, start, stop, level in backgrounds:
        part = heard[file][: int((stop - start) * _RATE)]
        place = slice(int(start * _RATE), int(stop * _RATE))
        if mixed[place].size != part.size:
            raise InputError(f"{specification}: {file} has {part.size / _RATE:g} s, it needs {stop - start:g} s")
        mixed[place] += level * (part / np.std(part))
    windows = []
    for file, start, level in words:
        word, first = _trim(heard[file]), int(start * _RATE)
        if first + word.size >= mixed.size:
            raise InputError(f"{specification}: {file} at {start:g} s ends after the recording's {seconds:g} s")
        mixed[first : first + word.size] += level * word
        windows.append([start, start + word.size / _RATE])
    mixed /= np.max(np.abs(mixed)) or 1
    channel = (mixed * np.float32(_FULL)).astype(np.int32).astype(np.int16)
    truth = [{"wav_file": RECORDING, "detection_windows": windows, "length_sec": seconds, "sample_rate": _RATE}]
    return {RECORDING: _wave(channel), TRUTH: json.dumps(truth, indent=1).encode() + b"\n"}


def _trim(word: NDArray[np.float64]) -> NDArray[np.float64]:
    loud = np.flatnonzero(word > word.max() * _QUIET)
    cut = word[loud[0] : loud[-1]] if loud.size else word
    scaled: NDArray[np.float64] = cut / np.std(cut)
    return scaled


def _recordings(sources: Sequence[Path], files: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Return the samples of files in the range of int16, by their names in the specification."""
    ends = {file.partition("}/")[2] or file: file for file in files}
    recordings: dict[str, NDArray[np.float64]] = {}
    for source in sources:
        for name, content in read_members(source, lambda name: _end(name, ends) is not None):
            end = _end(name, ends)
            if end is not None:
                recordings[ends[end]] = read_wave(Path(name), _RATE, channels=1, content=content) * _FULL
    missing = [file for file in files if file not in recordings]
    if missing:
        raise InputError(
            f"{', '.join(map(str, sources))}: {len(set(missing))} recordings are missing, the first is {missing[0]}; "
            "name Speech Commands v0.02 and MUSAN with --from"
        )
    return recordings


def _end(name: str, ends: dict[str, str]) -> str | None:
    parts = name.split("/")
    return next((end for n in range(len(parts)) if (end := "/".join(parts[n:])) in ends), None)


def _read(path: Path) -> tuple[float, list[tuple[str, float, float, float]], list[tuple[str, float, float]]]:
    try:
        content = json.loads(bytes(read_bytes(path)))
        backgrounds = [(str(f), float(a), float(b), float(level)) for f, a, b, level in content["configs_background"]]
        words = [(str(f), float(a), float(level)) for f, a, level in content["configs_wakeword"]]
        seconds = float(content["length_sec"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: is not a schedule of sounds ({reason}); allowed is {_ALLOWED}") from None
    if not 0 < seconds <= 24 * 3600 or any(not 0 <= a < b <= seconds for _, a, b, _ in backgrounds):
        raise InputError(f"{path}: its times are not within a recording of {seconds:g} s, which is at most a day")
    return seconds, backgrounds, words


def _wave(channel: NDArray[np.int16]) -> bytes:
    buffer = io.BytesIO()
    load_scipy().io.wavfile.write(buffer, _RATE, np.stack((channel, channel), axis=1))
    return buffer.getvalue()
