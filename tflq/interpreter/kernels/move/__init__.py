"""Operators that only move data: the same integers in every arithmetic."""
