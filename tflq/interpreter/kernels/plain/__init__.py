"""Operators on plain numbers and quantized values as they are: no scale enters, so every arithmetic has the same."""
