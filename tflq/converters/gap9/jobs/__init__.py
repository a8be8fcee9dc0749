"""NE16's jobs: what a filter is to the accelerator, its registers, its cycles.

Source: docs/rules/gap9/ne16.md, docs/guides/estimate.md.
"""
