# SPDX-License-Identifier: MIT-0
# reader_lines.py TEXT PHOTOS COUNT SEED OUT.npy: lines of a text as PP-OCR's classifier of their direction takes them, (COUNT, 3, 48, 192):
# blue, green, red from -1 to 1, as high as the image, 0 to the right of them. Two to five words in one of the fonts DejaVu, in any colour that
# differs from what is behind them, a plain colour or a part of a photograph; turned by up to four degrees, blurred, and with noise. Every second
# one, by chance, is upside down, class 1; OUT.labels.npy has the classes. Needs NumPy and Pillow.
import os
import random
import sys

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

FONTS = ('DejaVuSans', 'DejaVuSans-Bold', 'DejaVuSans-Oblique', 'DejaVuSansMono', 'DejaVuSerif', 'DejaVuSerif-Bold', 'DejaVuSerif-Italic')
ROWS, COLUMNS = 48, 192


def behind(r, photos, size):
    if r.random() < 0.5:
        return Image.new('RGB', size, tuple(r.randrange(256) for _ in range(3)))
    image = Image.open(r.choice(photos)).convert('RGB')
    width = min(image.width, max(size[0] // 2, 32))
    height = max(1, min(image.height, width * size[1] // size[0]))
    x, y = r.randrange(image.width - width + 1), r.randrange(image.height - height + 1)
    return image.crop((x, y, x + width, y + height)).resize(size, Image.BILINEAR)


def line(r, words, photos):
    """An image of a few words."""
    first = r.randrange(len(words) - 5)
    text = ' '.join(words[first:first + r.randint(2, 5)])
    font = ImageFont.truetype(r.choice(FONTS) + '.ttf', 40)
    left, top, right, bottom = font.getbbox(text)
    margin = r.randint(2, 10)
    mask = Image.new('L', (right - left + 2 * margin, bottom - top + 2 * margin), 0)
    ImageDraw.Draw(mask).text((margin - left, margin - top), text, 255, font=font)
    mask = mask.rotate(r.uniform(-4, 4), Image.BILINEAR)
    ground = behind(r, photos, mask.size)
    mean = np.asarray(ground).reshape(-1, 3).mean(0)
    colour = mean
    while abs(colour - mean).mean() < 60:
        colour = np.array([r.randrange(256) for _ in range(3)])
    ground.paste(tuple(int(c) for c in colour), (0, 0), mask)
    return ground.filter(ImageFilter.GaussianBlur(r.uniform(0, 1.2)))


def taken(image, upside_down, noise):
    """The image as the network takes it."""
    if upside_down:
        image = image.rotate(180)
    width = min(COLUMNS, max(1, image.width * ROWS // image.height))
    pixels = np.asarray(image.resize((width, ROWS), Image.BILINEAR), np.float32) / 127.5 - 1
    pixels = np.clip(pixels + noise[:, :width], -1, 1)
    filled = np.zeros((ROWS, COLUMNS, 3), np.float32)
    filled[:, :width] = pixels
    return filled[:, :, ::-1].transpose(2, 0, 1)


def main():
    text, folder, count, seed, out = sys.argv[1:]
    r, n = random.Random(int(seed)), np.random.RandomState(int(seed))
    with open(text, encoding='utf-8') as f:
        words = f.read().split()
    photos = [os.path.join(folder, p) for p in sorted(os.listdir(folder))]
    images, classes = [], []
    for _ in range(int(count)):
        classes.append(r.randrange(2))
        noise = n.randn(ROWS, COLUMNS, 3) * r.uniform(0, 0.06)
        images.append(taken(line(r, words, photos), classes[-1], noise))
    np.save(out, np.stack(images).astype(np.float32))
    np.save(out[:-4] + '.labels.npy', np.array(classes))


main()
