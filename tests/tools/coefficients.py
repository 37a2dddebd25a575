#!/usr/bin/python3
"""Makes the tables of the gate's kernels (lgelu.h, room [K], METHOD) and of the yardstick (room [3]), and prints them as C, exactly as
committed.

    python3 coefficients.py                 prints the tables
    python3 coefficients.py --check FILE    compares them with the ones in FILE (lgelu.h); exit status 1 if they differ
    python3 coefficients.py --errors        the error of each piece, after rounding to float, in units of 2^-24 of the value

Needs python3-mpmath. Each polynomial is a weighted least-squares fit in 40 digits on Chebyshev points, the weights driven
towards minimax (Lawson); then the coefficients are rounded to float one after another, lowest first, and the higher ones are
fitted again each time, so that they compensate for the rounding of the lower ones.
"""
import re
import struct
import sys
from mpmath import mp, mpf, erfc, exp, sqrt, pi, log, cos, matrix, lu_solve, findroot

mp.dps = 40


def to_float(x):
    return struct.unpack('<f', struct.pack('<f', float(x)))[0]


def fit(f, low, high, powers, weight, fixed={}, lawson=12, points=40, to=None):
    """floats c[0..] with f(d) = Σ c[j] d^j on [low, high], j in powers or given in fixed, otherwise 0"""
    half, mid = (high - low) / 2, (high + low) / 2
    d = [mid + half * cos(pi * (i + mpf(1) / 2) / points) for i in range(points)]
    y = [f(t) for t in d]
    w = [1 / weight(t) for t in d]
    scale = max(abs(low), abs(high))
    load = [mpf(1)] * points
    c = dict(fixed)

    # The powers without a given coefficient; a column of values for each, scaled so that they are near 1; the values of f without the
    # given terms. All are weighted.
    def system():
        left = [j for j in powers if j not in c]
        columns = [[(t / scale) ** j * wi for t, wi in zip(d, w)] for j in left]
        return left, columns, [(yi - sum(mpf(cj) * t ** j for j, cj in c.items())) * wi for yi, t, wi in zip(y, d, w)]

    def solve(left, columns, rest):
        n = len(left)
        a, b = matrix(n, n), matrix(n, 1)
        for i, column in enumerate(columns):
            loaded = [li * r for li, r in zip(load, column)]
            b[i] = mp.fdot(loaded, rest)
            for j in range(i, n):
                a[i, j] = a[j, i] = mp.fdot(loaded, columns[j])
        x = lu_solve(a, b)
        return {j: x[i] / scale ** j for i, j in enumerate(left)}

    parts = system()
    powers_of = [[t ** j for j in range(max(powers) + 1)] for t in d]
    for _ in range(lawson):
        p = dict(c)
        p.update(solve(*parts))
        e = [abs(mp.fdot((p[j], row[j]) for j in p) - yi) * wi for row, yi, wi in zip(powers_of, y, w)]
        top = max(e)
        load = [li * (ei / top + mpf('0.01')) for li, ei in zip(load, e)]
        top = max(load)
        load = [li / top for li in load]
    for j in powers:
        if j not in c:
            c[j] = (to or to_float)(solve(*system())[j])
    return [c.get(j, 0.0) for j in range(max(powers) + 1)]


def worst(f, c, low, high, weight, points=300):
    e = [(abs(sum(mpf(cj) * t ** j for j, cj in enumerate(c)) - f(t)) / weight(t), t)
         for t in (low + (high - low) * i / points for i in range(points + 1))]
    return max(e)[0] * 2 ** 24


def tail(z):                      # Q(z) = Φ(-z)
    return erfc(z / sqrt(2)) / 2


def density(z):
    return exp(-z * z / 2) / sqrt(2 * pi)


def slope(z):                     # f'(-z) = Q(z) - zφ(z)
    return tail(z) - z * density(z)


def asymptotic(w):                # (1 - zQ(z)/φ(z)) / w at w = 1/z²: 1 - 3w + 15w² ...
    z = 1 / sqrt(w)
    return (1 - z * tail(z) * sqrt(2 * pi) * exp(z * z / 2)) / w


tables, errors = [], []


def number(v):
    return '%.9gf' % v if '.' in '%.9g' % v or 'e' in '%.9g' % v else '%.9g' % v


# a row of numbers, in two lines where one would be too long
def row(begin, c, end, last):
    text = [number(v) for v in c]
    line = '    ' + begin + ', '.join(text) + end
    half = len(c) // 2
    return line if len(line + last) <= 100 else '    %s%s,\n    %s%s%s' % (
        begin, ', '.join(text[:half]), ' ' * len(begin), ', '.join(text[half:]), end)


# A table over signed z: columns 0..7 hold the intervals around 0, h .. 7h, and 8..15 those around 0, -7h .. -h, so that a whole
# number k serves as an index whether its last four bits are looked at or, for k <= 0, its last three. `plus` and `minus` give the
# column for an interval and for its mirror; where one is the other, or minus it, the row is written by its first half.
def signed(name, comment, plus, minus):
    lines = []
    for j in range(len(plus[0])):
        half, mirror = [c[j] + 0.0 for c in plus], [minus[-k][j] + 0.0 for k in range(8)]
        same = {sign for sign in (1, -1) if all(p[j] == sign * m[j] for p, m in zip(plus, minus))}
        line = row('EVEN(', half, ')', ',') if 1 in same else row('ODD(', half, ')', ',') if same else \
            row('EACH(', half + mirror, ')', ',')
        lines.append(line.replace('\n', ' \\\n'))
    tables.append('/* %s */\n#define LGELU__%s_ROWS(EVEN, ODD, EACH) \\\n' % (comment, name.upper()) + ', \\\n'.join(lines)
                  + '\nLGELU__COEFFICIENTS(%s, LGELU__%s_ROWS, %d)' % (name, name.upper(), len(lines)))


def vector(name, comment, c):
    tables.append('static const float lgelu__%s[%d] = {%s\n    %s\n};' % (name, len(c), '  /* %s */' % comment if comment else '',
                  ', '.join(number(v) for v in c)))


def rounding(x):                  # what the rounding of x to float loses, in units of 2^-24
    return abs(mpf(to_float(x)) / x - 1) * 2 ** 24


def step(x, n):                   # the float n places from x
    return struct.unpack('<f', struct.pack('<i', struct.unpack('<i', struct.pack('<f', x))[0] + n))[0]


def alternate(c):                 # the polynomial at -d
    return [v * (-1) ** j for j, v in enumerate(c)]


# The middle: Φ on 15 intervals around the whole multiples of 0.42. Φ(c + d) = 1 - Q(c + d) and Φ(-c + d) = Q(c - d). At each
# centre the best value of Q is nearly a float, and one minus it as well (Gal's idea). Of hundreds of such centres in each interval
# these have the least error over three million floats on it, at the λ's of LGELU_CLAIMS; so has the step of c[1] to a neighbour.
h, last = mpf(42) / 100, mpf('3.1')
centres = ((0, 0), (0.45501706, 0), (0.861040771, -1), (1.29509878, 0), (1.70118785, 1), (2.16407847, -1), (2.52405167, 0), (2.97953248, 0))
plus, minus = [], []
for k in range(8):
    low, high = h * (k - mpf(1) / 2), min(h * (k + mpf(1) / 2), last)
    centre, f = mpf(to_float(centres[k][0])), lambda d: tail(centre + d)
    given = {0: 0.5}
    if k:                         # the best value, and the float next to it
        given = {0: to_float(fit(f, low - centre, high - centre, range(7), f, lawson=25, to=mpf)[0])}
        given[1] = step(fit(f, low - centre, high - centre, range(7), f, given, lawson=25)[1], centres[k][1])
    c = fit(f, low - centre, high - centre, range(7) if k else (0, 1, 3, 5), f, given, lawson=25)
    errors.append(('middle %d' % k, worst(f, c, low - centre, high - centre, f)))
    c += [0.0] * (7 - len(c))
    plus.append([-float(centre), 1 - c[0]] + [-v for v in c[1:]])
    minus.append([float(centre)] + alternate(c))
signed('middle', 'minus the centre; Φ(z) in powers of the distance from it', plus, minus)

# The slope f'(z) and the density φ(z) on the same intervals, with centres for both: f'(-z) = g(z) = Q(z) - zφ(z), f'(z) = 1 - g(z).
# On the interval with the root of g the centre is the float next to it, so that g stays relatively exact through the root: beside
# a larger value the square term would be lost to rounding. The derivative takes the neighbour whose relative error is the value's.
# The density stands there times BELL, which the sums are divided by: of 10^8 numbers between 0.97 and 1.03 the one that makes its values
# at the centres, and the slopes, most nearly floats. It lies near 1, so that a term is rounded where its float lies.
BELL = mpf('0.992787714')
root = findroot(slope, mpf('0.7517916'))
centres = ((0, 0), (0.568276048, -1), (0.751791537, -1), (1.31742227, -1), (1.73099208, -1), (2.15848684, -1), (2.60030866, -1), (2.94105959, -1))
plus, minus, plus_density, minus_density = [], [], [], []
for k in range(8):
    low, high = h * (k - mpf(1) / 2), min(h * (k + mpf(1) / 2), last)
    centre = mpf(to_float(centres[k][0]))
    f = lambda d: slope(centre + d)
    p = lambda d: BELL * density(centre + d)
    odd, even, given, value = (0, 1, 3, 5), (0, 2, 4, 6), {0: 0.5}, {}
    weight = lambda d: abs(f(d))
    if k:
        odd = even = range(7)
    if low < root < high:
        first = (centre * centre - 2) * density(centre)
        given = {0: to_float(f(mpf(0))), 1: step(to_float(first), centres[k][1])}
        weight = lambda d: abs(f(d)) + mpf('1e-3')
    elif k:
        given = {0: to_float(fit(f, low - centre, high - centre, odd, weight, lawson=25, to=mpf)[0])}
        given[1] = step(fit(f, low - centre, high - centre, odd, weight, given, lawson=25)[1], centres[k][1])
        value = {0: to_float(fit(p, low - centre, high - centre, even, p, lawson=25, to=mpf)[0])}
    c = fit(f, low - centre, high - centre, odd, weight, given, lawson=25)
    b = fit(p, low - centre, high - centre, even, p, value, lawson=25)
    errors.append(('slope %d' % k, worst(f, c, low - centre, high - centre, lambda d: abs(f(d)) + mpf('1e-12'), 301)))
    errors.append(('density %d' % k, worst(p, b, low - centre, high - centre, p)))
    c += [0.0] * (7 - len(c))
    plus.append([-float(centre), to_float(1 - mpf(c[0]))] + [-v for v in c[1:]])
    minus.append([float(centre)] + alternate(c))
    plus_density.append(b)
    minus_density.append(alternate(b))
signed('slope', "minus the centre; f'(z) = Φ(z) + zφ(z) in powers of the distance from it", plus, minus)
tables.append('#define LGELU__BELL %s' % mp.nstr(BELL, 9))
signed('bell', 'LGELU__BELL·φ(z) in powers of the same distance', plus_density, minus_density)

# 2^f - 1 = f·(...) on [-1/2, 1/2]
f = lambda t: (mpf(2) ** t - 1) if t else mpf(0)
c = fit(f, mpf(-1) / 2, mpf(1) / 2, range(7), lambda t: mpf(2) ** t, {0: 0.0})
errors.append(('exp2', worst(f, c, mpf(-1) / 2, mpf(1) / 2, lambda t: mpf(2) ** t)))
vector('exp2', '2^f - 1 in powers of f, from the first', c[1:])

# the tail: zQ(z)/φ(z) = 1 - w·P(w), w = 1/z², z from 3.09
low, high = mpf(1) / 420, 1 / mpf('3.09') ** 2
c = fit(asymptotic, low, high, range(7), lambda w: 1 / w)
errors.append(('tail', worst(asymptotic, c, low, high, lambda w: 1 / w)))
vector('tail', '(1 - zQ(z)/φ(z))/w in powers of w = 1/z²', c)

# The tanh approximation: v = √(8/π)(x + 0.044715 x³), -log2(e)·v = x(A + B x²), xv' = x(C + D x²), each number in two floats. The
# first of A and C is a whole multiple of 2^-19, so that A + B x² < 32 loses nothing that one more fma does not restore.
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
        given = {0: to_float(tanh_slope(centre)), 1: to_float(tanh_slope(centre, 1))}
        weight = lambda d, c=centre: abs(d + c - root) + mpf('1e-3')
    else:
        place = low + (mpf('0.4'), 0, mpf('0.25'), mpf('0.3'), mpf('0.35'), mpf('0.35'), mpf('0.35'), mpf('0.35'))[k]
        near = sorted((mpf(round(place * 4096) + j) / 4096 for j in range(-400, 401)), key=lambda z: abs(z - place))
        centre = next(z for z in near if rounding(tanh_slope(z)) < mpf('0.02'))
        given = {0: to_float(tanh_slope(centre))}
        weight = lambda d, c=centre: abs(tanh_slope(c + d))
    f = lambda d, c=centre: tanh_slope(c + d)
    c = fit(f, low - centre, high - centre, range(8), weight, given)
    errors.append(('tanh slope %d' % k, worst(f, c, low - centre, high - centre, lambda d: abs(f(d)) + mpf('1e-12'), 301)))
    columns.append([-float(centre)] + c)
tables.append("/* minus the centre; the tanh approximation's f'(-w) in powers of the distance from it */\n"
              "static const float lgelu__tanh_slope[9][8] = {\n"
              + ',\n'.join(row('{ ', [c[j] for c in columns], ' }', ',') for j in range(9)) + '\n};')

# SiLU's slope: 1 + e^-a - a is d(d·e0(e^-d - 1 + d)/d² - a0) at the distance d from its root a0 = 1 + e0.
root = findroot(lambda a: 1 + exp(-a) - a, mpf('1.2784645'))
f = lambda d: (root - 1) * (exp(-d) - 1 + d) / d ** 2
c = fit(f, mpf(-1) / 4, mpf(1) / 4, range(5), f)
errors.append(('silu root', worst(f, c, mpf(-1) / 4, mpf(1) / 4, lambda d: mpf(1), 301)))
vector('silu_root', 'e0·(e^-d - 1 + d)/d² in powers of d', c)

# The yardstick, in double: (z + 5/4)·Q(z)/φ(z) for z in [0, 40] is one polynomial in t = (z - 11/2)/(z + 11/2), nearly flat at both ends.
mills = lambda t: (lambda z: (z + mpf(5) / 4) * tail(z) / density(z))(mpf(11) / 2 * (1 + t) / (1 - t))
c = fit(mills, mpf(-1), mpf(69) / 91, range(24), mills, lawson=4, points=60, to=float)
errors.append(('mills', worst(mills, c, mpf(-1), mpf(69) / 91, mills)))
lines = [', '.join('%.17g' % v for v in c[i:i + 5]) for i in range(0, len(c), 5)]
yardstick = 'static const double lgelu__mills_table[%d] = {\n    %s\n};\n' % (len(c), ',\n    '.join(lines))

text = '\n'.join(tables) + '\n'
if len(sys.argv) == 1:
    sys.stdout.write(yardstick + text)
elif sys.argv[1] == '--errors':
    for name, e in errors:
        print('%-10s %.4g' % (name, float(e)))
elif sys.argv[1] == '--check' and len(sys.argv) == 3:
    with open(sys.argv[2], encoding='utf-8') as source:
        have = source.read()
    # layout and comments are not compared
    plain = lambda t: re.sub(r'[\s\\]+', '', re.sub(r'/\*.*?\*/', '', t, flags=re.S))
    if any(plain(part) not in plain(have) for part in [yardstick] + tables):
        print('the tables in %s are not the ones that coefficients.py makes' % sys.argv[2])
        sys.exit(1)
else:
    sys.exit(__doc__)
