"""A reduced Mask R-CNN for target aipu; scripts/mask_rcnn.py runs it (docs/targets/aipu.md, Mask R-CNN)."""
