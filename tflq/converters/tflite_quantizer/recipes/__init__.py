"""Recipes: quantization by the package ai-edge-quantizer (extra `recipes`)."""
