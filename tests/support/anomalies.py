"""A synthetic set for ad01: the one published file, disturbed more in the anomalies than in the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.data import data_path

WINDOW_BYTES, STRIDE_BYTES = 2560, 512
WINDOWS_A_FILE = 12


def write_anomalies(folder: Path, files: int = 12) -> Path:
    """Write files of 12 windows and y_labels.csv; every second file is an anomaly, and the two kinds overlap."""
    whole = np.fromfile(data_path("datasets", "ad01", "normal_id_01_00000000_hist_librosa.bin"), "<f4")
    rng = np.random.default_rng(640)
    length = (WINDOW_BYTES + (WINDOWS_A_FILE - 1) * STRIDE_BYTES) // 4
    lines = []
    for number in range(files):
        anomaly = number % 2
        start = int(rng.integers(len(whole) - length))
        noise = rng.normal(0, rng.uniform(0, 8) + 4 * anomaly, length)
        (whole[start : start + length] + noise).astype("<f4").tofile(folder / f"{number}.bin")
        lines.append(f"{number}.bin,2,{anomaly},{WINDOW_BYTES},{STRIDE_BYTES}\n")
    (folder / "y_labels.csv").write_text("".join(lines))
    return folder
