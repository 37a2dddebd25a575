#!/usr/bin/env python3
"""mutate_passes.py: changes one token of a pass of reluize at a time and asks which test sees it.

    make -C tests mutate FROM=passes         300 random mutants of the passes, seed 1
    make -C tests mutate FROM=passes N=40 SEED=7 ONLY='onnx_int8 onnx_gates_find'
                                             of files whose names begin so, or of functions of these names
    make -C tests mutate FROM=passes CONTINUE=1           leaves out what build/mutate_passes.log has a result for
    make -C tests mutate FROM=passes CONTINUE=1 AGAIN=1   the same, and runs the tests again on what has survived
    make -C tests mutate FROM=passes SECONDS=500          begins no mutant after so many seconds
    make -C tests mutate FROM=passes TESTS='whiten gates'   by the tests whose names contain one of these, alone, on all mutants of
                                             their files, with the sanitizer if TESTS names it; AGAIN=1 without TESTS has the others judge the rest
    make -C tests mutate FROM=passes LIST=1               lists the mutants and runs nothing

What a mutant is, and how many of them are compiled into one file of which the environment chooses one at run time, is described in
mutate.py. Here each file has an object of its own with its mutants (MUTATE_FILE=onnx_gates MUTANT=17), and they are linked in place
of the parts that make has compiled, in a folder of their own, so that the tests in shell run as they are. A program that is linked
to the parts is linked once, since it contains all mutants. The tests of a file are those of TESTS below, most of which are stages of
a script; a mutant runs those that reach its line, which gcov has counted with the original, from the cheapest to the dearest, and each
ends at its first failure; programs of one file then run with AddressSanitizer, as test_passes_sanitized does. Those of more than three seconds run when all mutants have had the others; until then a mutant that the others
do not see is open. Before the mutants, each test runs with unchanged copies of all functions: it must pass. A process of a
mutant may take twice the processor time of that whole run and two seconds more, which does not depend on what else the machine does.
What was compiled and counted is kept for the next run with the same sources.

A survivor that compiles to the same object code as the original is not counted. tools/mutants_passes.txt lists what changes nothing
that can be seen: the file and part of a mutant's description, a tab, the reason. The status is 1 if fewer than 98 % of the others
are caught, or a mutant is not decided.
SPDX-License-Identifier: MIT-0"""
import glob, hashlib, json, os, random, re, resource, shutil, signal, subprocess, sys, time
import mutate

EXAMPLES, FOLDER, LOG, KNOWN = "../examples", "build/mutate_passes", "build/mutate_passes.log", "tools/mutants_passes.txt"
PASSES, PARTS = EXAMPLES + "/reluize/passes", FOLDER + "/parts"
CASES, SANITIZED, COVERED, LINKED = FOLDER + "/cases", FOLDER + "/sanitized", FOLDER + "/covered", FOLDER + "/linked"
MEASURED = FOLDER + "/measured.json"         # what each test reaches, and its seconds
INCLUDE = ["-I" + f for f in [".."] + [EXAMPLES + "/" + f for f in ("common", "reluize/onnx", "reluize/ops", "reluize/passes", "network")]]
SANITIZE = ["-O0", "-fsanitize=address"]
FLAGS = ["-std=c99", "-O1", "-w", "-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types"]
TARGET = 98                                  # per cent
PATIENCE = 3                                 # processor seconds of a test that runs before the other mutants have had theirs


class Test:
    """A script, or a program of one file, with the variables of its short form; a stage is a part of a script."""
    def __init__(self, path, stage="", **variables):
        self.path, self.name = path, os.path.basename(path) + (": " + stage if stage else "")
        self.variables = dict(variables, STAGE=stage) if stage else variables

    def digest(self):
        """Of the test and the tools that it names."""
        texts = [read(self.path), json.dumps(self.variables)]
        tools = re.findall(r"tools/[\w.]+", texts[0]) + ["tools/%s.py" % name for name in re.findall(r"cases (\w+) ", texts[0])]
        return digest(texts + [read(tool) for tool in sorted(set(tools)) if os.path.exists(tool)])


def stages(path, names, **variables):
    return [Test(path, name, **variables) for name in names]


def families():
    """The families of operators that test_onnx_c draws."""
    loop = re.search(r"for OPERATORS in (.*?); do", read("reluize/test_onnx_c.sh"), re.S)
    return loop.group(1).replace("\\\n", " ").split()


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def digest(texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


# The tests of the files whose names match, short forms of them.
RELU = [Test("reluize/test_onnx_relu.sh")]
RELUS = stages("reluize/test_reluize_relus.sh", ["nets", "rest"], NETS="perceptron normalised", RELUS="2")
INT8 = stages("reluize/test_reluize_int8.sh", ["graphs", "equal", "files"], GRAPHS="120", EQUAL_GRAPHS="10")
C = stages("reluize/test_onnx_c.sh", ["small", "random", *families(), "integers", "integers floats", "integers rows", "integers whole", "forms"],
           RANDOM_GRAPHS="40", FAMILY_GRAPHS="25", COMPILERS="tcc")
MEMORY = {name: Test("reluize/test_onnx_memory.sh", name, RUNS="12") for name in "c integers relu line int8 gram equal distil".split()}
DISTIL, STEPS, WHITEN, GATES, NETS, EIGHT, OPSET, FILES, VERSION, LEAST = (
    Test("reluize/test_%s.c" % name)
    for name in "onnx_distil onnx_distil_nets onnx_whiten onnx_gates onnx_relu_nets onnx_int8_nets onnx_opset onnx_c_nets onnx_c_version least_squares".split())
TESTS = [(r"onnx_c", [VERSION, FILES, *C, MEMORY["c"], MEMORY["integers"]]),
         (r"onnx_int8|onnx_opset", [OPSET, EIGHT, MEMORY["int8"], MEMORY["gram"], MEMORY["equal"], *INT8]),
         (r"onnx_distil|onnx_augment|onnx_whiten", [WHITEN, DISTIL, STEPS, MEMORY["distil"]]),
         (r"onnx_relu_matrix|least_squares|onnx_rewrite", [LEAST, WHITEN, DISTIL, NETS, EIGHT, OPSET, *RELU, MEMORY["relu"], MEMORY["line"], *RELUS, MEMORY["gram"], *INT8]),
         (r"onnx_gates|onnx_relu", [GATES, NETS, *RELU, MEMORY["relu"], MEMORY["line"], *RELUS])]
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


def name_of(path):
    return os.path.basename(path)[:-2]


def all_tests_of(name):
    return next((tests for pattern, tests in TESTS if re.match(pattern, name)), [])


def tests_of(name):
    """Those that the caller names, or all."""
    tests = all_tests_of(name)
    words = os.environ.get("TESTS", "").split()
    return [test for test in tests if not words or any(word in test.name for word in words)]


def has_sanitizer():
    """Whether programs run with AddressSanitizer, too."""
    return not are_chosen() or "sanitizer" in os.environ["TESTS"].split()


def are_chosen():
    """Whether the caller names the tests, which then need no count of what they reach."""
    return bool(os.environ.get("TESTS"))


class PassSchema(mutate.Schema):
    """A file of the passes with many mutants; its object replaces the file's part."""
    def __init__(self, path, source, chosen):
        self.name = name_of(path)
        mutate.STAMP = "%s/%s.json" % (FOLDER, self.name)
        mutate.PROLOGUE = PROLOGUE
        super().__init__(source, chosen)

    def is_compiled(self):
        """Whether an earlier run has compiled these mutants of this file."""
        part = "%s/%s.o" % (PARTS, self.name)
        return os.path.exists(part) and not os.path.islink(part) and super().is_compiled()

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
    """A folder with the parts that make has compiled, and one for what is linked to them, unless they are there."""
    if os.path.exists(folder + "-cc"):
        return
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
    def __init__(self):
        self.lines = {}

    def compile(self):
        parts_in(COVERED)
        for path in glob.glob(PASSES + "/*.c"):
            part = "%s/%s.o" % (COVERED, name_of(path))
            if os.path.islink(part):
                subprocess.run([*mutate.COMPILER, *FLAGS, *INCLUDE, "--coverage", "-c", path, "-o", put_part(COVERED, name_of(path))],
                               check=True)

    def reached_by(self, test, names):
        """Runs a test, which must pass, and returns the counts of each file's lines."""
        for counts in glob.glob(COVERED + "/*.gcda"):
            os.remove(counts)
        why, _ = run_test(test, 300, None, parts=COVERED, flags=["--coverage"])
        if why:
            sys.exit(print("FAIL mutate: %s fails without a mutant: %s" % (test.name, why)))
        counted = [path for path in ("%s/%s.gcda" % (COVERED, name) for name in names) if os.path.exists(path)]
        text = subprocess.run(["gcov", "--json-format", "--stdout", *counted], capture_output=True, text=True).stdout if counted else ""
        found = {}
        for file in (f for line in text.splitlines() for f in json.loads(line)["files"] if name_of(f["file"]) in names):
            counts = found.setdefault(name_of(file["file"]), {})
            for line in file["lines"]:
                number = str(line["line_number"])
                counts[number] = counts.get(number, 0) + line["count"]
        return found

    def add(self, test):
        self.compile()
        self.lines[test.name] = self.reached_by(test, [name for name in map(name_of, glob.glob(PASSES + "/*.c")) if test in tests_of(name)])

    def reaches(self, test, path, source, mutant):
        """Whether a test reaches a mutant's line, or the last one before it that gcov counts."""
        if are_chosen():
            return True
        counts = self.lines[test.name].get(name_of(path), {})
        before = [int(line) for line in counts if int(line) <= line_of(source, mutant)]
        return bool(before) and counts[str(max(before))] > 0


def object_of(path, text):
    """The object code of a text in place of a file."""
    alone = "%s/alone/%s" % (FOLDER, name_of(path))
    mutate.write(alone + ".c", text)
    subprocess.run([*mutate.COMPILER, *FLAGS, "-O2", *INCLUDE, "-c", alone + ".c", "-o", alone + ".o"])
    with open(alone + ".o", "rb") as f:
        return f.read()


def is_same(path, source, mutant, originals={}):
    """Whether a mutant compiles to the object code of the original."""
    if path not in originals:
        originals[path] = object_of(path, source)
    return object_of(path, mutant.of(source)) == originals[path]


def run_test(test, limit, number, file=None, parts=PARTS, flags=()):
    """(why it failed or None, its processor seconds) of a test, which ends at its first failure. No process of it may take more than
    `limit` seconds of the processor, or ten minutes, or fill memory or a disk."""
    environment = dict(os.environ, PARTS_FOLDER=parts, OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1", CC=os.path.abspath(parts + "-cc"),
                       **test.variables)
    environment["RELUIZE"] = os.environ["RELUIZE"].replace("build/parts", parts)
    environment["PATH"] = "/usr/bin:" + os.environ["PATH"]     # whose python3 is the first to have the modules
    if number is not None:
        environment["MUTANT"] = str(number)
    # programs are linked with it, C files that they write are not
    environment["IMPLEMENTATION"] = " ".join([os.environ["IMPLEMENTATION"], *flags])
    environment["CASES"] = os.path.abspath(CASES)
    environment["ASAN_OPTIONS"] = "hard_rss_limit_mb=4096"
    if file:
        environment["MUTATE_FILE"] = file

    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit + 1), int(limit + 2)))
        if parts != SANITIZED:               # whose shadow memory is terabytes
            resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    command = ["sh", test.path] if test.path.endswith(".sh") else [program_of(test, parts, flags)]
    began, why = seconds_of_children(), None
    child = subprocess.Popen(["timeout", "600", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
                             start_new_session=True, preexec_fn=limits)
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
    return why, seconds_of_children() - began


def seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def program_of(test, parts, flags):
    """A program of one file, linked once for each text of it and of its tools."""
    program = "%s/%s-%s" % (parts.replace(FOLDER, LINKED), name_of(test.path), test.digest()[:12])
    if not os.path.exists(program):
        objects = os.environ["ONNX_DISTIL"].replace("build/parts", parts).split()
        subprocess.run([*mutate.COMPILER, "-std=c99", "-O1", "-w", "-I.", *INCLUDE, test.path, *objects, *os.environ["IMPLEMENTATION"].split(), *flags,
                        "-lm", "-o", program], check=True)
    return program


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


def keep_if_same(sources):
    """Removes what was compiled of other sources."""
    others = [read(path) for path in sorted(glob.glob(EXAMPLES + "/*/*.h") + glob.glob(EXAMPLES + "/reluize/*/*.[ch]"))]
    key = digest([PROLOGUE, CHOOSER, *mutate.COMPILER, *FLAGS, read("../lgelu.h"), *sources.values(), *others])
    if not os.path.exists(FOLDER + "/key") or read(FOLDER + "/key") != key:
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.makedirs(FOLDER)
        mutate.write(FOLDER + "/key", key)


def measure(schemas):
    """The processor seconds of each test with unchanged copies of all functions, by its name, and which lines it reaches."""
    known = json.loads(read(MEASURED)) if os.path.exists(MEASURED) else {}
    spent, coverage, copied = {}, Coverage(), digest(m.key for schema in schemas.values() for m in schema.mutants)
    for test in [test for path in schemas for test in tests_of(name_of(path))]:
        if test.name in spent:
            continue
        row = known.get(test.name)
        if not row or row["digest"] != test.digest() or not (row["lines"] or are_chosen()):
            coverage.lines[test.name] = {}
            if not are_chosen():
                coverage.add(test)
            row = known[test.name] = {"digest": test.digest(), "copied": None, "lines": coverage.lines[test.name]}
        if row["copied"] != copied:
            why, seconds = run_test(test, 300, 0)
            if why:
                sys.exit(print("FAIL mutate: %s fails with unchanged copies of functions: %s" % (test.name, why)))
            row.update(copied=copied, seconds=seconds)
            mutate.write(MEASURED, json.dumps(known))
            print("# %-60s %5.2f s" % (test.name, seconds), flush=True)
        spent[test.name], coverage.lines[test.name] = row["seconds"], row["lines"]
    return spent, coverage


def line_of(source, mutant):
    return source.count("\n", 0, mutant.start) + 1


def main():
    number, seed = int(os.environ.get("N") or 300), os.environ.get("SEED") or "1"
    only, seconds = os.environ.get("ONLY", "").split(), float(os.environ.get("SECONDS") or "inf")
    sources = {path: read(path) for path in sorted(glob.glob(PASSES + "/*.c")) if all_tests_of(name_of(path))}
    chosen, rows, began = draw(sources, number, seed, only), reasons(), time.time()
    if os.environ.get("LIST"):
        for path, m in chosen:
            print("%s:%d: %s" % (name_of(path), line_of(sources[path], m), m.key))
        return 0
    results, passed = {}, set()
    if os.environ.get("CONTINUE") and os.path.exists(LOG):
        for line in read(LOG).splitlines():
            result, name, key, why = line.split("\t")
            results[name, key] = (result, why)
    keep_if_same(sources)
    log = open(LOG, "a" if results else "w", encoding="utf-8")
    again = os.environ.get("AGAIN")

    def is_open(path, m):
        old = results.get((name_of(path), m.key))
        return not old or old[0] == "open" or (old[0] == "survived" and again and not reason_of(name_of(path), m.key, rows))
    queue = [(path, m) for path, m in chosen if is_open(path, m)]
    parts_in(PARTS)
    parts_in(SANITIZED)
    os.makedirs(CASES, exist_ok=True)
    schemas = {}
    for path in sources:
        of = [m for p, m in chosen if p == path]
        if of:
            schemas[path] = PassSchema(path, sources[path], of)
    print("# %4.0f s: %d mutants of %d files compiled" % (time.time() - began, len(chosen), len(schemas)), flush=True)
    spent, coverage = measure(schemas)
    print("# %4.0f s: %d tests, %.1f s of the processor, are measured" % (time.time() - began, len(spent), sum(spent.values())), flush=True)

    def judge(path, m, opened):
        schema, name = schemas[path], name_of(path)
        if m in schema.refused:
            return "broken", ""
        if reason_of(name, m.key, rows):
            return "listed", reason_of(name, m.key, rows)
        tests = [test for test in tests_of(name) if coverage.reaches(test, path, sources[path], m)]
        tests.sort(key=lambda test: spent[test.name])
        dear = [test for test in tests if spent[test.name] > PATIENCE]
        for test in dear if opened else [test for test in tests if test not in dear]:
            why, _ = run_test(test, 2 * spent[test.name] + 2, schema.number(m), name)
            if why:
                return "caught", "%s: %s" % (test.name, why)
        if dear and not opened:
            return "open", ""
        if not are_chosen() and is_same(path, sources[path], m):
            return "same", ""
        if not tests:
            return "survived", "no test reaches it"
        for test in [test for test in tests if test.path.endswith(".c") and has_sanitizer()]:
            if os.path.islink("%s/%s.o" % (SANITIZED, name)):
                schema.sanitize()
            if (name, test.name) not in passed:
                why, _ = run_test(test, 300, 0, name, SANITIZED, SANITIZE)
                if why:
                    sys.exit(print("FAIL mutate: %s fails with AddressSanitizer and without a mutant: %s" % (test.name, why)))
                passed.add((name, test.name))
            why, _ = run_test(test, 10 * spent[test.name] + 10, schema.number(m), name, SANITIZED, SANITIZE)
            if why:
                return "caught", "%s, AddressSanitizer: %s" % (test.name, why)
        return "survived", ""

    def opened(path, m):
        return results.get((name_of(path), m.key), ("",))[0] == "open"
    queue.sort(key=lambda one: opened(*one))
    for k, (path, m) in enumerate(queue):
        if time.time() - began > seconds:
            break
        used = seconds_of_children()
        result, why = judge(path, m, opened(path, m))
        if result == "open":
            queue.append((path, m))
        results[name_of(path), m.key] = result, why
        log.write("\t".join((result, name_of(path), m.key, why.replace("\t", " "))) + "\n")
        log.flush()
        print("%4d of %d, %5.1f s: %-8s %s:%d: %s%s" % (k + 1, len(queue), seconds_of_children() - used, result, name_of(path),
              line_of(sources[path], m), m.key, "  <- " + why[:100] if why else ""), flush=True)
    log.close()

    print("%-22s %8s %8s %8s %8s" % ("file", "caught", "listed", "survived", "open"))
    last = {key: "listed" if result == "survived" and reason_of(*key, rows) else result for key, (result, _) in results.items()}
    for name in sorted({name for name, _ in last}) + ["all"]:
        of = [result for (n, _), result in last.items() if name in (n, "all")]
        print("%-22s %8d %8d %8d %8d" % (name, *(of.count(word) for word in ("caught", "listed", "survived", "open"))))
    caught, survived = (list(last.values()).count(word) for word in ("caught", "survived"))
    for (name, key), result in sorted(last.items()):
        if result == "survived":
            print("survived %s: %s" % (name, key))
    if not caught + survived:
        print("FAIL mutate: no mutant ran")
        return 1
    share = 100 * caught / (caught + survived)
    done = sum((name_of(path), m.key) in last for path, m in chosen) - list(last.values()).count("open")
    good = share >= TARGET and done == len(chosen)
    print("%s mutate: %.1f %% caught, %d of %d mutants decided" % ("ok" if good else "FAIL", share, done, len(chosen)))
    return not good


if __name__ == "__main__":
    sys.exit(main())
