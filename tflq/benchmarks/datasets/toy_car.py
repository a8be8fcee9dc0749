"""ad01: log-mel spectrograms of ToyADMOS' cars.

Source: mlcommons/tiny, benchmark/training/anomaly_detection (common.py, convert_dataset.py), by melspectrogram
of librosa.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.datasets.archive import Originals
from tflq.sampling.described.audio import read_wave

_RATE, _POINTS, _HOP, _BANKS = 16_000, 1024, 512, 128
_FIRST, _LAST = 50, 250
_LINEAR_HZ, _LINEAR_MEL = 1000.0, 15.0
_LOG_STEP = np.log(6.4) / 27.0


def _key_of(name: str) -> str:
    path = PurePosixPath(name)
    return path.stem if path.suffix == ".wav" and path.parent.name in ("test", "") else ""


def _convert(name: str, content: bytes) -> bytes:
    sound = read_wave(Path(name), _RATE, channels=1, content=content)
    return spectrogram(sound.astype(np.float32)).tobytes()


ORIGINALS = Originals("recording", "dev_data_ToyCar.zip, or its folder", "_hist_librosa.bin", _key_of, _convert)
"""X_hist_librosa.bin, float32[200, 128], frames 50..249, computed by scipy from the recording test/X.wav of 16 kHz."""


def spectrogram(sound: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 10 log10(mel + 2^-52) of frames 50..249, float32[200, 128].

    Frames of 1024 every 512, the first one around the first sample, under a periodic Hann window; |FFT|^2 as float32
    (the FFT itself in float64), 128 triangular filters of area 1 on Slaney's scale; the rest in float32.
    """
    padded = np.pad(sound, _POINTS // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, _POINTS)[::_HOP]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_POINTS) / _POINTS)
    spectrum = np.fft.rfft((window[:, None] * frames.T), axis=0).astype(np.complex64)
    power = np.abs(spectrum) ** np.float32(2)
    mel = np.einsum("ft,mf->mt", power, mel_filters(), optimize=True)
    logarithm = np.float32(10) * np.log10(mel + np.float32(np.finfo(np.float64).eps))
    return np.ascontiguousarray(logarithm[:, _FIRST:_LAST].T, np.float32)


def mel_filters() -> NDArray[np.float32]:
    """Return librosa's filters, [128, 513]: triangles between points even on Slaney's scale, each of area 1.

    Slaney's scale is 3 hz / 200 below 1000 Hz and 15 + 27 log(hz / 1000) / log(6.4) above.
    """
    highest = _LINEAR_MEL + np.log(_RATE / 2 / _LINEAR_HZ) / _LOG_STEP
    mel = np.linspace(0.0, highest, _BANKS + 2)
    above = mel >= _LINEAR_MEL
    hz = 0.0 + 200.0 / 3 * mel
    hz[above] = _LINEAR_HZ * np.exp(_LOG_STEP * (mel[above] - _LINEAR_MEL))
    slopes = np.subtract.outer(hz, np.fft.rfftfreq(_POINTS, 1 / _RATE))
    widths = np.diff(hz)
    rising, falling = -slopes[:-2] / widths[:-1, None], slopes[2:] / widths[1:, None]
    weights: NDArray[np.float32] = np.maximum(0, np.minimum(rising, falling)).astype(np.float32)
    weights *= (2.0 / (hz[2:] - hz[:-2]))[:, None]
    return weights
