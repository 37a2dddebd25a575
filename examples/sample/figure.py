# SPDX-License-Identifier: MIT-0
# figure.py REPORT.json FILE.svg: draws README's first picture, the accuracy of the sample network before and after its conversion, from the
# report of reluize: make -C examples sample_figure.
import json
import math
import sys

WIDTH, HEIGHT = 820, 240
SMOOTH, RELU, SOFT, INK = "#1F6FB2", "#C4571B", "#666666", "#222222"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"
CURVE = dict(left=24, right=264, top=74, bottom=226, span=4, low=-0.6, high=4)
BARS = dict(left=520, right=740, top=92, step=44, height=26)


def text(x, y, words, size=12, fill=SOFT, anchor="start", bold=False):
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"{weight}>{words}</text>'


def place(x, y):
    """Where a point of a gate's curve is on the sheet."""
    c = CURVE
    across = (x + c["span"]) / (2 * c["span"])
    up = (y - c["low"]) / (c["high"] - c["low"])
    return c["left"] + across * (c["right"] - c["left"]), c["bottom"] - up * (c["bottom"] - c["top"])


def curve(function, colour):
    points = [place(x / 16, function(x / 16)) for x in range(-64, 65)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>'


def axes():
    (left, zero), (right, _), (middle, bottom), (_, top) = place(-4, 0), place(4, 0), place(0, -0.6), place(0, 4)
    return [f'<path d="M{left:.1f} {zero:.1f}H{right:.1f}M{middle:.1f} {bottom:.1f}V{top:.1f}" stroke="#E4E4E4"/>']


def gates():
    x, y = place(-3.9, 3.3)
    return axes() + [curve(lambda z: max(z, 0), RELU), curve(lambda z: z / (1 + math.exp(-z)), SMOOTH),
                     text(x, y, "SiLU, the gate before", fill=SMOOTH, bold=True), text(x, y + 18, "ReLU, the gate after", fill=RELU, bold=True)]


def bar(k, name, score, colour):
    b = BARS
    y = b["top"] + k * b["step"]
    wide = score / 100 * (b["right"] - b["left"])
    middle = y + b["height"] / 2 + 5
    return [text(b["left"] - 12, middle, name, 14, INK, "end"),
            f'<rect x="{b["left"]}" y="{y}" width="{wide:.1f}" height="{b["height"]}" rx="3" fill="{colour}"/>',
            text(b["left"] + wide + 8, middle, f"{score:.1f} %", 14, INK, bold=True)]


def sheet(report):
    before, cold, after = (report[key]["score"] for key in ("before", "cold", report["written"]))
    title = f"{report['relus_written']} SiLU gates become ReLU: accuracy {before:.1f} % before, {after:.1f} % after"
    name = report["model"].rsplit("/", 1)[-1]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="{FONT}">',
             f"<title>{title}</title>", '<rect width="100%" height="100%" fill="#FFFFFF"/>', text(24, 32, title, 17, INK, bold=True),
             text(24, 53, f"{name}, a residual network; {report['test_samples']:,} images that the conversion did not use")]
    parts += gates()
    parts += bar(0, "the network with SiLU", before, SMOOTH)
    parts += bar(1, "ReLU swapped in, nothing else", cold, RELU)
    parts += bar(2, "converted by reluize", after, RELU)
    return "\n".join(parts) + "\n</svg>\n"


with open(sys.argv[1], encoding="utf-8") as f:
    picture = sheet(json.load(f))
with open(sys.argv[2], "w", encoding="utf-8") as f:
    f.write(picture)
