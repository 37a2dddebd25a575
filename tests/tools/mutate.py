#!/usr/bin/env python3
"""mutate.py: changes one token of lgelu.h at a time and asks which test program sees it.

    make -C tests mutate                     200 random mutants, seed 1
    make -C tests mutate N=500 SEED=7        more of them, and others
    make -C tests mutate ONLY='8e K'         of rooms that begin so, or of functions of these names
    make -C tests mutate CONTINUE=1          leaves out what build/mutate.log has a result for
    make -C tests mutate CONTINUE=1 TESTS=test_cnn      the same, and runs this program on what has survived
    make -C tests mutate SECONDS=600         begins no mutant after ten minutes
    make -C tests mutate JOBS=2              two mutants at a time
    make -C tests mutate ALL=1               runs every program on every mutant, not only up to the first that sees it
    make -C tests mutate LIST=1              lists the mutants and runs nothing

A mutant is another operator, the other of + and -, a lost sign or negation, 1 for 0 or 0 for 1, a comparison that takes or leaves
its edge, a statement left out, another word of the kernels' vocabulary, or two arguments exchanged. Only function bodies that
this machine compiles are changed. A mutant that does not compile is not counted; neither is one with the same object code.

Only the half of the header that a mutant is in is compiled again (the kernels, or the rest) and linked to test programs that
have been compiled once, without OpenMP. They run in the order of what they have seen of this room per second, until one reports
a failure, ends badly or takes three times its processor time.

tools/mutants.txt lists what changes nothing that can be seen: part of a mutant's description, a tab, the reason. `...` stands for
any text. Descriptions are tokens, not lines, so they survive a new layout. The status is 1 if fewer than 98 % of the others
are caught. Python 3 alone, a POSIX system.
SPDX-License-Identifier: MIT-0"""
import concurrent.futures, os, random, re, resource, shutil, signal, subprocess, sys, threading, time

HEADER, FOLDER, LOG, KNOWN = "../lgelu.h", "build/mutate", "build/mutate.log", "tools/mutants.txt"
COMPILER = os.environ.get("CC", "cc").split()
FLAGS = ["-std=c99", "-O1", "-w", "-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types"]
# Without -O2 gcc unrolls no loop over registers, and the kernels take ten times as long; these passes take time and win little.
KERNELS = ["-O2"] + ["-fno-" + name for name in "schedule-insns2 tree-vrp gcse tree-pre ipa-cp ipa-icf tree-vectorize "
           "tree-slp-vectorize rerun-cse-after-loop code-hoisting tree-tail-merge peephole2 reorder-blocks".split()]
# The programs, whose references are slow without an instruction for fma; the half that is not changed.
QUICK = ["-std=c99", "-O2", "-w", "-Werror=implicit-function-declaration", "-ffp-contract=off", "-march=native"]
TARGET = 98                                  # per cent
ROUNDS = {"fuzz_network": "300", "fuzz_exchange": "1000"}
# Programs that compute with kernels of other files, or take long and see nothing that the others do not see.
LEFT_OUT = re.compile(r"test_(data|text|control|deploy_|onnx_|gates_other)")

TOKEN = re.compile(r"""
    (?P<space>\s+|\\\n)
  | (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<number>\.?\d(?:[eEpP][-+]|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<op><<=|>>=|\.\.\.|\+\+|--|->|&&|\|\||[-+*/%&|^=!<>]=|<<|>>|.)""", re.X | re.S)
DIRECTIVE = re.compile(r"[ \t]*#(?:/\*.*?\*/|\\\n|[^\n])*", re.S)
CONDITIONAL = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|else|elif|endif)\b")
BANNER = re.compile(r"/\* (?:====|----) \[(\w+)\]")
KEYWORDS = set("return if else for while do switch case default break continue goto sizeof static const struct enum".split())
TYPES = set("void char short int long unsigned signed float double size_t ptrdiff_t const static struct enum volatile".split())
OTHER = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
         "&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "*=": "+=", "/=": "*=", "|=": "&=", "&=": "|=", "<<": ">>", ">>": "<<",
         "&": "|", "|": "&", "^": "|", "!": "", "++": "--", "--": "++"}
WORDS = {"v_add": "v_sub", "v_sub": "v_add", "v_mul": "v_add", "v_div": "v_mul", "v_fma": "v_fms", "v_fms": "v_fma",
         "v_fnma": "v_fma", "v_least": "v_most", "v_most": "v_least", "v_lt": "v_nge", "v_nge": "v_lt", "m_and": "m_or",
         "m_or": "m_and", "m_less": "m_and", "m_any": "m_all", "m_all": "m_any", "n_add": "n_sub", "n_sub": "n_add",
         "n_and": "n_or", "n_or": "n_and", "n_xor": "n_or", "n_max": "n_min", "n_min": "n_max", "n_up": "n_down",
         "n_down": "n_up", "fmin": "fmax", "fmax": "fmin"}
SWAPPED = {"v_max", "v_sub", "v_div", "v_lt", "v_nge", "n_gt", "m_less", "n_sub"}


class Token:
    def __init__(self, kind, text, start, room):
        self.kind, self.text, self.start, self.room = kind, text, start, room
        self.end = start + len(text)


def segments(source):
    """The text between conditional directives: where each begins, and which of them this machine compiles."""
    begins, pieces, last = [0], [], 0
    for line in re.finditer(r"^.*$", source, re.M):
        if line.start() < last or not CONDITIONAL.match(line.group()):
            continue
        end = DIRECTIVE.match(source, line.start()).end()
        pieces.append(source[last:end] + "\nlgelu_segment_%d\n" % len(begins))
        begins.append(end)
        last = end
    folder = FOLDER + "/segments"
    os.makedirs(folder, exist_ok=True)
    write(folder + "/lgelu.h", "".join(pieces) + source[last:])
    write(folder + "/lgelu.c", "#define LGELU_TRAINER\n#define LGELU_IMPLEMENTATION\n#include \"lgelu.h\"\n")
    out = subprocess.run([*COMPILER, "-std=c99", "-O1", "-E", "-P", folder + "/lgelu.c"], capture_output=True, text=True).stdout
    live = {int(n) for n in re.findall(r"lgelu_segment_(\d+)", out)}
    return begins, live


def tokens(source):
    """What is compiled of the header, without comments and directives."""
    begins, live = segments(source)
    at, segment, room, found = 0, 0, "1", []
    while at < len(source):
        while segment + 1 < len(begins) and begins[segment + 1] <= at:
            segment += 1
        new_line = at == 0 or source[at - 1] == "\n"
        directive = DIRECTIVE.match(source, at) if new_line else None
        if directive:
            at = directive.end()
            continue
        match = TOKEN.match(source, at)
        kind, text = match.lastgroup, match.group()
        if kind == "space" and "\n" in text:
            text = text[:text.index("\n") + 1]               # a line begins behind it, perhaps with a directive
        if kind == "comment":
            banner = BANNER.match(text)
            room = banner.group(1) if banner else room
        elif kind != "space" and segment in live:
            found.append(Token(kind, text, at, room))
        at += len(text)
    return found


def opposite(code, i):
    """The place of the parenthesis that opens what code[i] closes."""
    depth = 0
    while i >= 0:
        depth += (code[i].text in ")]") - (code[i].text in "([")
        if not depth:
            return i
        i -= 1
    return 0


def functions(source, code):
    """(name, first token of the body, last) of each."""
    i, found = 0, []
    while i < len(code):
        if code[i].text != "{":
            i += 1
            continue
        first, depth = i, 0
        while i < len(code):
            depth += (code[i].text == "{") - (code[i].text == "}")
            column_0 = code[i].text == "}" and source[code[i].start - 1] == "\n"
            i += 1
            if not depth or column_0:
                break
        if code[first - 1].text == ")":
            name = opposite(code, first - 1) - 1
            if code[name].text == ")":                       # LGELU__FN(name)
                name -= 1
            found.append((code[name].text, first, i - 1))
    return found


def is_type(text):
    return text in TYPES or text.endswith("_t") or text in is_type.more


def is_binary(code, i):
    before = code[i - 1]
    if before.kind == "number" or before.text == "]":
        return True
    if before.kind == "name":
        return before.text not in KEYWORDS and not is_type(before.text)
    if before.text != ")":
        return False
    first = opposite(code, i - 1)
    inside = [t.text for t in code[first + 1:i - 1]]
    cast = inside and all(is_type(t) or t == "*" for t in inside)
    head = code[first - 1].text in ("if", "for", "while", "switch", "sizeof")
    return not cast and not head


def statements(code, first, last):
    """(first token, its semicolon, is it a declaration) of each simple statement of a body."""
    start, depth, i = first + 1, 0, first + 1
    heads = []
    while i < last:
        text = code[i].text
        if text == "(":
            if not depth and i and code[i - 1].text in ("if", "for", "while", "switch"):
                heads.append(True)
            elif not depth:
                heads.append(False)
            depth += 1
        elif text == ")":
            depth -= 1
            if not depth and heads.pop():
                start = i + 1
        elif not depth and (text in "{}:" or text in ("else", "do")) and not (text == ":" and "?" in
                                                                        [t.text for t in code[start:i]]):
            start = i + 1
        elif not depth and text == ";":
            if start < i:
                words = [t.text for t in code[start:i]]
                declares = is_type(words[0]) or (len(words) > 1 and code[start].kind == "name" == code[start + 1].kind)
                declares |= len(words) > 2 and code[start].kind == "name" and words[1] == "*" and words[0] not in KEYWORDS
                yield start, i, declares
            start = i + 1
        i += 1


class Mutant:
    """source[start:end] becomes new; name is the function, text what is printed and looked for in tools/mutants.txt."""
    def __init__(self, code, i, end, new, name):
        before = " ".join(t.text for t in code[max(0, i - 8):i])
        after = " ".join(t.text for t in code[end + 1:end + 9])
        old = " ".join(t.text for t in code[i:end + 1])
        self.start, self.end, self.new, self.room, self.name = code[i].start, code[end].end, new, code[i].room, name
        self.text = "%s: %s [%s -> %s] %s" % (name, before, old, new, after)
        self.times = 1

    def of(self, source):
        old = source[self.start:self.end]
        return source[:self.start] + self.new + "\n" * (old.count("\n") - self.new.count("\n")) + source[self.end:]


def mutants(source):
    code = tokens(source)
    is_type.more = set(re.findall(r"\}\s*(\w+)\s*;", source)) | set(re.findall(r"typedef[^;{}]*?(\w+)\s*;", source))
    is_type.more |= set(re.findall(r"typedef struct (\w+)", source))
    found = []
    for name, first, last in functions(source, code):
        no, in_for = set(), set()
        for start, end, declares in statements(code, first, last):
            if declares:                                     # skip the declarator before an initialiser
                depth = initialised = 0
                for i in range(start, end):
                    text = code[i].text
                    depth += (text in "([{") - (text in ")]}")
                    initialised = text == "=" or (initialised and (text != "," or depth))
                    if not initialised:
                        no.add(i)
            elif code[start].text not in ("return", "goto", "case", "while"):
                found.append(Mutant(code, start, end, ";", name))
        depth = 0
        for i in range(first, last):
            depth += (code[i].text == "(") - (code[i].text == ")") if depth else (code[i].text == "for")
            if depth:
                in_for.add(i)
        for i in range(first + 1, last):
            text, kind = code[i].text, code[i].kind
            if i in no:
                continue
            if kind == "op" and text in OTHER:
                if text in ("++", "--"):
                    if i not in in_for:
                        found.append(Mutant(code, i, i, OTHER[text], name))
                elif text == "!" or text not in "+-*&" or is_binary(code, i):
                    found.append(Mutant(code, i, i, OTHER[text], name))
                elif text == "-":
                    found.append(Mutant(code, i, i, "", name))
            elif kind == "number" and re.fullmatch(r"[01](\.0?f?|[uUlL]*)", text):
                found.append(Mutant(code, i, i, ("1" if text[0] == "0" else "0") + text[1:], name))
            elif kind == "name" and text in WORDS:
                found.append(Mutant(code, i, i, WORDS[text], name))
            if kind == "name" and text in SWAPPED and code[i + 1].text == "(":
                comma = i + 2
                while code[comma].kind in ("name", "number") or code[comma].text in ("[", "]", "+", "->", "."):
                    comma += 1
                end = comma + 1
                while code[end].kind in ("name", "number") or code[end].text in ("[", "]", "+", "->", "."):
                    end += 1
                if code[comma].text == "," and code[end].text == ")":
                    swapped = source[code[comma + 1].start:code[end - 1].end] + ", " + source[code[i + 2].start:code[comma - 1].end]
                    found.append(Mutant(code, i + 2, end - 1, swapped, name))
    seen = {}
    for mutant in found:                                     # the same text twice in a function
        seen[mutant.text] = seen.get(mutant.text, 0) + 1
        mutant.times = seen[mutant.text]
        mutant.key = mutant.text + (" #%d" % mutant.times if mutant.times > 1 else "")
    return found


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def compiled(arguments, flags=FLAGS):
    return not subprocess.run([*COMPILER, *flags, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


class Halves:
    """The header's two halves: kernels whose tables other files can reach, and the rest, which finds only those tables' names."""
    SELF, TABLE = re.compile(r'(#define \w+ )"lgelu\.h"'), re.compile(r"static\s+(const\s+(\w+)\s+\w+\(\w+\)\s*=\s*\{)")
    SOURCE = "#define LGELU_TRAINER\n#define LGELU_IMPLEMENTATION\n#include \"lgelu.h\"\n"

    def __init__(self, source):
        self.stub, self.split = None, len(self.SELF.findall(source)) == 1 and len(self.TABLE.findall(source)) == 1
        self.base = {}
        if self.split and self.compile(source, "kernels", FOLDER + "/original"):
            names = subprocess.run(["nm", "-g", FOLDER + "/original/kernels.o"], capture_output=True, text=True).stdout
            names = re.findall(r" [DRS] _?(\w+)", names)
            self.stub = "#ifndef STUB\n#define STUB\nextern const %s %s;\n#endif\n" % (self.TABLE.search(source).group(2),
                                                                                       ", ".join(names))
        self.split = bool(self.stub) and self.compile(source, "rest", FOLDER + "/original")
        if not self.split:
            print("# the header is compiled as a whole: its halves do not come apart")
            if not self.compile(source, "whole", FOLDER + "/original"):
                sys.exit(print("FAIL mutate: lgelu.h does not compile"))
        for half in self.all():
            self.base[half] = open(FOLDER + "/original/" + half + ".o", "rb").read()

    def all(self):
        return ("kernels", "rest") if self.split else ("whole",)

    def of(self, room):
        if not self.split:
            return ("whole",)
        return ("kernels",) if room[0] == "K" else ("rest", "kernels") if room[0] in "1234" else ("rest",)

    def compile(self, source, half, folder, more=()):
        flags = list(more)
        if half == "whole":
            flags += KERNELS
        if half == "kernels":
            source = self.TABLE.sub(r"\1", source)
            flags += KERNELS + ["-DLGELU_DEF=static __attribute__((unused))"]
        elif half == "rest":
            source = self.SELF.sub(r'\1"stub.h"', source)
            write("%s/%s/stub.h" % (folder, half), self.stub)
        write("%s/%s/lgelu.h" % (folder, half), source)
        write("%s/%s/lgelu.c" % (folder, half), self.SOURCE)
        # in that folder, so that no name in the object depends on it
        return not subprocess.run([*COMPILER, *FLAGS, *flags, "-I.", "-c", "lgelu.c", "-o", "../%s.o" % half],
                                  cwd="%s/%s" % (folder, half), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


class Test:
    def __init__(self, name):
        self.name, self.arguments, self.seconds, self.own = name, [ROUNDS[name]] if name in ROUNDS else [], 0, False
        self.object, self.caught, self.tried = "%s/tests/%s.o" % (FOLDER, name), {}, {}
        self.lock = threading.Lock()

    def prepare(self):
        """Compiled once; without the implementation, where the program does not look inside."""
        text = source_of(self.name)
        stripped = text.replace("#define LGELU_IMPLEMENTATION\n", "#include <math.h>\n")
        write("%s/tests/%s.c" % (FOLDER, self.name), stripped)
        command = [*COMPILER, *QUICK, "-DLINKED", "-I.", "-I..", "-c", "%s/tests/%s.c" % (FOLDER, self.name),
                   "-o", self.object]
        run = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
        if run.returncode:                                   # perhaps a constant of the implementation is all that it needs
            for name in set(re.findall("'(\\w+)' undeclared", run.stderr)):
                value = re.search(name + r" = ([\w <>+*-]+)", original)
                command += ["-D%s=(%s)" % (name, value.group(1))] if value else []
            run = subprocess.run(command, capture_output=True)
        self.own = run.returncode or not self.link(FOLDER + "/original", (), FOLDER + "/original")
        status, seconds = self.run(FOLDER + "/original", 1000)
        self.seconds = seconds
        return not status

    def link(self, folder, changed, others):
        objects = ["%s/%s.o" % (folder if half in changed else others, half) for half in halves.all()]
        return compiled([self.object, *objects, "-o", "%s/%s" % (folder, self.name), "-lm", "-pthread"])

    def compile_own(self, folder, source):
        write(folder + "/own/lgelu.h", source)
        level = "-O1" if "LGELU_TRAINER" not in source_of(self.name) else "-O0"        # the trainer takes long to compile
        return compiled([level, "-I" + folder + "/own", "-I.", "-I..", self.name + ".c", "-o", "%s/%s" % (folder, self.name), "-lm",
                         "-pthread"])

    def run(self, folder, limit):
        """(why it failed or None, processor seconds)"""
        if self.own and not self.compile_own(folder, sources[folder]):
            return "does not compile", 0
        program = "%s/%s" % (folder, self.name)

        def limits():
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 1))
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        child = subprocess.Popen([program, *self.arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=limits,
                                 env=dict(os.environ, LGELU_DATA=""))
        clock = threading.Timer(20 * limit + 60, lambda: end(child))
        clock.start()
        why = None
        for line in child.stdout:
            if line.startswith(b"FAIL"):
                why = line.decode(errors="replace").strip()
                end(child)
                break
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        clock.cancel()
        child.stdout.close()
        os.remove(program)
        seconds = usage.ru_utime + usage.ru_stime
        if why is None and status:
            why = "takes too long" if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) \
                else "ended by signal %d" % os.WTERMSIG(status) if os.WIFSIGNALED(status) else "status %d" % os.WEXITSTATUS(status)
        return why, seconds

    def worth(self, room):
        """Mutants of a room that it will see in a second, by what is known; half a mutant of each room it is taken to have seen."""
        all_caught, all_tried = sum(self.caught.values()), sum(self.tried.values())
        share = (all_caught + 0.5) / (all_tried + 1)
        chance = (self.caught.get(room, 0) + 2 * share) / (self.tried.get(room, 0) + 2)
        return chance / (self.seconds + 0.1 + (6 if self.own else 0))

    def note(self, room, saw):
        with self.lock:
            self.tried[room] = self.tried.get(room, 0) + 1
            self.caught[room] = self.caught.get(room, 0) + bool(saw)


def source_of(name):
    with open(name + ".c", encoding="utf-8") as f:
        return f.read()


def end(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def judge(mutant, everything):
    """(result, the programs that see it, what the first of them printed): same, broken, caught or survived."""
    folder = "%s/%d" % (FOLDER, threading.get_ident())
    os.makedirs(folder, exist_ok=True)
    source = sources[folder] = mutant.of(original)
    changed = []
    for half in halves.of(mutant.room):
        if not halves.compile(source, half, folder):
            return "broken", "", ""
        if open("%s/%s.o" % (folder, half), "rb").read() != halves.base[half]:
            changed.append(half)
    if not changed:
        return "same", "", ""
    seen, first = [], ""
    for test in sorted(tests, key=lambda t: -t.worth(mutant.room)):
        if not test.own and not test.link(folder, changed, FOLDER + "/original"):
            return "broken", "", ""
        why, _ = test.run(folder, 3 * test.seconds + 2)
        test.note(mutant.room, why)
        if why:
            seen.append(test.name)
            first = first or why
            if not everything:
                break
    return ("caught", " ".join(seen), first) if seen else ("survived", "", "")


def known_reasons():
    rows = []
    if os.path.exists(KNOWN):
        for line in open(KNOWN, encoding="utf-8"):
            if line.strip() and not line.startswith("#"):
                text, reason = line.rstrip("\n").split("\t")
                pattern = r".*?".join(re.escape(re.sub(r"\s+", "", part)) for part in text.split("..."))
                rows.append((re.compile(pattern), reason))
    return rows


def table(results):
    rooms = sorted({room for room, _ in results}, key=lambda r: (r[0] == "K", r))
    print("%-6s %8s %8s %8s %8s %8s" % ("room", "mutants", "caught", "listed", "survived", "caught"))
    for room in rooms + ["all"]:
        of = [result for r, result in results if room in (r, "all") and result in ("caught", "listed", "survived")]
        caught, listed, survived = (of.count(word) for word in ("caught", "listed", "survived"))
        others = caught + survived
        print("%-6s %8d %8d %8d %8d %8s" % (room, len(of), caught, listed, survived,
                                            "%.1f %%" % (100 * caught / others) if others else ""))
    return 100 * caught / others if others else 100


def main():
    global original, halves, tests, sources
    number, seed = int(os.environ.get("N") or 200), os.environ.get("SEED") or "1"
    only, jobs = os.environ.get("ONLY", "").split(), int(os.environ.get("JOBS") or 1)
    seconds = float(os.environ.get("SECONDS") or "inf")
    everything, go_on = os.environ.get("ALL"), os.environ.get("CONTINUE")
    os.makedirs(FOLDER, exist_ok=True)
    os.environ["OMP_NUM_THREADS"] = "1"
    original = open(HEADER, encoding="utf-8").read()
    all_mutants = mutants(original)
    chosen = [m for m in all_mutants if not only or any(m.room.startswith(o.strip("[]")) or m.name == o for o in only)]
    print("# %d mutants in all, %d to choose from" % (len(all_mutants), len(chosen)), flush=True)
    random.Random(seed).shuffle(chosen)
    reasons = known_reasons()

    def reason_of(text):
        packed = re.sub(r"\s+", "", text)
        return next((reason for pattern, reason in reasons if pattern.search(packed)), None)
    if os.environ.get("LIST"):
        for mutant in chosen[:number]:
            print("[%s] %s" % (mutant.room, mutant.key))
        return 0
    done, old = {}, []
    if go_on and os.path.exists(LOG):
        for line in open(LOG, encoding="utf-8"):
            parts = line.rstrip("\n").split("\t")
            if len(parts) == 5:
                done[parts[1] + "\t" + parts[2]] = parts
                old.append(parts)
    elif os.path.exists(LOG):
        os.remove(LOG)

    sources = {FOLDER + "/original": original}
    halves = Halves(original)
    names = [name[:-2] for name in sorted(os.listdir(".")) if re.fullmatch(r"test_\w+\.c", name) or name[:-2] in ROUNDS]
    wanted = os.environ.get("TESTS", "").split()
    names = [n for n in names if (n in wanted if wanted else not LEFT_OUT.match(n))
             and "lgelu.h" in source_of(n)]
    tests = []
    for name in names:
        test = Test(name)
        if test.prepare():
            tests.append(test)
            print("# %-20s %6.1f s%s" % (name, test.seconds, ", compiles the header itself" if test.own else ""), flush=True)
        else:
            print("# %s is left out: it fails without a mutant, or does not compile" % name, flush=True)
    for result, room, text, saw, first in old:
        for test in tests:
            if result == "caught" and test.name in saw.split():
                test.note(room, True)
            elif result == "survived":
                test.note(room, False)

    lock, began, counted = threading.Lock(), time.time(), [0]
    log = open(LOG, "a", encoding="utf-8")

    def take(mutant):
        if counted[0] >= number or time.time() - began > seconds:
            return
        reason, key = reason_of(mutant.text), mutant.room + "\t" + mutant.key
        if reason:
            result, saw, first = "listed", "", reason
        elif key in done and done[key][0] != "listed" and not (done[key][0] == "survived" and wanted):
            result, saw, first = done[key][0], done[key][3], done[key][4]
        else:
            result, saw, first = judge(mutant, everything)
        with lock:
            if counted[0] >= number:
                return
            counted[0] += result in ("caught", "survived", "listed")
            # what a few named programs do not see, others may: no result
            if not (wanted and result == "survived") and (key not in done or done[key][0] != result != "listed"):
                log.write("\t".join((result, mutant.room, mutant.key, saw, first.replace("\t", " "))) + "\n")
                log.flush()
                print("%4d of %d, %5.0f s: %-8s [%s] %s%s" % (counted[0], number, time.time() - began, result, mutant.room,
                      mutant.key, "  <- " + saw if saw else ""), flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for future in [pool.submit(take, mutant) for mutant in chosen]:
            future.result()
    log.close()
    for word in sorted(os.listdir(FOLDER)):
        if word.isdigit():
            shutil.rmtree(FOLDER + "/" + word)
    last = {}                                                # the log's last word on each mutant, and what is known by now
    for line in open(LOG, encoding="utf-8"):
        result, room, text, saw, _ = line.rstrip("\n").split("\t")
        last[room, text] = "listed" if result == "survived" and reason_of(text) else result, saw
    results = [(room, result) for (room, _), (result, _) in last.items()]
    words = [result for _, result in results]
    print("\n# %d more gave the same object code, %d did not compile" % (words.count("same"), words.count("broken")))
    for (room, text), (result, _) in last.items():
        if result == "survived":
            print("survived [%s] %s" % (room, text))
    rate = table(results)
    seen = {}
    for _, saw in last.values():
        for name in saw.split():
            seen[name] = seen.get(name, 0) + 1
    print("seen first by: " + ", ".join("%s %d" % pair for pair in sorted(seen.items(), key=lambda p: -p[1])))
    good = rate >= TARGET
    print("%s mutants: %.1f %% of those that can be seen are caught%s" % ("ok" if good else "FAIL", rate,
                                                                      "" if good else ", at least %d %% must be" % TARGET))
    return not good


if __name__ == "__main__":
    sys.exit(main())
