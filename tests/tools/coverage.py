#!/usr/bin/env python3
"""coverage.py: which lines and branches of lgelu.h the test programs reach, by clang's source-based coverage (Debian: clang,
llvm); with clang 19 (clang-19, llvm-19, libclang-rt-19-dev) also which conditions were seen to decide alone (MC/DC). Ends with
status 1 below 95 % of the lines or 90 % of the branches. What is reached in any instruction set's copy counts as reached. What is
not is listed with the reason that tools/uncovered.txt has for it; a line that has none fails. PROGRAMS='test_network': of these
alone, and nothing fails.
SPDX-License-Identifier: MIT-0"""
import glob, json, os, re, shutil, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

FOLDER, HEADER = "build/coverage", os.path.realpath("../lgelu.h")
os.makedirs(FOLDER, exist_ok=True)
FLAGS = "-std=c99 -O1 -g -fprofile-instr-generate -fcoverage-mapping -I.. -I. -I../examples/common -I../examples/study".split()
if "avx512f" not in open("/proc/cpuinfo", encoding="utf-8").read():
    FLAGS.append("-DLGELU_NO_AVX512")                            # what no program can run here is not counted
NEW = all(shutil.which(name + "-19") for name in ("clang", "llvm-profdata", "llvm-cov")) and not subprocess.run(
    "echo 'int main(void) { return 0; }' | clang-19 -fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc -x c - -o "
    + FOLDER + "/probe", shell=True, stderr=subprocess.DEVNULL).returncode
CLANG, PROFDATA, COV = (name + ("-19" if NEW else "") for name in ("clang", "llvm-profdata", "llvm-cov"))
if NEW:
    FLAGS.append("-fcoverage-mcdc")
programs = [os.path.basename(p)[:-2] for p in sorted(glob.glob("*/test_*.c")) if "lgelu.h" in open(p, encoding="utf-8").read()]
# nothing that the others don't reach
programs = [p for p in programs if p != "test_same_bits" and not p.startswith(("test_deploy", "test_onnx"))]
runs = {"fuzz_network": "1000", "fuzz_exchange": "3000"}         # errors, damaged files
programs = os.environ.get("PROGRAMS", "").split() or programs + list(runs)
if subprocess.run([CLANG, *FLAGS, "-c", "tools/lgelu.c", "-o", FOLDER + "/lgelu.o"], stderr=subprocess.DEVNULL).returncode:
    sys.exit(print("skip coverage: no clang with a profile library here (Debian: clang, llvm, libclang-rt-dev)"))


def reach(name):
    """Compiles and runs a program; returns its name, or None if it does not compile."""
    source = glob.glob("*/" + name + ".c")[0]
    own = "define LGELU_IMPLEMENTATION" in open(source, encoding="utf-8").read()
    objects = [] if own else [FOLDER + "/lgelu.o"]
    link = [source, *objects, "-o", FOLDER + "/" + name, "-lm", "-pthread"]
    if subprocess.run([CLANG, *FLAGS, *link], stderr=subprocess.DEVNULL).returncode:
        print("#", name, "is left out: it does not compile with clang")
        return None
    environment = dict(os.environ, LLVM_PROFILE_FILE="%s/%s.profraw" % (FOLDER, name))
    subprocess.run([FOLDER + "/" + name, *([runs[name]] if name in runs else [])], env=environment, stdout=subprocess.DEVNULL)
    return name


with ThreadPoolExecutor(os.cpu_count()) as pool:
    made = [name for name in pool.map(reach, programs) if name]
raw = [FOLDER + "/" + name + ".profraw" for name in made]
subprocess.run([PROFDATA, "merge", "-sparse", *raw, "-o", FOLDER + "/all.profdata"], check=True)
objects = [word for name in made[1:] for word in ("-object", FOLDER + "/" + name)]
export = subprocess.run([COV, "export", "-instr-profile", FOLDER + "/all.profdata", FOLDER + "/" + made[0], *objects],
                        check=True, capture_output=True, text=True)
source = open(HEADER, encoding="utf-8").read().split("\n")
lines, branches, decisions = {}, {}, {}
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
    for first, column, last, end, *rest in function.get("mcdc_records", []):
        if rest[0] == 0:                                # in the file itself, no macro of another
            alone = next(x for x in rest if isinstance(x, list))
            # a macro in it can have other conditions in another copy
            sums = decisions.setdefault((first, column, last, end, len(alone)), [0] * len(alone))
            for i, seen in enumerate(alone):
                sums[i] += bool(seen)
reasons = [row.rstrip("\n").split("\t") for row in open("tools/uncovered.txt", encoding="utf-8") if "\t" in row]
missed = [line for line in sorted(lines) if not lines[line] and source[line - 1].strip() not in ("", "}")]
ways = [(line, way) for (line, *_), sums in sorted(branches.items()) for way in (0, 1) if not sums[way]]
bare = 0
idle = [pattern for pattern, _ in reasons if not any(re.search(pattern, line) for line in source)]
for pattern in idle:
    print("tools/uncovered.txt: '%s' is in no line of lgelu.h" % pattern)
for line in missed:
    why = next((reason for pattern, reason in reasons if re.search(pattern, source[line - 1])), None)
    bare += why is None
    print("lgelu.h:%d: %s: %s" % (line, why or "no reason known", source[line - 1].strip()[:100]))
for line in sorted({line for line, _ in ways} - set(missed)):
    never = " and ".join(("never true", "never false")[way] for at, way in ways if at == line)
    print("# branch, line %d: %s: %s" % (line, never, source[line - 1].strip()[:90]))
conditions = sum(len(sums) for sums in decisions.values())
alone = sum(n > 0 for sums in decisions.values() for n in sums)
for (line, *_), sums in sorted(decisions.items()):
    if not all(sums) and line not in missed:
        print("# MC/DC, line %d: %d of %d conditions decided alone: %s" % (line, sum(n > 0 for n in sums), len(sums),
              source[line - 1].strip()[:90]))
by_line, by_branch = 100 - 100 * len(missed) / len(lines), 100 - 100 * len(ways) / (2 * len(branches))
failed = 0
for what, percent, least, all_of in (("lines", by_line, 95, len(lines)), ("branches", by_branch, 90, 2 * len(branches))):
    failed |= percent < least
    print("%s coverage: %.1f %% of %d %s of lgelu.h (at least %d)" % ("ok" if percent >= least else "FAIL", percent, all_of, what,
          least))
if conditions:
    print("ok coverage: MC/DC: %.1f %% of %d conditions in %d decisions were seen to decide alone" % (100 * alone / conditions,
          conditions, len(decisions)))
else:
    print("skip coverage: MC/DC: no clang-19, llvm-19, libclang-rt-19-dev here")
print("%s coverage: each line that is not reached has a reason%s" % (("FAIL", ": %d have none" % bare) if bare else ("ok", "")))
print("%s coverage: each row of tools/uncovered.txt is in a line of lgelu.h%s" % (("FAIL", ": %d are in none" % len(idle)) if idle
                                                                                  else ("ok", "")))
sys.exit((failed or bare > 0 or bool(idle)) and "PROGRAMS" not in os.environ)
