# SPDX-License-Identifier: MIT-0
"""lgelu: the λ-GELU of lgelu.h as a module of PyTorch, and its way to ReLU.

    import lgelu                                          # after pip install or make -C examples torch: see README.md
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
float16 by those names, float64 by its yardstick; elsewhere, while a model is exported, and under functorch, PyTorch's own
operations compute it.
"""
import contextlib, ctypes, functools, inspect, math, numbers, os, warnings
import torch
from torch import fx, nn
from torch.autograd import forward_ad

__all__ = ["gate", "formula", "LambdaGELU", "Plan", "Hardening", "parameter_groups", "gates", "replace_gelu", "relu_",
           "to_relu", "refit", "lambda_for_tolerance", "gate_error", "lambda_for_gap", "gap", "profile", "plot_profile"]

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
    if not path: raise ImportError("lgelu: no liblgelu_torch.so; pip install examples/torch, make -C examples torch, or name it in "
                               "LGELU_TORCH_LIBRARY")
    lib, p, size, integer, long = ctypes.CDLL(path), ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_long
    for name, result, arguments in (
            ("lgelu_torch_forward", None, [p] * 2 + [ctypes.c_double, size] + [integer] * 2),
            ("lgelu_torch_backward", ctypes.c_double, [p] * 3 + [ctypes.c_double, size] + [integer] * 2),
            ("lgelu_torch_forward_channels", integer, [p] * 3 + [size] * 3 + [integer] * 2),
            ("lgelu_torch_backward_channels", integer, [p] * 5 + [size] * 3 + [integer] * 2),
            ("lgelu_torch_lambda", None, [p] * 4 + [size]),
            ("lgelu_torch_plan", None, [p, p, integer, long]),
            ("lgelu_torch_rate", ctypes.c_float, [long] * 4),
            ("lgelu_random", ctypes.c_uint32, [ctypes.c_uint64] * 3),
            ("lgelu_uniform", ctypes.c_float, [ctypes.c_uint64] * 3),
            ("lgelu_lambda_inverse", ctypes.c_float, [p, ctypes.c_float]),
            ("lgelu_gap", ctypes.c_float, [ctypes.c_float]),
            ("lgelu_gate_error", ctypes.c_float, [ctypes.c_float]),
            ("lgelu_lambda_for_gap", ctypes.c_float, [ctypes.c_float]),
            ("lgelu_lambda_for_tolerance", ctypes.c_float, [ctypes.c_float]),
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

# Where PyTorch transforms a function (functorch, torch.func, torch.compile, forward-mode derivatives) or batches tensors that have
# no memory of their own (torch.autograd's vectorize and is_grads_batched), the formula is computed by its operations.
_functorch = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)
_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)

def _transformed():
    return _compiling() or _functorch() or forward_ad._current_level >= 0

def _recorded():
    return torch.jit.is_tracing() or torch.onnx.is_in_onnx_export()

@contextlib.contextmanager
def _quietly():
    """without PyTorch's warnings that shapes and λ's are constants of the graph that it records"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield

def _memory(x):
    """whether x has numbers in memory"""
    try: return x.data_ptr() != 0 or x.numel() == 0
    except RuntimeError: return False

def _spread(lam, x, axis):
    """λ's that broadcast against x, and are finite: 0·∞ is no number, and beyond 1e18 the gate has ReLU's values"""
    lam = lam.to(x.device).clamp(max=min(1e18, torch.finfo(x.dtype).max / 4))
    return lam.reshape([-1] + [1] * max(x.dim() - 1 - axis, 0)) if lam.numel() > 1 else lam

def _derivatives(dy, x, lam, axis):
    """dx and dλ by PyTorch's operations"""
    if not torch.is_tensor(lam): lam = torch.tensor(lam, dtype=torch.float64 if x.dtype == torch.float64 else torch.float32)
    l = _spread(lam, x, axis)
    u = x * l
    slope, cumulative = torch.exp(-0.5 * u * u) / math.sqrt(2 * math.pi), 0.5 * (1 + torch.erf(u * math.sqrt(0.5)))
    each = dy * x * x * slope
    if lam.numel() > 1: each = each.transpose(0, axis).reshape(lam.numel(), -1).sum(1)
    return dy * (cumulative + u * slope), (each if lam.numel() > 1 else each.sum().reshape(lam.shape)).to(lam.dtype)

def _plain(x):
    """x with the numbers that its memory holds: a real view may only be marked as negated, which kernels don't see"""
    return x.resolve_neg()

def _layout(x, channels, axis):
    """x itself or a copy that the kernels can walk through, and outer, channels, inner"""
    if x.dim() == 4 and axis == 1 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous():
        return x, x.numel() // channels, channels, 1
    x = x.contiguous()
    return x, math.prod(x.shape[:axis]), channels, math.prod(x.shape[axis + 1:])

def _dense(x):
    """its elements lie side by side, in whatever order"""
    if x.is_contiguous(): return True
    expect = 1
    for stride, size in sorted((s, n) for s, n in zip(x.stride(), x.shape) if n != 1):
        if stride != expect: return False
        expect = stride * size
    return True

def _like(dy, x):
    """dy with x's type and order of elements"""
    if dy.dtype == x.dtype and dy.stride() == x.stride(): return dy.resolve_neg()
    return torch.empty_like(x).copy_(dy)

class _Idle(torch.autograd.Function):
    """x. The graph also reaches parameters that nothing depends on: DistributedDataParallel waits for each of its parameters.
    Their gradients are undefined, so an optimiser doesn't move them."""
    @staticmethod
    def forward(ctx, x, *idle):
        ctx.idle = (None,) * len(idle)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, dx):
        return (dx, *ctx.idle)

# A call of a small tensor is mostly Python: what needs no tensor here is a number, and nothing is looked up twice.
def _forward(x, lam, axis):
    """y; lam a number or a tensor"""
    x, threads = x.resolve_neg(), torch.get_num_threads()
    if not torch.is_tensor(lam) or lam.numel() == 1:
        if not _dense(x): x = x.contiguous()
        y = torch.empty_like(x)
        _lib.lgelu_torch_forward(y.data_ptr(), x.data_ptr(), float(lam), x.numel(), _types[x.dtype], threads)
        return y
    x, *shape = _layout(x, lam.numel(), axis)
    y, l = torch.empty_like(x), _plain(lam.double()).contiguous()
    if _lib.lgelu_torch_forward_channels(y.data_ptr(), x.data_ptr(), l.data_ptr(), *shape, _types[x.dtype], threads):
        raise MemoryError("lgelu: no memory for a gate's forward")
    return y

def _backward(dy, x, lam, axis, want_dx):
    """dx = dy (Φ(λx) + λx φ(λx)), or None where nobody wants it, and dλ = Σ dy x² φ(λx), or None for one λ without a gradient"""
    x, threads = x.resolve_neg(), torch.get_num_threads()
    if not torch.is_tensor(lam) or lam.numel() == 1:
        if not _dense(x): x = x.contiguous()
        dy, dx = _like(dy, x), torch.empty_like(x) if want_dx else None
        dlam = _lib.lgelu_torch_backward(dx.data_ptr() if want_dx else None, dy.data_ptr(), x.data_ptr(), float(lam), x.numel(),
                                         _types[x.dtype], threads)
        return dx, torch.full_like(lam, dlam) if torch.is_tensor(lam) and lam.requires_grad else None
    x, *shape = _layout(x, lam.numel(), axis)
    dy, dx, l = _like(dy, x), torch.empty_like(x), _plain(lam.double()).contiguous()
    dlam = torch.empty_like(l)
    if _lib.lgelu_torch_backward_channels(dx.data_ptr() if dx.numel() else None, dlam.data_ptr(), dy.data_ptr(), x.data_ptr(),
                                          l.data_ptr(), *shape, _types[x.dtype], threads):
        raise MemoryError("lgelu: no memory for a gate's backward")
    return dx, dlam.to(lam.dtype)

class _Gate(torch.autograd.Function):
    """y = x Φ(λx); lam a number, a tensor of one λ or of one for each channel along axis; idle as in _Idle"""
    @staticmethod
    def forward(ctx, x, lam, axis, *idle):
        ctx.lam, ctx.axis, ctx.idle = lam, axis, (None,) * len(idle)
        if torch.is_tensor(lam):
            ctx.save_for_backward(x, lam)
            ctx.lam = None
        else: ctx.save_for_backward(x)
        return _forward(x, lam, axis)

    @staticmethod
    def backward(ctx, dy):
        x, lam = ctx.saved_tensors if ctx.lam is None else (*ctx.saved_tensors, ctx.lam)
        want_dx, want_dlam = ctx.needs_input_grad[:2]
        if _transformed() or not _memory(dy): dx, dlam = _derivatives(dy, x, lam, ctx.axis)
        elif torch.is_grad_enabled(): dx, dlam = _GateBackward.apply(dy, x, lam, ctx.axis, want_dx)
        else: dx, dlam = _backward(dy, x, lam, ctx.axis, want_dx)
        return (dx if want_dx else None, dlam if want_dlam else None, None, *ctx.idle)

class _GateBackward(torch.autograd.Function):
    """_backward, with an error for a second derivative"""
    @staticmethod
    def forward(ctx, *inputs):
        return _backward(*inputs)

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError("lgelu: the gate has no second derivative here (double backward); lgelu.formula(x, lam) has one")

def _checked(x, lam, axis):
    """lam as a number or a tensor, axis from 0"""
    if not torch.is_tensor(x): raise TypeError(f"lgelu: expected a tensor, not {type(x).__name__}")
    if not x.is_floating_point(): raise TypeError(f"lgelu: expected floating point numbers, not {x.dtype}")
    if x.layout != torch.strided: raise TypeError(f"lgelu: expected a dense tensor, not one of layout {x.layout}")
    if not torch.is_tensor(lam):
        try: lam = float(lam)
        except (TypeError, ValueError): raise TypeError(f"lgelu: λ is a number or a tensor, not {type(lam).__name__}") from None
        if not lam >= 0: raise ValueError(f"lgelu: λ is 0 or more, not {lam}")
        return lam, axis
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
    if isinstance(x, fx.Proxy): return x.tracer.create_proxy("call_function", gate, (x, lam, axis), {})
    return _gate(x, lam, axis, ())

def _gate(x, lam, axis, idle):
    if _recorded(): return _recorded_gate(x, lam, axis)
    lam, axis = _checked(x, lam, axis)
    if x.is_cpu and x.dtype in _types and not _transformed() and _memory(x) and (not torch.is_tensor(lam) or _memory(lam)):
        if idle or (torch.is_grad_enabled() and (x.requires_grad or torch.is_tensor(lam) and lam.requires_grad)):
            return _Gate.apply(x, lam, axis, *idle)
        return _forward(x, lam, axis)
    if idle: x = _Idle.apply(x, *idle)
    return formula(x, _spread(lam, x, axis) if torch.is_tensor(lam) else lam)

def _recorded_gate(x, lam, axis):
    """the formula in a graph, of which a λ without a gradient is a constant"""
    with _quietly():
        lam, axis = _checked(x, lam, axis)
        if not torch.is_tensor(lam) or (not lam.requires_grad and lam.numel() == 1): return formula(x, float(lam))
        if not lam.requires_grad: lam = torch.tensor([min(l, 1e18) for l in lam.tolist()], dtype=lam.dtype, device=x.device)
        return formula(x, lam.reshape([-1] + [1] * (x.dim() - 1 - axis)) if lam.numel() > 1 else lam)

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
def _wrong(driven, fraction, s):
    """what is wrong with these parameters of a LambdaGELU, or None; the λ's that were driven weigh fraction and add to driven"""
    driven, fraction = driven.detach().reshape(-1).tolist(), fraction.detach().reshape(-1).tolist()
    if len(fraction) != 1 or not 0 <= fraction[0] <= 1.001: return f"expected a fraction from 0 to 1, found {fraction}"
    for d in driven:
        if fraction[0] and not d >= fraction[0] * (1 - 1e-5): return f"expected a λ of 1 or more, found {d / fraction[0]:g}"
        if not fraction[0] and d != 0: return f"expected 0 for a λ that is learned, found {d:g}"
    if bool(s.isnan().any()): return "expected numbers s, found NaN"

class LambdaGELU(nn.Module):
    """x Φ(λx) with λ learned: λ = 1 + softplus(s/t) by default. One λ, or with `channels` one for each along `axis` (1 as in
    nn.BatchNorm2d; -1 for tokens). Learned until `drive` sets λ; math.inf is ReLU."""
    def __init__(self, lam=1.05, channels=None, axis=1, map="softplus", t=0.1, lambda_max=256.0):
        super().__init__()
        if channels is not None and not (isinstance(channels, int) and channels > 0):
            raise ValueError(f"lgelu: channels is a whole number above 0, or None for one λ, not {channels!r}")
        if map not in _maps: raise ValueError(f"lgelu: no map {map!r}; there are {', '.join(_maps)}")
        if not t > 0: raise ValueError(f"lgelu: the temperature t is above 0, not {t}")
        self.channels, self.axis, self.map, self.t, self.lambda_max = channels, axis, map, t, lambda_max
        try: lam = float(lam)
        except (TypeError, ValueError): raise TypeError(f"lgelu: the first λ is one number, not {lam!r}") from None
        s = _lib.lgelu_lambda_inverse(ctypes.byref(self._h()), lam)
        if not math.isfinite(s): raise ValueError(f"lgelu: the map {map} gives no λ of {lam}; it starts above 1")
        self.s = nn.Parameter(torch.full((channels,) if channels else (), s))
        # A driven λ is two parameters without a gradient, so that every average reaches it: of parameters, of buffers too, of
        # a state_dict. fraction is 1 while λ is driven and 0 while it is learned, driven is fraction·λ; between them is an
        # average of both.
        self.driven = nn.Parameter(torch.zeros(self.s.shape), requires_grad=False)
        self.fraction = nn.Parameter(torch.zeros(()), requires_grad=False)
        self.target = None                                                    # λ at the end of the plan that drives it
        self._kept, self._original = None, id(self)                           # s from when λ was learned; a copy has another id
        self._look()

    def _h(self): return _Hardness(_maps.index(self.map), self.t, self.lambda_max)

    def _apply(self, fn, *rest):             # a 16-bit model's λ keeps its bits
        super()._apply(fn, *rest)
        if self.s.dtype in (torch.float16, torch.bfloat16):
            for p in self.s, self.driven, self.fraction: p.data = p.data.float()
            if self.s.grad is not None: self.s.grad = self.s.grad.float()
        self._versions = None
        return self

    def _load_from_state_dict(self, state, prefix, metadata, strict, missing, unexpected, errors):
        found = [state.get(prefix + name) for name in ("driven", "fraction", "s")]
        if torch.is_tensor(found[0]) and found[1] is None:                    # a file from before there was a fraction
            found[1] = (found[0] != 0).any().float()
            state = {**state, prefix + "fraction": found[1]}
        if all(torch.is_tensor(f) and f.device.type != "meta" for f in found):
            wrong = _wrong(*found)
            if wrong: return errors.append(f"lgelu: {prefix}driven: {wrong}")
        super()._load_from_state_dict(state, prefix, metadata, strict, missing, unexpected, errors)
        self._kept = None
        self._look()

    def _look(self):
        """Reads the state from the parameters; on the device meta it stays what it was."""
        if self.s.device.type != "meta":
            wrong = _wrong(self.driven, self.fraction, self.s)
            if wrong: raise ValueError(f"lgelu: a gate's driven λ: {wrong}")
            fraction = self.fraction.item()
            self._state = "learned" if not fraction else "driven" if fraction == 1 else "averaged"
            if fraction and bool(torch.isinf(self.driven).all()): self._state = "relu"
            if self._state != "learned" and self._kept is None: self._kept = self.s.detach().clone()
        elif not hasattr(self, "_state"): self._state = "learned"
        self._versions = self.driven._version, self.fraction._version

    @property
    def state(self):
        """"learned", "driven" or "relu"; "averaged" in an average over models of which some were learned and some driven"""
        # drive, a file and most averages change a parameter in place. Some averages write through .data, unseen: these are
        # copies of a gate that are evaluated.
        p = self._parameters
        seen = self._versions == (p["driven"]._version, p["fraction"]._version)
        if not seen or (self._original != id(self) and not self.training): self._look()
        return self._state

    @property
    def lam(self):
        """λ now, a tensor; it has a gradient while it is learned, and is a constant while the model is traced or exported"""
        if _recorded():
            with _quietly(): return torch.tensor(self._numbers()).reshape(self.s.shape)
        state = self.state
        if state == "learned": return self._learned()
        if state != "averaged": return self.driven.detach()
        with torch.no_grad(): return self.driven + (1 - self.fraction).clamp(min=0) * self._learned()

    def _numbers(self):
        """λ's as numbers, which a trace doesn't record"""
        state = self.state
        driven, s = self.driven.detach().reshape(-1).tolist(), _plain(self.s.detach()).reshape(-1).tolist()
        if state in ("driven", "relu"): return driven
        rest = max(1 - self.fraction.item(), 0)
        return [d + rest * l for d, l in zip(driven, _lambda_of(s, self._h()))]

    def _learned(self):
        """λ(s)"""
        if self.s.device.type == "cpu" and self.s.dtype == torch.float32 and not _transformed() and _memory(self.s):
            return _Lambda.apply(self.s, self._h())
        u = self.s / self.t
        if self.map == "softplus": return 1 + torch.logaddexp(u, torch.zeros_like(u))
        return 1 + (self.lambda_max - 1) * torch.sigmoid(u) if self.map == "sigmoid" else self.s.clamp(min=1)

    def drive(self, lam):
        """λ is this number, or these, from now on; 0: it is learned again"""
        lam = torch.as_tensor(lam, dtype=self.driven.dtype, device=self.driven.device)
        if not bool(((lam >= 1) | (lam == 0)).all()): raise ValueError("lgelu: a driven λ is 1 or more, or 0 for learned")
        learned = bool((lam == 0).any())
        if learned and bool((lam != 0).any()): raise ValueError("lgelu: the λ's of a gate are learned or driven together")
        if self.state in ("learned", "averaged"): self._kept = self.s.detach().clone()
        with torch.no_grad():
            self.s.copy_(self._kept)                                          # DistributedDataParallel makes gradients of 0, by
            self.driven.copy_(lam.expand_as(self.driven))                     # which an optimiser's momentum moves s
            self.fraction.fill_(0 if learned else 1)
        self.s.grad = None                                                    # no optimiser moves what is not learned
        self._look()
        return self

    def relu_(self):
        """exactly ReLU from now on"""
        return self.drive(math.inf)

    def _idle(self):
        """parameters with gradients that the output doesn't depend on: s while λ is driven"""
        if not torch.is_grad_enabled(): return ()
        return [p for name, p in self._parameters.items() if p.requires_grad and (name != "s" or self._state != "learned")]

    def _unseen(self):
        """λ whatever the state is, by operations alone: a transformed parameter may be many, and none can be looked at"""
        return torch.where(self.fraction < 1, self.driven + (1 - self.fraction) * self._learned(), self.driven)

    def __prepare_scriptable__(self):
        raise TypeError("lgelu: torch.jit.script cannot compile a LambdaGELU; torch.jit.trace records one, and to_relu makes an nn.ReLU")

    def forward(self, x):
        if isinstance(x, fx.Proxy):                                           # torch.fx takes the module as it is
            return x.tracer.create_proxy("call_module", x.tracer.path_of_module(self), (x,), {})
        if _transformed(): return _gate(x, self._unseen(), self.axis, ())
        if _recorded():
            with _quietly(): return torch.relu(x) if self.state == "relu" else _recorded_gate(x, self.lam, self.axis)
        state, idle = self.state, self._idle()
        if state == "relu": return torch.relu(_Idle.apply(x, *idle) if idle else x)
        return _gate(x, self.lam, self.axis, idle)

    def extra_repr(self):
        try: lam = self.lam.detach().cpu().reshape(-1)
        except (ValueError, NotImplementedError): return f"no values yet, map={self.map}, t={self.t:g}"
        of = f"λ={float(lam[0]):.6g}"
        if self.channels: of = f"{self.channels} λ's, {float(lam.min()):.6g} to {float(lam.max()):.6g}, axis={self.axis}"
        return f"{of}, {self.state}, map={self.map}, t={self.t:g}"

# ---- how near to ReLU a λ is ----
def lambda_for_tolerance(tau):
    """The λ at which the gate error is τ: λ = 2/(τ√(2π)), the paper's target. τ = 0.005 gives 159.577, τ = 0 gives infinity."""
    if not 0 <= tau < math.inf: raise ValueError(f"lgelu: a tolerance τ is 0 or more, not {tau}")
    return _lib.lgelu_lambda_for_tolerance(tau)

def gate_error(lam):
    """The τ of a λ: ∫|Φ(λx) - [x > 0]| dx = 2/(λ√(2π))"""
    if not lam > 0: raise ValueError(f"lgelu: expected a λ above 0, found {lam}")
    return _lib.lgelu_gate_error(lam)

def lambda_for_gap(gap):
    """The λ at which the gate is at most `gap` from ReLU: λ = 0.1699712/gap"""
    if not 0 <= gap < math.inf: raise ValueError(f"lgelu: a gap to ReLU is 0 or more, not {gap}")
    return _lib.lgelu_lambda_for_gap(gap)

def gap(lam):
    """The largest distance of x Φ(λx) from ReLU: 0.1699712/λ"""
    if not lam > 0: raise ValueError(f"lgelu: expected a λ above 0, found {lam}")
    return _lib.lgelu_gap(lam)

def profile(model):
    """The λ's of a model by layer: a dict for each LambdaGELU, in the order in which the model has them: "layer" from 1, "name",
    "lam" (the mean over channels), "min" and "max" over channels, "tau", the gate error at "lam", and "state". Raises ValueError
    where there is none. pandas.DataFrame(lgelu.profile(model)) makes a table."""
    _checked_model(model)
    rows = []
    for name, g in model.named_modules():
        if not isinstance(g, LambdaGELU): continue
        lam = g.lam.detach().double().reshape(-1).tolist()
        mean = math.fsum(lam) / len(lam)
        rows.append({"layer": len(rows) + 1, "name": name, "lam": mean, "min": min(lam), "max": max(lam), "tau": gate_error(mean),
                     "state": g.state})
    if not rows: raise ValueError("lgelu: there is no LambdaGELU in this model")
    return rows

def plot_profile(profiles, path=None, ax=None):
    """Draws λ by layer with matplotlib: `profiles` are a model, the rows of `profile`, or a dictionary of either by label, such as
    one for each epoch. A gate of several λ's has a bar from its least to its largest; an infinite λ is left out. path: a file to write; ax: axes to draw in.
    Returns the axes."""
    try: from matplotlib.figure import Figure
    except ImportError as e: raise ImportError("lgelu: plot_profile needs matplotlib (Debian: python3-matplotlib)") from e
    if ax is None: ax = Figure(figsize=(6, 3.5), layout="constrained").add_subplot()
    for label, rows in (profiles if isinstance(profiles, dict) else {None: profiles}).items():
        if isinstance(rows, nn.Module): rows = profile(rows)
        layer, lam = [r["layer"] for r in rows], [r["lam"] for r in rows]
        several = any(r["min"] < r["max"] for r in rows)
        ends = [[abs(r["lam"] - r[end]) if r["min"] < r["max"] else 0 for r in rows] for end in ("min", "max")]
        ax.errorbar(layer, lam, ends if several else None, marker="o", capsize=3, label=label)
    ax.set_xlabel("layer")
    ax.set_ylabel("λ")
    ax.xaxis.get_major_locator().set_params(integer=True)
    if isinstance(profiles, dict): ax.legend()
    if path is not None: ax.figure.savefig(path)
    return ax

# ---- models ----
def gates(model):
    """its LambdaGELUs, each once, in order"""
    return [m for m in model.modules() if isinstance(m, LambdaGELU)]

def _is_gelu(value):
    """nn.GELU, F.gelu, or F.gelu with its arguments"""
    if isinstance(value, functools.partial): value = value.func
    return isinstance(value, nn.GELU) or value is nn.functional.gelu

def _is_tanh(value):
    """GELU in its tanh form"""
    if isinstance(value, functools.partial): return value.keywords.get("approximate", "none") == "tanh"
    return getattr(value, "approximate", "none") == "tanh"

_other = {getattr(nn, kind): kind for kind in ("SiLU", "Mish", "ELU", "CELU", "SELU", "Softplus", "Hardswish", "LogSigmoid")}
_other_functions = {getattr(nn.functional, kind.lower()): kind for kind in _other.values()}

def _kind_of_other(value):
    """The name of a smooth activation that is no GELU; None: it is none"""
    if isinstance(value, functools.partial): value = value.func
    return _other.get(type(value)) or (_other_functions.get(value) if inspect.isfunction(value) or inspect.isbuiltin(value) else None)

def _no_gelu(model):
    """why replace_gelu has nothing to replace"""
    if gates(model): return "lgelu: there is no nn.GELU left in this model; it has LambdaGELU already"
    kinds = [_kind_of_other(value) for _, _, value in _places(model, _kind_of_other)] or [_kind_of_other(model)]
    if any(kinds):
        found = ", ".join(f"{kinds.count(k)} × {k}" for k in sorted(set(kinds)))
        return f"lgelu: there is no nn.GELU in this model, but {found}: lgelu.refit(model, batches) makes ReLU of any smooth activation"
    return ("lgelu: there is no nn.GELU in this model, nor a module that keeps F.gelu; where a forward calls F.gelu, put "
            "lgelu.LambdaGELU() in its place, or use lgelu.refit")

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

def _checked_model(model):
    if not isinstance(model, nn.Module): raise TypeError(f"lgelu: expected an nn.Module, found {type(model).__name__}")

def _replace(model, matches, make, missing):
    """model with make(value) in every place that matches; missing(model) is the error where there is no such place"""
    if matches(model): return make(model)
    found = _places(model, matches)
    if not found: raise ValueError(missing(model))
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
    GELU. A forward that calls F.gelu by itself is not seen: give such a model a LambdaGELU to call. GELU in its tanh form becomes
    erf's form, with a warning: the values change a little."""
    new = lambda value: LambdaGELU(**options)
    shared = _once(new)
    make = (lambda value: shared(value) if isinstance(value, nn.GELU) else new(value)) if share else new
    _checked_model(model)
    found = [value for _, _, value in _places(model, _is_gelu)] or [model]
    tanh = sum(map(_is_tanh, found))
    model = _replace(model, _is_gelu, make, _no_gelu)
    if tanh:
        warnings.warn(f"lgelu: {tanh} of {len(found)} gates were GELU(approximate='tanh'), and are x Φ(λx) now: at λ = 1 it differs "
                      "from the tanh form by up to 0.00047", stacklevel=2)
    return model

def _some_gates(model):
    _checked_model(model)
    found = gates(model)
    if not found: raise ValueError("lgelu: there is no LambdaGELU in this model")
    _fast_paths(model)
    return found

def relu_(model):
    """every LambdaGELU answers as ReLU from now on, and stays what it is: gate.drive(0) goes back. Raises ValueError where there
    is none"""
    for g in _some_gates(model): g.relu_()
    return model

def _early(g):
    """whether λ isn't at the end of its plan; without a plan, whether it has never been driven"""
    if g.target is None: return g.state in ("learned", "averaged")
    return float(g.lam.detach().min()) < g.target * 0.999                     # an average stops a little below

def _warn_early(model):
    found = [(name, g) for name, g in model.named_modules() if isinstance(g, LambdaGELU)]
    early = [(float(g.lam.detach().min()), name, g) for name, g in found if _early(g)]
    if not early: return
    lam, name, g = min(early, key=lambda e: e[0])
    plan = "without a plan" if g.target is None else f"before the end of the plan at λ = {g.target:g}"
    warnings.warn(f"lgelu: to_relu {plan}: {len(early)} of {len(found)} gates are not ReLU yet; gate {name!r} with λ = {lam:g} "
                  f"changes the most, by up to {_lib.lgelu_gap(lam):.3g}. A Hardening drives λ there; refit solves for the "
                  "weights behind", stacklevel=3)

def to_relu(model):
    """every LambdaGELU is replaced by an nn.ReLU, in place: what verifiers, quantizers and exporters know. Returns the model.
    Raises ValueError where there is none. Warns before a plan's end, with the largest change of a gate"""
    _checked_model(model)
    _warn_early(model)
    return _replace(model, lambda value: isinstance(value, LambdaGELU), _once(lambda value: nn.ReLU()),
                    lambda model: "lgelu: there is no LambdaGELU in this model")

def parameter_groups(model, lr, weight_decay=0.01, c=1.0):
    """groups for an optimiser: matrices and kernels decay, biases and normalisations do not, nor does s, whose rate is c·lr"""
    free = {id(g.s): g.s for g in gates(model)}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in free]
    groups = [{"params": [p for p in rest if p.dim() > 1], "lr": lr, "weight_decay": weight_decay},
              {"params": [p for p in rest if p.dim() < 2], "lr": lr, "weight_decay": 0.0},
              {"params": [s for s in free.values() if s.requires_grad], "lr": lr * c, "weight_decay": 0.0}]
    return [g for g in groups if g["params"]]

# ---- the way to ReLU ----
def _step(value):
    """A step of a plan as an int."""
    if not isinstance(value, numbers.Real): raise TypeError(f"lgelu: a plan's steps are numbers, not {value!r}")
    return int(value)

class Plan:
    """λ is learned up to step `begin`, driven to `target` along `shape` from there to `end`; the rate rises over `warmup` steps,
    stays up to `hold` and falls along the cosine to `steps`. Steps count from 1."""
    def __init__(self, target, begin, end, steps=None, hold=0, warmup=0, shape="geometric"):
        if shape not in _shapes: raise ValueError(f"lgelu: no shape {shape!r}; there are {', '.join(_shapes)}")
        if not target > 1: raise ValueError(f"lgelu: the target λ is above 1, not {target}")
        self.target, self.begin, self.end, self.steps = target, _step(begin), _step(end), _step(end if steps is None else steps)
        if not 0 <= self.begin <= self.end <= self.steps or not self.steps:
            raise ValueError(f"lgelu: a plan begins, ends and has steps in this order, not {begin}, {end} and {self.steps}")
        self.hold, self.warmup, self.shape = _step(hold), _step(warmup), shape

    def __repr__(self):
        return (f"Plan(λ learned up to step {self.begin}, {self.shape} to {self.target:g} at step {self.end}, {self.steps} steps, "
                f"peak rate up to step {self.hold}, warmup={self.warmup})")

    @property
    def tau(self):
        """the gate error at the target, the paper's tolerance τ"""
        return gate_error(self.target)

    @classmethod
    def _of(cls, paper, steps, tau):
        plan, hold, steps = _Hardening(), ctypes.c_long(), _step(steps)
        if steps < 1: raise ValueError(f"lgelu: a plan has 1 or more steps, not {steps}")
        _lib.lgelu_torch_plan(ctypes.byref(plan), ctypes.byref(hold), paper, steps)
        target = plan.target if tau is None else lambda_for_tolerance(tau)
        return cls(target, plan.begin, plan.end, steps, hold.value, 0, _shapes[plan.shape])

    @classmethod
    def to_relu(cls, steps, tau=None):
        """lgelu_training_to_relu: learned for a quarter, driven up to three quarters at the peak of the rate, which falls then.
        The target is the λ for the tolerance τ, 0.005 by default."""
        return cls._of(0, steps, tau)

    @classmethod
    def paper(cls, steps, tau=None):
        """lgelu_training_paper: learned for three quarters, driven over the last one under a cosine rate; tau as in to_relu"""
        return cls._of(1, steps, tau)

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
        if not isinstance(plan, Plan): raise TypeError(f"lgelu: expected a Plan behind the model, found {type(plan).__name__}")
        self.gates, self.plan, self.optimizer, self.steps = _some_gates(model), plan, optimizer, 0
        for g in self.gates: g.target = plan.target
        self.lambda0 = [None] * len(self.gates)
        self.peaks = [g.setdefault("initial_lr", g["lr"]) for g in optimizer.param_groups] if optimizer else []
        self._warn_fixed()
        self._prepare(True)

    def _warn_fixed(self):                   # an optimizer that was made before replace_gelu has no λ
        if not self.optimizer or not self.plan.begin: return
        moved = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        fixed = [g for g in self.gates if g.s.requires_grad and id(g.s) not in moved]
        if fixed:
            warnings.warn(f"lgelu: the optimizer has no λ of {len(fixed)} of {len(self.gates)} gates, so that these stay at their first "
                          f"value up to step {self.plan.begin}; make it behind replace_gelu, or set requires_grad_(False) for a gate's s",
                          stacklevel=3)

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

# ---- a finished network becomes ReLU without training: lgelu_refit.py ----
def refit(model, batches, **options):
    """Makes ReLU of every smooth gate of a finished model, whatever its Python looks like, and solves in closed form for the
    weights of the matrices behind them, so that the model computes what it computed before: no labels, no gradients, a few
    hundred to a few thousand inputs. The engine is that of examples/reluize, on the model's export in memory.

    batches: a list of inputs: tensors, tuples of arguments, or dictionaries of them. Returns the model, changed in place; where a
    forward calls F.gelu and the like, a torch.fx.GraphModule with weights of its own, and the model stays as it is. Raises
    ValueError where that cannot be traced. After any error the model is as it was.

    what="full" changes weights and biases, "biases" biases alone, "cold" gates alone. relus: ReLUs a gate, 1 to 14. fitted=True: one
    ReLU, too, is fitted to what its gate reads; line=True: fitted ReLUs have a linear term beside them, as reluize writes it.
    leaky=True: leaky forms are replaced, too. ridge, rows, memory, seed: as in examples/reluize/passes/onnx_relu.h. untie=True: modules
    that share a parameter get one each. onnx="FILE": writes the converted network there, and leaves the model as it is.

    steps=N: N steps follow the closed form, on `device` (None: the model's), of matrices along whitened gradients and of all else by
    Adam, towards what the original makes and what its gates read, without labels. The rate rises to lr (None: by how far the closed
    form is from the original) and falls along a cosine; seed is that of the batches' order. The last eighth of the
    batches is held out, from the closed form, too: the state that is nearest there is kept, at worst the closed form. classes: the
    axis of the classes in the first output of a classifier or language model, whose probabilities are compared then (the divergence
    from the original's); other outputs are compared by their squares over the variance. augment: a function of a batch, which may
    change it, that returns what the step takes in its place.

    report: a list that receives a dict for each gate ("kind" "gate": "name", "calls" of this module, "function", "replaced", "why"
    where it stays), each matrix ("layer": "name", "outcome", "before", "after") and each output ("output": "change")."""
    import lgelu_refit
    return lgelu_refit.refit(model, batches, **options)
