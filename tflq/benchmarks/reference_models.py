"""The MLPerf Tiny reference models: URLs and checksums."""

from __future__ import annotations

from tflq.benchmarks.fetch import Published
from tflq.errors import OptionError

COMMIT = "1afd2c9820f795965a6134facd0b4dfae41ef23f"
REPOSITORY = f"https://raw.githubusercontent.com/mlcommons/tiny/{COMMIT}/benchmark"
BASE_URL = f"{REPOSITORY}/training"

_LISTED = {
    "anomaly_detection": (
        "ad01_int8 276976 87cf24194ef93d1d9b11a591d805526b98008e351655d29883c825c9c106ba24",
        "ad01_fp32 1067648 c66636f4d7f8af8b10518e7be750a22c9d8d46ec97326b40b0d94c097e0aad9b",
    ),
    "keyword_spotting": (
        "kws_ref_model 53936 aeea436800704fce17b17292e4412630ad856e9d777c044c64ef748a880bd0ae",
        "kws_ref_model_float32 43392 e5004c6f1012246e33fa068d8488325538e0444073cd361f5a7edb40c73f12d2",
    ),
    "image_classification": (
        "pretrainedResnet_quant 98496 3c002613d1b2475eb51dd78dfb85a546c8ae658dee71cf6ade43b022fe205415",
        "pretrainedResnet 318144 b5c0046d6e0328b4956afd6baa29555a29b1f1c65bdd45aaed75b7cd484d9f79",
        "pretrainedResnet_large_int8 512024 dc27dcd823f5665533352f7da516b0c9bc6f089914b8283782e55961b3423fcf",
        "pretrainedResnet_large_float 1929208 fb17ae9c1b6d0e5bd97f0f35024f207556261d7310b249716c87cc0628214b0e",
    ),
    "streaming_wakeword": ("str_ww_ref_model 74520 3af8550895ba7d5c584277102b5075c52dcfa63ba9d2b2240f37c4e6abd5dd2b",),
    "visual_wake_words": (
        "vww_96_int8 333288 597a384c8c2c8a1276f04702f25013b7838f2f814f1ca7c174d295b73e3d6b7b",
        "vww_96_float 866284 115bbc094d2119561320a21f01b6500a18bea8cc8589282ab007097bec8af38c",
    ),
}
"""Folder below benchmark/training -> name, bytes and SHA-256 of its models at COMMIT."""


def _model(task: str, name: str, size: str, sha256: str) -> Published:
    file = f"{name}.tflite"
    return Published(task, file, f"{task}/trained_models", int(size), sha256, (f"models/{file}", file))


REFERENCE_MODELS = tuple(_model(task, *line.split()) for task, lines in _LISTED.items() for line in lines)


def reference_models(names: tuple[str, ...] = ()) -> tuple[Published, ...]:
    """Return the models with these names, with or without ".tflite" (default: all).

    Raises:
        OptionError: A name is unknown.
    """
    if not names:
        return REFERENCE_MODELS
    known = {model.name.removesuffix(".tflite"): model for model in REFERENCE_MODELS}
    wanted = [name.removesuffix(".tflite") for name in names]
    for name in wanted:
        if name not in known:
            raise OptionError(f"no reference model is called '{name}'; there are {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(wanted))
