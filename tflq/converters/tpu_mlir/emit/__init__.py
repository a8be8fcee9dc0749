"""The files that TPU-MLIR reads."""
