"""Makes the model and the test images that ship inside the package: tflq/data/digits.tflite and digits_test.npz.

Trains a small convolutional network on the hand-written digits that scikit-learn ships (8 x 8 pixels, 1797 images),
converts it with TFLite's converter to full-integer int8, and counts the right answers of TFLite's reference kernels.
Run it by hand, once; no test does. It needs tflq[tensorflow] and scikit-learn:

    python scripts/make_digits_model.py [OUTPUT_FOLDER]

The seeds are fixed, but another processor or another tensorflow may round a sum differently, and so end at other
weights: the committed files are the ones that count.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 20240229
TEST_IMAGES = 360
EPOCHS = 60
BATCH_SIZE = 32
PIXEL_LEVELS = 16  # a pixel counts the dark points of a 4 x 4 block: 0..16

Images = npt.NDArray[np.float32]
Labels = npt.NDArray[np.uint8]
# tensorflow has no types
Network: TypeAlias = Any
Layer: TypeAlias = Any
Tensor: TypeAlias = Any


@dataclass(frozen=True)
class Digits:
    """The images as float32[S, 8, 8, 1] in 0..1 and the digits as uint8[S], in two parts of equal class shares."""

    train_images: Images
    train_labels: Labels
    test_images: Images
    test_labels: Labels


def load_split() -> Digits:
    """Load the images and split them, the same way each time."""
    source = load_digits()
    images = (source.images / PIXEL_LEVELS).astype(np.float32)[..., np.newaxis]
    labels = source.target.astype(np.uint8)
    parts = train_test_split(images, labels, test_size=TEST_IMAGES, random_state=SEED, stratify=labels)
    train_images, test_images, train_labels, test_labels = parts
    return Digits(train_images, train_labels, test_images, test_labels)


def build_network(batch_size: int | None = None) -> Network:
    """Build the network: a padded 3x3 convolution, two depthwise-separable blocks, two poolings, a dense layer."""
    layers = tf.keras.layers

    def normalized(x: Tensor, convolution: Layer) -> Tensor:
        return layers.ReLU()(layers.BatchNormalization()(convolution(x)))

    inputs = tf.keras.Input((8, 8, 1), batch_size=batch_size, name="image")
    x = normalized(inputs, layers.Conv2D(16, 3, padding="same", use_bias=False))
    x = normalized(x, layers.DepthwiseConv2D(3, padding="same", use_bias=False))
    x = normalized(x, layers.Conv2D(32, 1, use_bias=False))
    x = layers.MaxPooling2D(2)(x)
    x = normalized(x, layers.DepthwiseConv2D(3, padding="same", use_bias=False))
    x = normalized(x, layers.Conv2D(48, 1, use_bias=False))
    x = layers.AveragePooling2D(2)(x)
    x = layers.Dropout(0.3)(layers.Flatten()(x))
    return tf.keras.Model(inputs, layers.Dense(10, activation="softmax")(x))


def train(digits: Digits) -> Network:
    """Train the network with fixed seeds and deterministic kernels."""
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    network = build_network()
    steps = EPOCHS * -(-len(digits.train_images) // BATCH_SIZE)
    network.compile(
        optimizer=tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.CosineDecay(3e-3, steps)),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    network.fit(digits.train_images, digits.train_labels, batch_size=BATCH_SIZE, epochs=EPOCHS, verbose=0)
    return network


def convert(network: Network, representative_images: Images) -> bytes:
    """Convert to int8 from input to output, with a batch of one, so that no shape is computed at run time."""

    network_of_one = build_network(batch_size=1)
    network_of_one.set_weights(network.get_weights())

    def representative_data() -> Iterator[list[Images]]:
        for image in representative_images:
            yield [image[np.newaxis]]

    converter = tf.lite.TFLiteConverter.from_keras_model(network_of_one)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = representative_data
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.int8
    converter.inference_output_type = tf.int8
    return bytes(converter.convert())


def quantize_images(content: bytes, images: Images) -> npt.NDArray[np.int8]:
    """Quantize with the model's own input scale and zero point: q = clip(round(x / scale) + zero_point, -128, 127)."""
    scale, zero_point = tf.lite.Interpreter(model_content=content).get_input_details()[0]["quantization"]
    indices: Images = np.rint(images / np.float32(scale)) + np.float32(zero_point)
    return np.clip(indices, -128, 127).astype(np.int8)


def count_right(content: bytes, images: npt.NDArray[np.int8], labels: Labels) -> int:
    """Count the images whose highest output of TFLite's reference kernels is the label."""
    resolver = tf.lite.experimental.OpResolverType.BUILTIN_REF
    interpreter = tf.lite.Interpreter(model_content=content, experimental_op_resolver_type=resolver, num_threads=1)
    interpreter.allocate_tensors()
    input_index = interpreter.get_input_details()[0]["index"]
    output_index = interpreter.get_output_details()[0]["index"]
    right = 0
    for image, label in zip(images, labels, strict=True):
        interpreter.set_tensor(input_index, image[np.newaxis])
        interpreter.invoke()
        right += int(np.argmax(interpreter.get_tensor(output_index)) == label)
    return right


def main() -> None:
    """Make both files and print what they hold."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "tflq" / "data"
    digits = load_split()
    network = train(digits)
    content = convert(network, digits.train_images)
    images = quantize_images(content, digits.test_images)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "digits.tflite").write_bytes(content)
    np.savez_compressed(folder / "digits_test.npz", images=images, labels=digits.test_labels)
    _, float_accuracy = network.evaluate(digits.test_images, digits.test_labels, verbose=0)
    right = count_right(content, images, digits.test_labels)
    print(f"float: {float_accuracy:.4f} of {len(images)} test images right; int8, BUILTIN_REF: {right}")
    print(f"{folder / 'digits.tflite'}: {len(content)} bytes")


if __name__ == "__main__":
    main()
