# SPDX-License-Identifier: MIT-0
# control_reference.py: trajectories of the tasks in examples/study/environments.h, from their published equations, written independently
# with Python's own sine and cosine. Acrobot's are solved as what they are, two equations for two accelerations with the mass
# matrix, rather than in the paper's closed form. Prints control_reference.h: from where, what is done, and each tenth state with
# the sum of rewards. control_reference.py --check FILE compares.
import math
import sys


def cartpole(state, action):
    x, v, a, w = state
    force, g, mass, total, half = (10.0 if action else -10.0), 9.8, 0.1, 1.1, 0.5
    # Barto, Sutton & Anderson 1983, appendix, friction left out
    turn = (g * math.sin(a) + math.cos(a) * (-force - mass * half * w * w * math.sin(a)) / total) / (
        half * (4.0 / 3.0 - mass * math.cos(a) ** 2 / total))
    push = (force + mass * half * (w * w * math.sin(a) - turn * math.cos(a))) / total
    state = [x + 0.02 * v, v + 0.02 * push, a + 0.02 * w, w + 0.02 * turn]
    return state, 1.0, abs(state[0]) > 2.4 or abs(state[2]) > math.radians(12)


def acrobot_slope(state, torque):
    a, b, da, db = state
    m = l = inertia = 1.0
    c, g = 0.5, 9.8
    # Lagrange's equations: M (a'', b'') = (0, torque) - Coriolis - gravity
    m11 = m * c * c + m * (l * l + c * c + 2 * l * c * math.cos(b)) + 2 * inertia
    m12 = m * (c * c + l * c * math.cos(b)) + inertia
    m22 = m * c * c + inertia
    h = m * l * c * math.sin(b)
    r1 = h * db * db + 2 * h * da * db - (m * c + m * l) * g * math.sin(a) - m * c * g * math.sin(a + b)
    r2 = torque - h * da * da - m * c * g * math.sin(a + b)
    det = m11 * m22 - m12 * m12
    return [da, db, (r1 * m22 - r2 * m12) / det, (r2 * m11 - r1 * m12) / det]


def acrobot(state, action):
    def at(slope, h):
        return acrobot_slope([s + h * d for s, d in zip(state, slope)], action - 1.0)
    k1 = acrobot_slope(state, action - 1.0)
    k2 = at(k1, 0.1)
    k3 = at(k2, 0.1)
    k4 = at(k3, 0.2)
    state = [s + 0.2 / 6 * (p + 2 * q + 2 * r + t) for s, p, q, r, t in zip(state, k1, k2, k3, k4)]
    for i in 0, 1:
        state[i] = math.remainder(state[i], 2 * math.pi)
    for i, most in (2, 4 * math.pi), (3, 9 * math.pi):
        state[i] = max(-most, min(most, state[i]))
    ended = -math.cos(state[0]) - math.cos(state[0] + state[1]) > 1
    return state, 0.0 if ended else -1.0, ended


def pendulum(state, action):
    a, w = state[:2]
    torque = 2.0 * (action - 1)
    reward = -(math.remainder(a, 2 * math.pi) ** 2 + 0.1 * w ** 2 + 0.001 * torque ** 2)
    w = max(-8.0, min(8.0, w + (3 * 10.0 / 2 * math.sin(a) + 3 * torque) * 0.05))
    return [a + 0.05 * w, w, 0.0, 0.0], reward, False


STEPS = 100
# from where, and what is done: keeping the pole up, letting it fall, pumping the links up, pumping the rod up
TASKS = [
    (0, cartpole, [[0.01, -0.02, 0.03, 0.04], [-0.04, 0.03, -0.02, 0.01]], lambda s, t: int(s[2] + 0.3 * s[3] + 0.05 * s[1] > 0)),
    (0, cartpole, [[0.0, 0.05, 0.02, -0.05]], lambda s, t: 1),
    (1, acrobot, [[0.05, -0.08, 0.02, 0.1], [-0.1, 0.03, 0.06, -0.04]], lambda s, t: 2 if s[3] > 0.02 * (t % 5) else 0),
    (2, pendulum, [[3.0, 0.4, 0, 0], [-1.2, -0.7, 0, 0]], lambda s, t: t // 3 % 3 if t % 7 == 0 else 2 if s[1] > 0 else 0),
]


def text():
    out = ["/* SPDX-License-Identifier: MIT-0\n   control_reference.h: made by control_reference.py */",
           "typedef struct { int steps; double state[4], sum; int ended; } control_state;",
           "static const struct { int task; const char *actions; control_state at[14]; } control_reference[] = {"]
    for number, step, starts, policy in TASKS:
        for start in starts:
            state, total, actions, at = [float(v) for v in start], 0.0, "", []
            for t in range(STEPS + 1):
                ended = False
                if t:
                    action = policy(state, t - 1)
                    actions += str(action)
                    state, reward, ended = step(state, action)
                    total += reward
                if t % 10 == 0 or ended:
                    at.append("        { %d, { %s }, %.15g, %d }" % (t, ", ".join("%.15g" % v for v in state), total, ended))
                if ended:
                    break
            out.append('    { %d, "%s", {\n%s } },' % (number, actions, ",\n".join(at)))
    return "\n".join(out + ["};"]) + "\n"


def main():
    if sys.argv[1:2] != ["--check"]:
        sys.stdout.write(text())
        return
    # word by word, numbers up to what another libm may do to them
    have, want = open(sys.argv[2]).read().split(), text().split()
    if len(have) != len(want):
        sys.exit("%d words, expected %d" % (len(have), len(want)))
    for a, b in zip(have, want):
        try:
            if abs(float(a.strip("{},")) - float(b.strip("{},"))) > 1e-9 * max(1, abs(float(b.strip("{},")))):
                sys.exit("%s, expected %s" % (a, b))
        except ValueError:
            if a != b:
                sys.exit("%s, expected %s" % (a, b))


main()
