"""WAV files, and the features of MLPerf Tiny's speech models: mel-frequency cepstra and log filter-bank energies.

mfcc (keyword spotting): frames under a periodic Hann window, |FFT| over the next power of two, mel filter banks (HTK
scale), log(x + 1e-6), DCT-II / sqrt(2 banks), the first coefficients.
lfbe (streaming wake word): pre-emphasis x[n] - (1 - 2^-5) x[n-1], a symmetric Hamming window, |FFT|^2 / window,
mel filter banks, (10 log10(x) + 52) / 64 clipped to 0..1.

Source: mlcommons/tiny, benchmark/training/keyword_spotting/get_dataset.py. Its tf.signal uses float32, this code
float64: features agree to about 1e-4, and a quantized value near a half may differ by one.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles, Singles
from tflq.errors import InputError, MissingExtraError
from tflq.sampling.described.description import Audio, Features

if TYPE_CHECKING:
    from types import ModuleType


_PRE_EMPHASIS = 1 - 2.0**-5
_LFBE_OFFSET, _LFBE_RANGE = 52.0, 64.0
_SMALLEST_POWER = 1e-30


def load_clip(path: Path, how: Audio) -> Singles:
    """Return a WAV file as float32: [length] samples, or [frames, coefficients] of features.

    Raises:
        InputError: The file is not a WAV file, has another rate, or several channels.
        MissingExtraError: Package scipy is not installed.
    """
    clip = _waveform(path, how)
    if how.features.kind == "waveform":
        return clip.astype(np.float32)
    compute = mfcc if how.features.kind == "mfcc" else lfbe
    return compute(clip, how.features, how.rate).astype(np.float32)


def mfcc(clip: Doubles, features: Features, rate: int) -> Doubles:
    """Return mel-frequency cepstral coefficients, [frames, coefficients]."""
    scipy = load_scipy()
    window = scipy.signal.get_window("hann", features.window, fftbins=True)
    spectrum = _magnitudes(clip, window, features)
    banks = spectrum @ mel_matrix(features.mel_bins, spectrum.shape[1], rate, features.low_hz, features.high_hz)
    transformed = np.asarray(scipy.fft.dct(np.log(banks + 1e-6), type=2, axis=-1), np.float64)
    return np.asarray(transformed[:, : features.coefficients] / np.sqrt(2.0 * features.mel_bins))


def lfbe(clip: Doubles, features: Features, rate: int) -> Doubles:
    """Return log filter-bank energies between 0 and 1, [frames, coefficients]."""
    window = load_scipy().signal.get_window("hamming", features.window, fftbins=False)
    emphasized = clip - _PRE_EMPHASIS * np.concatenate([[0.0], clip[:-1]])
    power = np.maximum(np.square(_magnitudes(emphasized, window, features)) / features.window, _SMALLEST_POWER)
    banks = power @ mel_matrix(features.coefficients, power.shape[1], rate, features.low_hz, features.high_hz)
    with np.errstate(divide="ignore"):
        logarithm = 10 * np.log10(banks)
    return np.clip((logarithm + _LFBE_OFFSET) / _LFBE_RANGE, 0, 1)


def mel_matrix(banks: int, bins: int, rate: int, low_hz: float, high_hz: float) -> Doubles:
    """Return triangular filters over FFT bins, [bins, banks]; the bin at 0 Hz belongs to no filter.

    mel = 1127 ln(1 + hz / 700); edges are evenly spaced in mel. Source: tf.signal.linear_to_mel_weight_matrix.
    """
    mel = _mel(np.linspace(0, rate / 2, bins)[1:])[:, None]
    edges = np.linspace(_mel(low_hz), _mel(high_hz), banks + 2)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (mel - low) / (middle - low), (high - mel) / (high - middle)
    return np.pad(np.maximum(0, np.minimum(rising, falling)), ((1, 0), (0, 0)))


def _magnitudes(clip: Doubles, window: Doubles, features: Features) -> Doubles:
    frames = np.lib.stride_tricks.sliding_window_view(clip, features.window)[:: features.stride]
    points = 1 << (features.window - 1).bit_length()
    magnitudes: Doubles = np.abs(np.fft.rfft(frames * window, points))
    return magnitudes


def _mel(hz: float | Doubles) -> Doubles:
    return np.asarray(1127.0 * np.log1p(np.asarray(hz) / 700.0))


def _waveform(path: Path, how: Audio) -> Doubles:
    """Return a clip of the stated length, -1..1."""
    clip = read_wave(path, how.rate, channels=1)[: how.length]
    if how.normalize == "peak" and clip.size and clip.max() > 0:
        clip = clip / clip.max()
    return np.pad(clip, (0, how.length - clip.size))


def read_wave(path: Path, rate: int, channels: int | None = None, content: bytes | None = None) -> Doubles:
    """Return the first channel of a WAV file, -1..1.

    Args:
        path: Path of the file.
        rate: Required sampling rate in samples per second.
        channels: Required number of channels; None for any number.
        content: Content of the file, if it is part of an archive.

    Raises:
        InputError: The file is not a WAV file, has another rate, or another number of channels.
        MissingExtraError: Package scipy is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scipy warns about unknown chunks
            file_rate, samples = load_scipy().io.wavfile.read(path if content is None else io.BytesIO(content))
    except MissingExtraError:
        raise
    except Exception as error:
        raise InputError(f"{path}: is not a readable WAV file: {' '.join(str(error).split())}") from None
    if file_rate != rate:
        raise InputError(f"{path}: has {file_rate} samples per second; {rate} are required. Resample the file")
    if channels == 1 and samples.ndim != 1:
        raise InputError(f"{path}: has {samples.shape[1]} channels; one is required")
    return _scale_full(samples if samples.ndim == 1 else samples[:, 0])


def _scale_full(samples: NDArray[np.generic]) -> Doubles:
    """Return the values of a WAV file as -1..1: integers divided by their full scale, 8-bit integers are unsigned."""
    wide = samples.astype(np.float64)
    if samples.dtype.kind == "f":
        return wide
    if samples.dtype == np.uint8:
        return (wide - 128) / 128
    return wide / 2.0 ** (8 * samples.dtype.itemsize - 1)


def load_scipy() -> ModuleType:
    """Return scipy with the modules used here."""
    try:
        import scipy.fft
        import scipy.io.wavfile
        import scipy.ndimage
        import scipy.signal
    except ImportError:
        raise MissingExtraError("audio files and builders of data sets need scipy: pip install 'tflq[audio]'") from None
    loaded: ModuleType = scipy
    return loaded
