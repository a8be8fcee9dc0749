"""One call of each command on the model inside the package: arguments, in an empty folder with `data` and `x.npy`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.tracked import ROOT

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
_IMAGES = np.load(DIGITS.parent / "digits_test.npz")
_SEARCH = ("-t", "gap9-ne16", "--widths", "4,8", "--jobs", "1")

COMMANDS: dict[str, tuple[object, ...]] = {
    "inspect": ("inspect", DIGITS),
    "run": ("run", DIGITS, "-n", 2, "--all-tensors"),
    "verify": ("verify", DIGITS, "-n", 2),
    "freeze": ("verify", DIGITS, "-n", 2, "--freeze", "b.json"),
    "compare": ("compare", f"{DIGITS}@gap9-ne16", "-n", 2, "-s", "weight_bits=4"),
    "equal sides": ("compare", DIGITS, DIGITS, "-n", 2),
    "runtimes": ("compare", f"{DIGITS}@ref", "@xnnpack", "@tflm", "-d", "data"),
    "proof": ("compare", f"{DIGITS}@ref", "@xnnpack", "--prove"),
    "a dump": ("compare", DIGITS, "dump.npz", "-i", "x.npy"),
    "dumps": ("dumps", "dump.npz", "--model", DIGITS, "-i", "x.npy"),
    "explain": ("explain", DIGITS, "--tensor", 22, "--index", "0,3"),
    "explain against": ("explain", DIGITS, "--tensor", 22, "--index", "0,3", "--against", "@gap9-ne16"),
    "diff": ("diff", DIGITS, DIGITS),
    "sensitivity": ("sensitivity", DIGITS, *_SEARCH, "-d", "data"),
    "search": ("search", DIGITS, *_SEARCH, "-d", "data", "--at-least", 80),
    "tune": ("tune", DIGITS, "-n", 4),
    "recover": ("recover", DIGITS, "-t", "gap9-ne16", "-s", "weight_bits=3", "--random", "-n", 20, "-o", "r.tflite"),
    "estimate": ("estimate", DIGITS, "-t", "gap9-ne16"),
    "convert": ("convert", DIGITS, "-t", "gap9-ne16", "-o", "c", "-n", 2),
    "convert for tflm": ("convert", DIGITS, "-t", "tflm", "-o", "m", "-n", 2),
    "convert to all": ("convert", DIGITS, "-t", "all", "-o", "d", "-n", 2),
    "cut": ("cut", DIGITS, "--to", 15, "-o", "part.tflite"),
    "dequantize": ("dequantize", DIGITS, "-o", "float.tflite"),
    "export": ("export", DIGITS, "--vectors", "hex", "-o", "e"),
    "program": ("export", DIGITS, "--program", "c99", "-o", "p"),
    "bench": ("bench", "-m", DIGITS, "-d", "data", "-t", "gap9-ne16", "--metric", "top-2"),
    "performance": ("bench", "-m", DIGITS, "-d", "data", "--mode", "performance", "--seconds", 0.001),
    "targets": ("targets", "gap9-ne16", "openvino"),
    "models": ("models", "list"),
    "data": ("data", "list"),
}


def make_folder(folder: Path) -> None:
    """Write eight labeled images as a folder and as an array, and a dump with a wrong tensor."""
    import tflq

    (folder / "data").mkdir()
    lines = []
    for n, (image, label) in enumerate(zip(_IMAGES["images"][:8], _IMAGES["labels"][:8], strict=True)):
        image.tofile(folder / "data" / f"{n}.bin")
        lines.append(f"{n}.bin,10,{label}\n")
    (folder / "data" / "y_labels.csv").write_text("".join(lines))
    samples = _IMAGES["images"][:4].reshape(4, 1, 8, 8, 1)
    np.save(folder / "x.npy", samples)
    tensors = dict(tflq.run(DIGITS, samples, all_tensors=True).tensors)
    last = list(tensors)[-2]
    tensors[last] = tensors[last] + np.int8(3)
    np.savez(folder / "dump.npz", **tensors)
