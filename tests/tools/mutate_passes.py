#!/usr/bin/env python3
"""mutate_passes.py: changes one token of a pass of reluize at a time and asks which test sees it.

    make -C tests mutate FROM=passes         300 random mutants of the passes, seed 1
    make -C tests mutate FROM=passes N=40 SEED=7 ONLY='onnx_int8 onnx_gates_find'
                                             of files whose names begin so, or of functions of these names
    make -C tests mutate FROM=passes CONTINUE=1           leaves out what build/mutate_passes.log has a result for
    make -C tests mutate FROM=passes CONTINUE=1 AGAIN=1   the same, and runs all tests on what has survived, the owner with
                                             AddressSanitizer, too
    make -C tests mutate FROM=passes SECONDS=500          begins no mutant after so many seconds
    make -C tests mutate FROM=passes LIST=1               lists the mutants and runs nothing

What a mutant is, and how many of them are compiled into one file of which the environment chooses one at run time, is described in
mutate.py. Here each file has an object of its own with its mutants (MUTATE_FILE=onnx_gates MUTANT=17), and they are linked in place
of the parts that make has compiled, in a folder of their own, so that the tests in shell run as they are. A program that is linked
to the parts is linked once, since it contains all mutants. The tests of a file are those of TESTS below, the owner first; a mutant
runs those that reach its line, which gcov has counted with the original, and each ends at its first failure. Before the mutants,
each test runs with unchanged copies of all functions: it must pass, and three times that time is what a mutant may take.

A survivor that compiles to the same object code as the original is not counted. tools/mutants_passes.txt lists what changes nothing
that can be seen: the file and part of a mutant's description, a tab, the reason. The status is 1 if fewer than 98 % of the others
are caught, or no mutant ran.
SPDX-License-Identifier: MIT-0"""
import glob, json, os, random, re, shutil, signal, subprocess, sys, time
import mutate

EXAMPLES, FOLDER, LOG, KNOWN = "../examples", "build/mutate_passes", "build/mutate_passes.log", "tools/mutants_passes.txt"
PASSES, PARTS = EXAMPLES + "/reluize/passes", FOLDER + "/parts"
CASES, SANITIZED, COVERED, LINKED = FOLDER + "/cases", FOLDER + "/sanitized", FOLDER + "/covered", FOLDER + "/linked"
INCLUDE = ["-I" + f for f in [".."] + [EXAMPLES + "/" + f for f in ("common", "reluize/onnx", "reluize/ops", "reluize/passes", "network")]]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
FLAGS = ["-std=c99", "-O1", "-w", "-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types"]
TARGET = 98                                  # per cent
# The tests of the files whose names match, short forms of them, in their order.
RELU, RELUS = ("reluize/test_onnx_relu.sh", {}), ("reluize/test_reluize_relus.sh", {})
INT8 = ("reluize/test_reluize_int8.sh", {"GRAPHS": "120", "EQUAL_GRAPHS": "25"})
C = ("reluize/test_onnx_c.sh", {"RANDOM_GRAPHS": "40", "FAMILY_GRAPHS": "25", "COMPILERS": "tcc"})
MEMORY = ("reluize/test_onnx_memory.sh", {"RUNS": "12"})
TESTS = [(r"onnx_c", [C, MEMORY]),
         (r"onnx_int8", [MEMORY, INT8]),
         (r"onnx_opset", [INT8]),
         (r"onnx_relu_matrix", [RELU, MEMORY, INT8]),
         (r"onnx_gates|onnx_relu|onnx_rewrite|least_squares", [RELU, MEMORY, RELUS])]
# A compiler that links the same sources with the parts of a folder once.
LINKER = """#!/bin/sh
case " $* " in
*" %(parts)s/"*) ;;
*) exec %(compiler)s "$@" ;;
esac
linked=%(linked)s/$({ printf '%%s' "$*"; for word; do case $word in *.c) cat $word ;; esac; done; } | cksum | tr ' ' -)
for word; do [ "$last" = -o ] && output=$word; last=$word; done
[ -e $linked ] || %(compiler)s "$@" -o $linked || exit
cp $linked $output
"""
# The copies' names contain the name of the file.
PROLOGUE = mutate.PROLOGUE.replace("LGELU__PASS", "MUTATE_PASS")
# What chooses a mutant; without MUTATE_FILE and MUTANT the file is as it was.
CHOOSER = """
#include <stdlib.h>
#include <string.h>
int mutate_chosen, mutate_on[%(functions)d];
static int mutate_nowhere[%(functions)d];
int *mutate_reached = mutate_nowhere;
static const int mutate_owner[] = { %(owners)s };
static __attribute__((constructor)) void mutate_choose(void)
{
    const char *file = getenv("MUTATE_FILE"), *mutant = getenv("MUTANT");
    int i;
    if (!mutant || (file && strcmp(file, "%(name)s")))
        return;
    mutate_chosen = atoi(mutant);
    for (i = 0; i < %(functions)d; i++)
        mutate_on[i] = !mutate_chosen || i == mutate_owner[mutate_chosen];
}
"""


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def name_of(path):
    return os.path.basename(path)[:-2]


def tests_of(name):
    return next((tests for pattern, tests in TESTS if re.match(pattern, name)), None)


class PassSchema(mutate.Schema):
    """A file of the passes with many mutants; its object replaces the file's part."""
    def __init__(self, path, source, chosen):
        self.name = name_of(path)
        mutate.STAMP = "%s/%s.json" % (FOLDER, self.name)
        mutate.PROLOGUE = PROLOGUE
        super().__init__(source, chosen)

    def is_compiled(self):
        return False

    def whole(self):
        owners = [0] + [self.places[id(m)][0] for m in self.mutants]
        text = self.text()
        return text + CHOOSER % {"functions": len(self.functions), "owners": ", ".join(map(str, owners)), "name": self.name}

    def errors(self, flags):
        path = "%s/%s.c" % (FOLDER, self.name)
        mutate.write(path, self.whole())
        apart = ["-D%s=%s_of_%s" % (word, word, self.name) for word in ("mutate_on", "mutate_chosen", "mutate_reached")]
        run = subprocess.run([*mutate.COMPILER, *FLAGS, *INCLUDE, *apart, "-DMUTATE_PASS=" + self.name, *flags, path],
                             capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
        if not run.returncode:
            return set()
        lines = [int(line) for line in re.findall(self.name + r"\.c:(\d+):\d+: (?:fatal )?error", run.stderr)]
        found = {self.owner(line) for line in lines} - {None}
        if not found:
            sys.exit(print("FAIL mutate: %s with mutants does not compile:\n%s" % (self.name, run.stderr[:2000])))
        return found

    def compile(self):
        while True:
            found = self.errors(["-c", "-o", put_part(PARTS, self.name)])
            if not found:
                return
            self.refused += found

    def sanitize(self):
        for program in glob.glob(SANITIZED.replace(FOLDER, LINKED) + "/*"):
            os.remove(program)
        self.errors([*SANITIZE, "-c", "-o", put_part(SANITIZED, self.name)])


def put_part(folder, name):
    """The path of a part in a folder of parts, without the one that make has compiled."""
    part = "%s/%s.o" % (folder, name)
    if os.path.lexists(part):
        os.remove(part)
    return part


def parts_in(folder):
    """A folder with the parts that make has compiled, and one for what is linked to them."""
    for path in (folder, folder.replace(FOLDER, LINKED)):
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
    for part in glob.glob("build/parts/*.o"):
        os.symlink(os.path.abspath(part), "%s/%s" % (folder, os.path.basename(part)))
    compiler = folder + "-cc"
    mutate.write(compiler, LINKER % {"parts": folder, "linked": folder.replace(FOLDER, LINKED), "compiler": " ".join(mutate.COMPILER)})
    os.chmod(compiler, 0o755)


class Coverage:
    """The lines of the original's passes that each test reaches."""
    def __init__(self, sources):
        parts_in(COVERED)
        self.lines = {}
        for path in sources:
            part = put_part(COVERED, name_of(path))
            subprocess.run([*mutate.COMPILER, *FLAGS, *INCLUDE, "--coverage", "-c", path, "-o", part], check=True)

    def reached_by(self, test, names):
        """Runs a test, which must pass, and returns the counts of each file's lines."""
        for counts in glob.glob(COVERED + "/*.gcda"):
            os.remove(counts)
        why, _ = run_test(test, 900, None, parts=COVERED, flags=["--coverage"])
        if why:
            sys.exit(print("FAIL mutate: %s fails without a mutant: %s" % (test[0], why)))
        found = {}
        for name in names:
            if not os.path.exists("%s/%s.gcda" % (COVERED, name)):
                continue
            text = subprocess.run(["gcov", "--json-format", "--stdout", "%s/%s.gcda" % (COVERED, name)], capture_output=True, text=True).stdout
            for file in (f for line in text.splitlines() for f in json.loads(line)["files"] if name_of(f["file"]) == name):
                for line in file["lines"]:
                    counts = found.setdefault(name, {})
                    counts[line["line_number"]] = counts.get(line["line_number"], 0) + line["count"]
        return found

    def add(self, test, names):
        self.lines[test[0]] = self.reached_by(test, names)

    def reaches(self, test, path, source, mutant):
        """Whether a test reaches a mutant's line, or the last one before it that gcov counts."""
        counts = self.lines[test[0]].get(name_of(path), {})
        before = [line for line in counts if line <= line_of(source, mutant)]
        return bool(before) and counts[max(before)] > 0


def is_same(path, source, mutant):
    """Whether a mutant compiles to the object code of the original."""
    objects = []
    for text in (source, mutant.of(source)):
        mutate.write("%s/alone/%s.c" % (FOLDER, name_of(path)), text)
        output = "%s/alone/%s.o" % (FOLDER, name_of(path))
        subprocess.run([*mutate.COMPILER, *FLAGS, "-O2", *INCLUDE, "-c", "%s/alone/%s.c" % (FOLDER, name_of(path)), "-o", output])
        with open(output, "rb") as f:
            objects.append(f.read())
    return objects[0] == objects[1]


def run_test(test, limit, number, file=None, parts=PARTS, flags=()):
    """(why it failed or None, seconds) of a test, which ends at its first failure."""
    script, variables = test
    environment = dict(os.environ, PARTS_FOLDER=parts, OMP_NUM_THREADS="1", CC=os.path.abspath(parts + "-cc"), **variables)
    environment["RELUIZE"] = os.environ["RELUIZE"].replace("build/parts", parts)
    if number is not None:
        environment["MUTANT"] = str(number)
    # programs are linked with it, C files that they write are not
    environment["IMPLEMENTATION"] = " ".join([os.environ["IMPLEMENTATION"], *flags])
    environment["CASES"] = os.path.abspath(CASES)
    environment["ASAN_OPTIONS"] = "detect_leaks=0"
    if file:
        environment["MUTATE_FILE"] = file
    began, why = time.time(), None
    child = subprocess.Popen(["timeout", str(int(limit)), "sh", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
                             start_new_session=True)
    for line in child.stdout:
        if line.startswith(b"FAIL"):
            why = line.decode(errors="replace").strip()
            break
    if why:
        os.killpg(child.pid, signal.SIGKILL)
    child.stdout.close()
    status = child.wait()
    if why is None and status:
        why = "takes too long" if status == 124 else "status %d" % status
    return why, time.time() - began


def reasons():
    rows = []
    if os.path.exists(KNOWN):
        for line in read(KNOWN).splitlines():
            if line.strip() and not line.startswith("#"):
                text, reason = line.split("\t")
                pattern = r".*?".join(re.escape(re.sub(r"\s+", "", part)) for part in text.split("..."))
                rows.append((re.compile(pattern), reason))
    return rows


def reason_of(name, key, rows):
    packed = re.sub(r"\s+", "", name + ": " + key)
    return next((reason for pattern, reason in rows if pattern.match(packed)), None)


def draw(sources, number, seed, only):
    """(path, mutant) of so many random mutants, in proportion to code."""
    headers = "".join(read(path) for path in glob.glob(EXAMPLES + "/*/*.h") + glob.glob(EXAMPLES + "/reluize/*/*.h"))
    # All of a file is compiled here: the passes have no parts for other machines.
    mutate.segments = lambda source: ([0], {0})
    found = []
    for path, source in sources.items():
        all_of = mutate.mutants(source, headers)
        found += [(path, m) for m in all_of if not only or m.name in only or any(name_of(path).startswith(o) for o in only)]
    random.Random(seed).shuffle(found)
    print("# %d mutants to choose from" % len(found), flush=True)
    return found[:number]


def line_of(source, mutant):
    return source.count("\n", 0, mutant.start) + 1


def main():
    number, seed = int(os.environ.get("N") or 300), os.environ.get("SEED") or "1"
    only, seconds = os.environ.get("ONLY", "").split(), float(os.environ.get("SECONDS") or "inf")
    sources = {path: read(path) for path in sorted(glob.glob(PASSES + "/*.c")) if tests_of(name_of(path))}
    chosen, rows, began = draw(sources, number, seed, only), reasons(), time.time()
    if os.environ.get("LIST"):
        for path, m in chosen:
            print("%s:%d: %s" % (name_of(path), line_of(sources[path], m), m.key))
        return 0
    results = {}
    if os.environ.get("CONTINUE") and os.path.exists(LOG):
        for line in read(LOG).splitlines():
            result, name, key, why = line.split("\t")
            results[name, key] = (result, why)
    os.makedirs(FOLDER, exist_ok=True)
    log = open(LOG, "a" if results else "w", encoding="utf-8")
    again = os.environ.get("AGAIN")

    def is_open(path, m):
        old = results.get((name_of(path), m.key))
        return not old or (old[0] == "survived" and again and not reason_of(name_of(path), m.key, rows))
    queue = [(path, m) for path, m in chosen if is_open(path, m)]
    parts_in(PARTS)
    parts_in(SANITIZED)
    shutil.rmtree(CASES, ignore_errors=True)
    os.makedirs(CASES)
    schemas = {}
    for path in sources:
        of = [m for p, m in queue if p == path]
        if of:
            schemas[path] = PassSchema(path, sources[path], of)
    print("# %4.0f s: %d mutants of %d files compiled" % (time.time() - began, len(queue), len(schemas)), flush=True)

    limits, coverage = {}, Coverage(schemas)
    for test in [test for path in schemas for test in tests_of(name_of(path))]:
        if test[0] in limits:
            continue
        coverage.add(test, [name_of(path) for path in schemas])
        why, spent = run_test(test, 900, 0)
        if why:
            sys.exit(print("FAIL mutate: %s fails with unchanged copies of functions: %s" % (test[0], why)))
        limits[test[0]] = 3 * spent + 20
        print("# %-32s %5.1f s" % (test[0], spent), flush=True)

    def judge(path, m):
        schema, name = schemas[path], name_of(path)
        if m in schema.refused:
            return "broken", ""
        if reason_of(name, m.key, rows):
            return "listed", reason_of(name, m.key, rows)
        tests = [test for test in tests_of(name) if coverage.reaches(test, path, sources[path], m)]
        for test in tests:
            why, _ = run_test(test, limits[test[0]], schema.number(m), name)
            if why:
                return "caught", "%s: %s" % (os.path.basename(test[0]), why)
        if is_same(path, sources[path], m):
            return "same", ""
        if not tests:
            return "survived", "no test reaches it"
        if not again:
            return "survived", ""
        if os.path.islink("%s/%s.o" % (SANITIZED, name)):
            schema.sanitize()
        why, _ = run_test(tests[0], 5 * limits[tests[0][0]], schema.number(m), name, SANITIZED, SANITIZE)
        return ("caught", "AddressSanitizer: " + why) if why else ("survived", "")
    for k, (path, m) in enumerate(queue):
        if time.time() - began > seconds:
            break
        result, why = judge(path, m)
        results[name_of(path), m.key] = result, why
        log.write("\t".join((result, name_of(path), m.key, why.replace("\t", " "))) + "\n")
        log.flush()
        print("%4d of %d, %5.0f s: %-8s %s:%d: %s%s" % (k + 1, len(queue), time.time() - began, result, name_of(path),
              line_of(sources[path], m), m.key, "  <- " + why[:100] if why else ""), flush=True)
    log.close()

    print("%-22s %8s %8s %8s" % ("file", "caught", "listed", "survived"))
    last = {key: "listed" if result == "survived" and reason_of(*key, rows) else result for key, (result, _) in results.items()}
    for name in sorted({name for name, _ in last}) + ["all"]:
        of = [result for (n, _), result in last.items() if name in (n, "all")]
        print("%-22s %8d %8d %8d" % (name, of.count("caught"), of.count("listed"), of.count("survived")))
    caught, survived = (list(last.values()).count(word) for word in ("caught", "survived"))
    for (name, key), result in sorted(last.items()):
        if result == "survived":
            print("survived %s: %s" % (name, key))
    if not caught + survived:
        print("FAIL mutate: no mutant ran")
        return 1
    share = 100 * caught / (caught + survived)
    print("%s mutate: %.1f %% caught" % ("ok" if share >= TARGET else "FAIL", share))
    return share < TARGET


if __name__ == "__main__":
    sys.exit(main())
