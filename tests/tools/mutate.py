#!/usr/bin/env python3
"""mutate.py: changes one token of lgelu.h at a time and asks which test program sees it.

    make -C tests mutate                     200 random mutants, seed 1
    make -C tests mutate N=500 SEED=7        more of them, and others
    make -C tests mutate ONLY='8e K'         of rooms that begin so, or of functions of these names
    make -C tests mutate CONTINUE=1          leaves out what build/mutate.log has a result for
    make -C tests mutate CONTINUE=1 TESTS=test_cnn      the same, and runs this program on what has survived
    make -C tests mutate CONTINUE=1 AGAIN=1  the same with every program, after a change of the tests
    make -C tests mutate SECONDS=600         begins no mutant after ten minutes
    make -C tests mutate JOBS=2              two mutants at a time
    make -C tests mutate ALL=1               runs every program on every mutant, not only up to the first that sees it
    make -C tests mutate LIST=1              lists the mutants and runs nothing
    make -C tests mutate FROM=passes         mutants of reluize's passes: see tools/mutate_passes.py
    make -C tests mutate DRAW=functions      one mutant of each function before a second of any; DRAW=pairs, DRAW=tokens: see below

A mutant is another operator, the other of + and -, a lost sign or negation, 1 for 0 or 0 for 1, a comparison that takes or leaves
its edge, a statement left out, another word of the kernels' vocabulary, or two arguments exchanged. Only function bodies that
this machine compiles are changed. A mutant that does not compile is not counted; neither is one with the same object code.

A draw by tokens alone is in proportion to code: it misses short functions, and errors that two functions make together, which a
round trip does not see. So every third mutant is drawn by tokens (DRAW=tokens: each), every third one is of a function that had none
yet, and every third one is a pair: the same change at the same tokens in two functions whose names are the two sides of PAIRS (a
forward and its backward, a save and its load).

Many mutants are compiled into one header (see Schema): each is a copy of the function that it is in, and the environment's MUTANT=17
chooses one of them at run time. So everything is compiled and linked once for up to 250 mutants, for all instruction sets, without
OpenMP, and a mutant costs only the programs that run until one of them sees it. Programs that never call the function are left out;
the others run in the order of what they have seen of this room per second, until one reports a failure, ends badly or takes three
times as long as with unchanged copies of all functions, which are slower, since they are not inlined. That run comes first; it
also shows that the copies themselves change nothing, and which functions a program calls. Survivors are compiled alone, to find those with the same object code.

tools/mutants.txt lists what changes nothing that can be seen: part of a mutant's description, a tab, the reason. `...` stands for
any text. Descriptions are tokens, not lines, so they survive a new layout. The status is 1 if fewer than 98 % of the others
are caught. Python 3 alone, a POSIX system.
SPDX-License-Identifier: MIT-0"""
import concurrent.futures, glob, hashlib, itertools, json, os, random, re, resource, shutil, signal, subprocess, sys, threading, time

HEADER, FOLDER, LOG, KNOWN = "../lgelu.h", "build/mutate", "build/mutate.log", "tools/mutants.txt"
SCHEMA, TOO_LONG = FOLDER + "/schema", "takes too long"
# Programs include helpers of the tests, and parts of the examples.
INCLUDE = ["-I.", "-I.."] + ["-I../examples/" + f for f in ("common", "study", "int8", "reluize/onnx", "reluize/ops")]
STAMP = SCHEMA + "/stamp.json"
COMPILER = os.environ.get("CC", "cc").split()
FLAGS = ["-std=c99", "-O1", "-w", "-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types"]
# Without -O2 gcc unrolls no loop over registers, and the kernels take ten times as long; these passes take time and win little.
KERNELS = ["-O2"] + ["-fno-" + name for name in "schedule-insns2 tree-vrp gcse tree-pre ipa-cp ipa-icf tree-vectorize "
           "tree-slp-vectorize rerun-cse-after-loop code-hoisting tree-tail-merge peephole2 reorder-blocks".split()]
# Programs that look inside are compiled with the header and with these flags.
OWN = {"test_yardstick": ["-DLGELU_NO_SIMD"]}
# The programs, whose references are slow without an instruction for fma; the half that is not changed.
QUICK = ["-std=c99", "-O2", "-w", "-Werror=implicit-function-declaration", "-ffp-contract=off", "-march=native"]
TARGET = 98                                  # per cent
BATCH = 600                                  # mutants in one header
PATIENCE = 5                                 # processor seconds for each mutant before the others have had theirs
SOURCE = "#define LGELU_TRAINER\n#define LGELU_IMPLEMENTATION\n#include \"lgelu.h\"\n"
# What begins a function in the header, and what begins its copies.
LINKAGE = {"static": "MUTATE_APART", "LGELU_DEF": "MUTATE_APART", "LGELU__APART": "MUTATE_APART", "LGELU__INLINE": "MUTATE_APART",
           "LGELU__MAYBE_INLINE": "MUTATE_APART", "LGELU__WORD": "MUTATE_APART LGELU__TARGET",
           "LGELU__FMA_LINKAGE": "MUTATE_APART LGELU__TARGET", "inline": ""}
# The copies' names contain the instruction set; where there is none, the name of the macro.
PROLOGUE = """#ifndef MUTATE_APART
#define MUTATE_APART static __attribute__((noinline, unused))
#define MUTATE_PASTE_(a, b, c) a##_##b##_##c
#define MUTATE_PASTE(a, b, c) MUTATE_PASTE_(a, b, c)
#define MUTATE_NAME(name) MUTATE_PASTE(mutate, name, LGELU__PASS)
extern int mutate_chosen, mutate_on[], *mutate_reached;
#endif
"""
# MUTANT=17 chooses a mutant, MUTANT=0 an unchanged copy of every function, and nothing nothing.
CHOOSER = """#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int mutate_chosen, mutate_on[%(functions)d], nowhere[%(functions)d], *mutate_reached = nowhere;
static const int owner[][2] = { %(owners)s };
static __attribute__((constructor)) void choose(void)
{
    const char *mutant = getenv("MUTANT"), *path = getenv("MUTATE_REACHED");
    int i, file = path ? open(path, O_RDWR | O_CREAT, 0666) : -1;
    if (file >= 0 && !ftruncate(file, sizeof nowhere))
        mutate_reached = mmap(NULL, sizeof nowhere, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    mutate_chosen = mutant ? atoi(mutant) : 0;
    for (i = 0; i < %(functions)d; i++)
        mutate_on[i] = mutant && (!mutate_chosen || i == owner[mutate_chosen][0] || i == owner[mutate_chosen][1]);
}
"""
ROUNDS = {"fuzz_network": "300", "fuzz_exchange": "1000"}
# Programs that compute with kernels of other files, or take long and see nothing that the others do not see.
LEFT_OUT = re.compile(r"test_(data|text|control|deploy_|onnx_|gates_other|study_)")

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
# The words in which the names of two functions of a pair differ.
PAIRS = [("forward", "backward"), ("save", "load"), ("write", "read"), ("store", "load"), ("put", "take"), ("pack", "unpack"),
         ("to", "from"), ("set", "look"), ("begin", "end"), ("bytes", "make")]
BOTH = ", and "                              # between the halves of a pair's description
# These ask memory for what comes next, which takes time and changes no value: what is in their arguments is no mutant.
HINTS = {"LGELU__AHEAD", "LGELU__FETCH", "LGELU__NEAR", "prefetch_rows"}
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
        self.change, self.near = (old, new), (code[i - 1].text, code[end + 1].text)
        self.times, self.passed, self.spent, self.decided, self.hint = 1, set(), 0, False, False
        self.parts = [self]

    def of(self, source):
        old = source[self.start:self.end]
        return source[:self.start] + self.new + "\n" * (old.count("\n") - self.new.count("\n")) + source[self.end:]


class Pair:
    """The same change in two functions."""
    def __init__(self, first, second):
        self.parts = sorted((first, second), key=lambda m: m.start)
        self.room, self.name, self.times, self.hint = first.room, first.name, 1, first.hint or second.hint
        self.text = first.key + BOTH + second.key
        self.key = self.text
        self.passed, self.spent, self.decided = set(), 0, False

    def of(self, source):
        for part in reversed(self.parts):
            source = part.of(source)
        return source


def pairs(found):
    """Of each two functions of a pair, every change that both allow between the same tokens, as often as both do."""
    by_function, result = {}, []
    for mutant in found:
        by_function.setdefault(mutant.name, []).append(mutant)
    for name, mine in by_function.items():
        words = name.split("_")
        for one, other in PAIRS:
            if one not in words:
                continue
            partner = "_".join(other if word == one else word for word in words)
            places = {}
            for mutant in by_function.get(partner, []):
                places.setdefault((mutant.change, mutant.near), []).append(mutant)
            for mutant in mine:
                same = places.get((mutant.change, mutant.near))
                if same:
                    result.append(Pair(mutant, same.pop(0)))
    return result


def mutants(source, headers=""):
    """All mutants of a source file; headers: the text of what it includes, which names types."""
    code, types = tokens(source), source + headers
    is_type.more = set(re.findall(r"\}\s*(\w+)\s*;", types)) | set(re.findall(r"typedef[^;{}]*?(\w+)\s*;", types))
    is_type.more |= set(re.findall(r"typedef struct (\w+)", types))
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
    for first in range(len(code)):
        if code[first].text in HINTS and code[first + 1].text in ("(", ")"):
            opens = first + 1 if code[first + 1].text == "(" else first + 2       # LGELU__FN(prefetch_rows)(...)
            last, depth = opens, 1
            while depth:
                last += 1
                depth += (code[last].text == "(") - (code[last].text == ")")
            for mutant in found:
                mutant.hint |= code[first - 2].start <= mutant.start and mutant.end <= code[last + 1].end
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


class Function:
    """A function that mutants are in: its text, its parameters, and its number among them."""
    def __init__(self, source, code, first, last):
        opens = opposite(code, first - 1)
        name = opens - 1
        if code[name].text == ")":                           # LGELU__FN(name)
            name = opposite(code, name) - 1
        begin = name
        while code[begin - 1].kind == "name" or code[begin - 1].text in "*)":
            if code[begin - 1].text == ")":                  # a type, LGELU__FN(name), or the end of what is before the function
                if code[opposite(code, begin - 1) - 1].text != "LGELU__FN":
                    break
                begin = opposite(code, begin - 1)
            begin -= 1
        self.start, self.end = code[begin].start, code[last].end
        self.body = code[first].start
        head = [t.text for t in code[begin:name]]
        self.head = " ".join(LINKAGE.get(word, word) for word in head)
        self.is_void = "*" not in head and "void" in head
        self.parameters = source[code[opens].start:code[first].start]
        self.arguments = self.names(code[opens + 1:first - 1])
        self.mutants = []

    @staticmethod
    def names(code):
        """The parameters' names, or None for a function with a variable number of them."""
        names, depth, pointer = [""], 0, False
        for i, token in enumerate(code):
            depth += (token.text in "([") - (token.text in ")]")
            if token.text == "," and not depth:
                names.append("")
                pointer = False
            elif token.text == "...":
                return None
            elif i > 1 and code[i - 2].text + code[i - 1].text == "(*" and depth == 1:       # (*name)(int), (*name)[8]
                names[-1], pointer = token.text, True
            elif token.kind == "name" and not depth and not pointer:
                names[-1] = token.text                       # the last one is the parameter's
        return [name for name in names if name not in ("", "void")]


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def stored():
    """What an earlier run has written about the mutants that it compiled, or None."""
    return json.load(open(STAMP, encoding="utf-8")) if os.path.exists(STAMP) else None


class Schema:
    """One header with many mutants. Each is a copy of its function, not inlined, that the function calls in its place while
    mutate_on[] of the function is 1; tools see MUTANT=17 in the environment. A copy without a change, the control, serves to
    find what the copying itself changes. Functions with a variable number of arguments, and those that only compile when they
    are inlined, have their mutants inside: one body after the other, each behind a condition."""
    def __init__(self, source, chosen):
        self.source, self.mutants, self.inside, self.refused = source, list(chosen), set(), []
        code = tokens(source)
        spans = [(Function(source, code, first, last)) for _, first, last in functions(source, code)]
        self.functions = []
        self.part = {}
        for mutant in chosen:
            for part in mutant.parts:
                function = next(f for f in spans if f.start <= part.start and part.end <= f.end)
                if function not in self.functions:
                    self.functions.append(function)
                function.mutants.append(mutant)
                self.part[id(mutant), function] = part
        self.functions.sort(key=lambda f: f.start)
        for function in self.functions:
            if function.arguments is None:
                self.inside.add(function)
        self.places = {}
        for k, function in enumerate(self.functions):
            for mutant in function.mutants:
                self.places.setdefault(id(mutant), []).append(k)
        if not self.is_compiled():
            self.compile()
            write(STAMP, json.dumps({"header": digest(source), "batch": [m.key for m in self.mutants],
                                     "refused": [m.key for m in self.refused], "text": digest(self.text()),
                                     "inside": [self.functions.index(f) for f in self.inside]}))

    def is_compiled(self):
        """Whether a run that was stopped has compiled the same mutants; then what it has found is read."""
        stamp = stored()
        if not stamp or stamp["header"] != digest(self.source) or stamp["batch"] != [m.key for m in self.mutants]:
            return False
        self.refused = [m for m in self.mutants if m.key in stamp["refused"]]
        self.inside = {self.functions[k] for k in stamp["inside"]}
        return digest(self.text()) == stamp["text"]

    def number(self, mutant):
        return self.mutants.index(mutant) + 1

    def text(self):
        """The header with all mutants; self.lines receives the lines that belong to each of them."""
        parts, at, line, self.lines = [PROLOGUE], 0, PROLOGUE.count("\n"), []

        def put(text, owner=None):
            nonlocal line
            parts.append(text)
            if owner:
                self.lines.append((line + 1, line + 1 + text.count("\n"), owner))
            line += text.count("\n")

        for k, f in enumerate(self.functions):
            put(self.source[at:f.start])
            at = f.end
            whole = self.source[f.body:f.end]
            bodies = [(self.number(m), self.shifted(m, f), m) for m in f.mutants if m not in self.refused]
            control = len(self.mutants) + 1 + k
            if f in self.inside:
                put(self.source[f.start:f.body] + "{\n")
                for n, body, mutant in bodies:
                    put("if (mutate_on[%d] == 1 && mutate_chosen == %d)\n" % (k, n))
                    put(body + "\n", mutant)
                put("if (mutate_on[%d])\n    mutate_reached[%d] = 1;\n" % (k, k) + whole + "\n}")
                continue
            result = "" if f.is_void else "return "
            call = "(" + ", ".join(f.arguments) + ");"
            put("\n%s MUTATE_NAME(pick_%d)%s;\n" % (f.head, k, f.parameters))
            put(self.source[f.start:f.body] + "{\nif (mutate_on[%d]) {\n    mutate_reached[%d] = 1;\n" % (k, k))
            put("    if (mutate_on[%d] == 1) {\n        %sMUTATE_NAME(pick_%d)%s\n        %s\n    }\n}\n%s\n}\n" % (
                k, result, k, call, "return;" if f.is_void else "", whole))
            for n, body, mutant in bodies + [(control, whole, None)]:
                put("\n%s MUTATE_NAME(mutant_%d_of_%d)%s\n" % (f.head, n, k, f.parameters))
                put(body, mutant)
            put("\n%s MUTATE_NAME(pick_%d)%s\n{\n    switch (mutate_chosen) {\n" % (f.head, k, f.parameters))
            for n, _, mutant in bodies + [(control, None, None)]:
                put("    %s: %sMUTATE_NAME(mutant_%d_of_%d)%s%s\n" % ("case %d" % n if mutant else "default", result, n, k, call,
                                                              " return;" if f.is_void else ""))
            put("    }\n}\n")
        put(self.source[at:])
        return "".join(parts)

    def shifted(self, whole, f):
        mutant = self.part[id(whole), f]
        return self.source[f.body:mutant.start] + mutant.new + self.source[mutant.end:f.end]

    def owner(self, line):
        return next((m for first, last, m in self.lines if first <= line < last), None)

    def errors(self, flags):
        """The mutants that the compiler complains about, after writing the header."""
        write(SCHEMA + "/lgelu.h", self.text())
        write(SCHEMA + "/lgelu.c", SOURCE)
        run = subprocess.run([*COMPILER, *FLAGS, *KERNELS, *flags, "-I" + SCHEMA, SCHEMA + "/lgelu.c"], capture_output=True, text=True,
                             env=dict(os.environ, LC_ALL="C"))
        if not run.returncode:
            return set()
        lines = [int(line) for line in re.findall(r"lgelu\.h:(\d+):\d+: (?:fatal )?error", run.stderr)]
        found = {self.owner(line) for line in lines} - {None}
        if not found:
            sys.exit(print("FAIL mutate: the header with mutants does not compile:\n" + run.stderr[:2000]))
        return found

    def compile(self):
        """Compiles the header with what compiles of the mutants; the others are refused."""
        if os.path.exists(SCHEMA):
            shutil.rmtree(SCHEMA)
        while True:
            found = self.errors(["-fsyntax-only", "-fmax-errors=0"])
            if not found:
                found = self.errors(["-c", "-o", SCHEMA + "/lgelu.o"])
                if not found:
                    break
                again = {f for f in self.functions if found & set(f.mutants)} - self.inside
                if again:                                    # perhaps only because the copy is not inlined
                    self.inside |= again
                    continue
            self.refused += found
        owners = {self.number(m): [self.places[id(m)][0], self.places[id(m)][-1]] for m in self.mutants}
        write(SCHEMA + "/chooser.c", CHOOSER % {"functions": len(self.functions), "owners": ", ".join(
            "{ %d, %d }" % tuple(owners.get(n, (0, 0))) for n in range(len(self.mutants) + 1))})
        if not compiled(["-c", SCHEMA + "/chooser.c", "-o", SCHEMA + "/chooser.o"], ["-O1", "-w"]):
            sys.exit(print("FAIL mutate: the chooser does not compile"))


class Alone:
    """Each mutant compiled by itself: whether it compiles at all, and whether its object code is that of the header."""
    def __init__(self, source):
        self.source, self.base, self.lock = source, {}, threading.Lock()

    def flags(self, room):
        """The other rooms look the same to each instruction set, so that one is enough for them."""
        return KERNELS if room[0] in "234K" else KERNELS + ["-DLGELU_NO_SIMD"]

    def object(self, source, flags):
        # in that folder, so that no name in the object depends on it
        folder = "%s/alone/%d" % (FOLDER, threading.get_ident())
        write(folder + "/lgelu.h", source)
        write(folder + "/lgelu.c", SOURCE)
        command = [*COMPILER, *FLAGS, *flags, "-I.", "-c", "lgelu.c", "-o", "lgelu.o"]
        for step in (["-fsyntax-only"], []):                 # most of what is wrong shows in a second
            if subprocess.run(command + step, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
                return None
        return open(folder + "/lgelu.o", "rb").read()

    def compiles(self, mutant):
        return self.object(mutant.of(self.source), ["-O0"]) is not None

    def same(self, mutant):
        flags = self.flags(mutant.room)
        with self.lock:
            if len(flags) not in self.base:
                self.base[len(flags)] = self.object(self.source, flags)
        return self.object(mutant.of(self.source), flags) == self.base[len(flags)]


class Test:
    def __init__(self, name):
        self.name, self.arguments, self.seconds, self.own = name, [ROUNDS[name]] if name in ROUNDS else [], 0, False
        self.object, self.program = "%s/tests/%s.o" % (FOLDER, name), "%s/%s" % (SCHEMA, name)
        self.caught, self.tried, self.spent, self.reached = {}, {}, {}, []
        self.compiled, self.lock = False, threading.Lock()

    def compile(self):
        """Without the implementation, where the program does not look inside."""
        if self.compiled:
            return
        text = source_of(self.name)
        stripped = text.replace("#define LGELU_IMPLEMENTATION\n", "#include <math.h>\n")
        write("%s/tests/%s.c" % (FOLDER, self.name), stripped)
        command = [*COMPILER, *QUICK, "-DLINKED", *INCLUDE, "-c", "%s/tests/%s.c" % (FOLDER, self.name),
                   "-o", self.object]
        run = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
        if run.returncode:                                   # perhaps a constant of the implementation is all that it needs
            for name in set(re.findall("'(\\w+)' undeclared", run.stderr)):
                value = re.search(name + r" = ([\w <>+*-]+)", original)
                command += ["-D%s=(%s)" % (name, value.group(1))] if value else []
            run = subprocess.run(command, capture_output=True)
        self.own, self.compiled = bool(run.returncode), True

    def prepare(self):
        """Links the program with the mutants of a schema and runs it with unchanged copies; why it can't be used, or None."""
        found, path = self.program + ".json", self.program + ".reached"
        if os.path.exists(found) and os.path.getmtime(found) > os.path.getmtime(path_of(self.name)):
            self.seconds, self.slow, self.reached, self.own = json.load(open(found, encoding="utf-8"))
            return None
        self.compile()
        if self.own or not compiled([self.object, SCHEMA + "/lgelu.o", SCHEMA + "/chooser.o", "-o", self.program, "-lm", "-pthread"]):
            self.own = True
            if not compiled([*OWN.get(self.name, []), "-I" + SCHEMA, *INCLUDE, path_of(self.name), SCHEMA + "/chooser.o",
                             "-o", self.program, "-lm", "-pthread"], FLAGS + KERNELS):
                return "it does not compile"
        if os.path.exists(path):
            os.remove(path)
        why, self.seconds = self.run(None, 1000)
        if why:
            return "it fails without a mutant: " + why
        why, self.slow = self.run(0, 1000, path)
        if why:
            return "it fails with unchanged copies of the functions: " + why
        data = open(path, "rb").read()
        self.reached = [any(data[4 * i:4 * i + 4]) for i in range(len(data) // 4)]
        write(found, json.dumps([self.seconds, self.slow, self.reached, self.own]))
        return None

    def run(self, mutant, limit, reached=None):
        """(why it failed or None, processor seconds) with this mutant; None for the header as it is."""
        def limits():
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 1))
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        environment = dict(os.environ, LGELU_DATA="")
        if mutant is not None:
            environment["MUTANT"] = str(mutant)
        if reached:
            environment["MUTATE_REACHED"] = reached
        child = subprocess.Popen([self.program, *self.arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 preexec_fn=limits, env=environment)
        clock = threading.Timer(60 * limit + 60, lambda: end(child))
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
        seconds = usage.ru_utime + usage.ru_stime
        if why is None and status:
            why = TOO_LONG if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) \
                else "ended by signal %d" % os.WTERMSIG(status) if os.WIFSIGNALED(status) else "status %d" % os.WEXITSTATUS(status)
        return why, seconds

    def sees(self, schema, mutant):
        """(why the program fails with this mutant or None, processor seconds)"""
        why, spent = self.run(schema.number(mutant), 3 * self.slow + 2)
        with self.lock:
            self.note(mutant.room, why, spent)
        return why, spent

    def worth(self, room):
        """Mutants of a room that it sees in a second, by what is known; half a mutant of each room it is taken to have seen."""
        all_caught, all_tried = sum(self.caught.values()), sum(self.tried.values())
        share = (all_caught + 0.5) / (all_tried + 1)
        chance = (self.caught.get(room, 0) + 2 * share) / (self.tried.get(room, 0) + 2)
        spent = (self.spent.get(room, 0) + 2 * self.seconds) / (self.tried.get(room, 0) + 2)
        return chance / (spent + 0.05)

    def note(self, room, saw, seconds):
        self.tried[room] = self.tried.get(room, 0) + 1
        self.caught[room] = self.caught.get(room, 0) + bool(saw)
        self.spent[room] = self.spent.get(room, 0) + seconds


def path_of(name):
    """The source file of a program, which is in a folder of its subject."""
    return glob.glob("*/" + name + ".c")[0]


def source_of(name):
    with open(path_of(name), encoding="utf-8") as f:
        return f.read()


def end(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def judge(schema, mutant, tests, everything, patience):
    """(result, the programs that see it, what the first of them printed): same, broken, alone (compiles, but not as a copy), caught
    or survived; None if no program saw it and the next one would take more than `patience` processor seconds in all."""
    if mutant in schema.refused:
        return "alone" if alone.compiles(mutant) else "broken", "", ""
    places, seen, first = schema.places[id(mutant)], [], ""
    for test in sorted((t for t in tests if any(t.reached[place] for place in places)), key=lambda t: -t.worth(mutant.room)):
        if test in mutant.passed:
            continue
        if mutant.spent + test.seconds > patience:
            return None
        why, spent = test.sees(schema, mutant)
        mutant.spent += spent
        if why:
            seen.append(test.name)
            first = first or why
            if not everything:
                break
        mutant.passed.add(test)
    if seen:
        return "caught", " ".join(seen), first
    # What a few named programs do not see is no result: no object code is compared for it.
    return ("same" if not os.environ.get("TESTS") and alone.same(mutant) else "survived"), "", ""


def drawn(found, draw, order):
    """The mutants in the order in which they are run: see the head of this file."""
    two, of_function, rest = pairs(found), {}, list(found)
    for mutants_of in (rest, two):
        order.shuffle(mutants_of)
    for mutant in rest:
        of_function.setdefault(mutant.name, mutant)
    each = list(of_function.values())
    order.shuffle(each)
    sources = {"tokens": [rest], "functions": [each, rest], "pairs": [two]}.get(draw)
    if sources and draw != "pairs":
        queue = [mutant for source in sources for mutant in source]
    elif sources:
        queue = two
    else:
        queue = [m for three in itertools.zip_longest(rest, each, two) for m in three if m]
    seen = set()
    return [m for m in queue if not (m.key in seen or seen.add(m.key))]


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
    global original, alone
    number, seed = int(os.environ.get("N") or 200), os.environ.get("SEED") or "1"
    only, jobs = os.environ.get("ONLY", "").split(), int(os.environ.get("JOBS") or 1)
    seconds = float(os.environ.get("SECONDS") or "inf")
    everything, go_on, again = (os.environ.get(name) for name in ("ALL", "CONTINUE", "AGAIN"))
    os.makedirs(FOLDER, exist_ok=True)
    os.environ["OMP_NUM_THREADS"] = "1"
    original = open(HEADER, encoding="utf-8").read()
    all_mutants = mutants(original)
    chosen = [m for m in all_mutants if not only or any(m.room.startswith(o.strip("[]")) or m.name == o for o in only)]
    print("# %d mutants in all, %d to choose from" % (len(all_mutants), len(chosen)), flush=True)
    chosen = [m for m in drawn(chosen, os.environ.get("DRAW"), random.Random(seed)) if not m.hint]

    def reason_of(text):
        """The reason that the list has, of a pair for both of its halves."""
        rows, found = known_reasons(), []
        for part in text.split(BOTH):
            packed = re.sub(r"\s+", "", part)
            found.append(next((reason for pattern, reason in rows if pattern.match(packed)), None))
        return None if None in found else "; ".join(sorted(set(found)))
    if os.environ.get("LIST"):
        for mutant in chosen[:number]:
            print("[%s] %s" % (mutant.room, mutant.key))
        return 0
    done = {}
    if go_on and os.path.exists(LOG):
        for line in open(LOG, encoding="utf-8"):
            parts = line.rstrip("\n").split("\t")
            if len(parts) == 5:
                done[parts[1] + "\t" + parts[2]] = parts
    elif os.path.exists(LOG):
        os.remove(LOG)

    alone = Alone(original)
    names = sorted(os.path.basename(path)[:-2] for path in glob.glob("*/test_*.c") + ["fuzz/" + name + ".c" for name in ROUNDS])
    wanted = os.environ.get("TESTS", "").split()
    names = [n for n in names if (n in wanted if wanted else not LEFT_OUT.match(n))
             and "lgelu.h" in source_of(n)]
    tests = [Test(name) for name in names]
    for result, room, text, saw, first in done.values():
        for test in tests:
            if result == "caught" and test.name in saw.split():
                test.note(room, True, 0.5)

    lock, began, counted = threading.Lock(), time.time(), [0]
    log = open(LOG, "a", encoding="utf-8")

    def known(mutant):
        """The result that needs no program, or None. The list may have grown meanwhile."""
        reason, old = reason_of(mutant.text), done.get(mutant.room + "\t" + mutant.key)
        if reason:
            return "listed", "", reason
        if old and old[0] != "listed" and not (old[0] == "survived" and (wanted or again)):
            return old[0], old[3], old[4]
        return None

    def record(mutant, found):
        result, saw, first = found
        key = mutant.room + "\t" + mutant.key
        with lock:
            counted[0] += result in ("caught", "survived", "listed")
            # what a few named programs do not see, others may: no result
            if not (wanted and result == "survived") and (key not in done or done[key][0] != result != "listed"):
                log.write("\t".join((result, mutant.room, mutant.key, saw, first.replace("\t", " "))) + "\n")
                log.flush()
                print("%4d of %d, %5.0f s: %-8s [%s] %s%s" % (counted[0], number, time.time() - began, result, mutant.room,
                      mutant.key, "  <- " + saw if saw else ""), flush=True)

    def late():
        return time.time() - began > seconds

    def enough():
        return counted[0] >= number

    def run(batch):
        schema, useful = Schema(original, batch), []
        print("# %5.0f s: %d mutants of %d functions compiled" % (time.time() - began, len(batch), len(schema.functions)), flush=True)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for test, why in zip(tests, pool.map(Test.prepare, tests)):
                if why:
                    print("# %s is left out: %s" % (test.name, why), flush=True)
                else:
                    useful.append(test)
                    print("# %-20s %6.1f s%s" % (test.name, test.seconds, ", compiles the header itself" if test.own else ""),
                          flush=True)
        print("# %5.0f s: the programs are ready" % (time.time() - began), flush=True)

        def take(mutant, patience):
            # Every mutant of a batch is decided: those that are seen late are the ones that few programs see.
            if late() or mutant.decided or mutant.hint:
                return
            found = known(mutant) or judge(schema, mutant, useful, everything, patience)
            mutant.decided = found is not None
            if found:
                record(mutant, found)
            else:
                print("open [%s] %s" % (mutant.room, mutant.key), flush=True)
        for patience in (PATIENCE, float("inf")):            # what the quick programs see comes first
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                for future in [pool.submit(take, mutant, patience) for mutant in batch]:
                    future.result()

    queue, before = list(chosen), stored()
    if go_on and before and before["header"] == digest(original):
        keys = set(before["batch"])
        batch = [m for m in all_mutants + pairs(all_mutants) if m.key in keys]
        if len(batch) == len(keys):
            batch.sort(key=lambda m: before["batch"].index(m.key))
            run(batch)
            queue = [m for m in queue if m.key not in keys]
    while queue and not late() and not enough():
        batch, size = [], min(BATCH, int(1.15 * (number - counted[0])) + 2)
        while queue and len(batch) < size and not late():
            mutant = queue.pop(0)
            found = known(mutant)
            if found:
                record(mutant, found)
            else:
                batch.append(mutant)
        if batch and not late():
            run(batch)
    log.close()
    last = {}                                                # the log's last word on each mutant, and what is known by now
    for line in open(LOG, encoding="utf-8"):
        result, room, text, saw, _ = line.rstrip("\n").split("\t")
        last[room, text] = "listed" if result == "survived" and reason_of(text) else result, saw
    results = [(room, result) for (room, _), (result, _) in last.items()]
    words = [result for _, result in results]
    print("\n# %d more gave the same object code, %d did not compile, %d compile only by themselves and were not run" % (
        words.count("same"), words.count("broken"), words.count("alone")))
    for (room, text), (result, _) in last.items():
        if result == "survived":
            print("survived [%s] %s" % (room, text))
    rate = table(results)
    seen = {}
    for _, saw in last.values():
        for name in saw.split():
            seen[name] = seen.get(name, 0) + 1
    print("seen first by: " + ", ".join("%s %d" % pair for pair in sorted(seen.items(), key=lambda p: -p[1])))
    if not any(result in ("caught", "survived") for _, result in results):
        print("FAIL mutants: none was run")                  # a check that has run nothing has not succeeded
        return True
    good = rate >= TARGET
    print("%s mutants: %.1f %% of those that can be seen are caught%s" % ("ok" if good else "FAIL", rate,
                                                                      "" if good else ", at least %d %% must be" % TARGET))
    return not good


if __name__ == "__main__":
    sys.exit(main())
