"""The files that the target writes, read back by others than who wrote them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.converters.tpu_mlir.networks import binary, quantized
from tests.support.command import tflq
from tests.support.data import data_path
from tests.support.onnx_run import run_onnx
from tests.support.tracked import ROOT
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import read_model
from tflq.converters.tpu_mlir import TPU_MLIR
from tflq.converters.tpu_mlir.tables import parse_calibration_table
from tflq.errors import OptionError
from tflq.graph import DType, Model, dequantize, float_view
from tflq.interpreter import Engine

pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
NETWORKS = ("kws_ref_model", "pretrainedResnet_quant", "vww_96_int8", "ad01_int8", "str_ww_ref_model")


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("asymmetric", ["true", "false"])
def test_networks(name: str, asymmetric: str, tmp_path) -> None:
    model = read_model(data_path("models", f"{name}.tflite"))
    settings = parse_settings(TPU_MLIR.settings, [f"asymmetric={asymmetric}"])
    graph = TPU_MLIR.quantize(model.main, settings)
    files = TPU_MLIR.emit(graph, model)
    assert set(files) == {f"{name}.onnx", f"{name}_cali_table", f"{name}_integers.json", f"{name}_build.sh"}
    assert ("--asymmetric" in files[f"{name}_build.sh"].decode()) == (asymmetric == "true")
    _check_names(files[f"{name}.onnx"], files[f"{name}_cali_table"].decode())
    table = tmp_path / "cali_table"
    table.write_bytes(files[f"{name}_cali_table"])
    sets = [f"asymmetric={asymmetric}", f"calibration_table={table}"]
    again = TPU_MLIR.quantize(model.main, parse_settings(TPU_MLIR.settings, sets))
    assert again.tensors == graph.tensors
    assert again.nodes == graph.nodes


def _check_names(content: bytes, table: str) -> None:
    """Each name of the table is a graph input, or an output with the type of the node that writes it."""
    import onnx

    network = onnx.load_from_string(content).graph
    allowed = {value.name for value in network.input}
    allowed |= {f"{value}_{node.op_type}" for node in network.node for value in node.output}
    lines = {line.name for line in parse_calibration_table(table).lines}
    assert lines <= allowed
    fused = {node.input[0] for node in network.node if node.op_type == "Relu"}
    needed = {
        f"{node.output[0]}_{node.op_type}"
        for node in network.node
        if node.op_type in ("Conv", "Gemm", "Add", "MaxPool", "AveragePool", "GlobalAveragePool", "Relu")
        and node.output[0] not in fused
    }
    assert needed <= lines
    assert not {f"{value}_Conv" for value in fused} & lines


def test_the_float_model(tmp_path) -> None:
    model = read_model(DIGITS)
    files = TPU_MLIR.emit(TPU_MLIR.quantize(model.main, parse_settings(TPU_MLIR.settings)), model)
    source = model.main.tensors[model.main.inputs[0]]
    codes = np.random.default_rng(0).integers(-128, 127, (5, *source.shape), np.int8, endpoint=True)
    real = dequantize(codes, source.affine).astype(np.float32)
    ours = Engine(float_view(model.main), "float").run([real])[model.main.outputs[0]]
    (theirs,) = run_onnx(files["digits.onnx"], [real])
    assert np.abs(ours - theirs).max() <= 1e-5


def test_layers_that_leave_the_integers() -> None:
    model = read_model(DIGITS)
    settings = parse_settings(TPU_MLIR.settings, [], ["0:mode=F16", "max_pool_2d:mode=F32", "fully_connected:mode=F16"])
    files = TPU_MLIR.emit(TPU_MLIR.quantize(model.main, settings), model)
    names = {line.name for line in parse_calibration_table(files["digits_cali_table"].decode()).lines}
    modes = dict(line.split() for line in files["digits_qtable"].decode().splitlines()[1:])
    assert modes.keys() <= names
    assert sorted(modes.values()) == ["F16", "F16", "F32"]
    assert {name.rsplit("_", 1)[1] for name in modes} == {"Relu", "MaxPool", "Gemm"}
    assert "--quantize_table digits_qtable" in files["digits_build.sh"].decode()


def test_integers_of_each_layer() -> None:
    model = read_model(DIGITS)
    files = TPU_MLIR.emit(TPU_MLIR.quantize(model.main, parse_settings(TPU_MLIR.settings)), model)
    tensors = json.loads(files["digits_integers.json"])["tensors"]
    first = next(entry for name, entry in tensors.items() if name.endswith("_Relu"))
    assert first["type"] == DType.UINT8.value
    assert len(first["multiplier"]) == len(first["rshift"]) == 16


def test_command(tmp_path) -> None:
    done = tflq("convert", DIGITS, "-t", "tpu-mlir", "-s", "asymmetric=true", "-o", "out", "--json", cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    assert len(done.json["files"]) == 4
    lines = (tmp_path / "out" / "digits_build.sh").read_text().splitlines()
    assert lines[-2].startswith(
        "model_transform.py --model_name digits --model_def digits.onnx --input_shapes '[[1,1,8,8]]'"
    )
    assert lines[-1] == (
        "model_deploy.py --mlir digits.mlir --quantize INT8 --asymmetric --calibration_table digits_cali_table "
        '--chip bm1684x ${1:+--test_input "$1" --test_reference digits_top.npz --tolerance 0.8,0.5} '
        "--model digits.bmodel"
    )


def test_the_build_script_says_chip_borders_and_preprocessing() -> None:
    model = read_model(DIGITS)
    sets = ["chip=bm1688", "quant_input=true", "mean=127.5", "scale=0.0078", "pixel_format=gray", "asymmetric=true"]
    files = TPU_MLIR.emit(TPU_MLIR.quantize(model.main, parse_settings(TPU_MLIR.settings, sets)), model)
    transform, deploy = files["digits_build.sh"].decode().splitlines()[-2:]
    assert "--mean 127.5 --scale 0.0078 --pixel_format gray" in transform
    assert "--asymmetric" in deploy
    assert "--quant_input --chip bm1688" in deploy
    assert "--quant_output" not in deploy
    with pytest.raises(OptionError, match="mean=a,b: numbers with commas between are needed"):
        TPU_MLIR.quantize(model.main, parse_settings(TPU_MLIR.settings, ["mean=a,b"]))


@pytest.mark.parametrize(("setting", "option"), [
    ("", ""), ("asymmetric=true", "--asymmetric"), ("chip=bm1690", "--chip bm1690"),
    ("quant_input=true", "--quant_input"), ("quant_output=true", "--quant_output"), ("mean=1,2.5", "--mean 1,2.5"),
    ("scale=0.5", "--scale 0.5"), ("pixel_format=bgr", "--pixel_format bgr"),
])  # fmt: skip
def test_each_option_of_the_build_script(setting: str, option: str) -> None:
    """Alone, beside the default of the others; of a network with two inputs."""
    graph = binary("add", {"a": (-1.0, 1.0), "b": (-1.0, 1.0), "y": (-2.0, 2.0)})
    settings = parse_settings(TPU_MLIR.settings, [setting] if setting else [])
    files = TPU_MLIR.emit(TPU_MLIR.quantize(graph, settings), Model([graph]))
    script = next(data for name, data in files.items() if name.endswith("_build.sh")).decode()
    assert "--input_shapes '[[1,2,4,4],[1,2,4,4]]'" in script
    assert "samples named a, b:" in script
    options = (
        "--asymmetric",
        "--quant_input",
        "--quant_output",
        "--mean",
        "--scale",
        "--pixel_format",
        "--quantize_table",
    )
    assert [o for o in options if o in script] == [o for o in options if o == option.split(" ")[0]]
    assert option in script
    assert ("--chip bm1684x " in script) is not setting.startswith("chip")


@pytest.mark.parametrize("text", ["mean=a", "scale=1,,2", "scale=1;2"])
def test_numbers_of_the_build_script_that_are_none(text: str) -> None:
    graph = binary("add", {"a": (-1.0, 1.0), "b": (-1.0, 1.0), "y": (-2.0, 2.0)})
    with pytest.raises(OptionError, match=f"{text}: numbers with commas between are needed"):
        quantized(graph, [text])
