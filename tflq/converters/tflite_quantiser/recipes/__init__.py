"""Recipes of ai-edge-quantizer: which layer is quantised how, with the numbers that package writes."""
