# SPDX-License-Identifier: MIT-0
# forms_detector.py OUT LABELS.json ROW...: the table `accuracy` of forms.sh for a detector: the mAP50:95 of each network ROW, and the F1 of
# its boxes beside those of the original in floats, in floats (OUT/ROW.onnx) and, where they are there, in 8 bits and with weights of 4 bits
# (OUT/ROW.BITS.SET.onnx), as detector_boxes.py has them. Of several sets of calibration: the mean, and the least and the largest. Then, with
# intervals by bootstrap over the images (DRAWS, 200): how far each network in floats is from the original, and what 8 and 4 bits cost
# it, more than they cost the original, and the F1 beside its own boxes in floats. The boxes of a file are kept beside it. ONNX Runtime
# computes, by onnx_runtime_run.js. Needs NumPy.
import os
import subprocess
import sys
import tempfile

import numpy as np

from detector_boxes import LEAST_SCORE, MOST, SCORE, Labels, Precision, boxes, common, f1

HERE = os.path.dirname(os.path.abspath(__file__))
out, labels, rows = sys.argv[1], sys.argv[2], sys.argv[3:]
images = np.load(out + '/test.npy', mmap_mode='r')
labels = Labels(labels, *images.shape[2:])
# all images once, then those of each draw
draws = [np.arange(len(images)), *np.random.RandomState(1).randint(len(images), size=(int(os.environ.get('DRAWS', 200)), len(images)))]
WIDTHS = {8: '8 bits', 4: 'weights of 4 bits'}


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
    """A file: its boxes, and its precision, by draw."""

    def __init__(self, path):
        every = boxes_of(path)
        self.sure = [[box for box in found if box[1] >= SCORE] for found in every]
        precision = Precision([labels.matches(i, found[:MOST]) for i, found in enumerate(every)])
        self.precision = np.array([precision.of(d)[0] for d in draws])

    def beside(self, other):
        """The F1 of the boxes beside another network's, by draw."""
        counts = np.array([[len(a), len(b), common(a, b)] for a, b in zip(other.sure, self.sure)])
        return np.array([f1(counts[d]) for d in draws])


class Row:
    """A network in floats, and in 8 and in 4 bits by set of calibration."""

    def __init__(self, name):
        self.floats = Network('%s/%s.onnx' % (out, name))
        self.bits = {}
        for bits in WIDTHS:
            paths = ['%s/%s.%d.%d.onnx' % (out, name, bits, k) for k in range(1, 10)]
            self.bits[bits] = [Network(path) for path in paths if os.path.exists(path)]

    def columns(self, widths):
        return [[self.floats]] + [self.bits[bits] for bits in widths]

    def lost(self, bits):
        """By draw, the mean of all sets."""
        return self.floats.precision - np.mean([n.precision for n in self.bits[bits]], 0)


def said(values):
    """One value, or the mean of several and their range; nothing of none."""
    if not values:
        return ''
    return '%.1f' % values[0] if len(values) == 1 else '%.1f (%.1f to %.1f)' % (np.mean(values), min(values), max(values))


def estimated(values, form='%+.1f'):
    """The value of all images, and its interval."""
    return ('%s (%s to %s)' % (form, form, form)) % (values[0], *np.percentile(values[1:], [2.5, 97.5]))


def table(head, lines):
    print('| network | %s |\n|%s' % (' | '.join(head), '---|' * (len(head) + 1)))
    for name, cells in lines:
        print('| %s | %s |' % (name, ' | '.join(cells)))


def main():
    networks = {name: Row(name) for name in rows}
    original = networks['original'] if 'original' in networks else Row('original')
    widths = [bits for bits in WIDTHS if any(row.bits[bits] for row in networks.values())]
    columns = ['floats'] + [WIDTHS[bits] for bits in widths]
    table(['mAP50:95, ' + columns[0]] + columns[1:] + ['F1, ' + columns[0]] + columns[1:],
          [(name, [said([n.precision[0] for n in column]) for column in row.columns(widths)]
            + [said([n.beside(original.floats)[0] for n in column]) for column in row.columns(widths)]) for name, row in networks.items()])
    print()
    table(['mAP50:95, floats', 'beside the original', 'F1 beside the original'],
          [(name, [estimated(row.floats.precision, '%.1f'), estimated(row.floats.precision - original.floats.precision),
                   estimated(row.floats.beside(original.floats), '%.1f')]) for name, row in networks.items()])
    for bits in widths:
        print()
        table(['mAP50:95 lost with %s' % WIDTHS[bits], 'more than the original', 'F1 beside the same in floats'],
              [(name, [estimated(row.lost(bits)), estimated(row.lost(bits) - original.lost(bits)),
                       estimated(np.mean([n.beside(row.floats) for n in row.bits[bits]], 0), '%.1f')])
               for name, row in networks.items() if row.bits[bits]])


main()
