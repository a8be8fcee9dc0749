"""--report: the first sentence names the layer and the cause; every command's page opens without network or errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq, without_run
from tests.support.faults import CHANNEL, DIGITS, NODE, corrupted_weights, with_output_scale, wrong_multiplier
from tests.support.html_page import in_chromium, numbers_missing, read_page, too_wide
from tflq.converters.tflite import model_to_bytes, read_model

pytest.importorskip("jinja2", reason="jinja2 is not installed: it comes with tflq[report]")

FAULTS = {
    "weights": (corrupted_weights(), f"channel {CHANNEL} first: weights of channel {CHANNEL} differs"),
    "multiplier": (wrong_multiplier(), f"channel {CHANNEL} first: multiplier of channel {CHANNEL} differs"),
    "saturation": (with_output_scale(0.3), "first: saturation: "),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_first_sentence_names_the_worst_layer_and_the_cause(tmp_path: Path, fault: str) -> None:
    model, cause = FAULTS[fault]
    (tmp_path / "bad.tflite").write_bytes(model_to_bytes(model))
    images = np.load(DIGITS.parent / "digits_test.npz")["images"][:20].reshape(20, 1, 8, 8, 1)
    np.save(tmp_path / "x.npy", images)
    reference = DIGITS if fault != "saturation" else "@float"
    done = tflq("compare", "bad.tflite", reference, "-i", "x.npy", "--report", "out.html", cwd=tmp_path)
    assert (done.status, done.err) == (1, "")
    reading = read_page(tmp_path / "out.html")
    assert f"look at {NODE}, " in reading.verdict, reading.verdict
    assert cause in reading.verdict
    assert reading.tags.count("svg") >= 2
    shown, console = in_chromium(tmp_path / "out.html")
    assert console == []
    assert NODE in shown
    assert too_wide(tmp_path / "out.html") == []
    found = without_run(tflq("compare", "bad.tflite", reference, "-i", "x.npy", "--json", cwd=tmp_path).json)
    assert numbers_missing(tmp_path / "out.html", found) == []


def test_model_explorer_gets_each_tensor_of_the_reference(tmp_path: Path) -> None:
    (tmp_path / "bad.tflite").write_bytes(model_to_bytes(corrupted_weights()))
    tflq("compare", "bad.tflite", DIGITS, "-n", "4", "--model-explorer", "nodes.json", cwd=tmp_path)
    graph = json.loads((tmp_path / "nodes.json").read_text())["main"]
    names = {t.name for t in read_model(DIGITS).main.tensors}
    assert set(graph["results"]) <= names
    worst = max(graph["results"], key=lambda name: graph["results"][name]["value"])
    main = read_model(DIGITS).main
    node = next(n for n in main.nodes if n.name == NODE)
    assert worst in [main.tensors[t].name for n in main.nodes[main.nodes.index(node) :] for t in n.outputs]


@pytest.fixture
def labeled(tmp_path: Path) -> Path:
    """Eight digits as a folder with y_labels.csv."""
    archive = np.load(DIGITS.parent / "digits_test.npz")
    (tmp_path / "digits").mkdir()
    lines = []
    for n, (image, label) in enumerate(zip(archive["images"][:8], archive["labels"][:8], strict=True)):
        image.tofile(tmp_path / "digits" / f"{n}.bin")
        lines.append(f"{n}.bin,10,{label}\n")
    (tmp_path / "digits" / "y_labels.csv").write_text("".join(lines))
    return tmp_path


COMMANDS = {
    "sensitivity": (
        ("sensitivity", DIGITS, "-t", "gap9-ne16", "--data", "digits", "--jobs", "1"),
        "suffers most at 2 bits",
    ),
    "search": (
        ("search", DIGITS, "-t", "gap9-ne16", "--data", "digits", "--jobs", "1", "--at-least", "80", "--widths", "2,8"),
        "OK: ",
    ),
    "bench": (("bench", "-m", DIGITS, "-d", "digits", "-t", "gap9-ne16"), "the lowest target is gap9-ne16"),
    "estimate": (("estimate", DIGITS, "-t", "gap9-ne16"), "cycles"),
    "convert to all": (("convert", DIGITS, "-t", "all", "-o", "out", "-d", "digits"), " support the model"),
    "convert": (
        ("convert", DIGITS, "-t", "gap9-ne16", "-o", "out"),
        "the layer farthest from floating point is ",
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_writes_a_page(labeled: Path, command: str) -> None:
    arguments, sentence = COMMANDS[command]
    done = tflq(*arguments, "--report", "out.html", cwd=labeled)
    assert (done.status, done.err) == (0, "")
    reading = read_page(labeled / "out.html")
    assert sentence in reading.verdict, reading.verdict
    assert "svg" in reading.tags or 'class="bar"' in (labeled / "out.html").read_text("utf-8")
    assert too_wide(labeled / "out.html") == []
    again = ["again" if argument == "out" else argument for argument in arguments]
    found = without_run(tflq(*again, "--json", cwd=labeled).json)
    assert numbers_missing(labeled / "out.html", found) == []


def test_refusals(tmp_path: Path) -> None:
    arguments = ("compare", DIGITS, "-n", "1", "--report")
    assert "the name must end in .html" in tflq(*arguments, "out.txt", cwd=tmp_path).refused()
    assert "the folder missing does not exist" in tflq(*arguments, "missing/out.html", cwd=tmp_path).refused()
    assert not list(tmp_path.iterdir())
