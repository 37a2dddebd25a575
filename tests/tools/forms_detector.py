# SPDX-License-Identifier: MIT-0
# forms_detector.py OUT LABELS.json ROW...: the table `accuracy` of forms.sh for a detector: the mAP50:95 of each network ROW, and the F1 of
# its boxes beside those of the original in floats, in floats (OUT/ROW.onnx), in 8 bits and with weights of 4 bits (OUT/ROW.BITS.SET.onnx),
# as detector_boxes.py has them. Of several sets of calibration: the mean, and the least and the largest. Then what 8 and 4 bits cost each
# network more than the original, with intervals by bootstrap over the images (DRAWS, 200). The boxes of a file are kept beside it.
# ONNX Runtime computes, by onnx_runtime_run.js. Needs NumPy.
import os
import subprocess
import sys
import tempfile

import numpy as np

from detector_boxes import LEAST_SCORE, MOST, SCORE, Labels, boxes, common, f1, precision

HERE = os.path.dirname(os.path.abspath(__file__))
out, labels, rows = sys.argv[1], sys.argv[2], sys.argv[3:]
images = np.load(out + '/test.npy', mmap_mode='r')
labels = Labels(labels, *images.shape[2:])
draws = np.random.RandomState(1).randint(len(images), size=(int(os.environ.get('DRAWS', 200)), len(images)))


def boxes_of(path):
    """The boxes of each image, (class, score, corners), the highest score first."""
    kept = path[:-5] + '.boxes.npy'
    if not os.path.exists(kept) or os.path.getmtime(kept) < os.path.getmtime(path):
        with tempfile.TemporaryDirectory() as folder:
            y = folder + '/y.npy'
            subprocess.run(['node', HERE + '/onnx_runtime_run.js', path, '--input', 'images=' + out + '/test.npy', '--output', 'output=' + y],
                           check=True)
            found = [np.concatenate([[i], box]) for i, one in enumerate(np.load(y, mmap_mode='r'))
                     for box in boxes(one, *images.shape[2:], LEAST_SCORE)]
            np.save(kept, np.array(found).reshape(-1, 7))
    found = np.load(kept)
    return [list(found[found[:, 0] == i, 1:]) for i in range(len(images))]


class Network:
    """A file: what matches the labels, and how many boxes it has, the original has, and both."""

    def __init__(self, path, original):
        every = boxes_of(path)
        self.matches = [labels.matches(i, found[:MOST]) for i, found in enumerate(every)]
        self.sure = [[box for box in found if box[1] >= SCORE] for found in every]
        first = original.sure if original else self.sure
        self.counts = np.array([[len(a), len(b), common(a, b)] for a, b in zip(first, self.sure)])

    def precision(self, draw):
        return precision([self.matches[i] for i in draw])[0]


def said(values):
    """One value, or the mean of several and their range; nothing of none."""
    if not values:
        return ""
    return '%.1f' % values[0] if len(values) == 1 else '%.1f (%.1f to %.1f)' % (np.mean(values), min(values), max(values))


def networks(row):
    """The files of a row: in floats, and of all sets of 8 and of 4 bits."""
    columns = [[Network('%s/%s.onnx' % (out, row), original)]]
    for bits in 8, 4:
        paths = ['%s/%s.%d.%d.onnx' % (out, row, bits, k) for k in range(1, 10)]
        columns.append([Network(p, original) for p in paths if os.path.exists(p)])
    return columns


original = None
original = Network(out + '/original.onnx', None)
print('| network | mAP50:95, floats | 8 bits | weights of 4 bits | F1, floats | 8 bits | weights of 4 bits |')
print('|---|---|---|---|---|---|---|')
everything = range(len(images))
lost = {}
for name in rows:
    of = networks(name)
    cells = [said([n.precision(everything) for n in column]) for column in of] + [said([f1(n.counts) for n in column]) for column in of]
    print('| %s | %s |' % (name, ' | '.join(cells)), flush=True)
    lost[name] = np.array([[of[0][0].precision(d) - np.mean([n.precision(d) for n in column]) for column in of[1:]]
                           for d in [everything, *draws]])
print('\n| network | mAP50:95 lost in 8 bits | more than the original | with weights of 4 bits | more than the original |')
print('|---|---|---|---|---|')
for name in rows:
    cells = []
    for column in range(2):
        mine, more = lost[name][:, column], lost[name][:, column] - lost['original'][:, column]
        cells += ['%.1f' % mine[0], '%+.1f (%+.1f to %+.1f)' % (more[0], *np.percentile(more[1:], [2.5, 97.5]))]
    print('| %s | %s |' % (name, ' | '.join(cells)))
