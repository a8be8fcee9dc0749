"""Weights and biases of few bits that a target's integers reconstruct best, without training (docs/recover.md)."""

from tflq.precision.recover.network import Prepared, prepare, recover_network
from tflq.precision.recover.outcome import Outcome, outcome, results_of
from tflq.precision.recover.probe import RealSamples
from tflq.precision.recover.records import LayerRecovery, Recovery, RecoverySettings

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
