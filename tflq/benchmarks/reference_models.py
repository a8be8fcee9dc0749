"""The MLPerf Tiny reference models: where they are, and what they must be to the bit."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.errors import OptionError

COMMIT = "1afd2c9820f795965a6134facd0b4dfae41ef23f"
REPOSITORY = f"https://raw.githubusercontent.com/mlcommons/tiny/{COMMIT}/benchmark"
BASE_URL = f"{REPOSITORY}/training"


@dataclass(frozen=True)
class ReferenceModel:
    """One file of the repository mlcommons/tiny at COMMIT.

    Attributes:
        name: the file's name.
        task: folder below benchmark/training.
        size_bytes: its exact size.
        sha256: its checksum.
    """

    name: str
    task: str
    size_bytes: int
    sha256: str

    @property
    def path(self) -> str:
        """Path below the base URL."""
        return f"{self.task}/trained_models/{self.name}"

    @property
    def places(self) -> tuple[str, ...]:
        """Where a copy may lie below the folder that TFLQ_DATA names."""
        return f"models/{self.name}", self.name

    @property
    def checksum(self) -> str:
        """What its content must give."""
        return self.sha256


REFERENCE_MODELS = (
    ReferenceModel(
        "ad01_int8.tflite",
        "anomaly_detection",
        276976,
        "87cf24194ef93d1d9b11a591d805526b98008e351655d29883c825c9c106ba24",
    ),
    ReferenceModel(
        "ad01_fp32.tflite",
        "anomaly_detection",
        1067648,
        "c66636f4d7f8af8b10518e7be750a22c9d8d46ec97326b40b0d94c097e0aad9b",
    ),
    ReferenceModel(
        "kws_ref_model.tflite",
        "keyword_spotting",
        53936,
        "aeea436800704fce17b17292e4412630ad856e9d777c044c64ef748a880bd0ae",
    ),
    ReferenceModel(
        "kws_ref_model_float32.tflite",
        "keyword_spotting",
        43392,
        "e5004c6f1012246e33fa068d8488325538e0444073cd361f5a7edb40c73f12d2",
    ),
    ReferenceModel(
        "pretrainedResnet_quant.tflite",
        "image_classification",
        98496,
        "3c002613d1b2475eb51dd78dfb85a546c8ae658dee71cf6ade43b022fe205415",
    ),
    ReferenceModel(
        "pretrainedResnet.tflite",
        "image_classification",
        318144,
        "b5c0046d6e0328b4956afd6baa29555a29b1f1c65bdd45aaed75b7cd484d9f79",
    ),
    ReferenceModel(
        "pretrainedResnet_large_int8.tflite",
        "image_classification",
        512024,
        "dc27dcd823f5665533352f7da516b0c9bc6f089914b8283782e55961b3423fcf",
    ),
    ReferenceModel(
        "pretrainedResnet_large_float.tflite",
        "image_classification",
        1929208,
        "fb17ae9c1b6d0e5bd97f0f35024f207556261d7310b249716c87cc0628214b0e",
    ),
    ReferenceModel(
        "str_ww_ref_model.tflite",
        "streaming_wakeword",
        74520,
        "3af8550895ba7d5c584277102b5075c52dcfa63ba9d2b2240f37c4e6abd5dd2b",
    ),
    ReferenceModel(
        "vww_96_int8.tflite",
        "visual_wake_words",
        333288,
        "597a384c8c2c8a1276f04702f25013b7838f2f814f1ca7c174d295b73e3d6b7b",
    ),
    ReferenceModel(
        "vww_96_float.tflite",
        "visual_wake_words",
        866284,
        "115bbc094d2119561320a21f01b6500a18bea8cc8589282ab007097bec8af38c",
    ),
)


def reference_models(names: tuple[str, ...] = ()) -> tuple[ReferenceModel, ...]:
    """Return the models of these names, with or without ".tflite"; all where none is named.

    Raises:
        OptionError: a name that is none of them.
    """
    if not names:
        return REFERENCE_MODELS
    known = {model.name.removesuffix(".tflite"): model for model in REFERENCE_MODELS}
    wanted = [name.removesuffix(".tflite") for name in names]
    for name in wanted:
        if name not in known:
            raise OptionError(f"no reference model is called '{name}'; there are {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(wanted))
