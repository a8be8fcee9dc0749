"""Dumps of faults of many kinds (cases/faults2): layer, place, form and cause; sound dumps of other kernels."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

import tflq
from tflq.api.calibrate import calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.diagnosis.compare import Running, dump_of
from tflq.diagnosis.dumps.wanted import Archive, Stored
from tflq.diagnosis.hypotheses.diagnose import diagnose
from tflq.diagnosis.hypotheses.finding import Diagnosis
from tflq.parallel.executions import as_is, for_target
from tflq.sampling import GivenSamples

FOLDER = Path(os.environ.get("TFLQ_DATA", "")) / "cases" / "faults2"
CAUSES = {
    "stale_double_buffer": ("onnx", "rows 4..7, 12..13 contain the results of 4 rows before"),
    "halo_zero_res": ("gap9-sq8", "row 3 reads the zero point for input row 6"),
    "halo_zero_incep": ("gap9-sq8", "row 3 reads the zero point for input rows before 7"),
    "missing_last_tile_stale_prev_sample": ("tflite", "rows 10..11 are from the sample before"),
    "channel_tail_first_channels": ("tflite", "channels 16..23 contain the results of 8 channels after"),
    "bias_of_previous_layer": ("tflite", "bias is that of 'CONV_2D_0_1'"),
    "shift_off_one_group16": ("aipu", "channels 16..19 have separate factors, 0.491 to 0.5"),
    "bias_not_shifted_div16": ("gap9-ne16", "bias is shifted to the right by 4"),
    "weights_one_word_off": ("tpu-mlir", "weights are read 4 elements before their place"),
    "weights_channel_before": ("gap9-sq8", "weights are from the channel before"),
    "fc_chw_flatten": ("tpu-mlir", "weights are stored for CHW, and get HWC"),
    "clamp_before_zero_point_ae": ("tflite", "clamped to its type before the zero point -22 is added"),
    "clamp_before_zero_point_incep": ("tflite", "clamped to its type before the zero point 63 is added"),
    "samples_0_1_swapped": ("gap9-ne16", "samples 0 and 1 are exchanged"),
    "bias_missing_in_sample_3_only": ("gap9-ne16", "bias is missing, only in sample 3"),
    "arena_overlap_next_layer_head": ("tflite", "bytes 3136 to 4703 of 4704 contain the bytes of"),
    "line_buffer_stale_row_head": ("onnx", "input's row 5 reads as row 4"),
    "line_buffer_stale_row_incep": ("openvino", "input's row 5 reads as row 4"),
    "input_one_pixel_right": ("tflite", "input is moved by 1 column to the right"),
    "input_full_vs_halfres": ("tflite", "input has half the resolution, each pixel repeated"),
    "concat_memory_not_interleaved": ("gap9-sq8", "operands are copied one after another in memory"),
    "skip_half_cleared": ("aipu", "input 2 does not arrive: it counts as 0, only in rows 7..13"),
    "tconv_crop_off": ("tflite", "results are moved by 1 row down and 1 column to the right"),
    "hard_sigmoid_for_sigmoid": ("tflite", "function computed is clip(x/6 + 1/2, 0, 1)"),
    "softmax_base2": ("tflite", "softmax uses powers of 2"),
    "two_faults_two_layers": ("gap9-ne16", "bias is missing"),
    "bias_and_relu_missing": ("tflite", "bias is missing"),
    "hswish_is_relu": ("gap9-ne16", "function computed is ReLU"),
    "output_only_bias_of_one_channel": ("tflite", "bias of channel 2 is 0"),
    "output_only_weight_bit": ("tflite", "weight 1 of channel 1 is 85, not 21: bit 6 is flipped"),
    "output_only_bias_of_all_channels": ("tflite", "bias is missing"),
    "sound_xnnpack_ecg": ("tflite", "rounding is another one"),
    "sound_xnnpack_res": ("tflite", "rounding is another one"),
    "sound_optimised_incep": ("tflite", "two roundings, both half up"),
    "sound_optimised_ecg": (
        "tflite",
        "two roundings, both half up, as in LiteRT's optimized kernels, only in channels 0..23",
    ),
}
DESCRIBED = {
    "channel_tail_garbage": ("tflite", "channels 16..19 of 20 .* the tail after the last whole group of 16"),
    "intermittent_bit6": ("gap9-sq8", "scattered over the samples.* only bit 6 differs"),
    "input_scaled_0.8": ("nnie", "spread over the samples, rows, columns and channels"),
}
"""Causes that no hypothesis gives exactly: the description is the result."""

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="TFLQ_DATA has no cases/faults2: dumps of unknown faults")


def diagnosed(name: str, target: str) -> Diagnosis:
    model = calibrate(tflq.read_model(FOLDER / name / "model.tflite"))
    if target == "tflite":
        execution = as_is(model, "independent")
    else:
        found = find_target(target)
        execution = for_target(model.main, found, parse_settings(found.settings, (), ()))
    inputs = np.load(FOLDER / name / "input.npz")
    given = [inputs[execution.source.tensors[t].name] for t in execution.source.inputs]
    side = Running(execution, GivenSamples(given), name)
    dumped = np.load(FOLDER / name / "dump.npz")
    dump = dump_of(Archive("dump", tuple(Stored(key, dumped[key]) for key in dumped)), side)
    result = diagnose(side, dump, len(given[0]))
    assert result is not None
    assert (result.failed, result.status == "version") == ((), name == "other_model_version")
    return result


@pytest.mark.parametrize("name", sorted(CAUSES))
def test_the_cause_is_exact(name: str) -> None:
    target, words = CAUSES[name]
    result = diagnosed(name, target)
    assert any(words in w for f in result.exact for w in (f.words, *f.alike)), result.words
    assert result.certain


@pytest.mark.parametrize("name", sorted(DESCRIBED))
def test_the_description_holds_without_a_cause(name: str) -> None:
    target, words = DESCRIBED[name]
    result = diagnosed(name, target)
    assert re.search(words, result.description)
    assert not result.exact


def test_another_version_of_the_weights() -> None:
    assert "8 of 8 layers with weights" in diagnosed("other_model_version", "tpu-mlir").words


def test_the_second_fault_is_diagnosed_too() -> None:
    (other,) = diagnosed("two_faults_two_layers", "gap9-ne16").others
    assert (other.node, "channels 0 and 2 are exchanged" in other.words) == ("DEPTHWISE_CONV_2D_0_10", True)
