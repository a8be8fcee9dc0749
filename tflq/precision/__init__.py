"""Which precision each layer needs: sensitivity, and the smallest setting that keeps an accuracy (docs/search.md)."""
