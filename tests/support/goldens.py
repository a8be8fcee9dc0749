"""Recorded output of each command for a fixed call; `python -m tests.support.goldens [NAME...]` records it anew.

A recording holds the texts of the two streams, of --json and of the page of --report, and the digests of written
files, without the facts of the run (date, machine, versions). Numbers keep six significant digits: sums of floats
differ in the last bits between processors.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.support.command import tflq, without_run
from tests.support.faults import DIGITS, corrupted_weights
from tests.support.tracked import ROOT
from tflq.converters.tflite import model_to_bytes

FOLDER = ROOT / "tests" / "data" / "goldens"
Texts = Mapping[str, list[str]]
"""Name of a text ("out", "err", "json", "page", "files") -> its lines."""


class Call(NamedTuple):
    """One call of a command in a folder that `write_inputs` made.

    Attributes:
        arguments: The command line.
        has_page: True if the command takes --report; the page holds what --json prints.
        has_json: True if what --json prints is recorded.
    """

    arguments: str
    has_page: bool = False
    has_json: bool = True


GAP9 = "-t gap9-ne16"
CALLS = {
    "bench": Call(f"bench -m digits.tflite -d digits {GAP9} -t tflite", has_page=True),
    "compare": Call("compare digits.tflite@gap9-ne16 -i x.npy", has_page=True),
    "compare-dump": Call("compare digits.tflite dump.npz -i x.npy", has_page=True),
    "compare-models": Call("compare bad.tflite digits.tflite -i x.npy", has_page=True),
    "convert": Call(f"convert digits.tflite {GAP9} -o out", has_page=True),
    "convert-all": Call("convert digits.tflite -t all -o out -i x.npy", has_page=True),
    "runtimes": Call("runtimes"),
    "cut": Call("cut digits.tflite --to 15 -o a.tflite"),
    "data": Call("data list"),
    "dequantize": Call("dequantize digits.tflite -o f.tflite"),
    "diff": Call("diff bad.tflite digits.tflite"),
    "dumps": Call("dumps dump.npz --model digits.tflite"),
    "estimate": Call(f"estimate digits.tflite {GAP9}", has_page=True),
    "explain": Call("explain digits.tflite --tensor 22 --index 0,3 -i x.npy --sample 2 --against @gap9-ne16"),
    "export": Call(f"export digits.tflite -o v -i x.npy --vectors hex {GAP9} -l CONV_2D"),
    "export-vectors": Call("export digits.tflite -o v -i x.npy --vectors c", has_json=False),
    "program": Call("export digits.tflite -o p -i x.npy --program c99", has_json=False),
    "program-aipu": Call("export digits.tflite -o p -i x.npy --program c99 -t aipu", has_json=False),
    "program-gap9": Call(f"export digits.tflite -o p -i x.npy --program c99 {GAP9}", has_json=False),
    "program-tpu-mlir": Call("export digits.tflite -o p -i x.npy --program c99 -t tpu-mlir", has_json=False),
    "freeze": Call("verify digits.tflite -i x.npy --freeze b.tflq.json -t gap9-ne16"),
    "inspect": Call("inspect digits.tflite"),
    "models": Call("models list"),
    "recover": Call(f"recover digits.tflite {GAP9} -s weight_bits=3 -i x.npy --take 0:6 -o r.tflite", has_json=False),
    "run": Call("run digits.tflite -i x.npy --all-tensors -o o.npz"),
    "run-for-target": Call(f"run digits.tflite -i x.npy {GAP9} -s weight_bits=4"),
    "search": Call(f"search digits.tflite {GAP9} --data digits --jobs 1 --at-least 80 --widths 2,8", has_page=True),
    "sensitivity": Call(f"sensitivity digits.tflite {GAP9} --data digits --jobs 1 --widths 2,4", has_page=True),
    "targets": Call("targets"),
    "tune": Call("tune digits.tflite -t aipu --data digits --drop 20"),
    "verify": Call("verify digits.tflite -i x.npy"),
}


def write_inputs(folder: Path) -> None:
    """Write the files that the calls read: two models, eight images, their labels and a dump with a fault."""
    shutil.copy(DIGITS, folder / "digits.tflite")
    (folder / "bad.tflite").write_bytes(model_to_bytes(corrupted_weights()))
    archive = np.load(DIGITS.parent / "digits_test.npz")
    images, labels = archive["images"][:8], archive["labels"][:8]
    np.save(folder / "x.npy", images)
    (folder / "digits").mkdir()
    for number, image in enumerate(images):
        image.tofile(folder / "digits" / f"{number}.bin")
    rows = [f"{number}.bin,10,{label}\n" for number, label in enumerate(labels)]
    (folder / "digits" / "y_labels.csv").write_text("".join(rows))
    done = tflq("run", "bad.tflite", "-i", "x.npy", "--all-tensors", "-o", "dump.npz", cwd=folder)
    assert done.status == 0, done.err


def record(call: Call) -> Texts:
    """Run a call in a fresh folder and return its texts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        before = set(folder.rglob("*"))
        words = call.arguments.split()
        done = tflq(*words, *(("--report", "page.html") if call.has_page else ()), cwd=folder)
        assert done.status in (0, 1), (call.arguments, done)
        written = sorted(set(folder.rglob("*")) - before)
        lines = [f"{path.relative_to(folder).as_posix()} {_digest(path)}" for path in written if path.is_file()]
        texts = {"status": str(done.status), "out": done.out, "err": done.err, "files": "\n".join(lines)}
        if call.has_page:
            page, _, rest = (folder / "page.html").read_text(encoding="utf-8").partition("<h2>Every figure</h2>")
            texts["page"] = page[page.index("<body") :].replace("><", ">\n<")
            report = json.loads(unescape(rest[rest.index("<pre>") + 5 : rest.index("</pre>")]))
        elif call.has_json:
            for path in set(folder.iterdir()) - before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            report = tflq(*words, "--json", cwd=folder).json
        texts["json"] = json.dumps(without_run(report), indent=1, ensure_ascii=False) if call.has_json else ""
    return {name: list(_lines(text, folder)) for name, text in texts.items()}


def _lines(text: str, folder: Path) -> Iterator[str]:
    """Yield lines with short numbers, without the times that a run took and where the folder is."""
    for line in text.replace(str(folder), "FOLDER").replace(str(ROOT), "ROOT").splitlines():
        yield re.sub(r"-?\d+\.\d+(e[+-]?\d+)?", lambda match: f"{float(match[0]):.6g}", line).rstrip()


def _digest(path: Path) -> str:
    """Return eight digits of a file's digest; pages, frozen runs and archives state the run, the version or a time."""
    if path.suffix in (".html", ".npz") or path.name.endswith(".tflq.json"):
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:8]


def read(name: str) -> Texts:
    """Return what was recorded of a call."""
    texts: Texts = json.loads(lzma.decompress((FOLDER / f"{name}.json.xz").read_bytes()))
    return texts


def first_difference(expected: Texts, actual: Texts) -> str:
    """Return the first line that differs, with its text and number; "" if all are equal."""
    for name in (*expected, *(other for other in actual if other not in expected)):
        old, new = expected.get(name, []), actual.get(name, [])
        for number in range(max(len(old), len(new))):
            before, after = ("".join(lines[number : number + 1]) for lines in (old, new))
            if before != after or number >= min(len(old), len(new)):
                return f"{name}, line {number + 1}\nexpected: {before}\nactual:   {after}"
    return ""


def write(name: str) -> None:
    """Record a call anew."""
    content = json.dumps(record(CALLS[name]), ensure_ascii=False).encode()
    (FOLDER / f"{name}.json.xz").write_bytes(lzma.compress(content, preset=9))


if __name__ == "__main__":
    for chosen in sys.argv[1:] or CALLS:
        write(chosen)
