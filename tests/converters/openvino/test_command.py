"""The target on the command line: files of a .tflite, and an IR as input."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.converters.openvino.networks import image_network
from tests.support.command import tflq
from tests.support.data import data_path
from tests.support.kws import clips, right
from tests.support.openvino import Runtime, channels_first, converted, files_of
from tflq.api.demo import demo_model_path
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.openvino import OPENVINO
from tflq.converters.tflite import model_to_bytes, read_model
from tflq.graph import Model


def test_convert_writes_three_files_and_reads_them_again(tmp_path: Path) -> None:
    done = tflq("convert", demo_model_path(), "-t", "openvino", "-o", tmp_path / "out", "--json")
    assert done.status == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["digits.bin", "digits.xml", "levels.json"]
    again = tflq("convert", tmp_path / "out" / "digits.xml", "-t", "openvino", "-o", tmp_path / "again", "--json")
    assert again.status == 0
    assert [layer["engine"] for layer in again.json["layers"] if layer["operator"] == "conv_2d"] == ["u8/i8"] * 3


def test_an_ir_runs(tmp_path: Path) -> None:
    _, xml, weights = converted(Model([image_network()], source="small.tflite"))
    (tmp_path / "small.xml").write_bytes(xml)
    (tmp_path / "small.bin").write_bytes(weights)
    assert tflq("run", "small.xml", cwd=tmp_path).status == 0
    (tmp_path / "small.bin").unlink()
    message = tflq("run", "small.xml", cwd=tmp_path).refused()
    assert "small.xml, line " in message
    assert "lie outside the .bin, which has 0" in message


def test_a_float_model_without_ranges_is_refused(tmp_path: Path) -> None:
    (tmp_path / "float.tflite").write_bytes(model_to_bytes(image_network()))
    message = tflq("convert", "float.tflite", "-t", "openvino", "-o", "out", cwd=tmp_path)
    if message.status:
        assert "have no range" in message.refused()


def test_a_calibrated_float_model() -> None:
    model = read_model(data_path("models", "kws_ref_model_float32.tflite"))
    x, labels = clips()
    ranged = Model([calibrate(model.main, [x[:100]], StatisticsOptions())], source=model.source)
    engine, xml, weights = converted(ranged)
    ours = engine.run([x])[engine.graph.outputs[0]].reshape(1000, -1)
    theirs = Runtime(xml, weights).run_exactly([channels_first(x)]).reshape(1000, -1)
    assert (ours.argmax(axis=1) == theirs.argmax(axis=1)).sum() >= 995
    assert right(ours, labels) >= 890
    assert np.array_equal(files_of(OPENVINO.emit(engine.graph, ranged))[0], xml)
