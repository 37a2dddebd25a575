# SPDX-License-Identifier: MIT-0
# detector_boxes.py ONNX_RUN ORIGINAL.onnx IMAGES.npy OTHER.onnx...: how many boxes of a YOLOX detector another file has in common
# with it. Images are (n, 3, rows, columns) of bytes, as the detector takes them. Boxes are the rows with a score of
# 0.3 and more after suppression, class by class, at an overlap of 0.65. Two boxes are the same where they have one class and overlap
# by half. Prints boxes of both, those in common, and F1 with a bootstrap interval over the images. Needs NumPy.
import os
import subprocess
import sys
import tempfile

import numpy as np


def evaluated(program, model, image, folder):
    """The output (rows, 85) of a model for one image."""
    np.save(folder + '/x.npy', image[None].astype(np.float32))
    subprocess.run([program, model, '--input', 'images=' + folder + '/x.npy', '--output', 'output=' + folder + '/y.npy'], check=True,
                   stdout=subprocess.DEVNULL)
    return np.load(folder + '/y.npy')[0]


def grid(rows, columns):
    """The cell of each output row, and its stride."""
    cells, strides = [], []
    for stride in 8, 16, 32:
        y, x = np.mgrid[:rows // stride, :columns // stride]
        cells.append(np.stack([x.ravel(), y.ravel()], 1))
        strides.append(np.full(x.size, stride))
    return np.concatenate(cells), np.concatenate(strides)[:, None]


def overlap(a, b):
    """Intersection over union of boxes (n, 4) with one box, as corners."""
    low, high = np.maximum(a[:, :2], b[:2]), np.minimum(a[:, 2:], b[2:])
    both = np.prod(np.maximum(high - low, 0), 1)
    return both / (np.prod(a[:, 2:] - a[:, :2], 1) + np.prod(b[2:] - b[:2]) - both + 1e-9)


def boxes(y, rows, columns):
    """Rows (class, score, corners), the highest score first."""
    cells, strides = grid(rows, columns)
    middle, size = (y[:, :2] + cells) * strides, np.exp(np.minimum(y[:, 2:4], 20)) * strides
    scores = y[:, 4:5] * y[:, 5:]
    which = scores.argmax(1)
    score = scores.max(1)
    found = np.concatenate([which[:, None], score[:, None], middle - size / 2, middle + size / 2], 1)[score >= 0.3]
    found, kept = found[np.argsort(-found[:, 1], kind='stable')], []
    for box in found:
        same = [k for k in kept if k[0] == box[0]]
        if not same or overlap(np.array(same)[:, 2:], box[2:]).max() <= 0.65:
            kept.append(box)
    return kept


def common(a, b):
    """How many boxes of a have one of their own in b."""
    left, n = list(b), 0
    for box in a:
        fits = [k for k, other in enumerate(left) if other[0] == box[0] and overlap(other[None, 2:], box[2:])[0] >= 0.5]
        if fits:
            left.pop(fits[0])
            n += 1
    return n


def f1(counts):
    a, b, both = counts.sum(0)
    return 100 * 2 * both / max(a + b, 1)


def main():
    program, original, images, others = sys.argv[1], sys.argv[2], np.load(sys.argv[3], mmap_mode='r'), sys.argv[4:]
    rows, columns = images.shape[2:]
    with tempfile.TemporaryDirectory() as folder:
        first = [boxes(evaluated(program, original, image, folder), rows, columns) for image in images]
        for other in others:
            second = [boxes(evaluated(program, other, image, folder), rows, columns) for image in images]
            counts = np.array([[len(a), len(b), common(a, b)] for a, b in zip(first, second)])
            draws = np.random.RandomState(1).randint(len(counts), size=(1000, len(counts)))
            low, high = np.percentile([f1(counts[d]) for d in draws], [2.5, 97.5])
            print('%s: %d boxes, %d in the original, %d in common, F1 %.1f (%.1f to %.1f)'
                  % (os.path.basename(other), counts[:, 1].sum(), counts[:, 0].sum(), counts[:, 2].sum(), f1(counts), low, high), flush=True)


main()
