"""Float IR: the Parser's files return, TFLite models give what the Parser gives, and the files can be converted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.aipu_golden import KWS, read_ir
from tests.support.data import data_files, data_path
from tests.support.refused import damaged
from tflq.cli import main
from tflq.converters.aipu import AIPU, graph_of, read_model
from tflq.converters.aipu.check import problems_of
from tflq.converters.aipu.emit import float_network_of
from tflq.converters.aipu.operators import OPERATORS
from tflq.converters.aipu.translate import translate
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import read_model as read_tflite
from tflq.errors import FormatError, InputError, UnsupportedError
from tflq.graph import Graph, float_view
from tflq.graph.builder import GraphBuilder
from tflq.schemas.aipu import Layer, Network

STATED = ("weights_range", "biases_range")
"""Keys that the Parser takes from a file's own minimum and maximum; nothing here reads them."""

FLOATS = [path for path in data_files("golden", "aipu", pattern="*.txt") if not path.stem.endswith("_o")]

CASES = data_files("cases", "aipu_parser", pattern="*.txt")


def _entries(layer: Layer) -> list[tuple[str, object]]:
    return [(key, entry) for key, entry in layer.entries.items() if key not in STATED]


def _assert_same(ours: Network, theirs: Network) -> None:
    assert list(ours.header.items()) == list(theirs.header.items())
    for a, b in zip(ours.layers, theirs.layers, strict=True):
        assert (a.name, a.type, a.bottoms, a.tops) == (b.name, b.type, b.bottoms, b.tops)
        assert _entries(a) == _entries(b), a.name


@pytest.mark.skipif(not FLOATS, reason="TFLQ_DATA is not set: no IR of the vendor on this machine")
def test_the_parsers_files_return() -> None:
    count = 0
    for path in FLOATS:
        network = read_ir(path.parent, path.stem)
        if all(layer.type in (*OPERATORS, "Input") for layer in network.layers):
            _assert_same(float_network_of(graph_of(network), network.name), network)
            count += 1
    assert count >= 75


@pytest.mark.skipif(not FLOATS, reason="TFLQ_DATA is not set: no IR of the vendor on this machine")
def test_tflite_models_give_the_parsers_files() -> None:
    """Layers, names, keys and constants, of every single operator that can be translated and of the keyword model."""
    count = 0
    for path in FLOATS:
        for source in data_files("corpus", "single_op_float", pattern=path.stem + ".tflite"):
            graph = float_view(read_tflite(source).main)
            if not problems_of(graph):
                ours = float_network_of(translate(graph, path.stem), path.stem)
                _assert_same(ours, read_ir(path.parent, path.stem))
                count += 1
    assert count >= 60


@pytest.mark.skipif(not CASES, reason="TFLQ_DATA is not set: no IR of the vendor on this machine")
@pytest.mark.parametrize("path", [path for path in CASES if path.stem != "pack_last"], ids=lambda path: path.stem)
def test_patterns_give_the_parsers_files(path: Path) -> None:
    """Networks of one pattern each, in the Parser's own order, with every name, key and constant."""
    graph = float_view(read_tflite(path.with_suffix(".tflite")).main)
    assert problems_of(graph) == ()
    _assert_same(float_network_of(translate(graph, path.stem), path.stem), read_ir(path.parent, path.stem))


@pytest.mark.skipif(not CASES, reason="TFLQ_DATA is not set: no IR of the vendor on this machine")
def test_pack_on_the_last_axis_stays_what_it_is() -> None:
    """The Parser counts axis -1 in the inputs' rank, so that its network has another shape than the .tflite."""
    folder = data_path("cases", "aipu_parser", "pack_last")
    graph = float_view(read_tflite(folder / "pack_last.tflite").main)
    ours, theirs = translate(graph, "pack_last"), read_ir(folder, "pack_last")
    assert [ours.tensors[t].shape for t in ours.outputs] == [graph.tensors[t].shape for t in graph.outputs]
    assert theirs.layers[-1].tops[0].shape != graph.tensors[graph.outputs[0]].shape


def test_the_keyword_model_gives_the_parsers_file() -> None:
    graph = float_view(read_tflite(data_path("models", "kws_ref_model_float32.tflite")).main)
    name = "kws_ref_model_float32"
    wanted = read_ir(data_path("golden", "aipu", KWS, "float_ir"), name)
    found = float_network_of(translate(graph, name), name)
    assert list(found.header.items()) == list(wanted.header.items())
    for a, b in zip(found.layers, wanted.layers, strict=True):
        assert (a.name, a.type) == (b.name, b.type)
        assert [key for key, _ in _entries(a) if key != "layer_top_range"] == [key for key, _ in _entries(b)]


def _convert(model: Path, folder: Path) -> None:
    assert main(["convert", str(model), "-t", "aipu", "-o", str(folder)]) == 0


def test_the_float_ir_gives_the_same_files_again(tmp_path: Path) -> None:
    """Four files; from the float text all four again, from the quantized text the quantized two, byte for byte."""
    _convert(data_path("models", "kws_ref_model.tflite"), tmp_path / "first")
    files = {path.name: path.read_bytes() for path in (tmp_path / "first").iterdir()}
    assert sorted(files) == ["kws_ref_model.bin", "kws_ref_model.txt", "kws_ref_model_o.bin", "kws_ref_model_o.txt"]
    _convert(tmp_path / "first" / "kws_ref_model.txt", tmp_path / "second")
    assert {path.name: path.read_bytes() for path in (tmp_path / "second").iterdir()} == files
    _convert(tmp_path / "first" / "kws_ref_model_o.txt", tmp_path / "third")
    assert {path.name: path.read_bytes() for path in (tmp_path / "third").iterdir()} == {
        name: content for name, content in files.items() if "_o." in name
    }


def test_run_and_inspect_take_a_quantized_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = data_path("golden", "aipu", KWS, "asym_pc")
    with np.load(folder / "golden.npz") as file:
        inputs, outputs = file["quant_L00_Input_0"], file["quant_L13_Softmax_0"]
    np.save(tmp_path / "x.npy", inputs.reshape(8, 1, 49, 10, 1).astype(np.int8))
    text = str(folder / "kws_ref_model_float32_o.txt")
    arguments = ["run", text, "-i", str(tmp_path / "x.npy"), "-o", str(tmp_path / "y.npz"), "--json"]
    assert main(arguments) == 0
    capsys.readouterr()
    with np.load(tmp_path / "y.npz") as file:
        np.testing.assert_array_equal(file["Identity_0"].reshape(8, 12), outputs.reshape(8, 12))
    assert main(["inspect", text, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["graphs"][0]["operators"][0]["operator"] == "convolution"


def _write(folder: Path, text: str, binary: bytes | None = b"") -> Path:
    path = folder / "m.txt"
    path.write_text(text, encoding="utf-8")
    if binary is not None:
        (folder / "m.bin").write_bytes(binary)
    return path


_TEXT = (
    "model_name=m\ninput_tensors=[x_0]\noutput_tensors=[y_0]\n\nlayer_id=0\nlayer_name=x\nlayer_type=Input\n"
    "layer_bottom=[]\nlayer_bottom_shape=[]\nlayer_bottom_type=[]\nlayer_top=[x_0]\nlayer_top_shape=[[1,4]]\n"
    "layer_top_type=[float32]\nlayer_top_range=[[-1.0,2.0]]\n\nlayer_id=1\nlayer_name=y\nlayer_type=Abs\n"
    "layer_bottom=[x_0]\nlayer_bottom_shape=[[1,4]]\nlayer_bottom_type=[float32]\nlayer_top=[y_0]\n"
    "layer_top_shape=[[1,4]]\nlayer_top_type=[float32]\nlayer_top_range=[[0.0,2.0]]\n"
)


def test_ranges_of_a_float_text_quantize_it(tmp_path: Path) -> None:
    graph = AIPU.quantize(read_model(_write(tmp_path, _TEXT)).main, parse_settings(AIPU.settings))
    scales = [1 / graph.tensors[t].affine.scale[0] for t in (*graph.inputs, *graph.outputs)]
    assert np.allclose(scales, [255 / 4, 255 / 2], rtol=1e-6)


@damaged(
    ("[[0.0,2.0]]", "[[0.0,2.0],[0.0,1.0]]", "layer 'y': layer_top_range has 2 ranges; allowed is one for each"),
    ("[[0.0,2.0]]", "[[2.0,0.0]]", "layer 'y': layer_top_range: .*two finite numbers that rise"),
    ("[[0.0,2.0]]", "[[0.0,inf]]", "layer 'y': layer_top_range: .*two finite numbers that rise"),
    ("[[0.0,2.0]]", "[2.0]", "layer 'y': layer_top_range: .*two finite numbers that rise"),
    ("layer_type=Abs\n", "", "line 16: the section that begins here has no key layer_type"),
)
def test_damage_names_the_file(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = _write(tmp_path, _TEXT.replace(old, new))
    with pytest.raises(FormatError, match=message) as caught:
        read_model(path)
    assert str(caught.value).startswith(str(path))


def test_missing_binary_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"m\.bin"):
        read_model(_write(tmp_path, _TEXT, None))


def test_no_text(tmp_path: Path) -> None:
    path = _write(tmp_path, _TEXT)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match=r"m\.txt: is no text in UTF-8: .* at byte 0"):
        read_model(path)


def test_other_graphs_have_no_float_ir() -> None:
    builder = GraphBuilder()
    graph: Graph = builder.build(())
    with pytest.raises(UnsupportedError, match="no layers of Compass IR"):
        float_network_of(graph, "m")
