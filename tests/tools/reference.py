#!/usr/bin/env python3
# SPDX-License-Identifier: MIT-0
"""Makes reference_values.h: the gates and their derivatives in 60 digits, rounded once to double, at points that are doubles.

    python3 reference.py > reference_values.h
    python3 reference.py --check reference_values.h      exit status 1 if they differ

Needs python3-mpmath. mpmath's erfc shares nothing with the libm that the yardstick calls.
"""
import re
import struct
import sys
from mpmath import mp, mpf, erfc, exp, sqrt, pi, findroot

mp.dps = 60


def values(x, lam):
    x, lam = mpf(x), mpf(lam)
    z = lam * x
    cdf, pdf = erfc(-z / sqrt(mpf(2))) / 2, exp(-z * z / 2) / sqrt(2 * pi)
    two_u = sqrt(8 / pi) * (x + mpf('0.044715') * x ** 3)
    s = 1 / (1 + exp(-two_u))
    u = 1 / (1 + exp(-z))
    v = 1 / (1 + exp(z))
    return (x * cdf, cdf + z * pdf, x * x * pdf, x * s, s + x * s * (1 - s) * sqrt(8 / pi) * (1 + 3 * mpf('0.044715') * x * x),
            x * u, u + z * u * v, x * x * u * v)


def to_float32(x):
    return struct.unpack('<f', struct.pack('<f', x))[0]


def points():
    root = float(findroot(lambda z: erfc(-z / sqrt(mpf(2))) / 2 + z * exp(-z * z / 2) / sqrt(2 * pi), mpf('-0.7517915')))
    for lam in (1.0, to_float32(1.693147), to_float32(159.57691)):
        for z in (-37.5, -30.0, -20.0, -14.0, -13.0, -10.0, -8.0, -6.0, -5.0, -3.0, -2.0, -1.4142135623730951, -1.0, -0.5, -1e-3, -1e-10,
                  1e-10, 1e-3, 0.3, 1.0, 1.4142135623730951, 3.0, 6.0, 14.0):
            yield z / lam, lam
        for d in (-0.3, -0.07, -0.05, -1e-3, -1e-6, -1e-9, 0.0, 1e-9, 1e-6, 1e-3, 0.05, 0.07, 0.3):
            yield (root + d) / lam, lam
    silu_root = float(findroot(lambda z: 1 + z / (1 + exp(z)), mpf('-1.2784645')))
    for lam in (1.0, to_float32(1.693147), to_float32(159.57691)):
        for z in (-100.0, -60.0, -40.0, -1.6, -1.53, -1.52, -1.03, -1.02, 40.0, 100.0):
            yield z / lam, lam
        for d in (-0.2, -1e-3, -1e-6, -1e-9, 0.0, 1e-9, 1e-6, 1e-3, 0.2):
            yield (silu_root + d) / lam, lam
    for bits in (0xBF40A14F, 0xBF40A150):                   # floats at the root of the tanh approximation's derivative
        yield struct.unpack('<f', struct.pack('<I', bits))[0], 1.0
    for bits in (0xBF40754E, 0xBF40754F, 0x00000001, 0x80000001, 0x1B000000, 0x9B000000):  # floats at the root, the smallest, where x² underflows
        yield struct.unpack('<f', struct.pack('<I', bits))[0], 1.0


def table():
    rows = ['/* SPDX-License-Identifier: MIT-0   Made by reference.py: x, λ, x Φ(λx), Φ(λx) + λx φ(λx), x² φ(λx), and',
            '   the tanh approximation of GELU and its derivative, then xσ(βx) with β = λ and its derivatives in x and β, each',
            '   rounded once */',
            'static const double reference_values[][10] = {']
    for x, lam in points():
        rows.append('    { ' + ', '.join(float(v).hex() for v in (x, lam) + values(x, lam)) + ' },')
    return '\n'.join(rows) + '\n};\n'


if len(sys.argv) == 3 and sys.argv[1] == '--check':
    plain = lambda text: re.sub(r'\s+', '', re.sub(r'/\*.*?\*/', '', text, flags=re.S))    # layout is not compared
    same = plain(open(sys.argv[2], encoding='utf-8').read()) == plain(table())
    print(sys.argv[2], 'is' if same else 'is not', 'what reference.py prints')
    sys.exit(not same)
sys.stdout.write(table())
