# SPDX-License-Identifier: MIT-0
"""lgelu_refit: the function lgelu.refit, which makes ReLU of the smooth gates of a finished model.

The model is exported to ONNX in memory, the file is converted by the engine behind reluize (examples/deploy/onnx_relu.h, in
liblgelu_convert.so), and what it changed is set in the module: weights by their names, and nn.ReLU, or a Relus, in place of the
modules that compute the gates. Which module computes which gate is found by their values on the first batch. At the end the
module's outputs are compared with those of the converted file.

    [1] THE LIBRARY    structures and functions of lgelu_convert.c
    [2] THE COPY       the model in float on the CPU, with what the exporter needs
    [3] ARGUMENTS      any nest of tensors as a list, and back
    [4] THE FILE       export and evaluation
    [5] GATES          which module computes which gate
    [6] LAYERS         which parameter holds which weights
    [7] THE CHANGE     set in a module; the comparison; distillation
    [8] REFIT
"""
import copy, ctypes, functools, inspect, io, math, os, warnings
import torch
from torch import fx, nn
from torch.nn.utils import parametrize, prune

# ---- [1] THE LIBRARY ----
_TEXT, _RANK = 1024, 12

class _View(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("rank", ctypes.c_int), ("dim", ctypes.c_int64 * _RANK), ("count", ctypes.c_size_t),
                ("data", ctypes.c_void_p)]

class _Input(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("x", _View)]

class _Options(ctypes.Structure):
    _fields_ = [("what", ctypes.c_int), ("relus", ctypes.c_int), ("leaky", ctypes.c_int), ("ridge", ctypes.c_double),
                ("rows", ctypes.c_size_t), ("memory", ctypes.c_size_t), ("seed", ctypes.c_uint64)]

class _GateInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char * _TEXT) for name in ("name", "why", "input", "output", "node")] + [
        ("kind", ctypes.c_int), ("replaced", ctypes.c_int), ("axis", ctypes.c_int), ("channels", ctypes.c_size_t),
        ("error", ctypes.c_double)] + [(name, ctypes.POINTER(ctypes.c_float)) for name in ("kink", "slope", "base", "line")]

class _LayerInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char * _TEXT) for name in ("node", "why", "weight", "bias", "norm")] + [
        ("outcome", ctypes.c_int), ("has_bias", ctypes.c_int), ("before", ctypes.c_double), ("after", ctypes.c_double),
        ("ridge", ctypes.c_double), ("rows", ctypes.c_size_t), ("held", ctypes.c_size_t)] + [
        (name, _View) for name in ("old_weight", "old_bias", "new_weight", "new_bias")]

_types = {torch.float32: 1, torch.uint8: 2, torch.int8: 3, torch.int16: 5, torch.int32: 6, torch.int64: 7, torch.bool: 9,
          torch.float64: 11}
_kinds = ("smooth", "leaky", "relu", "pieces", "stays")
_outcomes = ("changed", "shifted", "kept", "left")

@functools.lru_cache(None)
def _library():
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("LGELU_CONVERT_LIBRARY", ""), here + "/liblgelu_convert.so",
              here + "/../build/liblgelu_convert.so"]
    path = next((p for p in places if p and os.path.exists(p)), None)
    if not path:
        raise ImportError("lgelu: no liblgelu_convert.so; make -C examples torch, or name it in LGELU_CONVERT_LIBRARY")
    lib, p, integer, text = ctypes.CDLL(path), ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    for name, result, arguments in (
            ("convert_open", p, [text, ctypes.c_size_t, p, text]), ("convert_close", None, [p]),
            ("convert_message", text, [p]), ("convert_gates", integer, [p]), ("convert_gate", None, [p, integer, p]),
            ("convert_plan", None, [p, p]), ("convert_add", integer, [p, p, integer]), ("convert_prepare", integer, [p]),
            ("convert_layers", integer, [p]), ("convert_layer", None, [p, integer, p]),
            ("convert_leave", None, [p, integer, integer, integer]), ("convert_run", integer, [p]),
            ("convert_kept", ctypes.c_size_t, [p]), ("convert_file", p, [p, p]),
            ("file_open", p, [text, ctypes.c_size_t, text]), ("file_close", None, [p]), ("file_message", text, [p]),
            ("file_keep", integer, [p, text]), ("file_run", integer, [p, p, integer]), ("file_get", integer, [p, text, p])):
        function = getattr(lib, "lgelu_" + name)
        function.restype, function.argtypes = result, arguments
    return lib

def _inputs(names, tensors):
    """The array of _Input that the library takes. The tensors must be kept while it is used."""
    array = (_Input * len(tensors))()
    for one, name, x in zip(array, names, tensors):
        one.name = name.encode()
        one.x.type, one.x.rank, one.x.count, one.x.data = _types[x.dtype], x.dim(), x.numel(), x.data_ptr()
        one.x.dim[:x.dim()] = x.shape
    return array

def _tensor(view):
    """A copy of what the library shows; None: nothing."""
    if not view.data: return None
    dtype = next(t for t, number in _types.items() if number == view.type)
    shape = tuple(view.dim[:view.rank])
    if not view.count: return torch.empty(shape, dtype=dtype)
    bytes_ = view.count * torch.empty(0, dtype=dtype).element_size()
    return torch.frombuffer(bytearray(ctypes.string_at(view.data, bytes_)), dtype=dtype).reshape(shape)

class _Object:
    """An object of the library: `kind` is "convert" or "file"."""
    def __init__(self, kind, *arguments):
        self.lib, self.kind, message = _library(), kind, ctypes.create_string_buffer(160)
        self.handle = getattr(self.lib, f"lgelu_{kind}_open")(*arguments, message)
        if not self.handle: raise RuntimeError(f"lgelu: refit: {message.value.decode(errors='replace')}")

    def __enter__(self): return self

    def __exit__(self, *_): self("close")

    def __call__(self, name, *arguments):
        return getattr(self.lib, f"lgelu_{self.kind}_{name}")(self.handle, *arguments)

    def must(self, name, *arguments):
        """The same for functions that return 0 or -1."""
        if self(name, *arguments):
            raise RuntimeError(f"lgelu: refit: {self('message').decode(errors='replace')}")

# ---- [2] THE COPY ----
class _Function(nn.Module):
    """A function that a module keeps as an attribute, such as F.gelu, as a module."""
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs): return self.function(*args, **kwargs)

_functions = tuple(getattr(nn.functional, name) for name in ("gelu", "silu", "elu", "mish", "celu", "selu", "softplus",
                                                              "hardswish", "leaky_relu", "relu", "logsigmoid"))

def _is_function(value):
    if isinstance(value, functools.partial): value = value.func
    return any(value is f for f in _functions)

def _plain_weights(model):
    """Computes the weights that weight_norm, spectral_norm or another parametrization makes, once, and removes it. Raises
    ValueError where a weight is masked by torch.nn.utils.prune."""
    for path, m in list(model.named_modules()):
        if parametrize.is_parametrized(m):
            own = {k: v for k, v in vars(type(m)).items() if k not in ("__dict__", "__weakref__")}
            m.__class__ = type(type(m).__name__, type(m).__bases__, own)       # copies share it, and it is changed below
            for name in list(m.parametrizations): parametrize.remove_parametrizations(m, name, leave_parametrized=True)
        for hook in list(m._forward_pre_hooks.values()):
            if isinstance(hook, prune.BasePruningMethod):
                raise ValueError(f"lgelu: refit: layer '{path}': its {hook._tensor_name} is masked by torch.nn.utils.prune; "
                                 f"call prune.remove first")
            if type(hook).__name__ == "WeightNorm": nn.utils.remove_weight_norm(m, hook.name)
            elif type(hook).__name__ == "SpectralNorm": nn.utils.remove_spectral_norm(m, hook.name)

def _split_shared(model):
    """Gives each place of a module without matrices, such as an nn.GELU that several layers share, an object of its own."""
    seen = set()
    for parent in list(model.modules()):
        for name, m in list(parent._modules.items()):
            if m is None or m._modules or any(p.dim() > 1 for p in m.parameters()): continue
            if id(m) in seen: parent._modules[name] = copy.copy(m)
            seen.add(id(m))

def _plain_padding(m):
    """Writes padding="same" as numbers, which the exporter knows."""
    if not isinstance(getattr(m, "padding", None), str): return
    if m.padding == "same" and m.padding_mode == "zeros":
        total = [d * (k - 1) for d, k in zip(m.dilation, m.kernel_size)]
        if all(t % 2 == 0 for t in total): m.padding = tuple(t // 2 for t in total)
        else: m.padding, m.padding_mode = (0,) * len(total), "constant"        # by F.pad, which may be uneven
    elif m.padding == "valid" or m.padding_mode != "zeros": m.padding = (0,) * len(m.kernel_size)

def _copy_of(model):
    """The model in float on the CPU in eval mode, its weights plain, its gates apart."""
    memo = {id(v): v.detach().clone() for m in model.modules() for v in vars(m).values()
            if torch.is_tensor(v) and v.grad_fn is not None}                  # what weight_norm has computed
    work = copy.deepcopy(model, memo).cpu().float().eval()
    _plain_weights(work)
    _split_shared(work)
    for m in list(work.modules()):
        _plain_padding(m)
        for name, value in list(vars(m).items()):
            if _is_function(value): setattr(m, name, _Function(value))
        if hasattr(m, "activation_relu_or_gelu"): m.activation_relu_or_gelu = 0      # no fast path: see _fast_paths
        if hasattr(m, "use_nested_tensor"): m.use_nested_tensor = False
    for p in work.parameters(): p.requires_grad_(p.is_floating_point())
    return work

# ---- [3] ARGUMENTS ----
def _tensors(value):
    """The tensors of a nest of tuples, lists and dictionaries, in order."""
    if torch.is_tensor(value): return [value]
    if isinstance(value, dict): value = list(value.values())
    return [t for v in value for t in _tensors(v)] if isinstance(value, (tuple, list)) else []

def _rebuilt(value, tensors):
    """The same nest with other tensors, taken from an iterator."""
    if torch.is_tensor(value): return next(tensors)
    if isinstance(value, dict): return type(value)((k, _rebuilt(v, tensors)) for k, v in value.items())
    if isinstance(value, (tuple, list)):
        parts = [_rebuilt(v, tensors) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value

def _plain(x):
    """A tensor as the file takes it: on the CPU, floats as float32."""
    x = x.detach().cpu()
    return (x.float() if x.is_floating_point() else x).contiguous()

class _Flat(nn.Module):
    """A model as a function from a list of tensors to a tuple of tensors."""
    def __init__(self, model, batch):
        super().__init__()
        self.model, self.batch = model, batch
        self.training = True    # of this module alone: so the exporter does not merge parameters that are equal by chance

    def forward(self, *tensors):
        batch = _rebuilt(self.batch, iter(tensors))
        if isinstance(batch, dict): y = self.model(**batch)
        else: y = self.model(*batch) if isinstance(batch, (tuple, list)) else self.model(batch)
        return tuple(t for t in _tensors(y))

# ---- [4] THE FILE ----
def _export(flat, batches, names):
    """The file's bytes and the names of its outputs."""
    first, file = batches[0], io.BytesIO()
    with torch.no_grad(): outputs = [f"output_{i}" for i in range(len(flat(*first)))]
    if not outputs: raise ValueError("lgelu: refit: the model returns no tensor")
    open_ = {}
    for i, (name, x) in enumerate(zip(names, first)):
        differ = {d for d in range(x.dim()) if d == 0 or any(b[i].shape[d] != x.shape[d] for b in batches)}
        if differ: open_[name] = {d: f"{name}_{d}" for d in differ}
    more = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    try:
        with warnings.catch_warnings(), torch.enable_grad():
            warnings.simplefilter("ignore")
            torch.onnx.export(flat, tuple(first), file, opset_version=17, do_constant_folding=False, input_names=names,
                              output_names=outputs, dynamic_axes=open_, training=torch.onnx.TrainingMode.PRESERVE, **more)
    except Exception as e:
        said = (str(e).splitlines() or [""])[0]
        raise RuntimeError(f"lgelu: refit: PyTorch cannot export this model to ONNX: {type(e).__name__}: {said}") from e
    return file.getvalue(), outputs

class _File(_Object):
    """The evaluator on a file."""
    def __init__(self, data): super().__init__("file", data, len(data))

    def values(self, names, tensors, wanted):
        """Values of the file, by name."""
        for name in wanted: self.must("keep", name.encode())
        self.must("run", _inputs(names, tensors), len(tensors))
        return [self.value(name) for name in wanted]

    def value(self, name):
        view = _View()
        self.must("get", name.encode(), ctypes.byref(view))
        return _tensor(view)

def _distance(a, b):
    """The root mean square of a - b beside that of b, over what is finite in b; infinity where they do not fit."""
    if a.shape != b.shape: return math.inf
    a, b = a.detach().double(), b.detach().double()
    finite = torch.isfinite(b)
    if not bool((torch.isfinite(a) == finite).all()): return math.inf
    a, b = a[finite], b[finite]
    if not b.numel(): return 0.0
    return float(((a - b).square().mean() / b.square().mean().clamp(min=1e-30)).sqrt())

# ---- [5] GATES ----
_SAMPLE = 4096                              # elements of a value by which a gate and a module are compared
_SAME = 1e-4                                # of their root mean square: rounding is below it, another function above

def _sample(x):
    x = x.detach().reshape(-1).double()
    return x if len(x) <= _SAMPLE else x[torch.linspace(0, len(x) - 1, _SAMPLE).long()]

def _line(x, y):
    """(p, q) with y = p·x + q; None: there is none."""
    size = float(y.square().mean().sqrt())
    if float((x - y).square().mean().sqrt()) <= _SAME * size: return 1.0, 0.0
    mean_x, mean_y = x.mean(), y.mean()
    spread = float((x - mean_x).square().sum())
    if not spread > 0: return None
    p = float(((x - mean_x) * (y - mean_y)).sum()) / spread
    q = float(mean_y) - p * float(mean_x)
    good = p != 0 and float((p * x + q - y).square().mean().sqrt()) <= _SAME * size
    return (p, q) if good else None

class _Call:
    """A call of a module that may be a gate: its path, and samples of what it read and made."""
    def __init__(self, path, x, y):
        self.path, self.shape, self.x, self.y, self.gate = path, tuple(x.shape), _sample(x), _sample(y), None

def _calls(flat, first):
    """The calls of all modules that have no matrix and make of a tensor one of its shape."""
    calls, hooks = [], []
    def hook(path, module, args, y):
        x = next((a for a in args if torch.is_tensor(a)), None)
        if x is not None and torch.is_tensor(y) and x.shape == y.shape and x.is_floating_point() and y.is_floating_point():
            calls.append(_Call(path, x, y))
    def save(path, module, args):           # before the call: it may change its input in place
        kept[path] = [a.clone() if torch.is_tensor(a) else a for a in args]
    kept = {}
    for path, m in flat.model.named_modules():
        if any(p.dim() > 1 for p in m.parameters()): continue
        hooks.append(m.register_forward_pre_hook(functools.partial(save, path)))
        hooks.append(m.register_forward_hook(lambda m, a, y, path=path: hook(path, m, kept.get(path, a), y)))
    try:
        with torch.no_grad(): flat(*first)
    finally:
        for h in hooks: h.remove()
    return calls

class _Gate:
    """A gate of the file, and the module that computes it: y = outer(f(inner(x))), each a line."""
    def __init__(self, number, info):
        self.number, self.relus = number, info.replaced
        self.name, self.why, self.input, self.output, self.node = (
            getattr(info, key).decode(errors="replace") for key in ("name", "why", "input", "output", "node"))
        self.kind, self.error, self.call, self.module = _kinds[info.kind], 0.0, None, None

    def find(self, calls, z, f):
        """Looks for its module among the calls: the one whose values agree, the innermost of those."""
        best = None
        for call in calls:
            if call.gate is not None or call.shape != tuple(z.shape): continue
            inner, outer = _line(call.x, _sample(z)), _line(_sample(f), call.y)
            if inner is None or outer is None: continue
            rank = ((inner, outer) != ((1.0, 0.0), (1.0, 0.0)), -call.path.count("."), -len(call.path))
            if best is None or rank < best[0]: best = rank, call, inner, outer
        if best: self.call, self.inner, self.outer = best[1:]

    def place(self):
        """Its name in the report."""
        return self.call.path or "the model" if self.call else self.node or self.output

def _find_modules(gates, calls, file, names, first):
    """Looks for the modules of the gates that are to be replaced. A module that is called several times has one replacement for
    all of its calls, so that each of them must be such a gate, and it gets one ReLU."""
    wanted = [g for g in gates if g.relus]
    values = file.values(names, first, [v for g in wanted for v in (g.input, g.output)])
    for g, z, f in zip(wanted, values[::2], values[1::2]):
        g.find(calls, z, f)
        if g.call: g.call.gate = g
    for path in {g.call.path for g in wanted if g.call}:
        same = [c for c in calls if c.path == path]
        of = [c.gate for c in same if c.gate]
        for g in of:
            if len(same) > len(of) or any((g.inner, g.outer) != (o.inner, o.outer) for o in of):
                g.relus, g.why = 0, f"the module '{path}' is called in several places, not all of them gates"
            elif len(same) > 1: g.relus = 1

class Relus(nn.Module):
    """y = base + Σₖ slope[k]·ReLU(z - kink[k]) + line·z with z = inner[0]·x + inner[1], by channel along `axis`, counted from the
    last as -1, -2, ...; 0: one for all."""
    def __init__(self, kink, slope, base, line=None, axis=0, inner=(1.0, 0.0)):
        super().__init__()
        self.axis, self.inner = axis, tuple(inner)
        for name, value in (("kink", kink), ("slope", slope), ("base", base), ("line", line)):
            self.register_buffer(name, None if value is None else torch.as_tensor(value, dtype=torch.float32))

    def along(self, values):
        return values.reshape(-1, *[1] * (-self.axis - 1)) if values.numel() > 1 else values.reshape(())

    def forward(self, x):
        z = x if self.inner == (1.0, 0.0) else self.inner[0] * x + self.inner[1]
        y = self.along(self.base)
        for kink, slope in zip(self.kink, self.slope): y = y + self.along(slope) * torch.relu(z - self.along(kink))
        return (y if self.line is None else y + self.along(self.line) * z).to(x.dtype)

    def extra_repr(self):
        return f"{len(self.kink)} ReLUs, {self.kink.shape[1]} channels" + (f", axis={self.axis}" if self.axis else "")

def _replacement(gate, info):
    """The module that computes what the file has in place of a gate."""
    if not info.channels: return nn.ReLU()
    def floats(pointer, *shape):
        return torch.tensor(pointer[:math.prod(shape)]).reshape(shape)
    n = info.channels
    kink, slope = floats(info.kink, info.replaced, n), floats(info.slope, info.replaced, n)
    base, line = floats(info.base, n), floats(info.line, n) if info.line else torch.zeros(n)
    (p, q), (a, b) = gate.inner, gate.outer
    if (p, q, a, b) == (1.0, 0.0, 1.0, 0.0) and len(kink) == 1 and not bool(kink.any() or base.any() or line.any()) \
            and bool((slope == 1).all()): return nn.ReLU()
    return Relus(kink, a * slope, a * base + b, a * line if bool(line.any()) else None, info.axis if n > 1 else 0, (p, q))

# ---- [6] LAYERS ----
def _owners(model):
    """For each parameter: its modules and names there. One that has several is shared."""
    owners = {}
    for path, m in model.named_modules():
        for name, p in list(m._parameters.items()) + list(m._buffers.items()):
            if p is not None: owners.setdefault(id(p), []).append((path, m, name))
    return owners

def _way_back(array, p):
    """The function that makes of an array like `array` one like the parameter p, if they hold the same numbers; else None."""
    for way in (lambda a: a, lambda a: a.t() if a.dim() == 2 else a, lambda a: a.reshape(p.shape) if a.numel() == p.numel() else a):
        got = way(array)
        if got.shape == p.shape and torch.equal(got.float(), p.detach().float()): return way
    return None

_with_bias = tuple(getattr(nn, kind).forward for kind in ("Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
                                                          "ConvTranspose2d", "ConvTranspose3d"))

class _Layer:
    """A matrix of the file and the parameters that hold it."""
    def __init__(self, number, info, model, owners):
        self.number, self.model, self.owners = number, model, owners
        self.node, self.has_bias = info.node.decode(errors="replace"), bool(info.has_bias)
        self.weight, self.bias, self.norm = (self.parameter(getattr(info, key).decode(errors="replace"))
                                             for key in ("weight", "bias", "norm"))
        self.weight_back = self.weight and _way_back(_tensor(info.old_weight), self.weight[0])
        self.bias_back = self.bias and _way_back(_tensor(info.old_bias), self.bias[0])

    def parameter(self, name):
        """(the parameter, path of its module, the module, its name there), or None where it is shared or no parameter"""
        path, _, key = name[len("model."):].rpartition(".")
        try: m = self.model.get_submodule(path)
        except AttributeError: return None
        p = m._parameters.get(key, m._buffers.get(key)) if name.startswith("model.") else None
        return None if p is None or len(self.owners[id(p)]) > 1 else (p, path, m, key)

    def place(self):
        """Its name in the report."""
        return (self.weight[1] or self.weight[3]) if self.weight else self.node

    def takes_bias(self):
        """Whether a change of its biases can be set: where they are, in the normalisation behind it, or as new ones."""
        if self.has_bias: return self.bias_back is not None
        if self.takes_norm(): return True
        m = self.weight[2]
        return self.weight[3] == "weight" and m._parameters.get("bias", 0) is None and type(m).forward in _with_bias

    def takes_norm(self):
        return (self.norm is not None and not self.has_bias and isinstance(self.norm[2], nn.modules.batchnorm._BatchNorm)
                and self.norm[2].track_running_stats and self.norm[2].weight is not None)

    def set(self, info):
        """Sets the weights and biases of the converted file in the module."""
        weight, bias = _tensor(info.new_weight), _tensor(info.new_bias)
        if weight is not None: self.weight[0].copy_(self.weight_back(weight))
        if bias is None: return
        if self.has_bias: self.bias[0].copy_(self.bias_back(bias))
        elif self.takes_norm():
            m = self.norm[2]
            self.norm[0].add_((bias.double() * m.weight.double() / (m.running_var.double() + m.eps).sqrt()).float())
        else: self.weight[2].bias = nn.Parameter(bias.reshape(-1).float())

# ---- [7] THE CHANGE ----
def _fast_paths(model):
    """nn.TransformerEncoderLayer has a fast path for inference that calls no activation: it computes ReLU where
    activation_relu_or_gelu is 1, GELU where it is 2, and is not taken where it is 0."""
    for m in model.modules():
        if hasattr(m, "activation_relu_or_gelu"):
            act = getattr(m, "activation", None)
            if isinstance(act, (nn.ReLU, Relus)): m.activation_relu_or_gelu = 1 if isinstance(act, nn.ReLU) else 0
        if getattr(m, "use_nested_tensor", False):
            if any(getattr(layer, "activation_relu_or_gelu", 1) == 0 for layer in m.modules()): m.use_nested_tensor = False

def _put(model, path, module):
    """Puts a module in the place of another; the model itself where there is no path."""
    parent, _, name = path.rpartition(".")
    parent = model.get_submodule(parent)
    old = getattr(parent, name)
    setattr(parent, name, module.train(getattr(old, "training", parent.training)))

def _compare(flat, gates, file, names, batches, outputs):
    """Compares the module's outputs with the converted file's; raises RuntimeError where they differ. Returns the outputs."""
    results = []
    for b, batch in enumerate(batches):
        with torch.no_grad(): mine = flat(*batch)
        theirs = file.values(names, batch, outputs)
        for name, y, t in zip(outputs, mine, theirs):
            if not t.is_floating_point(): continue
            apart = _distance(y, t)
            if not apart <= 1e-3:
                raise RuntimeError(f"lgelu: refit: {name} of the module differs by {apart:.2g} from the converted file's in batch "
                                   f"{b}, first behind {_first_difference(flat, gates, file, names, batch)}; the model is as it was")
        results.append(mine)
    return results

def _first_difference(flat, gates, file, names, batch):
    """The first gate whose values in the module and in the converted file differ."""
    made, hooks = {}, []
    for g in gates:
        if g.module is not None:
            hooks.append(g.module.register_forward_hook(lambda m, a, y, g=g: made.setdefault(g.number, y)))
    with torch.no_grad(): flat(*batch)
    for h in hooks: h.remove()
    for g in gates:
        if g.number not in made: continue
        value, = file.values(names, batch, [g.output])
        if not _distance(made[g.number], g.outer[0] * value + g.outer[1]) <= 1e-3: return f"gate '{g.place()}'"
    return "the last gate"

def _distill(flat, teacher, batches, steps, lr, report):
    """Trains the converted model by Adam towards the original's outputs, which need no labels. Of the states at the end of each
    tenth of the steps and at the beginning the one with the least error on the last batch is kept."""
    student, held, parts = flat, len(batches) - 1, max(1, steps // 10)
    use = range(held) if held else range(1)
    def error(b):
        total = 0.0
        for y, t in zip(student(*batches[b]), teacher[b]):
            if t.is_floating_point(): total = total + (y - t).square().mean() / t.square().mean().clamp(min=1e-30)
        return total
    def judge():
        with torch.no_grad(): return float(error(held))
    parameters = [p for p in student.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=lr)
    first = least = judge()
    best = [p.detach().clone() for p in parameters]
    for step in range(steps):
        with torch.enable_grad():
            optimizer.zero_grad()
            error(use[step % len(use)]).backward()
        for group in optimizer.param_groups: group["lr"] = lr * 0.5 * (1 + math.cos(math.pi * step / steps))
        optimizer.step()
        if (step + 1) % parts == 0 or step + 1 == steps:
            now = judge()
            if now < least: least, best = now, [p.detach().clone() for p in parameters]
    with torch.no_grad():
        for p, b in zip(parameters, best): p.copy_(b)
    report.append({"kind": "distillation", "name": "the last batch", "before": first ** 0.5, "after": least ** 0.5})

@torch.no_grad()
def _commit(model, work, before, gates, batches):
    """Sets what has changed in the copy in the model itself."""
    training = {path: m.training for path, m in model.named_modules()}
    _plain_weights(model)
    for path, m in work.named_modules():
        own = model.get_submodule(path) if path not in {g.call.path for g in gates} else None
        if own is None: continue
        for name, p in m._parameters.items():
            if p is None: continue
            old, mine = before.get((path, name)), own._parameters[name]
            if mine is None:
                like = next(q for q in own._parameters.values() if q is not None)
                own._parameters[name] = nn.Parameter(p.detach().to(like), requires_grad=like.requires_grad)
            elif old is not None and not torch.equal(p, old):
                wide = mine.dtype == torch.float64               # keeps the digits of what has not changed
                mine.copy_(mine + (p.double() - old.double()).to(mine.device) if wide else p)
    for g in gates:
        like = next((p for p in model.parameters() if p.is_floating_point()), torch.zeros(()))
        _put(model, g.call.path, copy.deepcopy(g.module).to(like.device))
    _fast_paths(model)
    for path, m in model.named_modules():
        if path in training: m.train(training[path]) if not m._modules else setattr(m, "training", training[path])

# ---- [8] REFIT ----
def _checked(batches, what, relus, steps):
    batches = list(batches)
    if what not in ("full", "biases", "cold"):
        raise ValueError(f"lgelu: refit: what is 'full', 'biases' or 'cold', not {what!r}")
    if not 1 <= relus <= 14: raise ValueError(f"lgelu: refit: 1 to 14 ReLUs a gate, not {relus}")
    samples = 0
    for b in batches:
        first = next((t for t in _tensors(b) if t.dim()), None)
        samples += 0 if first is None else len(first)
    if samples < 8: raise ValueError(f"lgelu: refit: {samples} inputs, expected at least 8")
    return batches

def _traced(model):
    """The model's graph by torch.fx on a copy of its parameters, with a module in place of each function that is a gate; None:
    it cannot be traced, or calls none."""
    try: graph = fx.symbolic_trace(copy.deepcopy(model))
    except Exception: return None
    found = [n for n in graph.graph.nodes if n.op == "call_function" and _is_function(n.target)]
    for i, n in enumerate(found):
        kwargs = {k: v for k, v in n.kwargs.items() if k not in ("input", "inplace")}
        x = n.args[0] if n.args else n.kwargs["input"]
        if any(isinstance(a, fx.Node) for a in (*n.args[1:], *kwargs.values())): continue
        graph.add_submodule(f"gate_{i}", _Function(functools.partial(n.target, **kwargs)) if not n.args[1:]
                            else _Function(functools.partial(lambda f, rest, x, **k: f(x, *rest, **k), n.target, n.args[1:], **kwargs)))
        with graph.graph.inserting_before(n):
            new = graph.graph.call_module(f"gate_{i}", (x,))
        n.replace_all_uses_with(new)
        graph.graph.erase_node(n)
    if not found: return None
    graph.recompile()
    return graph

class _NoModule(Exception):
    """Gates that no module computes."""

def _convert(model, batches, options, steps, lr, report, onnx):
    work = _copy_of(model)
    tensors = [[_plain(t) for t in _tensors(b)] for b in batches]
    names = [f"input_{i}" for i in range(len(tensors[0]))]
    if any(len(t) != len(names) for t in tensors): raise ValueError("lgelu: refit: batches with different numbers of tensors")
    flat = _Flat(work, batches[0])
    data, outputs = _export(flat, tensors, names)
    teacher = []
    for batch in tensors:
        with torch.no_grad(): teacher.append(flat(*batch))
        if any(t.is_floating_point() and bool(t.isnan().any()) for t in teacher[-1]):
            raise ValueError("lgelu: refit: values that are not finite in the model's outputs")
    with _File(data) as file, _Object("convert", data, len(data), ctypes.byref(options)) as engine:
        for name, y, t in zip(outputs, teacher[0], file.values(names, tensors[0], outputs)):
            if t.is_floating_point() and not _distance(t, y) <= 1e-3:
                raise RuntimeError(f"lgelu: refit: {name} of the exported file differs by {_distance(t, y):.2g} from the module's: "
                                   f"PyTorch's exporter does not write what this model computes")
        gates = []
        for k in range(engine("gates")):
            info = _GateInfo()
            engine("gate", k, ctypes.byref(info))
            gates.append(_Gate(k, info))
        if not any(g.relus for g in gates):
            left = "; ".join(f"{g.name} at {g.place()} stays: {g.why}" for g in gates if g.kind == "stays")
            raise ValueError("lgelu: refit: there is no smooth gate to replace in this model" + (left and ": " + left))
        _find_modules(gates, [] if onnx else _calls(flat, tensors[0]), file, names, tensors[0])
        if not onnx:
            lost = [g for g in gates if g.relus and not g.call]
            if lost: raise _NoModule([f"{g.name} at {g.place()}" for g in lost])
        return _engine_run(model, work, flat, engine, gates, tensors, teacher, names, outputs, steps, lr, report, onnx)

def _engine_run(model, work, flat, engine, gates, tensors, teacher, names, outputs, steps, lr, report, onnx):
    engine("plan", (ctypes.c_int * (len(gates) + 1))(*[g.relus for g in gates]))
    for batch in tensors: engine.must("add", _inputs(names, batch), len(batch))
    engine.must("prepare")
    owners, layers = _owners(work), []
    for k in range(engine("layers")):
        info = _LayerInfo()
        engine("layer", k, ctypes.byref(info))
        layer = _Layer(k, info, work, owners)
        layers.append(layer)
        if not onnx and layer.weight_back is None: engine("leave", k, 1, 0)
        elif not onnx and not layer.takes_bias(): engine("leave", k, 0, 1)
    engine.must("run")
    size = ctypes.c_size_t()
    at = engine("file", ctypes.byref(size))
    if not at: raise RuntimeError(f"lgelu: refit: {engine('message').decode(errors='replace')}")
    converted, entries = ctypes.string_at(at, size.value), []
    infos = []
    for layer in layers:
        info = _LayerInfo()
        engine("layer", layer.number, ctypes.byref(info))
        infos.append(info)
    changed = []
    for g in gates:
        info = _GateInfo()
        engine("gate", g.number, ctypes.byref(info))
        if info.replaced and not onnx:
            g.module = _replacement(g, info)
            changed.append(g)
        entries.append({"kind": "gate", "name": g.place(), "function": g.name, "replaced": info.replaced,
                        "why": None if info.replaced else g.why or info.why.decode(errors="replace"), "error": info.error})
    for layer, info in zip(layers, infos):
        entries.append({"kind": "layer", "name": layer.place(), "outcome": _outcomes[info.outcome],
                        "why": info.why.decode(errors="replace") or None, "before": info.before, "after": info.after,
                        "ridge": info.ridge, "rows": info.rows})
    with _File(converted) as file:
        if onnx:
            results = [file.values(names, batch, outputs) for batch in tensors]
            with open(onnx, "wb") as out: out.write(converted)
        else:
            before = {(path, name): p.detach().clone() for path, m in work.named_modules() for name, p in m._parameters.items()
                      if p is not None}
            with torch.no_grad():
                for layer, info in zip(layers, infos): layer.set(info)
            for g in changed:
                twin = next((o for o in changed if o.call.path == g.call.path and o is not g and o.number < g.number), None)
                if twin: g.module = twin.module
                else: _put(work, g.call.path, g.module)
            results = _compare(flat, changed, file, names, tensors, outputs)
            if steps:
                _distill(flat, teacher, tensors, steps, lr, entries)
                with torch.no_grad(): results = [flat(*batch) for batch in tensors]
    for i, name in enumerate(outputs):
        if teacher[0][i].is_floating_point():
            apart = _distance(torch.cat([r[i].reshape(-1) for r in results]), torch.cat([t[i].reshape(-1) for t in teacher]))
            entries.append({"kind": "output", "name": name, "change": apart})
    if not onnx: _commit(model, work, before, [g for g in changed], tensors)
    if report is not None: report.extend(entries)
    return model

def refit(model, batches, what="full", relus=1, leaky=False, ridge=0.0, rows=0, memory=0, seed=1, steps=0, lr=1e-4, onnx=None,
          report=None):
    """See lgelu.refit."""
    batches = _checked(batches, what, relus, steps)
    options = _Options(("full", "biases", "cold").index(what), relus, leaky, ridge, rows, memory, seed)
    try: return _convert(model, batches, options, steps, lr, report, onnx)
    except _NoModule as e: lost = e.args[0]
    graph = _traced(model)
    if graph is not None:
        try: return _convert(graph, batches, options, steps, lr, report, None)
        except _NoModule as e: lost = e.args[0]
    raise ValueError(f"lgelu: refit: no module computes {', '.join(lost)}: it is a function call inside a forward, which cannot be "
                     f"changed there. Put a module such as nn.GELU() in its place, or write the converted network as a file with "
                     f"refit(..., onnx='relu.onnx')")
