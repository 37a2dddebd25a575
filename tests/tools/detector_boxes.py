# SPDX-License-Identifier: MIT-0
# detector_boxes.py ONNX_RUN ORIGINAL.onnx IMAGES.npy OTHER.onnx... [--labels LABELS.json]: how near other files are to a YOLOX detector.
# Images are (n, 3, rows, columns) of bytes, as the detector takes them.
#
# For each file: the boxes that it has in common with the original, and their F1. Boxes are the rows with a score of 0.3 and more after
# suppression, class by class, at an overlap of 0.65. Two boxes are the same where they have one class and overlap by half.
# --labels: boxes in COCO's form, for images that are those of its file names in their order, scaled to fit and put at the upper left
# (detector_photos.py). Then also the original's and each file's mAP50:95 and mAP50, in per cent, as COCO defines them: precision at
# 101 recalls, of boxes with a score of 0.001 and more, at most 100 of an image; crowds are no objects, and no box in them is wrong.
# Intervals are bootstraps over the images. Needs NumPy.
import argparse
import json
import os
import subprocess
import tempfile

import numpy as np

SCORE, LEAST_SCORE, SUPPRESSED, SAME, MOST = 0.3, 0.001, 0.65, 0.5, 100
OVERLAPS = np.arange(0.5, 0.96, 0.05)
RECALLS = np.linspace(0, 1, 101)


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


def boxes(y, rows, columns, least=SCORE):
    """Rows (class, score, corners), the highest score first."""
    cells, strides = grid(rows, columns)
    middle, size = (y[:, :2] + cells) * strides, np.exp(np.minimum(y[:, 2:4], 20)) * strides
    scores = y[:, 4:5] * y[:, 5:]
    found = np.concatenate([scores.argmax(1)[:, None], scores.max(1)[:, None], middle - size / 2, middle + size / 2], 1)
    found = found[found[:, 1] >= least]
    kept = []
    for which in np.unique(found[:, 0]):
        left = found[found[:, 0] == which]
        left = left[np.argsort(-left[:, 1], kind='stable')]
        while len(left):
            kept.append(left[0])
            left = left[1:][overlap(left[1:, 2:], left[0, 2:]) <= SUPPRESSED]
    return sorted(kept, key=lambda box: -box[1])


# ---- boxes in common ----
def common(a, b):
    """How many boxes of a have one of their own in b."""
    left, n = list(b), 0
    for box in a:
        fits = [k for k, other in enumerate(left) if other[0] == box[0] and overlap(other[None, 2:], box[2:])[0] >= SAME]
        if fits:
            left.pop(fits[0])
            n += 1
    return n


def f1(counts):
    a, b, both = counts.sum(0)
    return 100 * 2 * both / max(a + b, 1)


# ---- COCO's precision ----
class Labels:
    """The objects of each image: classes, corners at the size of the images, and whether they are crowds."""

    def __init__(self, path, rows, columns):
        with open(path, encoding='utf-8') as f:
            said = json.load(f)
        order = {c['id']: k for k, c in enumerate(sorted(said['categories'], key=lambda c: c['id']))}
        self.objects = []
        for image in sorted(said['images'], key=lambda i: i['file_name']):
            factor = min(rows / image['height'], columns / image['width'])
            self.objects.append([(order[a['category_id']], np.array(a['bbox']) * factor, a['iscrowd']) for a in said['annotations']
                                 if a['image_id'] == image['id']])

    def matches(self, image, found):
        """For each class of an image: how many objects, and of its boxes the scores, whether they are right, and whether they count, by
        overlap."""
        result = {}
        for which in {int(o[0]) for o in self.objects[image]} | {int(box[0]) for box in found}:
            objects = sorted((o for o in self.objects[image] if o[0] == which), key=lambda o: o[2])
            mine = [box for box in found if box[0] == which]
            right, counts = np.zeros((len(OVERLAPS), len(mine)), bool), np.ones((len(OVERLAPS), len(mine)), bool)
            for t, least in enumerate(OVERLAPS):
                self.match(objects, mine, least, right[t], counts[t])
            result[which] = (sum(not o[2] for o in objects), np.array([box[1] for box in mine]), right, counts)
        return result

    @staticmethod
    def match(objects, mine, least, right, counts):
        """Gives each box, the highest score first, the object that it overlaps most; crowds only if there is no other, and several times."""
        taken = set()
        for b, box in enumerate(mine):
            best, most = -1, least - 1e-10
            for k, (_, corner, crowd) in enumerate(objects):
                if k in taken or (crowd and best >= 0 and not objects[best][2]):
                    continue
                near = Labels.near(box[2:], corner, crowd)
                if near >= most:
                    best, most = k, near
            if best >= 0 and objects[best][2]:
                counts[b] = False
            elif best >= 0:
                taken.add(best)
                right[b] = True

    @staticmethod
    def near(box, corner, crowd):
        """Intersection over union; with a crowd, over the box."""
        low, high = np.maximum(box[:2], corner[:2]), np.minimum(box[2:], corner[:2] + corner[2:])
        both = np.prod(np.maximum(high - low, 0))
        size = np.prod(box[2:] - box[:2])
        return both / (size if crowd else size + np.prod(corner[2:]) - both)


class Precision:
    """Mean average precision of images, by what Labels.matches has for each, and of draws of them."""

    def __init__(self, images):
        self.images, self.classes = len(images), []
        for which in sorted({k for image in images for k in image}):
            parts = [(i, image[which]) for i, image in enumerate(images) if which in image]
            objects = np.zeros(len(images), int)
            objects[[i for i, _ in parts]] = [part[0] for _, part in parts]
            image = np.repeat([i for i, _ in parts], [len(part[1]) for _, part in parts])
            order = np.argsort(-np.concatenate([part[1] for _, part in parts]), kind='stable')
            right, counts = (np.concatenate([part[k] for _, part in parts], 1)[:, order] for k in (2, 3))
            self.classes.append((objects, image[order], right, counts))

    def of(self, draw):
        """Over all overlaps, and at 0.5, in per cent, of images that are drawn by their indices, each as often as it is drawn."""
        times, every = np.bincount(draw, minlength=self.images), []
        for objects, image, right, counts in self.classes:
            if (objects * times).any():
                taken = np.repeat(np.arange(len(image)), times[image])
                every.append(average(right[:, taken], counts[:, taken], (objects * times).sum()))
        every = np.array(every) if every else np.zeros((1, len(OVERLAPS)))
        return 100 * every.mean(), 100 * every[:, 0].mean()


def precision(images):
    """Of all images."""
    return Precision(images).of(np.arange(len(images)))


def average(right, counts, objects):
    """Average precision by overlap of boxes in the order of their scores, (overlaps, boxes)."""
    found = np.cumsum(right, 1)
    recall, exact = found / objects, found / np.maximum(np.cumsum(counts, 1), 1)
    exact = np.maximum.accumulate(exact[:, ::-1], 1)[:, ::-1]
    at = [np.searchsorted(row, RECALLS, side='left') for row in recall]
    return [np.append(row, 0)[k].mean() for row, k in zip(exact, at)]


def interval(values):
    return np.percentile(values, [2.5, 97.5])


def said_common(name, first, found, draws):
    counts = np.array([[len(a), len(b), common(a, b)] for a, b in zip(first, found)])
    low, high = interval([f1(counts[d]) for d in draws])
    print('%s: %d boxes, %d in the original, %d in common, F1 %.1f (%.1f to %.1f)'
          % (name, counts[:, 1].sum(), counts[:, 0].sum(), counts[:, 2].sum(), f1(counts), low, high), flush=True)


def said_precision(name, matches, draws, known):
    """Also the difference from the original, `known`, on the same images. Returns the precision of all images, and of each draw."""
    mine = Precision(matches)
    (every, half), drawn = mine.of(np.arange(len(matches))), np.array([mine.of(d)[0] for d in draws])
    print('%s: mAP50:95 %.1f (%.1f to %.1f), mAP50 %.1f' % (name, every, *interval(drawn), half), flush=True)
    if known:
        print('%s: mAP50:95 beside the original %+.1f (%+.1f to %+.1f)' % (name, every - known[0], *interval(drawn - known[1])), flush=True)
    return every, drawn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('original')
    parser.add_argument('images')
    parser.add_argument('others', nargs='*')
    parser.add_argument('--labels')
    args = parser.parse_args()
    images = np.load(args.images, mmap_mode='r')
    rows, columns = images.shape[2:]
    labels = Labels(args.labels, rows, columns) if args.labels else None
    draws = np.random.RandomState(1).randint(len(images), size=(300 if labels else 1000, len(images)))
    first, known = None, None
    with tempfile.TemporaryDirectory() as folder:
        for model in [args.original] + args.others:
            name = os.path.basename(model)
            outputs = [evaluated(args.program, model, image, folder) for image in images]
            found = [boxes(y, rows, columns) for y in outputs]
            if first is None:
                first = found
            else:
                said_common(name, first, found, draws)
            if labels:
                matches = [labels.matches(i, boxes(y, rows, columns, LEAST_SCORE)[:MOST]) for i, y in enumerate(outputs)]
                of_this = said_precision(name, matches, draws, known)
                known = known or of_this


if __name__ == '__main__':
    main()
