# SPDX-License-Identifier: MIT-0
# detector_photos.py SIZE OUT.npy FOLDER...: the photographs of folders as YOLOX detectors take them, (n, 3, SIZE, SIZE) of bytes: blue,
# green, red, scaled to fit and put at the upper left, the rest 114. In the order of their names; of several folders in an order by chance
# that is always the same. Needs NumPy and Pillow.
import os
import sys

import numpy as np
from PIL import Image


def photo(path, side):
    image = Image.open(path).convert('RGB')
    factor = min(side / image.width, side / image.height)
    pixels = np.asarray(image.resize((int(image.width * factor), int(image.height * factor)), Image.BILINEAR))
    filled = np.full((side, side, 3), 114, np.uint8)
    filled[:pixels.shape[0], :pixels.shape[1]] = pixels
    return filled[:, :, ::-1].transpose(2, 0, 1)


def main():
    side, folders = int(sys.argv[1]), sys.argv[3:]
    files = sorted(os.path.join(folder, name) for folder in folders for name in os.listdir(folder)
                   if name.lower().endswith(('.jpg', '.jpeg', '.png', '.ppm')))
    if len(folders) > 1:
        np.random.RandomState(1).shuffle(files)
    np.save(sys.argv[2], np.stack([photo(path, side) for path in files]))


main()
