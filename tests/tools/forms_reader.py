# SPDX-License-Identifier: MIT-0
# forms_reader.py OUT ROW...: the table `accuracy` of forms.sh for a classifier: the accuracy of each network ROW on OUT/test.npy, and how many
# of its predictions are not the original's in floats, both in per cent: in floats, in 8 bits and with weights of 4 bits. Of several sets of
# calibration: the mean, and the least and the largest. Then what 8 and 4 bits cost each network in accuracy more than the original, with
# intervals by bootstrap over the samples. ONNX Runtime computes, by onnx_runtime_run.js. Needs NumPy.
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
out, rows = sys.argv[1], sys.argv[2:]
classes = np.load(out + '/test.labels.npy')
draws = np.random.RandomState(1).randint(len(classes), size=(1000, len(classes)))


def predicted(path):
    with tempfile.TemporaryDirectory() as folder:
        y = folder + '/y.npy'
        subprocess.run(['node', HERE + '/onnx_runtime_run.js', path, '--input', 'x=' + out + '/test.npy',
                        '--output', 'save_infer_model/scale_0.tmp_1=' + y], check=True)
        return np.load(y).argmax(1)


def said(values):
    if not values:
        return ''
    return '%.1f' % values[0] if len(values) == 1 else '%.1f (%.1f to %.1f)' % (np.mean(values), min(values), max(values))


def columns_of(row):
    """What the files of a row predict: in floats, and of all sets of 8 and of 4 bits."""
    columns = [[predicted('%s/%s.onnx' % (out, row))]]
    for bits in 8, 4:
        paths = ['%s/%s.%d.%d.onnx' % (out, row, bits, k) for k in range(1, 10)]
        columns.append([predicted(p) for p in paths if os.path.exists(p)])
    return columns


def main():
    original = predicted(out + '/original.onnx')
    print('| network | right, floats | 8 bits | weights of 4 bits | changed, floats | 8 bits | weights of 4 bits |')
    print('|---|---|---|---|---|---|---|')
    lost = {}
    for name in rows:
        columns = columns_of(name)
        right = [said([100 * (p == classes).mean() for p in column]) for column in columns]
        changed = [said([100 * (p != original).mean() for p in column]) for column in columns]
        print('| %s | %s |' % (name, ' | '.join(right + changed)), flush=True)
        exact = [np.mean([p == classes for p in column], 0) for column in columns]
        lost[name] = [100 * (exact[0] - e) for e in exact[1:]]
    print('\n| network | right, lost in 8 bits | more than the original | with weights of 4 bits | more than the original |')
    print('|---|---|---|---|---|')
    for name in rows:
        cells = []
        for mine, first in zip(lost[name], lost['original']):
            more = mine - first
            cells += ['%.1f' % mine.mean(), '%+.1f (%+.1f to %+.1f)' % (more.mean(), *np.percentile(more[draws].mean(1), [2.5, 97.5]))]
        print('| %s | %s |' % (name, ' | '.join(cells)))


main()
