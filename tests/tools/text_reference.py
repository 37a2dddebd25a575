#!/usr/bin/env python3
"""What text.c is judged by: the tables of letters and numbers (text_reference.py table), and GPT-2's own rule for cutting text and
joining pairs, applied to some texts (text_reference.py cases FOLDER). Needs the regex module.   SPDX-License-Identifier: MIT-0"""
import json, os, random, sys
import regex

PATTERN = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def table():
    for name, what in (("letter", r"\p{L}"), ("number_range", r"\p{N}"), ("space", r"\s")):
        cut, ranges = regex.compile(what), []
        for c in range(0x110000):
            if not 0xD800 <= c < 0xE000 and cut.match(chr(c)):
                if ranges and ranges[-1][1] == c - 1:
                    ranges[-1][1] = c
                else:
                    ranges.append([c, c])
        items = ["{0x%X,0x%X}" % tuple(r) for r in ranges]
        print("static const uint32_t text_%s[%d][2] = {" % (name, len(ranges)))
        line = "   "
        for i, item in enumerate(items):
            item += "," if i + 1 < len(items) else ""
            if len(line) + len(item) > 128:
                print(line)
                line = "   "
            line += " " + item
        print(line + " };")


class Encoder:
    def __init__(self, folder):
        self.ids = json.load(open(os.path.join(folder, "encoder.json"), encoding="utf-8"))
        lines = open(os.path.join(folder, "vocab.bpe"), encoding="utf-8").read().split("\n")[1:]
        self.rank = {tuple(l.split()): i for i, l in enumerate(l for l in lines if l)}
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        stand_in = printable + [b for b in range(256) if b not in printable]
        chars = [chr(c) for c in printable] + [chr(256 + i) for i in range(256 - len(printable))]
        self.char = dict(zip(stand_in, chars))

    def encode(self, text):
        out = []
        for word in PATTERN.findall(text):
            parts = [self.char[b] for b in word.encode()]
            while len(parts) > 1:
                pair = min(zip(parts, parts[1:]), key=lambda p: self.rank.get(p, 1 << 30))
                if pair not in self.rank:
                    break
                i, joined = 0, []
                while i < len(parts):
                    two = i + 1 < len(parts) and (parts[i], parts[i + 1]) == pair
                    joined.append(parts[i] + parts[i + 1] if two else parts[i])
                    i += 2 if two else 1
                parts = joined
            out += [self.ids[p] for p in parts]
        return out


def cases(folder):
    random.seed(1)
    texts = ["", "Hello world", "Hello, world! It's 2024; we've 3.14 and 1,000,000 (they'll, I'd, I'm, don't, you're).",
             "  leading,   inner    and trailing   ", "tabs\tand\nnew\r\n\r\nlines\n\n\n  x \n y", "a" * 300, " " * 70 + "x", "=" * 90, "1234567890" * 9,
             "IT'S 'S 's''t''re x'll'd'm'veq", "naïve café Ärger straße", "Привет, мир! Это 2024 год.", "你好，世界。这是一个测试", "こんにちは世界 カタカナ",
             "مرحبا بالعالم ١٢٣", "नमस्ते दुनिया १२३", "שלום עולם", "안녕하세요 세계", "ไทย ภาษา", "x² ½ Ⅷ ① 三 ٣", "👩‍👩‍👧‍👦 🙂🙂 é ñ",
             "\u00a0nbsp\u2003em\u3000wide \u200bzero", "\x00\x01\x1c\x1f\x7f\x85", "𝒜𝔅 𐍈 𝟘𝟙", "λ-GELU: f(x; λ) = x·Φ(λx) ≤ 1.13", "<|endoftext|> is plain here",
             "for (i = 0; i < n; i++) { y[i] += 2.5e-3f * x[i]; }  // ok"]
    pools = ["abc ABC'st  re\n\t ll 12!?", "éß λΩ я ж 中 文 あ 한 ٣ 5 ' d m", " \n\u00a0\u2028\u3000x'"]
    for i in range(60):
        texts.append("".join(random.choice(pools[i % 3]) for _ in range(random.randrange(1, 60))))
    for i in range(40):
        texts.append("".join(chr(random.choice((random.randrange(1, 0x250), random.randrange(0x250, 0xD800), random.randrange(0xE000, 0x20000))))
                             for _ in range(random.randrange(1, 12))))
    e = Encoder(folder)
    for t in texts:
        print(t.encode().hex() or "-", *e.encode(t))


if sys.argv[1:2] == ["table"]:
    table()
elif sys.argv[1:2] == ["cases"] and len(sys.argv) == 3:
    cases(sys.argv[2])
else:
    sys.exit(__doc__)
