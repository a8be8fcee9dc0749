"""Checks of folders of .tflite files: equality with TFLite, and coverage of the targets."""
