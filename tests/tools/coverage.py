#!/usr/bin/env python3
"""coverage.py: which lines and branches of lgelu.h the test programs reach, by clang's source-based coverage (Debian: clang, llvm).
Ends with status 1 below 95 % of the lines or 90 % of the branches. A line counts as reached if any instruction set's copy is. What is
not reached is listed, line by line, with the reason that tools/uncovered.txt has for it. PROGRAMS='test_network': of these alone.
SPDX-License-Identifier: MIT-0"""
import glob, json, os, re, subprocess, sys

FOLDER, HEADER = "build/coverage", os.path.realpath("../lgelu.h")
FLAGS = "-std=c99 -O0 -g -fprofile-instr-generate -fcoverage-mapping -I..".split()
os.makedirs(FOLDER, exist_ok=True)
programs = [p[:-2] for p in sorted(glob.glob("test_*.c")) if "lgelu.h" in open(p, encoding="utf-8").read()]
programs = [p for p in programs if p != "test_same_bits" and not p.startswith(("test_deploy", "test_onnx"))]      # nothing that the others don't reach
programs = os.environ.get("PROGRAMS", "").split() or programs
if subprocess.run(["clang", *FLAGS, "-c", "tools/lgelu.c", "-o", FOLDER + "/lgelu.o"], stderr=subprocess.DEVNULL).returncode:
    sys.exit(print("skip coverage: no clang with a profile library here (Debian: clang, llvm, libclang-rt-dev)"))
made = []
for name in programs:
    own = "define LGELU_IMPLEMENTATION" in open(name + ".c", encoding="utf-8").read()
    objects = [] if own else [FOLDER + "/lgelu.o"]
    if subprocess.run(["clang", *FLAGS, name + ".c", *objects, "-o", FOLDER + "/" + name, "-lm", "-pthread"], stderr=subprocess.DEVNULL).returncode:
        print("#", name, "is left out: it does not compile with clang")
        continue
    environment = dict(os.environ, LLVM_PROFILE_FILE="%s/%s.profraw" % (FOLDER, name))
    subprocess.run([FOLDER + "/" + name], env=environment, stdout=subprocess.DEVNULL)
    made.append(name)
raw = [FOLDER + "/" + name + ".profraw" for name in made]
subprocess.run(["llvm-profdata", "merge", "-sparse", *raw, "-o", FOLDER + "/all.profdata"], check=True)
objects = [word for name in made[1:] for word in ("-object", FOLDER + "/" + name)]
export = subprocess.run(["llvm-cov", "export", "-instr-profile", FOLDER + "/all.profdata", FOLDER + "/" + made[0], *objects], check=True, capture_output=True, text=True)
source = open(HEADER, encoding="utf-8").read().split("\n")
lines, branches = {}, {}
for function in json.loads(export.stdout)["data"][0]["functions"]:
    if os.path.realpath(function["filenames"][0]) != HEADER:
        continue
    count = {}                                          # the innermost region that a line lies in, per copy of a function
    for first, _, last, _, n, file, _, kind in sorted(function["regions"], key=lambda r: (r[0], r[1], -r[2])):
        if kind == 0 and file == 0:
            for line in range(first, last + 1):
                count[line] = n
    for line, n in count.items():
        lines[line] = lines.get(line, 0) + n
    for first, column, last, end, true, false, file, _, _ in function.get("branches", []):
        if file == 0:
            sums = branches.setdefault((first, column, last, end), [0, 0])
            sums[0] += true
            sums[1] += false
reasons = [row.rstrip("\n").split("\t") for row in open("tools/uncovered.txt", encoding="utf-8") if "\t" in row]
missed = [line for line in sorted(lines) if not lines[line] and source[line - 1].strip() not in ("", "}")]
ways = [(line, way) for (line, *_), sums in sorted(branches.items()) for way in (0, 1) if not sums[way]]
for line in missed:
    why = next((reason for pattern, reason in reasons if re.search(pattern, source[line - 1])), "no reason known")
    print("lgelu.h:%d: %s: %s" % (line, why, source[line - 1].strip()[:100]))
for line in sorted({line for line, _ in ways} - set(missed)):
    never = " and ".join(("never true", "never false")[way] for at, way in ways if at == line)
    print("# branch, line %d: %s: %s" % (line, never, source[line - 1].strip()[:90]))
by_line, by_branch = 100 - 100 * len(missed) / len(lines), 100 - 100 * len(ways) / (2 * len(branches))
for what, percent, least, all_of in (("lines", by_line, 95, len(lines)), ("branches", by_branch, 90, 2 * len(branches))):
    print("%s coverage: %.1f %% of %d %s of lgelu.h (at least %d)" % ("ok" if percent >= least else "FAIL", percent, all_of, what, least))
sys.exit(by_line < 95 or by_branch < 90)
