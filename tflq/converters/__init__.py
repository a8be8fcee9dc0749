"""Converters: one package a file format or target."""
