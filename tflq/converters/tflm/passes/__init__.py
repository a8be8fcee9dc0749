"""Rewrites of the target `tflm`; rewrite.py lists them in order."""
