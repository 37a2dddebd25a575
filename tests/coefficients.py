#!/usr/bin/python3
"""Makes the tables of the gate's kernels (lgelu.h, room [K], METHOD) and prints them as C, exactly as committed.

    python3 coefficients.py                 prints the tables
    python3 coefficients.py --check FILE    compares them with the ones in FILE (lgelu.h); exit status 1 if they differ
    python3 coefficients.py --errors        the error of each piece, after rounding to float, in units of 2^-24 of the value

Needs python3-mpmath. Each polynomial is a weighted least-squares fit in 40 digits on Chebyshev points, the weights driven
towards minimax (Lawson); then the coefficients are rounded to float one after another, lowest first, and the higher ones are
fitted anew each time, so that they make good what the rounding of the lower ones lost.
"""
import struct
import sys
from mpmath import mp, mpf, erfc, exp, sqrt, pi, log, cos, matrix, lu_solve, findroot

mp.dps = 40


def to_float(x):
    return struct.unpack('<f', struct.pack('<f', float(x)))[0]


def fit(f, low, high, degree, weight, fixed=(), lawson=12, points=40):
    """coefficients c[0..degree] of f on [low, high] in powers of d, as floats; fixed: leading ones that are given"""
    half, mid = (high - low) / 2, (high + low) / 2
    d = [mid + half * cos(pi * (i + mpf(1) / 2) / points) for i in range(points)]
    y = [f(t) for t in d]
    w = [1 / weight(t) for t in d]
    scale = max(abs(low), abs(high))
    load = [mpf(1)] * points
    c = list(fixed)

    def solve():
        n, k = degree + 1 - len(c), len(c)
        a, b = matrix(n, n), matrix(n, 1)
        rest = [yi - sum(mpf(cj) * t ** j for j, cj in enumerate(c)) for yi, t in zip(y, d)]
        rows = [[(t / scale) ** (k + j) * wi for j in range(n)] for t, wi in zip(d, w)]
        for r, ri, wi, li in zip(rows, rest, w, load):
            for i in range(n):
                s = li * r[i]
                b[i] += s * ri * wi
                for j in range(n):
                    a[i, j] += s * r[j]
        x = lu_solve(a, b)
        return [x[j] / scale ** (k + j) for j in range(n)]

    for _ in range(lawson):
        p = list(c) + solve()
        e = [abs(sum(cj * t ** j for j, cj in enumerate(p)) - yi) * wi for t, yi, wi in zip(d, y, w)]
        top = max(e)
        load = [li * (ei / top + mpf('0.01')) for li, ei in zip(load, e)]
        top = max(load)
        load = [li / top for li in load]
    while len(c) <= degree:
        c.append(to_float(solve()[0]))
    return c


def worst(f, c, low, high, weight, points=300):
    e = [(abs(sum(mpf(cj) * t ** j for j, cj in enumerate(c)) - f(t)) / weight(t), t)
         for t in (low + (high - low) * i / points for i in range(points + 1))]
    return max(e)[0] * 2 ** 24


def tail(z):                      # Q(z) = Φ(-z)
    return erfc(z / sqrt(2)) / 2


def slope(z):                     # f'(-z) = Q(z) - zφ(z)
    return tail(z) - z * exp(-z * z / 2) / sqrt(2 * pi)


def asymptotic(w):                # (1 - zQ(z)/φ(z)) / w at w = 1/z²: 1 - 3w + 15w² ...
    z = 1 / sqrt(w)
    return (1 - z * tail(z) * sqrt(2 * pi) * exp(z * z / 2)) / w


tables, errors = [], []


def table(name, comment, rows):
    out = ['static const float lgelu__%s[%d][8] = {%s' % (name, len(rows), '  /* %s */' % comment if comment else '')]
    for r in rows:
        out.append('    { ' + ', '.join('%.9gf' % v if '.' in '%.9g' % v or 'e' in '%.9g' % v else '%.9g' % v for v in r) + ' },')
    out[-1] = out[-1][:-1]
    out.append('};')
    tables.append('\n'.join(out))


def vector(name, comment, c):
    tables.append('static const float lgelu__%s[%d] = {%s\n    %s\n};' % (name, len(c), '  /* %s */' % comment if comment else '',
                  ', '.join('%.9gf' % v if '.' in '%.9g' % v or 'e' in '%.9g' % v else '%.9g' % v for v in c)))


OFFSET = ('0', '0.2', '0.22', '0.24', '0.26', '0.26', '0.26', '0.26')


def best(f, place):               # the centre near place whose f is all but a float
    near = sorted((mpf(round(place * 4096) + j) / 4096 for j in range(-400, 401)), key=lambda z: abs(z - place))
    return next(z for z in near if z >= 0 and rounding(f(z)) < mpf('0.02'))


def rounding(x):                  # what the rounding of x to float loses, in units of 2^-24
    return abs(mpf(to_float(x)) / x - 1) * 2 ** 24


# The middle: Q on [0.45 k, 0.45 (k + 1)). The centre is the number of twelve binary places nearest the one given whose Q is all but
# a float itself (Gal's idea); it stands on the side where Q is small, lest small values come out of large ones.
columns = []
for k in range(8):
    low, high = mpf(45) / 100 * k, mpf(45) / 100 * (k + 1)
    centre = best(tail, low + mpf(OFFSET[k]))
    f = lambda d, c=centre: tail(c + d)
    given = [to_float(tail(centre))]
    c = fit(f, low - centre, high - centre, 6, f, fixed=given)
    errors.append(('middle %d' % k, worst(f, c, low - centre, high - centre, f)))
    columns.append([-float(centre)] + c)
table('middle', 'minus the centre; Q(z) in powers of the distance from it', [[c[j] for c in columns] for j in range(8)])

# The slope: g(z) = f'(-z) on [k/2, k/2 + 1/2). The centre is chosen like the middle's. On the interval with the root it
# is the float near the root for which value and derivative round best, so that g stays relatively exact through the root.
root = findroot(slope, mpf('0.7517916'))
columns = []
for k in range(8):
    low, high = mpf(k) / 2, mpf(k + 1) / 2
    if low < root < high:
        near = [mpf(round(float(root) * 2 ** 24) + j) / 2 ** 24 for j in range(-64, 65)]
        first = lambda z: (z * z - 2) * exp(-z * z / 2) / sqrt(2 * pi)
        loss = lambda z: (abs(to_float(slope(z)) - slope(z)) + abs(to_float(first(z)) - first(z)) * abs(z - root))
        centre = min(near, key=loss)
        given = [to_float(slope(centre)), to_float(first(centre))]
        weight = lambda d, c=centre: abs(d + c - root) + mpf('1e-3')
    else:
        place = low + (mpf('0.4'), 0, mpf('0.25'), mpf('0.3'), mpf('0.35'), mpf('0.35'), mpf('0.35'), mpf('0.35'))[k]
        centre = best(slope, place)
        given = [to_float(slope(centre))]
        weight = lambda d, c=centre: abs(slope(c + d))
    f = lambda d, c=centre: slope(c + d)
    c = fit(f, low - centre, high - centre, 7, weight, fixed=given)
    errors.append(('slope %d' % k, worst(f, c, low - centre, high - centre, lambda d: abs(f(d)) + mpf('1e-12'), 301)))
    columns.append([-float(centre)] + c)
table('slope', "minus the centre; f'(-z) = Q(z) - zφ(z) in powers of the distance from it", [[c[j] for c in columns] for j in range(9)])

# 2^f - 1 = f·(...) on [-1/2, 1/2]
f = lambda t: (mpf(2) ** t - 1) if t else mpf(0)
c = fit(f, mpf(-1) / 2, mpf(1) / 2, 6, lambda t: mpf(2) ** t, fixed=[0.0])
errors.append(('exp2', worst(f, c, mpf(-1) / 2, mpf(1) / 2, lambda t: mpf(2) ** t)))
vector('exp2', '2^f - 1 in powers of f, from the first', c[1:])

# the tail: zQ(z)/φ(z) = 1 - w·P(w), w = 1/z², z from 3.5
low, high = mpf(1) / 420, 1 / mpf('3.49') ** 2
c = fit(asymptotic, low, high, 6, lambda w: 1 / w)
errors.append(('tail', worst(asymptotic, c, low, high, lambda w: 1 / w)))
vector('tail', '(1 - zQ(z)/φ(z))/w in powers of w = 1/z²', c)

# The tanh approximation: v = √(8/π)(x + 0.044715 x³), -log2(e)·v = x(A + B x²), xv' = x(C + D x²), each number in two floats. The
# first of A and C is a whole multiple of 2^-19, so that A + B x² < 32 loses nothing that one more fma does not give back.
c = []
for a in (-1 / log(2), mpf(1)):
    for v, high in ((a, lambda v: float(mpf(round(v * 2 ** 19)) / 2 ** 19)), (a * (mpf('0.044715') if a < 0 else mpf('0.134145')), to_float)):
        v *= sqrt(8 / pi)
        c += [high(v), to_float(v - mpf(high(v)))]
vector('tanh', '-√(8/π)·log2(e)·(1, 0.044715), √(8/π)·(1, 0.134145), each in two floats', c)


# g(w) = f'(-w) on [k/2, k/2 + 1/2), f = xσ(v): the root's interval has its centre there, the others as for the slope above
def tanh_slope(w, order=0):
    v, u, u2 = sqrt(8 / pi) * (w + mpf('0.044715') * w ** 3), sqrt(8 / pi) * (1 + mpf('0.134145') * w * w), sqrt(8 / pi) * mpf('0.26829') * w
    s = 1 / (1 + exp(v))
    t = s * (1 - s)
    return s - w * u * t if order == 0 else t * (w * u * u * (1 - 2 * s) - 2 * u - w * u2)


root = findroot(tanh_slope, mpf('0.7524614'))
columns = []
for k in range(8):
    low, high = mpf(k) / 2, mpf(k + 1) / 2
    if low < root < high:
        near = [mpf(round(float(root) * 2 ** 24) + j) / 2 ** 24 for j in range(-64, 65)]
        loss = lambda z: (abs(to_float(tanh_slope(z)) - tanh_slope(z)) + abs(to_float(tanh_slope(z, 1)) - tanh_slope(z, 1)) * abs(z - root))
        centre = min(near, key=loss)
        given = [to_float(tanh_slope(centre)), to_float(tanh_slope(centre, 1))]
        weight = lambda d, c=centre: abs(d + c - root) + mpf('1e-3')
    else:
        place = low + (mpf('0.4'), 0, mpf('0.25'), mpf('0.3'), mpf('0.35'), mpf('0.35'), mpf('0.35'), mpf('0.35'))[k]
        near = sorted((mpf(round(place * 4096) + j) / 4096 for j in range(-400, 401)), key=lambda z: abs(z - place))
        centre = next(z for z in near if rounding(tanh_slope(z)) < mpf('0.02'))
        given = [to_float(tanh_slope(centre))]
        weight = lambda d, c=centre: abs(tanh_slope(c + d))
    f = lambda d, c=centre: tanh_slope(c + d)
    c = fit(f, low - centre, high - centre, 7, weight, fixed=given)
    errors.append(('tanh slope %d' % k, worst(f, c, low - centre, high - centre, lambda d: abs(f(d)) + mpf('1e-12'), 301)))
    columns.append([-float(centre)] + c)
table('tanh_slope', "minus the centre; the tanh approximation's f'(-w) in powers of the distance from it", [[c[j] for c in columns] for j in range(9)])

text = '\n'.join(tables) + '\n'
if len(sys.argv) == 1:
    sys.stdout.write(text)
elif sys.argv[1] == '--errors':
    for name, e in errors:
        print('%-10s %.4f' % (name, float(e)))
elif sys.argv[1] == '--check' and len(sys.argv) == 3:
    with open(sys.argv[2], encoding='utf-8') as source:
        have = source.read()
    if text not in have:
        print('the tables in %s are not the ones that coefficients.py makes' % sys.argv[2])
        sys.exit(1)
else:
    sys.exit(__doc__)
