"""Which precision each layer needs: sensitivity, and the cheapest setting that keeps an accuracy.

Source: docs/guides/search.md.
"""
