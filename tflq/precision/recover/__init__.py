"""Weights and biases of few bits that a target's integers reconstruct best, without training.

Source: docs/guides/recover.md.
"""

from tflq.precision.recover.network import Outcome, Prepared, outcome, prepare, recover_network, results_of
from tflq.precision.recover.records import LayerRecovery, Recovery, RecoverySettings
from tflq.precision.recover.reference import RealSamples

__all__ = [
    "LayerRecovery",
    "Outcome",
    "Prepared",
    "RealSamples",
    "Recovery",
    "RecoverySettings",
    "outcome",
    "prepare",
    "recover_network",
    "results_of",
]
