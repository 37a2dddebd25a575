# SPDX-License-Identifier: MIT-0
"""lgelu: the λ-GELU of lgelu.h as a module of PyTorch, and its way to ReLU.

    import lgelu                                          # after make -C examples torch
    lgelu.replace_gelu(model)                             # every nn.GELU learns its λ now; or put in lgelu.LambdaGELU() yourself
    optimizer = torch.optim.AdamW(lgelu.parameter_groups(model, lr=1e-3, weight_decay=0.01))
    hardening = lgelu.Hardening(model, lgelu.Plan.to_relu(steps), optimizer)
    for x, y in batches:                                  # `steps` of them
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
        hardening.step()
    lgelu.to_relu(model)                                  # every gate is an nn.ReLU now

f(x; λ) = x Φ(λx): GELU at λ = 1, ReLU at λ = ∞. Tensors on the CPU go through the header's kernels: float32, bfloat16 and
float16 by those names, float64 by its yardstick; elsewhere, and while a model is exported, PyTorch's own operations compute it.
"""
import copy, ctypes, functools, math, operator, os, warnings
import torch
from torch import fx, nn

__all__ = ["gate", "formula", "LambdaGELU", "Plan", "Hardening", "parameter_groups", "gates", "replace_gelu", "relu_",
           "to_relu", "refit"]

# ---- the library ----
class _Hardness(ctypes.Structure):
    _fields_ = [("map", ctypes.c_int), ("t", ctypes.c_float), ("lambda_max", ctypes.c_float)]

class _Hardening(ctypes.Structure):
    _fields_ = [("target", ctypes.c_float), ("begin", ctypes.c_long), ("end", ctypes.c_long), ("shape", ctypes.c_int),
                ("h", _Hardness)]

def _library():
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("LGELU_TORCH_LIBRARY", ""), here + "/liblgelu_torch.so", here + "/../build/liblgelu_torch.so"]
    path = next((p for p in places if p and os.path.exists(p)), None)
    if not path: raise ImportError("lgelu: no liblgelu_torch.so; make -C examples torch, or name it in LGELU_TORCH_LIBRARY")
    lib, p, size, integer, long = ctypes.CDLL(path), ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_long
    for name, result, arguments in (
            ("lgelu_torch_forward", integer, [p] * 3 + [size] * 3 + [integer] * 2),
            ("lgelu_torch_backward", integer, [p] * 5 + [size] * 3 + [integer] * 2),
            ("lgelu_torch_lambda", None, [p] * 4 + [size]),
            ("lgelu_torch_plan", None, [p, p, integer, long]),
            ("lgelu_torch_rate", ctypes.c_float, [long] * 4),
            ("lgelu_random", ctypes.c_uint32, [ctypes.c_uint64] * 3),
            ("lgelu_uniform", ctypes.c_float, [ctypes.c_uint64] * 3),
            ("lgelu_lambda_inverse", ctypes.c_float, [p, ctypes.c_float]),
            ("lgelu_harden", ctypes.c_float, [ctypes.c_float, p, long])):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib

_lib = _library()
_types = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2, torch.float16: 3}
_maps = ("softplus", "sigmoid", "direct")
_shapes = ("geometric", "linear", "linear_s", "cosine")

# ---- the gate as a function ----
def formula(x, lam):
    """x Φ(λx) by PyTorch's operations; λ a tensor that broadcasts against x, or a number. Its negative tail is 1 + erf's."""
    if not torch.is_tensor(lam) and math.isinf(lam): return torch.relu(x)
    return x * 0.5 * (1 + torch.erf(x * (lam * math.sqrt(0.5))))

def _plain(x):
    """x with the numbers that its memory holds: a view may only be marked as negated or conjugated, which kernels don't see"""
    return x.resolve_conj().resolve_neg()

def _layout(x, channels, axis):
    """x itself or a copy that the kernels can walk through, and outer, channels, inner"""
    if channels == 1:
        if not _dense(x): x = x.contiguous()
        return x, 1, 1, x.numel()
    if x.dim() == 4 and axis == 1 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous():
        return x, x.numel() // channels, channels, 1
    x = x.contiguous()
    return x, math.prod(x.shape[:axis]), channels, math.prod(x.shape[axis + 1:])

def _dense(x):
    """its elements lie side by side, in whatever order"""
    expect = 1
    for stride, size in sorted((s, n) for s, n in zip(x.stride(), x.shape) if n != 1):
        if stride != expect: return False
        expect = stride * size
    return True

def _like(dy, x):
    """dy with x's type and order of elements"""
    if dy.dtype == x.dtype and dy.stride() == x.stride(): return _plain(dy)
    return torch.empty_like(x).copy_(dy)

class _Gate(torch.autograd.Function):
    """y = x Φ(λx); lam a tensor of one λ or of one for each channel along axis"""
    @staticmethod
    def forward(ctx, x, lam, axis):
        ctx.save_for_backward(x, lam)
        ctx.axis = axis
        x, *shape = _layout(_plain(x), lam.numel(), axis)
        y, l = torch.empty_like(x), _plain(lam.double()).contiguous()
        if _lib.lgelu_torch_forward(y.data_ptr(), x.data_ptr(), l.data_ptr(), *shape, _types[x.dtype],
                                    torch.get_num_threads()):
            raise MemoryError("lgelu: no memory for a gate's forward")
        return y

    @staticmethod
    def backward(ctx, dy):
        x, lam = ctx.saved_tensors
        dx, dlam = _GateBackward.apply(dy, x, lam, ctx.axis, ctx.needs_input_grad[0])
        return dx if ctx.needs_input_grad[0] else None, dlam if ctx.needs_input_grad[1] else None, None

class _GateBackward(torch.autograd.Function):
    """dx = dy (Φ(λx) + λx φ(λx)), dλ = Σ dy x² φ(λx)"""
    @staticmethod
    def forward(ctx, dy, x, lam, axis, want_dx):
        x, *shape = _layout(_plain(x), lam.numel(), axis)
        dy, l = _like(dy, x), _plain(lam.double()).contiguous()
        dx = torch.empty_like(x) if want_dx or lam.numel() > 1 else x.new_empty(0)
        dlam = torch.empty_like(l)
        if _lib.lgelu_torch_backward(dx.data_ptr() if dx.numel() else None, dlam.data_ptr(), dy.data_ptr(), x.data_ptr(),
                                     l.data_ptr(), *shape, _types[x.dtype], torch.get_num_threads()):
            raise MemoryError("lgelu: no memory for a gate's backward")
        return dx, dlam.to(lam.dtype)

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError("lgelu: the gate has no second derivative here (double backward); lgelu.formula(x, lam) has one")

def _checked(x, lam, axis):
    """lam as a tensor, axis from 0"""
    if not torch.is_tensor(x): raise TypeError(f"lgelu: expected a tensor, not {type(x).__name__}")
    if not x.is_floating_point(): raise TypeError(f"lgelu: expected floating point numbers, not {x.dtype}")
    wide = x.dtype == torch.float64
    if not torch.is_tensor(lam): lam = torch.tensor(float(lam), dtype=torch.float64 if wide else torch.float32)
    if lam.dim() > 1: raise ValueError(f"lgelu: λ is one number or one for each channel, not of shape {tuple(lam.shape)}")
    if lam.numel() != 1:
        if not -x.dim() <= axis < x.dim():
            raise ValueError(f"lgelu: x of shape {tuple(x.shape)} has no axis {axis} for its channels")
        axis %= x.dim()
        if x.shape[axis] != lam.numel():
            raise ValueError(f"lgelu: {lam.numel()} λ's, but x of shape {tuple(x.shape)} has {x.shape[axis]} channels along axis "
                             f"{axis}")
    return lam, axis

def gate(x, lam, axis=1):
    """x Φ(λx) with gradients for x and λ; lam: a number, a tensor of one, or of one for each channel along axis"""
    lam, axis = _checked(x, lam, axis)
    if x.device.type == "cpu" and x.dtype in _types and not torch.onnx.is_in_onnx_export() and not torch.jit.is_tracing():
        return _Gate.apply(x, lam, axis)
    lam = lam.to(x.device)
    if not lam.requires_grad and lam.numel() == 1 and x.device.type == "cpu": return formula(x, float(lam))
    return formula(x, lam if lam.numel() == 1 else lam.view([-1] + [1] * (x.dim() - 1 - axis)))

class _Lambda(torch.autograd.Function):
    """λ(s), the bits of lgelu_lambda"""
    @staticmethod
    def forward(ctx, s, h):
        source = _plain(s.float()).contiguous()
        lam, slope = torch.empty_like(source), torch.empty_like(source)
        _lib.lgelu_torch_lambda(lam.data_ptr(), slope.data_ptr(), source.data_ptr(), ctypes.addressof(h), s.numel())
        ctx.save_for_backward(slope)
        return lam

    @staticmethod
    def backward(ctx, dlam):
        return dlam * ctx.saved_tensors[0], None

def _lambda_of(s, h):
    """the same of numbers"""
    if isinstance(s, list): return [_lambda_of(each, h) for each in s]
    lam, slope, s = ctypes.c_float(), ctypes.c_float(), ctypes.c_float(s)
    _lib.lgelu_torch_lambda(ctypes.byref(lam), ctypes.byref(slope), ctypes.byref(s), ctypes.byref(h), 1)
    return lam.value

# ---- the gate as a module ----
class LambdaGELU(nn.Module):
    """x Φ(λx) with λ learned: λ = 1 + softplus(s/t) by default. One λ, or with `channels` one for each along `axis` (1 as in
    nn.BatchNorm2d; -1 for tokens). Learned until `drive` sets λ; math.inf is ReLU."""
    def __init__(self, lam=1.05, channels=None, axis=1, map="softplus", t=0.1, lambda_max=256.0):
        super().__init__()
        if map not in _maps: raise ValueError(f"lgelu: no map {map!r}; there are {', '.join(_maps)}")
        if not t > 0: raise ValueError(f"lgelu: the temperature t is above 0, not {t}")
        self.channels, self.axis, self.map, self.t, self.lambda_max = channels, axis, map, t, lambda_max
        s = _lib.lgelu_lambda_inverse(ctypes.byref(self._h()), lam)
        if not math.isfinite(s): raise ValueError(f"lgelu: the map {map} gives no λ of {lam}; it starts above 1")
        self.s = nn.Parameter(torch.full((channels,) if channels else (), s))
        self.register_buffer("driven", torch.zeros(self.s.shape))              # 0: λ is learned
        self._state = None

    def _h(self): return _Hardness(_maps.index(self.map), self.t, self.lambda_max)

    def _apply(self, fn, *rest):             # a 16-bit model's λ keeps its bits
        if self.s.device.type != "meta": self.state                           # while it can be looked at
        super()._apply(fn, *rest)
        if self.s.dtype in (torch.float16, torch.bfloat16):
            self.s.data, self.driven = self.s.data.float(), self.driven.float()
            if self.s.grad is not None: self.s.grad = self.s.grad.float()
        return self

    def _load_from_state_dict(self, *rest):
        super()._load_from_state_dict(*rest)
        self._state = None

    @property
    def state(self):
        """"learned", "driven" or "relu" """
        if self._state is None:
            driven, infinite = bool(self.driven.any()), bool(torch.isinf(self.driven).all())
            self._state = "relu" if infinite else "driven" if driven else "learned"
        return self._state

    @property
    def lam(self):
        """λ now, a tensor; it has a gradient while it is learned, and is a constant while the model is traced or exported"""
        if self.state != "learned": return self.driven
        if torch.jit.is_tracing() or torch.onnx.is_in_onnx_export():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")                               # that it is a constant
                return torch.tensor(_lambda_of(_plain(self.s.detach()).cpu().numpy().tolist(), self._h()))
        if self.s.device.type == "cpu" and self.s.dtype == torch.float32: return _Lambda.apply(self.s, self._h())
        u = self.s / self.t
        if self.map == "softplus": return 1 + torch.logaddexp(u, torch.zeros_like(u))
        return 1 + (self.lambda_max - 1) * torch.sigmoid(u) if self.map == "sigmoid" else self.s.clamp(min=1)

    def drive(self, lam):
        """λ is this number, or these, from now on; 0: it is learned again"""
        lam = torch.as_tensor(lam, dtype=self.driven.dtype, device=self.driven.device)
        if not bool(((lam >= 1) | (lam == 0)).all()): raise ValueError("lgelu: a driven λ is 1 or more, or 0 for learned")
        if bool((lam == 0).any()) and bool((lam != 0).any()):
            raise ValueError("lgelu: the λ's of a gate are learned or driven together")
        with torch.no_grad(): self.driven.copy_(lam.expand_as(self.driven))
        self.s.grad = None                                                    # no optimiser moves what is not learned
        self._state = None
        return self

    def relu_(self):
        """exactly ReLU from now on"""
        return self.drive(math.inf)

    def forward(self, x):
        return torch.relu(x) if self.state == "relu" else gate(x, self.lam, self.axis)

    def extra_repr(self):
        lam = self.lam.detach().reshape(-1)
        of = f"λ={float(lam[0]):.6g}"
        if self.channels: of = f"{self.channels} λ's, {float(lam.min()):.6g} to {float(lam.max()):.6g}, axis={self.axis}"
        return f"{of}, {self.state}, map={self.map}, t={self.t:g}"

# ---- models ----
def gates(model):
    """its LambdaGELUs, each once, in order"""
    return [m for m in model.modules() if isinstance(m, LambdaGELU)]

def _is_gelu(value):
    """nn.GELU, F.gelu, or F.gelu with its arguments"""
    if isinstance(value, functools.partial): value = value.func
    return isinstance(value, nn.GELU) or value is nn.functional.gelu

def _places(model, matches):
    """(module, name, value) of every attribute of the model's modules that matches: submodules, and functions such as the
    F.gelu that nn.TransformerEncoderLayer(activation="gelu") keeps"""
    found = []
    for module in list(model.modules()):
        for name, value in list(module._modules.items()) + list(vars(module).items()):
            if value is not None and name != "_modules" and matches(value): found.append((module, name, value))
    return found

def _fast_paths(model):
    """nn.TransformerEncoderLayer.forward has a fast path for inference that calls no activation: it computes ReLU where
    activation_relu_or_gelu is 1 and GELU where it is 2. The number is set to what the activation is now; with 0 the layer
    calls it. A nested tensor, which nn.TransformerEncoder makes of a padding mask, is for the fast path alone."""
    for module in model.modules():
        if hasattr(module, "activation_relu_or_gelu"):
            act = getattr(module, "activation", None)
            if isinstance(act, LambdaGELU): module.activation_relu_or_gelu = 0
            elif isinstance(act, nn.ReLU): module.activation_relu_or_gelu = 1
        if getattr(module, "use_nested_tensor", False):
            if any(getattr(layer, "activation_relu_or_gelu", 1) == 0 for layer in module.modules()):
                module.use_nested_tensor = False

def _replace(model, matches, make, missing):
    """model with make(value) in every place that matches; missing is the error where there is no such place"""
    if matches(model): return make(model)
    found = _places(model, matches)
    if not found: raise ValueError(missing)
    for module, name, value in found:
        new = make(value).train(value.training if isinstance(value, nn.Module) else module.training)
        setattr(module, name, new)
    _fast_paths(model)
    return model

def _once(make):
    """make, called once for each object"""
    made = {}
    def get(value):
        if id(value) not in made: made[id(value)] = make(value)
        return made[id(value)]
    return get

def replace_gelu(model, share=False, **options):
    """Replaces every nn.GELU, and every F.gelu that a module keeps as an attribute (nn.TransformerEncoderLayer with
    activation="gelu"), by a LambdaGELU(**options), in place. Returns the model. An nn.GELU that the model uses at several places
    is split: each place gets a λ of its own, unless share is set; F.gelu is always split. Raises ValueError where there is no
    GELU. A forward that calls F.gelu by itself is not seen: give such a model a LambdaGELU to call."""
    new = lambda value: LambdaGELU(**options)
    shared = _once(new)
    make = (lambda value: shared(value) if isinstance(value, nn.GELU) else new(value)) if share else new
    return _replace(model, _is_gelu, make, "lgelu: there is no nn.GELU in this model, nor a module that keeps F.gelu; where a "
                    "forward calls F.gelu, put lgelu.LambdaGELU() in its place")

def _some_gates(model):
    found = gates(model)
    if not found: raise ValueError("lgelu: there is no LambdaGELU in this model")
    _fast_paths(model)
    return found

def relu_(model):
    """every LambdaGELU answers as ReLU from now on, and stays what it is: gate.drive(0) goes back. Raises ValueError where there
    is none"""
    for g in _some_gates(model): g.relu_()
    return model

def to_relu(model):
    """every LambdaGELU is replaced by an nn.ReLU, in place: what verifiers, quantizers and exporters know. Returns the model.
    Raises ValueError where there is none"""
    return _replace(model, lambda value: isinstance(value, LambdaGELU), _once(lambda value: nn.ReLU()),
                    "lgelu: there is no LambdaGELU in this model")

def parameter_groups(model, lr, weight_decay=0.01, c=1.0):
    """groups for an optimiser: matrices and kernels decay, biases and normalisations do not, nor does s, whose rate is c·lr"""
    free = {id(g.s): g.s for g in gates(model)}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in free]
    groups = [{"params": [p for p in rest if p.dim() > 1], "lr": lr, "weight_decay": weight_decay},
              {"params": [p for p in rest if p.dim() < 2], "lr": lr, "weight_decay": 0.0},
              {"params": [s for s in free.values() if s.requires_grad], "lr": lr * c, "weight_decay": 0.0}]
    return [g for g in groups if g["params"]]

# ---- the way to ReLU ----
class Plan:
    """λ is learned up to step `begin`, driven to `target` along `shape` from there to `end`; the rate rises over `warmup` steps,
    stays up to `hold` and falls along the cosine to `steps`. Steps count from 1."""
    def __init__(self, target, begin, end, steps=None, hold=0, warmup=0, shape="geometric"):
        if shape not in _shapes: raise ValueError(f"lgelu: no shape {shape!r}; there are {', '.join(_shapes)}")
        if not target > 1: raise ValueError(f"lgelu: the target λ is above 1, not {target}")
        self.target, self.begin, self.end, self.steps = target, int(begin), int(end), int(end if steps is None else steps)
        self.hold, self.warmup, self.shape = int(hold), int(warmup), shape

    @classmethod
    def _of(cls, paper, steps):
        plan, hold = _Hardening(), ctypes.c_long()
        _lib.lgelu_torch_plan(ctypes.byref(plan), ctypes.byref(hold), paper, steps)
        return cls(plan.target, plan.begin, plan.end, steps, hold.value, 0, _shapes[plan.shape])

    @classmethod
    def to_relu(cls, steps):
        """lgelu_training_to_relu: learned for a quarter, driven up to three quarters at the peak of the rate, which falls then"""
        return cls._of(0, steps)

    @classmethod
    def paper(cls, steps):
        """lgelu_training_paper: learned for three quarters, driven over the last one under a cosine rate"""
        return cls._of(1, steps)

    def lam(self, lambda0, step, gate=None):
        """λ in this step where it is driven: the bits of lgelu_harden"""
        h = gate._h() if gate is not None else _Hardness(0, 0.1, 256)
        plan = _Hardening(self.target, self.begin, self.end, _shapes.index(self.shape), h)
        return _lib.lgelu_harden(lambda0, ctypes.byref(plan), step)

    def rate(self, step):
        """the learning rate in this step as a fraction of its peak"""
        return _lib.lgelu_torch_rate(self.steps, self.warmup, self.hold, step)

class Hardening:
    """Drives every LambdaGELU of a model by a plan; call step() after each optimizer.step(). With an optimizer it sets the rates
    of its groups, too (then use no other scheduler). state_dict, load_state_dict: for a checkpoint, beside the model's own."""
    def __init__(self, model, plan, optimizer=None):
        self.gates, self.plan, self.optimizer, self.steps = _some_gates(model), plan, optimizer, 0
        self.lambda0 = [None] * len(self.gates)
        self.peaks = [g.setdefault("initial_lr", g["lr"]) for g in optimizer.param_groups] if optimizer else []
        self._prepare(True)

    def _prepare(self, learned):             # the step to come; learned: λ's may have moved by themselves since the last time
        step = self.steps + 1
        for group, peak in zip(self.optimizer.param_groups if self.optimizer else [], self.peaks):
            group["lr"] = peak * self.plan.rate(step)
        for i, g in enumerate(self.gates):
            if g.state == "relu": continue
            if learned and self.steps <= self.plan.begin:
                self.lambda0[i] = g.lam.detach().float().reshape(-1).tolist()
            if step > self.plan.begin:
                lam = [self.plan.lam(l, step, g) for l in self.lambda0[i]]
                g.drive(lam[0] if not g.channels else lam)

    def step(self):
        self.steps += 1
        self._prepare(True)

    def state_dict(self):
        return {"steps": self.steps, "lambda0": self.lambda0, "peaks": self.peaks}

    def load_state_dict(self, state):
        if len(state["lambda0"]) != len(self.gates):
            raise ValueError(f"lgelu: the state is of {len(state['lambda0'])} gates, the model has {len(self.gates)}")
        self.steps, self.lambda0, self.peaks = state["steps"], [l and list(l) for l in state["lambda0"]], list(state["peaks"])
        self._prepare(False)

# ---- a finished network becomes ReLU without training: examples/deploy/refit.h in PyTorch ----
_smooth_modules = (nn.GELU, nn.SiLU, nn.ELU, nn.Mish, nn.CELU, nn.Softplus, LambdaGELU)
_smooth_functions = (nn.functional.gelu, nn.functional.silu, nn.functional.elu, nn.functional.mish, nn.functional.celu)
_matrices = (nn.Linear, nn.Conv1d, nn.Conv2d)
_norms = (nn.BatchNorm1d, nn.BatchNorm2d)
_sums = (operator.add, operator.iadd, torch.add, "add", "add_")
_mixers = (torch.matmul, torch.bmm, torch.softmax, torch.einsum, operator.matmul, nn.functional.softmax, "matmul", "bmm", "softmax")
_HELD = 2048                                 # most held-out rows; later ones are used as the others are
_EACH, _FEW = 16, 512                        # rows of an input, where there are more inputs than that needs; inputs used in any case

class _RefitTracer(fx.Tracer):
    """gates of the caller stay modules"""
    def __init__(self, kinds):
        super().__init__()
        self.kinds = kinds

    def is_leaf_module(self, module, name):
        return isinstance(module, self.kinds) or super().is_leaf_module(module, name)

class _Until(fx.Interpreter):
    """Runs a graph up to a node and returns the values of some."""
    def values(self, x, wanted):
        self.wanted, self.found = set(wanted), {}
        try: self.run(*x)
        except StopIteration: pass
        return [self.found[n] for n in wanted]

    def run_node(self, n):
        y = super().run_node(n)
        if n.name in self.wanted: self.found[n.name] = y.detach()
        if len(self.found) == len(self.wanted): raise StopIteration
        return y

def _arguments(batch):
    return tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)

class _Refit:
    """a graph and its modules, twice: as they were, and with ReLU"""
    def __init__(self, model, kinds):
        graph = _RefitTracer(kinds).trace(model)
        self.converted = fx.GraphModule(model, graph)
        self.original = copy.deepcopy(self.converted)
        self.modules, self.kinds = dict(self.converted.named_modules()), kinds
        self.nodes = list(self.converted.graph.nodes)

    def module(self, node):
        return self.modules[node.target] if node.op == "call_module" else None

    def is_gate(self, node):
        return isinstance(self.module(node), self.kinds) or (node.op == "call_function" and node.target in _smooth_functions)

    def swap(self):
        """Puts ReLU into every gate; the number of gates"""
        gates = [n for n in self.nodes if self.is_gate(n)]
        for path in {n.target for n in gates if n.op == "call_module"}:
            parent, _, name = path.rpartition(".")
            setattr(self.converted.get_submodule(parent), name, nn.ReLU())
        for n in gates:
            if n.op == "call_function":
                n.target, n.args, n.kwargs = torch.relu, n.args[:1] or (n.kwargs["input"],), {}
        self.converted.recompile()
        return gates

    def matrices(self, gates):
        """(node, target node, norms between) of the matrices that read a changed gate, in the order of their targets"""
        direct, stages, order = set(), [], {n: i for i, n in enumerate(self.nodes)}
        gates = set(gates)
        for n in self.nodes:
            mixes = n.op in ("call_function", "call_method") and n.target in _mixers
            if n in gates or (any(i in direct for i in n.all_input_nodes)
                              and not (mixes or isinstance(self.module(n), _matrices + (nn.MultiheadAttention,)))):
                direct.add(n)
        seen = {}
        for n in self.nodes:
            if isinstance(self.module(n), _matrices): seen.setdefault(id(self.module(n).weight), []).append(n)
        found = [n for n in self.nodes if isinstance(self.module(n), _matrices) and n.args and n.args[0] in direct]
        ends = {n: self.chain(n) for n in found}
        for n in found:
            target, norms, reader = ends[n]
            tied = sum(p is self.module(n).weight for m in self.converted.modules() for p in m._parameters.values()) > 1
            if len(seen[id(self.module(n).weight)]) > 1 or tied: continue
            if reader is not None and reader.target in _sums and all(isinstance(a, fx.Node) for a in reader.args[:2]):
                size = lambda m: (self.module(m).weight[0].numel(), order[m])
                if all(size(n) >= size(m) for m in found if ends[m][2] is reader): target = reader
            stages.append((n, target, norms))
        return sorted(stages, key=lambda s: order[s[1]])

    def chain(self, n):
        """from a matrix through normalisations and dropout: the last such node, the norms, its only reader"""
        norms = []
        while True:
            users = list(n.users)
            if len(users) != 1: return n, norms, None
            module = self.module(users[0])
            if isinstance(module, _norms): norms.append(module)
            elif not isinstance(module, (nn.Dropout, nn.Identity)): return n, norms, users[0]
            n = users[0]

def _reestimate(graph, batches):
    """running statistics of the batch normalisations again, as means over all batches"""
    norms = [m for m in graph.modules() if isinstance(m, _norms) and m.track_running_stats]
    momentum = [m.momentum for m in norms]
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
        m.train()
    for batch in batches: graph(*_arguments(batch))
    for m, kept in zip(norms, momentum):
        m.momentum = kept
        m.eval()

def _rows(module, x):
    """the inputs of a matrix as (samples, positions, K)"""
    if isinstance(module, nn.Linear): return x.reshape(len(x), -1, x.shape[-1])
    if isinstance(module, nn.Conv1d): x = x[:, :, None]
    kernel, stride, pad, dilation = ((1,) * (2 - len(t)) + tuple(t) for t in (
        module.kernel_size, module.stride, module.padding, module.dilation))
    if isinstance(module, nn.Conv1d): pad = (0, pad[1])
    return nn.functional.unfold(x, kernel, dilation, pad, stride).transpose(1, 2)

def _columns(module, y):
    """values behind a matrix as (samples, positions, outputs)"""
    if isinstance(module, nn.Linear): return y.reshape(len(y), -1, y.shape[-1])
    return y.flatten(2).transpose(1, 2)

class _Solver:
    """sums over the rows of one matrix, by group"""
    def __init__(self, module, norms, options, stream, samples):
        self.module, self.norms, self.stream, self.samples = module, norms, stream, samples
        self.rows, self.seed, self.ridge, self.full = options
        self.groups = getattr(module, "groups", 1)
        self.bias = norms[-1].bias if norms else module.bias
        self.scale = torch.ones(module.weight.shape[0], dtype=torch.float64)
        for m in norms: self.scale *= (m.weight.double() / torch.sqrt(m.running_var.double() + m.eps)).cpu()
        self.scale[self.scale.abs() <= 1e-6 * self.scale.abs().max()] = 0
        width = module.weight[0].numel() + 1
        self.gram = torch.zeros(self.groups, width, width, dtype=torch.float64)
        self.right = torch.zeros(self.groups, width, len(self.scale) // self.groups, dtype=torch.float64)
        self.total, self.used, self.held = torch.zeros(len(self.scale), dtype=torch.float64), 0, []
        self.held_count = self.inputs = 0    # inputs: those that gave rows

    def begin(self, positions):
        """how many of the inputs the rows come from: one of them gives at most _EACH, but at least _FEW are used"""
        self.limit = self.rows or max(16384, 8 * self.gram.shape[1])
        self.wanted = min(self.samples, max(_FEW, -(-self.limit // min(positions, _EACH))))

    def takes(self, end):
        """whether a batch that ends with this input is one of those that give rows: these are spread evenly"""
        return not self.inputs or self.inputs < end * self.wanted // self.samples

    def parted(self, a, d):
        """A with ones behind it, and T - Y, by group"""
        a = a.double().reshape(len(a), self.groups, -1).transpose(0, 1)
        a = torch.cat([a, torch.full_like(a[..., :1], self.bias is not None)], -1)
        return a, d.reshape(len(d), self.groups, -1).transpose(0, 1)

    def add(self, a, d):
        one, two = self.parted(a, d)
        self.gram += one.transpose(1, 2) @ one
        self.right += one.transpose(1, 2) @ two

    def take(self, first, a, d):
        """the rows of samples first, first + 1, ..., of which some are held out"""
        positions, use, held = a.shape[1], [], []
        for i in range(len(a)):
            at, used = first + i, self.inputs + i
            count = min((used + 1) * self.limit // self.wanted - used * self.limit // self.wanted, positions)
            if used >= self.wanted: count = 0
            keep = _lib.lgelu_random(self.seed, 1, at // 8) % 8 == at % 8
            for k in range(count):
                u = _lib.lgelu_uniform(self.seed, self.stream, at * positions + k) if count < positions else 0
                row = i * positions + min(int((k + u) * positions / count), positions - 1)
                if keep and self.held_count < _HELD:
                    held.append(row)
                    self.held_count += 1
                else: use.append(row)
        a, d = a.flatten(0, 1), torch.where(self.scale == 0, torch.zeros((), dtype=torch.float64), d.flatten(0, 1))
        if not bool(torch.isfinite(a).all() and torch.isfinite(d).all()):
            raise ValueError("lgelu: refit: values that are not finite")
        self.held.append((a[held], d[held]))
        self.add(a[use], d[use])
        self.total += d[use].sum(0)
        self.used += len(use)

    def solve(self, rho):
        """D for this ridge, or None"""
        inputs = self.gram.shape[1] - 1
        gram = self.gram.clone()
        diagonal = gram.diagonal(dim1=1, dim2=2)
        ridge = rho * diagonal[:, :inputs].mean(1, keepdim=True)
        diagonal[:, :inputs] += ridge
        if self.bias is None: diagonal[:, inputs] = 1
        try: return torch.cholesky_solve(self.right, torch.linalg.cholesky(gram)) if bool((ridge > 0).all()) else None
        except RuntimeError: return None

    def choose(self):
        """what is to be done, ρ, and the held-out errors before and after"""
        a, d = (torch.cat(t) for t in zip(*self.held))
        if not self.used or not len(a): raise ValueError("lgelu: refit: too few inputs")
        a, parts = self.parted(a, d)
        self.mean = self.total / self.used
        none = best = float((d * d).sum())
        outcome, rho = "kept", 0.0
        shifted = float(((d - self.mean) ** 2).sum())
        if self.bias is not None and shifted < best: outcome, best = "shifted", shifted
        def better(value):
            nonlocal outcome, rho, best
            change = self.solve(value)
            error = math.inf if change is None else float(((parts - a @ change) ** 2).sum())
            if not error < best: return False
            outcome, rho, best = "changed", value, error
            return True
        if self.full and self.ridge: better(self.ridge)
        elif self.full:
            better(1e-2)
            if not (better(1e-1) and (better(1.0) or True)) and better(1e-3): better(1e-4)
        return outcome, rho, none, best

    def apply(self, outcome, rho):
        if outcome == "changed":
            self.add(*(torch.cat(t) for t in zip(*self.held)))
            change = self.solve(rho)
            if change is None: return "kept"
            divide = torch.where(self.scale == 0, torch.full_like(self.scale, math.inf), self.scale)
            flat = change.transpose(1, 2).flatten(0, 1)
            weight, bias = self.module.weight, flat[:, -1] * (self.scale != 0)
            weight.copy_((weight.double().cpu() + (flat[:, :-1] / divide[:, None]).reshape(weight.shape)).to(weight))
        else: bias = self.mean * (self.scale != 0)
        if outcome != "kept" and self.bias is not None:
            self.bias.copy_((self.bias.double().cpu() + bias).to(self.bias))
        return outcome

@torch.no_grad()
def refit(model, batches, gates=(), what="full", ridge=0.0, rows=0, estimate=None, seed=1, report=None):
    """Makes ReLU of every smooth gate of a finished model, and solves in closed form for the weights of the Linear and Conv
    layers behind them, so that the model computes what it computed before: no labels, no gradients, a few hundred to a few
    thousand inputs. batches: a list of inputs (tensors, or tuples of arguments) in the model's device and type. Returns the
    model, changed in place; where its forward calls F.gelu and the like, an fx.GraphModule on its parameters.

    The model is traced by torch.fx. gates: custom classes of gates. what="biases" corrects biases alone. ridge, rows, seed:
    as in examples/deploy/refit.h, whose numbers these are; estimate: statistics of batch normalisations first (default: where there
    are some). report: a list that receives a dict for each matrix. Left alone: shared matrices, and those that read no gate."""
    batches = list(batches)
    samples = sum(len(_arguments(b)[0]) for b in batches)
    if samples < 8: raise ValueError(f"lgelu: refit: {samples} inputs, expected at least 8")
    if what not in ("full", "biases"): raise ValueError(f"lgelu: refit: what is 'full' or 'biases', not {what!r}")
    training = [(m, m.training) for m in model.modules()]
    kept = copy.deepcopy(model.state_dict())
    work = _Refit(model.eval(), _smooth_modules + tuple(gates))
    changed = [n for n in work.nodes if work.is_gate(n)]
    if not changed: raise ValueError("lgelu: refit: there is no smooth gate in this model")
    paths = [n.target for n in changed if n.op == "call_module"]
    work.swap()
    try:
        has_norms = any(isinstance(m, _norms) for m in work.converted.modules())
        if estimate or (estimate is None and has_norms): _reestimate(work.converted, batches)
        for index, (node, target, norms) in enumerate(work.matrices(changed)):
            module = work.module(node)
            solver = _Solver(module, norms, (rows, seed, ridge, what == "full"), 16 + index, samples)
            before, after, first = _Until(work.original), _Until(work.converted), 0
            for batch in batches:
                end = first + len(_arguments(batch)[0])
                if not solver.takes(end):
                    first = end
                    continue
                t, = before.values(_arguments(batch), [target.name])
                x, y = after.values(_arguments(batch), [node.args[0].name, target.name])
                d = _columns(module, t.double() - y.double())
                if not first: solver.begin(d.shape[1])
                for k in range(0, len(x), 16):
                    solver.take(first + k, _rows(module, x[k:k + 16]).cpu(), d[k:k + 16].cpu())
                    solver.inputs += len(x[k:k + 16])
                first = end
            outcome, rho, none, best = solver.choose()
            outcome = solver.apply(outcome, rho)
            if report is not None:
                report.append({"name": node.target, "outcome": outcome, "ridge": rho, "before": none, "after": best})
    except BaseException:
        model.load_state_dict(kept)
        raise
    finally:
        for m, mode in training: m.train(mode)
    swapped = {id(work.modules[path]) for path in paths}                       # a gate may have several names
    for parent in list(model.modules()):
        for name, m in list(parent._modules.items()):
            if id(m) in swapped: setattr(parent, name, nn.ReLU().train(m.training))
    return model if len(paths) == len(changed) else work.converted
