"""Operators on plain numbers and unchanged quantized values: no scale enters, so every arithmetic has the same."""
