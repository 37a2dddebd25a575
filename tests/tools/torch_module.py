# SPDX-License-Identifier: MIT-0
# torch_module.py PLANS FOLDER: the cases of test_torch_module.sh; PLANS are torch_plan's lines, FOLDER takes files for onnx_evaluate.c.
import copy, ctypes, functools, io, math, os, pickle, subprocess, sys, warnings
import torch
from torch import nn
import lgelu

plans, folder = sys.argv[1:]
failed = 0
def case(name):
    def run(test):
        global failed
        try:
            said = test()
            print(f"ok {name}")
            if said: print(f"# {said}")
        except Exception as e:
            failed = 1
            said, line = (str(e).splitlines() or [""])[0], e.__traceback__.tb_next.tb_lineno
            print(f"FAIL {name}: {type(e).__name__}: {said} (line {line})")
    return run
def must(condition, why=""):
    if not condition: raise AssertionError(why)
def same(a, b):                              # to the bit
    whole = {8: torch.int64, 4: torch.int32, 2: torch.int16}[a.element_size()]
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.contiguous().view(whole), b.contiguous().view(whole))
def both(x, lam, dy, axis=1):
    """y, dx, dλ"""
    x, lam = x.detach().requires_grad_(), torch.as_tensor(lam).detach().clone().requires_grad_()
    y = lgelu.gate(x, lam, axis)
    y.backward(dy)
    return y.detach(), x.grad, lam.grad
def refused(kind, words, call):
    try: call()
    except kind as e:
        must(words in str(e), f"said {e}")
        return
    raise AssertionError(f"not refused: {words}")
torch.manual_seed(1)
double = lambda *shape: torch.randn(*shape, dtype=torch.float64)

@case("gradcheck in double: x and λ; one λ, channels along any axis, any layout")
def _():
    def check(x, lam, axis=1):
        must(torch.autograd.gradcheck(lambda a, l: lgelu.gate(a, l, axis), (x.requires_grad_(), lam.requires_grad_())))
    for lam in 1.0, 2.0, 7.5: check(double(4, 5), torch.tensor(lam, dtype=torch.float64))
    check(torch.tensor(0.3, dtype=torch.float64), torch.tensor([1.5], dtype=torch.float64))
    check(double(4, 3), 1 + 3 * torch.rand(3, dtype=torch.float64))
    check(double(2, 3, 4), 1 + 3 * torch.rand(4, dtype=torch.float64), -1)
    check(double(2, 3, 2, 2), 1 + 3 * torch.rand(3, dtype=torch.float64))
    check(double(2, 3, 2, 2).to(memory_format=torch.channels_last), 1 + 3 * torch.rand(3, dtype=torch.float64))
    check(double(4, 3).t(), 1 + 3 * torch.rand(4, dtype=torch.float64))
    for map in "softplus", "sigmoid", "direct":
        g = lgelu.LambdaGELU(1.7, channels=3, map=map).double()
        must(torch.autograd.gradcheck(lambda x, s: torch.nn.utils.stateless.functional_call(g, {"s": s}, x),
                                      (double(4, 3).requires_grad_(), g.s.detach().clone().requires_grad_())))

@case("gradcheck catches a wrong derivative")
def _():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x): ctx.save_for_backward(x); return lgelu.gate(x, 2.0).detach()
        @staticmethod
        def backward(ctx, dy):
            with torch.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                return torch.autograd.grad(lgelu.gate(x, 2.001), x, dy)[0]
    must(not torch.autograd.gradcheck(Wrong.apply, (double(5).requires_grad_(),), raise_exception=False))

@case("in double it is PyTorch's formula to 1e-14, value and gradients")
def _():
    x, dy = double(1000), double(1000)
    for lam in 1.0, 1.693147, 3.0:
        l = torch.tensor(lam, dtype=torch.float64)
        mine = both(x, l, dy)
        a, b = x.clone().requires_grad_(), l.clone().requires_grad_()
        y = a * torch.special.erfc(-a * b * math.sqrt(0.5)) / 2
        y.backward(dy)
        for name, m, t in zip(("y", "dx", "dλ"), mine, (y.detach(), a.grad, b.grad)):
            worst = float(((m - t).abs() / t.abs().clamp(min=1)).max())
            must(worst <= 1e-14, f"{name} at λ = {lam}: {worst:.3g}")

@case("float32: lgelu_forward and lgelu_backward to the bit, and double to 4 units in the last place")
def _():
    lib, x, dy = lgelu._lib, torch.randn(20000), torch.randn(20000)
    lib.lgelu_forward.restype, lib.lgelu_backward.restype = None, ctypes.c_double
    p, f, n = ctypes.c_void_p, ctypes.c_float, ctypes.c_size_t
    for lam in 1.0, 2.0, 30.0, 159.57691, math.inf:
        y, dx, dlam = both(x, lam, dy)
        must(dlam.dtype == torch.float32)
        a, b = torch.empty_like(x), torch.empty_like(x)
        lib.lgelu_forward(p(a.data_ptr()), p(x.data_ptr()), f(lam), n(len(x)))
        total = lib.lgelu_backward(p(b.data_ptr()), p(dy.data_ptr()), p(x.data_ptr()), f(lam), n(len(x)))
        must(same(y, a) and same(dx, b) and float(dlam) == float(torch.tensor(total).float()), f"λ = {lam}")
        wide = both(x.double(), float(torch.tensor(lam)), dy.double())
        for m, t, least in (y, wide[0], 1), (dx, wide[1], dy.abs().clamp(min=1)):    # dy times what is below 2^-126
            unit = torch.ldexp(torch.ones_like(t), torch.frexp(t)[1] - 24)
            unit = torch.maximum(unit, least * torch.tensor(2.0 ** -149).double())
            worst = float(((m.double() - t).abs() / unit).max())
            must(worst <= 4, f"λ = {lam}: {worst:.3g} units")

@case("any number of threads gives the same bits, in every type, one λ and channels")
def _():
    inputs = ((torch.randn(300007), torch.tensor(2.0), 1), (torch.randn(130, 16, 65), 1 + torch.rand(16), 1),
              (torch.randn(999, 200), 1 + torch.rand(200), -1))
    for kind in torch.float32, torch.float64, torch.bfloat16, torch.float16:
        for x, lam, axis in inputs:
            results = []
            for threads in 1, 2, 3:
                torch.set_num_threads(threads)
                torch.manual_seed(2)
                results.append(both(x.to(kind), lam, torch.randn(x.shape).to(kind), axis))
            torch.set_num_threads(1)
            for other in results[1:]: must(all(same(a, b) for a, b in zip(results[0], other)), f"{kind}, {tuple(x.shape)}")

@case("bfloat16 and float16: lgelu_forward_bf16 and its siblings to the bit, channels in float32 and rounded once")
def _():
    lib, p, f, n = lgelu._lib, ctypes.c_void_p, ctypes.c_float, ctypes.c_size_t
    for kind, name, bits in (torch.bfloat16, "bf16", 8), (torch.float16, "f16", 11):
        x, dy = torch.randn(5000).to(kind), torch.randn(5000).to(kind)
        y, dx, dlam = both(x, torch.tensor(2.5), dy)
        a, b = torch.empty_like(x), torch.empty_like(x)
        backward = getattr(lib, f"lgelu_backward_{name}")
        backward.restype = ctypes.c_double
        getattr(lib, f"lgelu_forward_{name}")(p(a.data_ptr()), p(x.data_ptr()), f(2.5), n(5000))
        total = backward(p(b.data_ptr()), p(dy.data_ptr()), p(x.data_ptr()), f(2.5), n(5000))
        must(same(y, a) and same(dx, b) and float(dlam) == float(torch.tensor(total).float()), name)
        wide = both(x.float(), torch.tensor(2.5), dy.float())
        for m, t in (y, wide[0]), (dx, wide[1]):             # half a unit of the 16-bit number, and its smallest
            unit = torch.ldexp(torch.ones_like(t), torch.frexp(t)[1] - bits)
            must(bool(((m.float() - t).abs() <= 0.51 * unit + 2.0 ** -25).all()), name)
        x, dy, lam = torch.randn(31, 7, 9).to(kind), torch.randn(31, 7, 9).to(kind), 1 + 3 * torch.rand(7)
        y, dx, dlam = both(x, lam, dy)
        wide = both(x.float(), lam, dy.float())
        must(same(y, wide[0].to(kind)) and same(dx, wide[1].to(kind)) and same(dlam, wide[2]), f"{name}, channels")
    model = nn.Sequential(nn.Linear(4, 4), lgelu.LambdaGELU(1.3)).bfloat16()
    must(model[1].s.dtype == torch.float32 and model(torch.randn(2, 4).bfloat16()).dtype == torch.bfloat16)

@case("layouts: transposed, sliced, expanded, channels last, a gradient of another layout")
def _():
    base, lam = torch.randn(6, 8, 4, 5), 1 + torch.rand(8)
    shapes = {"transposed": base.transpose(1, 2).contiguous().transpose(1, 2), "every other": torch.randn(6, 8, 4, 10)[..., ::2],
              "cut": base[:, :, 1:], "expanded": torch.randn(6, 8, 1, 1).expand(6, 8, 4, 5),
              "channels last": base.contiguous(memory_format=torch.channels_last)}
    for name, x in shapes.items():
        for l in torch.tensor(3.0), lam:
            dy = torch.randn(x.shape)
            for gradient in dy, dy.to(memory_format=torch.channels_last), dy[:, :, :1, :1].expand(x.shape):
                mine, plain = both(x, l, gradient), both(x.contiguous(), l, gradient.contiguous())
                must(same(mine[0], plain[0]) and same(mine[1], plain[1]), name)
                must(torch.allclose(mine[2], plain[2], rtol=1e-5, atol=1e-5), f"{name}: dλ")        # a sum in another order
    y = lgelu.gate(shapes["channels last"], 2.0)
    must(y.is_contiguous(memory_format=torch.channels_last))

@case("views that are only marked as negated: x, dy, λ and s count with their sign, value and gradients")
def _():
    z, dy = torch.randn(500, dtype=torch.complex64), torch.randn(500)
    views = {"_neg_view": torch._neg_view(torch.randn(500)), "z.conj().imag": z.conj().imag}
    for kind in torch.float32, torch.float64:
        for name, view in views.items():
            for lam in torch.tensor(2.0), 1 + torch.rand(500):
                x = view if kind == torch.float32 else torch._neg_view(-view.double())
                must(x.is_neg(), name)
                negated = torch._neg_view(-dy.to(kind))
                plain = both(x.resolve_neg(), lam, dy.to(kind), 0)
                for gradient in dy.to(kind), negated:
                    mine = both(x, lam, gradient, 0)
                    must(all(same(a.resolve_neg(), b) for a, b in zip(mine, plain)), f"{name}, {kind}")
                must(same(lgelu.gate(x, torch._neg_view(-lam.double()), 0), lgelu.gate(x.resolve_neg(), lam.double(), 0)), "λ")
    z = z.requires_grad_()
    lgelu.gate(z.conj().imag, 2.0).sum().backward()
    w = z.detach().clone().requires_grad_()
    lgelu.gate(-w.imag, 2.0).sum().backward()
    must(torch.equal(z.grad.resolve_conj(), w.grad.resolve_conj()), "the gradient of z")
    g = lgelu.LambdaGELU(2.0, channels=3)
    lam = g.lam.detach()
    g.s.data = torch._neg_view(-g.s.data)
    must(g.s.is_neg() and same(g.lam.detach(), lam), "s")

@case("no elements, no dimensions, gradients that nobody wants")
def _():
    y, dx, dlam = both(torch.empty(0, 3), torch.tensor(2.0), torch.empty(0, 3))
    must(y.shape == (0, 3) and dx.shape == (0, 3) and float(dlam) == 0)
    y, dx, dlam = both(torch.empty(0, 3), torch.ones(3), torch.empty(0, 3))
    must(y.shape == (0, 3) and torch.equal(dlam, torch.zeros(3)))
    must(both(torch.tensor(-0.5), torch.tensor(2.0), torch.tensor(1.0))[0].shape == ())
    x, lam = torch.randn(10), torch.tensor(2.0)
    must(not lgelu.gate(x, lam).requires_grad)
    a, b = x.clone().requires_grad_(), lam.clone().requires_grad_()
    with torch.no_grad(): must(not lgelu.gate(a, b).requires_grad)
    lgelu.gate(a, lam).sum().backward()
    lgelu.gate(x, b).sum().backward()
    full = both(x, lam, torch.ones(10))
    must(same(a.grad, full[1]) and same(b.grad, full[2]) and lam.grad is None and x.grad is None)
    kept = x.clone()
    lgelu.gate(x, 2.0)
    must(same(kept, x), "the input was changed")

@case("λ = inf is torch.relu, NaN stays NaN, λ = 1 is GELU")
def _():
    x = torch.cat([torch.randn(1000), torch.tensor([0.0, -0.0, math.inf, -math.inf, 1e-45])])
    must(torch.equal(lgelu.gate(x, math.inf), torch.relu(x)) and bool(lgelu.gate(torch.tensor([math.nan]), 2.0).isnan().all()))
    must(torch.allclose(lgelu.gate(x[:1000], 1.0), nn.functional.gelu(x[:1000]), rtol=1e-5, atol=1e-6))

@case("a second derivative is refused, and formula has it")
def _():
    x = torch.randn(4, requires_grad=True)
    g, = torch.autograd.grad(lgelu.gate(x, 2.0).sum(), x, create_graph=True)
    refused(RuntimeError, "no second derivative", lambda: g.sum().backward())
    must(torch.autograd.gradgradcheck(lambda a: lgelu.formula(a, 2.0), (double(4).requires_grad_(),)))

@case("errors name what is wrong")
def _():
    refused(TypeError, "floating point", lambda: lgelu.gate(torch.ones(3, dtype=torch.int32), 2.0))
    refused(TypeError, "expected a tensor", lambda: lgelu.gate([1.0], 2.0))
    refused(ValueError, "4 λ's, but x of shape (2, 3) has 3 channels", lambda: lgelu.gate(torch.ones(2, 3), torch.ones(4)))
    refused(ValueError, "no axis 5", lambda: lgelu.gate(torch.ones(2, 3), torch.ones(3), 5))
    refused(ValueError, "not of shape (2, 2)", lambda: lgelu.gate(torch.ones(2, 2), torch.ones(2, 2)))
    refused(ValueError, "no λ of 1", lambda: lgelu.LambdaGELU(1.0))
    refused(ValueError, "no map", lambda: lgelu.LambdaGELU(map="square"))
    refused(ValueError, "temperature", lambda: lgelu.LambdaGELU(t=0))
    refused(ValueError, "1 or more", lambda: lgelu.LambdaGELU().drive(0.5))
    refused(ValueError, "together", lambda: lgelu.LambdaGELU(channels=2).drive([0, 2]))
    refused(ValueError, "no LambdaGELU", lambda: lgelu.Hardening(nn.Linear(2, 2), lgelu.Plan.paper(10)))
    refused(ValueError, "no shape", lambda: lgelu.Plan(100, 1, 2, shape="square"))
    refused(ValueError, "0 or more, not -1", lambda: lgelu.gate(torch.ones(2), -1))
    refused(ValueError, "0 or more, not nan", lambda: lgelu.gate(torch.ones(2), math.nan))
    refused(TypeError, "a number or a tensor, not NoneType", lambda: lgelu.gate(torch.ones(2), None))
    refused(TypeError, "layout torch.sparse_coo", lambda: lgelu.gate(torch.ones(2).to_sparse(), 2.0))
    for channels in 0, -1, 2.0: refused(ValueError, "above 0, or None", lambda: lgelu.LambdaGELU(channels=channels))
    for order in (5, 3), (5, 9, 8), (-1, 3), (0, 0): refused(ValueError, "in this order", lambda: lgelu.Plan(100, *order))
    refused(ValueError, "1 or more steps", lambda: lgelu.Plan.to_relu(0))
    refused(TypeError, "steps are numbers, not '10'", lambda: lgelu.Plan.to_relu("10"))
    for lam in "two", [1.5, 2.0], None: refused(TypeError, f"one number, not {lam!r}", lambda: lgelu.LambdaGELU(lam))
    refused(TypeError, "a Plan behind the model, found Sequential", lambda: lgelu.Hardening(lgelu.Plan.to_relu(9), nn.Sequential()))
    for call in lgelu.replace_gelu, lgelu.relu_, lgelu.to_relu, lambda m: lgelu.Hardening(m, lgelu.Plan.to_relu(9)):
        refused(TypeError, "an nn.Module, found OrderedDict", lambda: call(nn.Linear(2, 2).state_dict()))
    refused(ValueError, "has LambdaGELU already", lambda: lgelu.replace_gelu(nn.Sequential(lgelu.LambdaGELU())))
    model = nn.Sequential(lgelu.LambdaGELU())
    refused(TypeError, "torch.jit.script cannot compile", lambda: torch.jit.script(model))
    for empty in model.to("meta"), copy.deepcopy(model).to_empty(device="cpu"): must("LambdaGELU(" in repr(empty))

@case("torch.fx: the gate is a leaf of the graph, as a module and as a function, and learns there")
def _():
    model = nn.Sequential(nn.Linear(4, 3), lgelu.LambdaGELU(channels=3), nn.Linear(3, 2))
    graph, x = torch.fx.symbolic_trace(model), torch.randn(5, 4)
    must(torch.equal(graph(x), model(x)) and [n.op for n in graph.graph.nodes].count("call_module") == 3)
    graph(x).sum().backward()
    must(float(model[1].s.grad.abs().sum()) > 0)
    graph = torch.fx.symbolic_trace(lambda a: lgelu.gate(a, 2.0) + 1)
    must(torch.equal(graph(x), lgelu.gate(x, 2.0) + 1))

@case("copies by copy.deepcopy, pickle and torch.save of whole models, in each state, with their plans and optimisers")
def _():
    for state in "learned", "driven", "relu":
        model = nn.Sequential(nn.Linear(4, 3), lgelu.LambdaGELU(1.5), nn.Linear(3, 3), lgelu.LambdaGELU(1.5, channels=3))
        if state == "driven": [g.drive(3.0) for g in lgelu.gates(model)]
        if state == "relu": lgelu.relu_(model)
        x, file = torch.randn(5, 4), io.BytesIO()
        torch.save(model, file)
        for other in copy.deepcopy(model), pickle.loads(pickle.dumps(model)), torch.load(io.BytesIO(file.getvalue())):
            must(same(other(x), model(x)) and [g.state for g in lgelu.gates(other)] == [state] * 2, state)
            lgelu.gates(other)[0].drive(7.0)
            must(lgelu.gates(model)[0].state == state and not same(other(x), model(x)), "a copy shares its λ")
    optimizer = torch.optim.AdamW(lgelu.parameter_groups(model, 1e-2))
    hardening = lgelu.Hardening(model, lgelu.Plan.to_relu(10), optimizer)
    for copied in copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v)):
        other, theirs, plan = copied((model, optimizer, hardening))
        for _ in range(6): plan.step()
        must(plan.gates[0] is other[1] and theirs.param_groups[0]["lr"] == plan.optimizer.param_groups[0]["lr"])

@case("λ(s) and its slope are the header's to the bit, and the double road's to 1e-6")
def _():
    lib = lgelu._lib
    lib.lgelu_lambda.restype = lib.lgelu_lambda_slope.restype = ctypes.c_float
    for map, first, last in ("softplus", -3, 20), ("sigmoid", -1, 1), ("direct", 0.5, 200):
        s = torch.linspace(first, last, 400)
        g = lgelu.LambdaGELU(2.0, channels=400, map=map)
        g.s.data = s
        g.lam.sum().backward()
        h = ctypes.byref(g._h())
        must([float(l) for l in g.lam] == [lib.lgelu_lambda(h, ctypes.c_float(float(v))) for v in s], map)
        must([float(d) for d in g.s.grad] == [lib.lgelu_lambda_slope(h, ctypes.c_float(float(v))) for v in s], map)
        wide = copy.deepcopy(g).double()
        wide.zero_grad()
        wide.lam.sum().backward()
        must(torch.allclose(wide.lam.float(), g.lam, rtol=1e-6) and torch.allclose(wide.s.grad.float(), g.s.grad, rtol=1e-5), map)
    must(abs(float(lgelu.LambdaGELU(1.05).lam) - 1.05) < 1e-6)

@case("rates and driven λ's are those of lgelu_net_step to the bit, in both plans")
def _():
    lines = [line.split() for line in open(plans)]
    for kind, steps in sorted({(l[0], int(l[1])) for l in lines}):
        model = nn.Sequential(lgelu.LambdaGELU(1.05), lgelu.LambdaGELU(2.5, channels=3))
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        hardening = lgelu.Hardening(model, getattr(lgelu.Plan, kind)(steps), optimizer)
        for line in (l for l in lines if l[0] == kind and int(l[1]) == steps):
            must(hardening.steps + 1 == int(line[2]))
            now = [optimizer.param_groups[0]["lr"], float(model[0].lam), float(model[1].lam[2])]
            must(now == [float.fromhex(v) for v in line[3:]], f"{line}, here {[v.hex() for v in now]}")
            hardening.step()
    return f"{len(lines)} steps"

@case("lgelu_harden's shapes by their formulas in double, to 1e-6")
def _():
    for shape in "geometric", "linear", "cosine", "linear_s":
        plan = lgelu.Plan(159.57691, 10, 50, shape=shape)
        for step in range(1, 61):
            p, a, b = min(max((step - 10) / 40, 0), 1), 1.5, 159.57691
            s = lambda l: 0.1 * (l - 1 + math.log(-math.expm1(1 - l)))
            expect = {"geometric": a * (b / a) ** p, "linear": a + p * (b - a),
                      "cosine": a + (0.5 - 0.5 * math.cos(math.pi * p)) * (b - a),
                      "linear_s": 1 + math.log1p(math.exp((s(a) + p * (s(b) - s(a))) / 0.1))}[shape]
            must(abs(plan.lam(a, step) / expect - 1) < 1e-6, f"{shape}, step {step}: {plan.lam(a, step)}, expected {expect}")

@case("the group of s: AdamW at c times the rate without decay is lgelu_hardness_step to 1e-6")
def _():
    class Adam(ctypes.Structure): _fields_ = [(k, ctypes.c_float) for k in ("lr", "beta1", "beta2", "eps", "weight_decay")]
    model = nn.Sequential(nn.Linear(3, 3), lgelu.LambdaGELU(1.6), nn.LayerNorm(3))
    groups = lgelu.parameter_groups(model, 1e-2, 0.1, c=3)
    what = [(len(g["params"]), g["weight_decay"], round(g["lr"], 9)) for g in groups]
    must(what == [(1, 0.1, 0.01), (3, 0.0, 0.01), (1, 0.0, 0.03)], what)
    optimizer, g = torch.optim.AdamW(groups), model[1]
    at, h, opt = ctypes.byref, g._h(), Adam(1e-2, 0.9, 0.999, 1e-8, 0.1)
    s, m, v, lam = (ctypes.c_float(x) for x in (float(g.s), 0, 0, 0))
    for step in range(1, 21):
        x, dy = torch.randn(50), torch.randn(50)
        optimizer.zero_grad()
        lam_now = g.lam
        dlam = ctypes.c_double(float(both(x, lam_now, dy)[2]))
        g(x).backward(dy)
        optimizer.step()
        lgelu._lib.lgelu_hardness_step(at(s), at(m), at(v), at(lam), at(dlam), at(h), at(opt), ctypes.c_float(3),
                                       ctypes.c_long(step), ctypes.c_size_t(1))
        must(abs(float(g.lam) / lam.value - 1) < 1e-6, f"step {step}: {float(g.lam)}, {lam.value}")
    must(abs(float(g.lam) - 1.6) > 1e-3, "λ has not moved")

@case("replace_gelu, relu_, to_relu: shared and nested modules, the same answers")
def _():
    act = nn.GELU()
    inner = nn.Sequential(nn.Linear(8, 8), act, nn.GELU())
    model = nn.Sequential(nn.Linear(8, 8), act, inner, nn.Linear(8, 2)).eval()
    shared = lgelu.replace_gelu(copy.deepcopy(model), share=True)
    x, before = torch.randn(50, 8), None
    lgelu.replace_gelu(model, lam=1.2)
    must(len(lgelu.gates(model)) == 3 and len(lgelu.gates(shared)) == 2 and all(not g.training for g in lgelu.gates(model)))
    before = model(x)
    lgelu.relu_(model)
    hard = model(x)
    must(not torch.equal(before, hard))
    for g in lgelu.gates(model): g.drive(0)
    must(torch.equal(model(x), before))
    must(torch.equal(lgelu.to_relu(model)(x), hard) and not lgelu.gates(model))
    must(sum(isinstance(m, nn.ReLU) for m in model.modules()) == 3)
    must(isinstance(lgelu.to_relu(lgelu.LambdaGELU()), nn.ReLU) and len(list(lgelu.to_relu(shared).parameters())) == 6)

@case("nn.TransformerEncoderLayer: nn.GELU, \"gelu\" and F.gelu are replaced, in training and in inference's fast path")
def _():
    warnings.filterwarnings("ignore")
    x, pad = torch.randn(3, 5, 8), torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 1, 1, 1]]).bool()
    for kind in nn.GELU(), "gelu", nn.functional.gelu:
        for norm_first in False, True:
            layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation=kind, batch_first=True, norm_first=norm_first)
            model = nn.TransformerEncoder(layer, 2).eval()
            def fast(mask=None):
                with torch.no_grad(): return model(x, src_key_padding_mask=mask)
            def slow(): return model(x).detach()
            gelu, rows = fast(), ~pad
            must(torch.allclose(gelu, slow(), atol=1e-5), "the reference")
            lgelu.replace_gelu(model, lam=3.0)
            must(len(lgelu.gates(model)) == 2, f"{len(lgelu.gates(model))} gates")
            y = fast()
            must(not torch.allclose(y, gelu, atol=1e-3), f"{kind}: inference still computes GELU")
            must(torch.allclose(y, slow(), atol=1e-5), f"{kind}: inference differs from training")
            masked = fast(pad)
            must(torch.allclose(masked[0], y[0], atol=1e-5) and bool(masked[rows].isfinite().all()), "a padding mask")
            optimizer = torch.optim.SGD(lgelu.parameter_groups(model, 0.1))
            model(x).square().mean().backward()
            must(all(float(g.s.grad.abs()) > 0 for g in lgelu.gates(model)), "λ has no gradient")
            lgelu.relu_(model)
            hard = fast()
            must(torch.allclose(hard, slow(), atol=1e-5) and not torch.allclose(hard, y, atol=1e-3), f"{kind}: relu_")
            lgelu.to_relu(model)
            must(torch.allclose(fast(), hard, atol=1e-5) and torch.allclose(slow(), hard, atol=1e-5), f"{kind}: to_relu")
            must(all(l.activation_relu_or_gelu == 1 and isinstance(l.activation, nn.ReLU) for l in model.layers))
    decoder = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True)
    lgelu.replace_gelu(decoder, lam=3.0)
    must(len(lgelu.gates(decoder)) == 1 and decoder(x, x).shape == x.shape)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True).eval()
    layer.activation = lgelu.LambdaGELU(3.0)                          # put in by hand: the plan sees to it
    lgelu.Hardening(layer, lgelu.Plan.to_relu(8))
    with torch.no_grad(): must(torch.allclose(layer(x), layer(x.clone().requires_grad_()).detach(), atol=1e-5))

@case("a model without a gate is refused by replace_gelu, relu_ and to_relu, and stays as it is")
def _():
    class Hidden(nn.Module):
        def __init__(self): super().__init__(); self.fc = nn.Linear(3, 3)
        def forward(self, x): return nn.functional.gelu(self.fc(x))
    for model in nn.Sequential(nn.Linear(3, 3), nn.ReLU()), Hidden():
        refused(ValueError, "no nn.GELU", lambda: lgelu.replace_gelu(model))
        refused(ValueError, "no nn.GELU", lambda: lgelu.replace_gelu(model, share=True))
        refused(ValueError, "no LambdaGELU", lambda: lgelu.relu_(model))
        refused(ValueError, "no LambdaGELU", lambda: lgelu.to_relu(model))
        must(len(list(model.parameters())) == 2)
    kept = nn.Sequential(nn.Linear(3, 3))
    kept[0].act = functools.partial(nn.functional.gelu, approximate="tanh")
    must(len(lgelu.gates(lgelu.replace_gelu(kept))) == 1, "F.gelu with an argument")

def warned(call):
    """what a call returns, and its warnings as (text, file)"""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [(str(w.message), w.filename) for w in caught]

@case("replace_gelu: GELU in its tanh form becomes erf's with a warning that has the largest difference; erf's form warns of nothing")
def _():
    tanh = functools.partial(nn.functional.gelu, approximate="tanh")
    class Kept(nn.Module):
        def __init__(self, act): super().__init__(); self.act = act
    model = nn.Sequential(nn.GELU(), nn.GELU(approximate="tanh"), Kept(tanh), Kept(nn.functional.gelu))
    _, said = warned(lambda: lgelu.replace_gelu(model))
    must(len(said) == 1 and said[0][0].startswith("lgelu: 2 of 4 gates were GELU(approximate='tanh')") and said[0][1] == __file__, said)
    must(len(lgelu.gates(model)) == 4)
    must(len(warned(lambda: lgelu.replace_gelu(nn.GELU(approximate="tanh")))[1]) == 1, "a GELU alone")
    must(not warned(lambda: lgelu.replace_gelu(nn.Sequential(nn.GELU(), Kept(nn.functional.gelu))))[1], "erf's form")
    x = torch.linspace(-8, 8, 1000001, dtype=torch.float64)
    worst = float((lgelu.gate(x, 1.0) - tanh(x)).abs().max())
    must(f"{worst:.2g}" in said[0][0], f"they differ by {worst:.3g}")

@case("replace_gelu: SiLU and other smooth activations are refused by name, as modules and as functions, and pointed to refit")
def _():
    class Kept(nn.Module):
        def __init__(self, act): super().__init__(); self.act = act
    for kind in "SiLU", "Mish", "ELU", "CELU", "SELU", "Softplus", "Hardswish", "LogSigmoid":
        for model in (nn.Sequential(nn.Linear(3, 3), getattr(nn, kind)()), getattr(nn, kind)(), Kept(getattr(nn.functional, kind.lower())),
                      Kept(functools.partial(getattr(nn.functional, kind.lower())))):
            before = copy.deepcopy(model)
            refused(ValueError, f"but 1 × {kind}: lgelu.refit(model, batches)", lambda: lgelu.replace_gelu(model))
            must(str(model) == str(before), kind)
    refused(ValueError, "but 1 × ELU, 2 × SiLU: lgelu.refit", lambda: lgelu.replace_gelu(nn.Sequential(nn.SiLU(), nn.ELU(), nn.SiLU())))
    mixed = lgelu.replace_gelu(nn.Sequential(nn.SiLU(), nn.GELU()))
    must(isinstance(mixed[0], nn.SiLU) and len(lgelu.gates(mixed)) == 1, "a model with both")

@case("tolerances: lambda_for_tolerance, gate_error, lambda_for_gap and gap are the header's, and integrals; plans take τ")
def _():
    for lam in 1.0, 3.0, 159.577:
        x = torch.linspace(-12 / lam, 12 / lam, 2000001, dtype=torch.float64)
        wrong = (torch.special.ndtr(lam * x) - (x > 0).double()).abs()
        must(abs(float(torch.trapezoid(wrong, x)) / lgelu.gate_error(lam) - 1) < 1e-5, f"τ of {lam}")
        far = float((x * torch.special.ndtr(lam * x) - x.relu()).abs().max())
        must(abs(far / lgelu.gap(lam) - 1) < 1e-6, f"the gap of {lam}")
        must(abs(lgelu.lambda_for_tolerance(lgelu.gate_error(lam)) / lam - 1) < 1e-6 and abs(lgelu.lambda_for_gap(lgelu.gap(lam)) / lam - 1) < 1e-6)
    must(abs(lgelu.lambda_for_tolerance(0.005) - 159.57692) < 1e-5 and lgelu.lambda_for_tolerance(0) == math.inf == lgelu.lambda_for_gap(0))
    for make in lgelu.Plan.to_relu, lgelu.Plan.paper:
        must(make(40).target == make(40, tau=0.005).target == lgelu.lambda_for_tolerance(0.005) and abs(make(40).tau - 0.005) < 1e-8)
        must(abs(make(40, tau=0.02).target - 2 / (0.02 * math.sqrt(2 * math.pi))) < 1e-5 and make(40, 0.02).begin == make(40).begin)
    refused(ValueError, "0 or more, not -1", lambda: lgelu.lambda_for_tolerance(-1))
    refused(ValueError, "not nan", lambda: lgelu.lambda_for_gap(math.nan))
    refused(ValueError, "above 0, found 0", lambda: lgelu.gate_error(0))
    refused(ValueError, "above 1, not 0.79", lambda: lgelu.Plan.to_relu(40, tau=1.0))

@case("profile: a row for each gate, learned, driven and ReLU; channels by mean and ends; a figure of several profiles")
def _():
    model = nn.Sequential(nn.Linear(4, 4), lgelu.LambdaGELU(1.5), nn.Sequential(lgelu.LambdaGELU(2.0, channels=3)), lgelu.LambdaGELU(3.0))
    model[2][0].drive(torch.tensor([2.0, 3.0, 7.0]))
    model[3].relu_()
    rows = lgelu.profile(model)
    must([(r["layer"], r["name"], r["state"]) for r in rows] == [(1, "1", "learned"), (2, "2.0", "driven"), (3, "3", "relu")], rows)
    must([(round(r["lam"], 6), round(r["min"], 6), r["max"]) for r in rows][1:] == [(4.0, 2.0, 7.0), (math.inf,) * 3], rows)
    must(abs(rows[0]["lam"] - 1.5) < 1e-6 and rows[1]["tau"] == lgelu.gate_error(4.0) and rows[2]["tau"] == 0, rows)
    refused(ValueError, "no LambdaGELU", lambda: lgelu.profile(nn.Sequential(nn.GELU())))
    kept, sys.modules["matplotlib.figure"] = sys.modules.get("matplotlib.figure"), None
    refused(ImportError, "needs matplotlib", lambda: lgelu.plot_profile(model))
    del sys.modules["matplotlib.figure"]
    if kept: sys.modules["matplotlib.figure"] = kept
    try: import matplotlib
    except ImportError: return "no figure: no matplotlib"
    axes = lgelu.plot_profile({"before": rows[:2], "after": nn.Sequential(lgelu.LambdaGELU(5.0))}, f"{folder}/profile.svg")
    drawn = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "o"]
    must(drawn == [[[1, rows[0]["lam"]], [2, 4.0]], [[1, lgelu.profile(nn.Sequential(lgelu.LambdaGELU(5.0)))[0]["lam"]]]], drawn)
    must([t.get_text() for t in axes.get_legend().get_texts()] == ["before", "after"] and axes.get_ylabel() == "λ")
    must(open(f"{folder}/profile.svg").read().lstrip().startswith("<?xml") and lgelu.plot_profile(rows[:1], ax=axes) is axes)
    must(len(lgelu.plot_profile(model[1]).lines) == 1 and lgelu.plot_profile(model[1]).get_legend() is None)

def job(steps, stop=None):
    torch.manual_seed(4)
    make = lambda: nn.Sequential(nn.Linear(5, 16), lgelu.LambdaGELU(), nn.Linear(16, 16), lgelu.LambdaGELU(channels=16),
                                 nn.Linear(16, 1))
    def setup(model):
        optimizer = torch.optim.AdamW(lgelu.parameter_groups(model, 1e-2, c=2))
        return model, optimizer, lgelu.Hardening(model, lgelu.Plan.to_relu(steps), optimizer)
    model, optimizer, hardening = setup(make())
    data = torch.randn(steps, 32, 5)
    for step in range(steps):
        if step == stop:
            file = io.BytesIO()
            torch.save([o.state_dict() for o in (model, optimizer, hardening)], file)
            model, optimizer, hardening = setup(make())
            for o, state in zip((model, optimizer, hardening), torch.load(io.BytesIO(file.getvalue()))): o.load_state_dict(state)
        optimizer.zero_grad()
        ((model(data[step]) - data[step, :, :1].abs()) ** 2).mean().backward()
        optimizer.step()
        hardening.step()
    return model

@case("stopped at any step and resumed from files, a run ends with the same bits")
def _():
    whole = job(40)
    must(all(bool((g.lam == lgelu.Plan.to_relu(40).target).all()) for g in lgelu.gates(whole)))
    for stop in 1, 9, 10, 11, 25, 30, 39:
        other = job(40, stop)
        must(all(same(a, b) for a, b in zip(whole.state_dict().values(), other.state_dict().values())), f"stopped at {stop}")
    one = copy.deepcopy(whole)
    must(torch.equal(one(torch.ones(2, 5)), whole(torch.ones(2, 5))))

@case("vmap, functorch and forward derivatives: the formula's values and derivatives, of the gate and of the module in each state")
def _():
    warnings.filterwarnings("ignore")
    try: import torch.func as func
    except ImportError: import functorch as func
    forward_ad, functional = torch.autograd.forward_ad, torch.autograd.functional
    x, v, w = double(5, 4), double(5, 4), torch.randn(7, 5, 4, dtype=torch.float64)
    near = lambda a, b, why: must(a.shape == b.shape and torch.allclose(a, b, rtol=1e-9, atol=1e-12), why)
    def batched(f, a):
        y = f(a.requires_grad_())
        return torch.autograd.grad(y, a, w, is_grads_batched=True)[0]
    def dual(f, a):
        with forward_ad.dual_level(): return forward_ad.unpack_dual(f(forward_ad.make_dual(a, v))).tangent
    ways = {"vmap": lambda f: func.vmap(lambda r: f(r[None])[0])(x), "grad": lambda f: func.grad(lambda a: (v * f(a)).sum())(x),
            "vjp": lambda f: func.vjp(f, x)[1](v)[0], "jvp": lambda f: func.jvp(f, (x,), (v,))[1],
            "jacrev": lambda f: func.jacrev(f)(x), "jacfwd": lambda f: func.jacfwd(f)(x),
            "hessian": lambda f: func.hessian(lambda a: (v * f(a)).sum())(x),
            "batched gradients": lambda f: batched(f, x.clone()), "forward_ad": lambda f: dual(f, x),
            "vectorize": lambda f: functional.jacobian(f, x, vectorize=True),
            "forward-mode": lambda f: functional.jacobian(f, x, vectorize=True, strategy="forward-mode")}
    refused(RuntimeError, "no second derivative", lambda: functional.hessian(lambda a: lgelu.gate(a, 2.0).sum(), x))
    refused(RuntimeError, "no second derivative", lambda: functional.jvp(lambda a: lgelu.gate(a, 2.0), x, v))
    channels = 1 + 2 * torch.rand(4, dtype=torch.float64)
    for name, way in ways.items():
        for lam in 2.0, channels: near(way(lambda a: lgelu.gate(a, lam, -1)), way(lambda a: lgelu.formula(a, lam)), f"{name}, λ {lam}")
    for channels in None, 4:
        learned, driven, relu, average = (lgelu.LambdaGELU(1.7, channels=channels, axis=-1).double() for _ in range(4))
        driven.drive(3.0)
        relu.relu_()
        average.load_state_dict({**average.state_dict(), "driven": driven.driven / 2, "fraction": torch.tensor(0.5)})
        must(torch.allclose(average.lam, torch.tensor((1.7 + 3.0) / 2).double()), "the average")
        models = [learned, driven, relu, average]
        for g in models:
            for name, way in ways.items():
                if g is relu and name == "hessian": continue
                lam = g.lam.detach().clamp(max=1e18)
                near(way(g), way(lambda a: lgelu.formula(a, lam)), f"{name}, {g.state}")
        near(func.vmap(relu)(torch.zeros(3, 4).double()), torch.zeros(3, 4).double(), "ReLU at 0")
        names = [n for n, _ in models[0].named_parameters()]
        stacked = {n: torch.stack([dict(g.named_parameters())[n].detach() for g in models]) for n in names}
        one = lambda p, a: torch.nn.utils.stateless.functional_call(models[0], p, a)
        near(func.vmap(one, (0, None))(stacked, x), torch.stack([g(x).detach() for g in models]), "four models at once")
        p = {n: q.detach() for n, q in learned.named_parameters()}
        rows = func.vmap(func.grad(lambda q, r: one({**p, "s": q}, r[None]).sum()), (None, 0))(p["s"], x)
        learned.zero_grad()
        learned(x).sum().backward()
        near(rows.sum(0), learned.s.grad, "a gradient for each sample")
        learned.zero_grad()

@case("to_relu before the plan's end warns with the largest change of a gate, which is reached; at its end it doesn't")
def _():
    def said(model):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            must(isinstance(lgelu.to_relu(copy.deepcopy(model))[0][0], nn.ReLU))
        return [str(w.message) for w in caught]
    model, steps, x = nn.Sequential(nn.Sequential(lgelu.LambdaGELU(1.5)), lgelu.LambdaGELU(2.5, channels=3)), 20, torch.linspace(-4, 4, 99999)
    hardening = lgelu.Hardening(model, lgelu.Plan(50.0, 5, 15, steps))
    for step in range(steps + 1):
        lam = min(float(g.lam.min()) for g in lgelu.gates(model))
        message = said(model)
        must(len(message) == (step < 14), f"step {step}: {message}")
        if message:
            change = float((lgelu.gate(x, lam) - torch.relu(x)).abs().max())
            must(f"by up to {change:.3g}." in message[0] and f"gate '0.0' with λ = {lam:g}" in message[0], f"step {step}: {message}")
            must("before the end of the plan at λ = 50: 2 of 2" in message[0], message[0])
        hardening.step()
    cold = said(nn.Sequential(nn.Sequential(lgelu.LambdaGELU(1.5)), lgelu.LambdaGELU().drive(20.0), lgelu.LambdaGELU().relu_()))
    must(len(cold) == 1 and "without a plan: 1 of 3 gates" in cold[0] and "'0.0' with λ = 1.5" in cold[0], str(cold))

@case("an optimizer that was made before replace_gelu has no λ: a Hardening whose plan learns λ warns, and no other one does")
def _():
    def said(plan, early, fixed=False, optimizer=True):
        model = nn.Sequential(nn.Linear(2, 2), nn.GELU(), nn.Linear(2, 2), nn.GELU())
        before = torch.optim.SGD(model.parameters(), 0.1)
        lgelu.replace_gelu(model)
        for g in lgelu.gates(model): g.s.requires_grad_(not fixed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lgelu.Hardening(model, plan, (before if early else torch.optim.SGD(model.parameters(), 0.1)) if optimizer else None)
        return [str(w.message) for w in caught]
    plan = lgelu.Plan(50.0, 5, 15)
    must(len(said(plan, True)) == 1 and "no λ of 2 of 2 gates" in said(plan, True)[0] and "up to step 5" in said(plan, True)[0], str(said(plan, True)))
    for quiet in said(plan, False), said(plan, True, fixed=True), said(plan, True, optimizer=False), said(lgelu.Plan(50.0, 0, 15), True):
        must(not quiet, str(quiet))
    must("up to step 5" in repr(plan) and "50 at step 15" in repr(plan), repr(plan))

@case("DistributedDataParallel without options: two processes end with the same bits, and s stays while λ is driven")
def _():
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_ddp.py")
    store, outs = f"{folder}/store", [f"{folder}/{name}.pt" for name in ("rank0", "rank1", "alone")]
    if os.path.exists(store): os.remove(store)
    runs = [subprocess.Popen([sys.executable, script, rank, store, out, *more], stderr=subprocess.PIPE, text=True)
            for rank, out, *more in (("0", outs[0]), ("1", outs[1]), ("0", outs[2], "alone"))]
    for run in runs:
        said = run.communicate(timeout=300)[1]
        must(run.returncode == 0, (said.strip().splitlines() or ["no message"])[-1])
    one, two, alone = (torch.load(out) for out in outs)
    must(all(same(one["state"][name], two["state"][name]) for name in one["state"]), "the ranks differ")
    must(bool((one["state"]["1.driven"] == one["target"]).all()) and bool((one["state"]["3.driven"] == one["target"]).all()), "λ")
    must(same(one["held"][0], one["state"]["1.s"]) and same(one["held"][1], one["state"]["3.s"]), "s moved while λ was driven")
    for name in one["state"]: must(torch.allclose(one["state"][name], alone["state"][name], rtol=1e-3, atol=1e-4), f"{name}: one process")

class ModelEma(nn.Module):                   # as timm's ModelEmaV2 does it: a deep copy, and every value of the state_dict averaged
    def __init__(self, model, decay):
        super().__init__()
        self.module, self.decay = copy.deepcopy(model), decay
        self.module.eval()
    def update(self, model):
        with torch.no_grad():
            for ema, now in zip(self.module.state_dict().values(), model.state_dict().values()):
                ema.copy_(self.decay * ema + (1.0 - self.decay) * now)

class DataEma(ModelEma):                     # the same through .data, of parameters and buffers
    def update(self, model):
        values = lambda m: list(m.parameters()) + list(m.buffers())
        for ema, now in zip(values(self.module), values(model)): ema.data.mul_(self.decay).add_(now.data, alpha=1 - self.decay)

@case("moving averages of a model (timm's ModelEmaV2, AveragedModel): their λ is the average of the λ's, learned and driven")
def _():
    Averaged, steps, x = torch.optim.swa_utils.AveragedModel, 40, torch.randn(9, 3)
    ema_of = lambda decay: lambda old, new, count: decay * old + (1 - decay) * new
    for channels in None, 3:
        for decay in 0.5, 0.9, 0.9999:
            for start in 0, 20:                          # while λ is learned, and in the middle of the way to ReLU
                model = nn.Sequential(nn.Linear(3, 3), lgelu.LambdaGELU(1.5, channels=channels))
                hardening, copies = lgelu.Hardening(model, lgelu.Plan.to_relu(steps)), {}
                for step in range(steps):
                    if step == start:
                        copies = {"ModelEmaV2": ModelEma(model, decay), "through .data": DataEma(model, decay),
                                  "AveragedModel": Averaged(model, avg_fn=ema_of(decay)),
                                  "AveragedModel, use_buffers": Averaged(model, avg_fn=ema_of(decay), use_buffers=True)}
                        for c in copies.values(): c.eval()
                        truth = float(model[1].lam.reshape(-1)[0])
                    hardening.step()
                    if step < start: continue
                    now = float(model[1].lam.reshape(-1)[0])
                    for name, c in copies.items():
                        if "Averaged" in name: c.update_parameters(model)
                        else: c.update(model)
                    truth = decay * truth + (1 - decay) * now
                    if step == start: first = now
                    average = {name: truth for name in copies}
                    if step == start: swa = first
                    else: swa = decay * swa + (1 - decay) * now               # AveragedModel begins with a plain copy
                    for name in copies:
                        if "Averaged" in name: average[name] = swa
                    for name, c in copies.items():
                        lam = float(c.module[1].lam.reshape(-1)[0])
                        must(abs(lam / average[name] - 1) < 1e-3, f"{name}, decay {decay}, step {step}: {lam}, not {average[name]}")
                        y, z = c(x) if "Averaged" in name else c.module(x), c.module[0](x)
                        must(torch.allclose(y, lgelu.gate(z, c.module[1].lam, -1)), f"{name}: its outputs")
                other = copy.deepcopy(model)
                other.load_state_dict(copies["ModelEmaV2"].module.state_dict())
                must(torch.equal(other[1].lam, copies["ModelEmaV2"].module[1].lam), "its file")
                must(0 < float(other[1].fraction) <= 1 and other[1].state in ("averaged", "driven"))
    model = nn.Sequential(lgelu.LambdaGELU(1.5))
    ema = ModelEma(model, 0.9)
    lgelu.relu_(model)
    ema.update(model)
    must(ema.module[0].state == "relu" and torch.equal(ema.module(x), torch.relu(x)), "the average with ∞")
    average = Averaged(model)
    for _ in range(3): average.update_parameters(model)  # ∞ - ∞
    refused(ValueError, "found nan", lambda: average.eval()(x))

@case("a λ below 1 or NaN in a state_dict is refused, and the gate stays as it is; files without fractions are read")
def _():
    for channels in None, 2:
        model = nn.Sequential(nn.Linear(2, 2), lgelu.LambdaGELU(1.5, channels=channels))
        whole, x = copy.deepcopy(model.state_dict()), torch.randn(4, 2)
        y = model(x)
        for name, value, said in (("driven", 0.5, "1.driven: expected a λ of 1 or more, found 0.5"), ("driven", math.nan, "found nan"),
                                  ("driven", -3.0, "found -3"), ("s", math.nan, "found NaN")):
            for fraction in 1.0, None:
                bad = copy.deepcopy(whole)
                bad["1." + name].fill_(value)
                if name == "s": bad["1.driven"].fill_(2.0)
                bad["1.fraction"] = torch.tensor(1.0)
                if fraction is None: del bad["1.fraction"]
                refused(RuntimeError, said, lambda: model.load_state_dict(bad))
                refused(RuntimeError, said, lambda: model.load_state_dict(bad, strict=False))
                must(torch.equal(model(x), y) and model[1].state == "learned")
        bad = copy.deepcopy(whole)
        bad["1.fraction"] = torch.tensor(2.0)
        refused(RuntimeError, "a fraction from 0 to 1, found [2.0]", lambda: model.load_state_dict(bad))
        old = {name: v for name, v in whole.items() if name != "1.fraction"}
        for lam, state in (0.0, "learned"), (7.0, "driven"), (math.inf, "relu"):
            old["1.driven"] = torch.full_like(whole["1.driven"], lam)
            model.load_state_dict(old)
            must(model[1].state == state and (not lam or bool((model[1].lam == lam).all())), state)

@case("twelve layers are traced and exported without a warning, and the graph has the values of the module")
def _():
    x, layers = torch.randn(5, 6), []
    for i in range(12): layers += [nn.Linear(6, 6), lgelu.LambdaGELU(1.5, channels=6 if i % 2 else None)]
    model = nn.Sequential(*layers)
    for i, lam in (5, 30.0), (7, 20.0), (9, math.inf), (11, [1.5, 2.0, math.inf, 3.0, 4.0, 5.0]): model[i].drive(lam)
    average = ModelEma(model, 0.9)
    for g in lgelu.gates(model): g.drive(2.5)
    average.update(model)
    for net in model, average.module, copy.deepcopy(model).eval():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            traced = torch.jit.trace(net, x[:2])
            torch.onnx.export(net, x[:2], f"{folder}/twelve.onnx", opset_version=16)
        must(not caught, f"{len(caught)} warnings: {caught[0].message if caught else None}")
        must(torch.allclose(traced(x), net(x), atol=1e-6) and bool(traced(torch.zeros(3, 6)).isfinite().all()))
    lam = torch.tensor([2.0] * 6, requires_grad=True)
    traced = torch.jit.trace(lambda a, l: lgelu.gate(a, l, -1), (x, lam))
    must(torch.allclose(traced(x, lam + 1), lgelu.gate(x, lam + 1, -1), atol=1e-6), "λ as an input of a trace")

@case("a network with learned, driven, channels' λ's and a swapped one: exported, traced and on another device")
def _():
    warnings.filterwarnings("ignore")
    x, rows = torch.randn(20, 6), []
    nets = {"learned": nn.Sequential(nn.Linear(6, 5), lgelu.LambdaGELU(1.5), nn.Linear(5, 3)),
            "channels": nn.Sequential(nn.Linear(6, 5), lgelu.LambdaGELU(2.5, channels=5), nn.Linear(5, 3)),
            "driven": nn.Sequential(nn.Linear(6, 5), lgelu.LambdaGELU().drive(30.0), nn.Linear(5, 3)),
            "swapped": lgelu.to_relu(nn.Sequential(nn.Linear(6, 5), lgelu.LambdaGELU(), nn.Linear(5, 3)))}
    for name, net in nets.items():
        torch.onnx.export(net, x[:2], f"{folder}/{name}.onnx", opset_version=16, input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
        y = net(x).detach()
        must(torch.allclose(torch.jit.trace(net, x)(x), y, atol=1e-6), name)
        x.numpy().tofile(f"{folder}/{name}.in")
        y.numpy().tofile(f"{folder}/{name}.out")
        rows.append(f"{name}\tfloat32\t20,6\t20,3\n")
        must(copy.deepcopy(net).to("meta")(x.to("meta")).shape == (20, 3), name)
    open(f"{folder}/list", "w").writelines(rows)

sys.exit(failed)
