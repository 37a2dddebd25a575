#!/usr/bin/env python3
"""expect.py SOURCE PROGRAM: writes what a test program has found as what it expects, after a change that is intended to change it.

    python3 tools/expect.py reluize/test_onnx_c_nets.c build/test_onnx_c_nets && make format

SOURCE has a table whose rows begin with the name of a case and end with the text that is expected; for each that fails, PROGRAM prints
`FAIL NAME: TEXT`. Read the difference before you commit it: each row states what is right.
SPDX-License-Identifier: MIT-0"""
import re, subprocess, sys

WIDTH = 84


def literal(text):
    """A text as string literals of some length each."""
    text, parts = text.replace("\\", "\\\\").replace('"', '\\"'), []
    while len(text) > WIDTH:
        cut = text.rfind(" ", 0, WIDTH) + 1 or WIDTH
        parts.append(text[:cut])
        text = text[cut:]
    return "\n      ".join('"%s"' % part for part in parts + [text])


def replaced(source, name, found):
    """The source with another text at the end of the row of this name, or None."""
    at = source.find('{ "%s",' % name)
    if at < 0:
        return None
    end = source.index(" },\n", at)
    # the last comma of the row that is outside of its literals
    commas = [m.start() for m in re.finditer(r'"(?:\\.|[^"\\])*"|,', source[at:end]) if m.group() == ","]
    return source[:at + commas[-1] + 1] + "\n      " + literal(found) + source[end:]


def main():
    path, program = sys.argv[1:3]
    with open(path, encoding="utf-8") as f:
        source = f.read()
    for line in subprocess.run([program], capture_output=True, text=True).stdout.splitlines():
        if not line.startswith("FAIL "):
            continue
        # a name may contain a colon
        splits = [m.start() for m in re.finditer(": ", line)]
        new = next(filter(None, (replaced(source, line[5:k], line[k + 2:]) for k in splits)), None)
        if not new:
            sys.exit("no row for: " + line[:100])
        source = new
    with open(path, "w", encoding="utf-8") as f:
        f.write(source)


if __name__ == "__main__":
    main()
