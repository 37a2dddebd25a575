# SPDX-License-Identifier: MIT-0
# figures_check.py FILE.svg...: figures can be read. No text leaves the sheet or covers another one, no sheet is higher than 1,200
# pixels (lists of findings excepted), each line has a colour that some text has, so that it is named.
# One line for each fault; status 1 if there is any.
import sys
import xml.etree.ElementTree as xml

HIGHEST = 1200
faults = []


def box(text):
    """Left, top, right and bottom of a text, a little narrower than most fonts make it."""
    size = float(text.get("font-size"))
    wide = (0.61 if text.get("font-weight") else 0.54) * size * len("".join(text.itertext()))
    x = float(text.get("x"))
    y = float(text.get("y"))
    anchor = text.get("text-anchor", "start")
    left = x - (wide if anchor == "end" else wide / 2 if anchor == "middle" else 0)
    return left, y - 0.72 * size, left + wide, y + 0.05 * size


def check(path):
    """Adds the faults of one figure."""
    root = xml.parse(path).getroot()
    width, height = float(root.get("width")), float(root.get("height"))
    texts = [e for e in root.iter() if e.tag.endswith("}text") and "".join(e.itertext()).strip()]
    lines = [e for e in root.iter() if e.tag.endswith("}polyline")]
    boxes = [(box(e), "".join(e.itertext())) for e in texts]
    if height > HIGHEST and "_findings" not in path:
        faults.append(f"{path}: {height:g} pixels high, at most {HIGHEST}")
    for (left, top, right, bottom), words in boxes:
        if left < 0 or top < 0 or right > width or bottom > height:
            faults.append(f"{path}: '{words}' leaves the sheet")
    for i, (a, first) in enumerate(boxes):
        for b, second in boxes[i + 1:]:
            if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]:
                faults.append(f"{path}: '{first}' and '{second}' cover each other")
    named = {e.get("fill") for e in texts}
    panels_of_one = {e.get("stroke") for e in lines}
    if len(panels_of_one) > 1:
        for colour in sorted(panels_of_one - named):
            faults.append(f"{path}: no text names the lines of colour {colour}")


for file in sys.argv[1:]:
    check(file)
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
