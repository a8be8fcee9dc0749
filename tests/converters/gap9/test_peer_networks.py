"""Networks that NNTool was run on: every type, constant and tensor; scripts/peer nntool draws new ones."""

from __future__ import annotations

import pytest
from peers.campaign import Verdict
from peers.nntool import judged
from peers.nntool_dump import Dump, Scheme

from tests.support.data import data_path

EQUAL = """acts.ne16 acts.sq8 vk.ne16 vl.ne16 vj.ne16 vc.ne16 cat3.ne16 unet.ne16 mm_splitss.ne16 tcn_1_41_mm.sq8
mobilenet_v2_1_34.ne16_16 branches_1_43.ne16 elementwise_1_42_mm.ne16 two_inputs_1_44.ne16 two_inputs_1_14_mm.ne16
densenet_1_40.sq8 ds_cnn_1_7_mm.ne16 autoencoder_1_8_mm.ne16 mm_avgpad.ne16 residual_1_30.ne16 unet_1_9_mm.sq8"""


@pytest.mark.parametrize("name", EQUAL.split())
def test_equal(name: str) -> None:
    folder = data_path("cases", "gap9_networks")
    network, _, scheme = name.rpartition(".")
    row = judged(folder / f"{network}.tflite", Scheme.of(scheme), Dump.read(folder / name), every=True)
    assert row.verdict is Verdict.EQUAL, row.words
    assert row.checks > 20
