# SPDX-License-Identifier: MIT-0
"""lgelu_refit: the function lgelu.refit, which makes ReLU of the smooth gates of a finished model.

The model is exported to ONNX in memory, the file is converted by the engine behind reluize (examples/reluize/passes/onnx_relu.h, in
liblgelu_convert.so), and what it changed is set in the module: weights by their names, and nn.ReLU, or a Relus, in place of the
modules that compute the gates; of a module that is called several times each call has its own (PerCall). Which module computes
which gate is found by their values on the first batch. All of this is done with a copy, whose outputs are compared with those of
the converted file; then the model is changed, and compared with the copy.

    [1] THE LIBRARY    structures and functions of lgelu_convert.c
    [2] THE COPY       the model in float on the CPU, with what the exporter needs
    [3] ARGUMENTS      any nest of tensors as a list, and back
    [4] THE FILE       export and evaluation
    [5] GATES          which module computes which gate
    [6] LAYERS         which parameters hold which weights
    [7] THE CHANGE     set in the copy; the comparison with the file
    [8] DISTILLATION   steps towards the original's outputs
    [9] COMMIT         the change set in the model, or undone
    [10] FUNCTIONS     gates that no module computes
    [11] REFIT
"""
import contextlib, copy, ctypes, dataclasses, dis, functools, inspect, io, math, os, warnings
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
    _fields_ = [("what", ctypes.c_int), ("relus", ctypes.c_int), ("leaky", ctypes.c_int), ("fitted", ctypes.c_int),
                ("line", ctypes.c_int), ("ridge", ctypes.c_double), ("rows", ctypes.c_size_t), ("memory", ctypes.c_size_t),
                ("seed", ctypes.c_uint64)]

class _GateInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char * _TEXT) for name in ("name", "why", "input", "output", "node")] + [
        ("kind", ctypes.c_int), ("replaced", ctypes.c_int), ("axis", ctypes.c_int), ("channels", ctypes.c_size_t),
        ("error", ctypes.c_double)] + [(name, ctypes.POINTER(ctypes.c_float)) for name in ("kink", "slope", "base", "line")]

class _LayerInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char * _TEXT) for name in ("node", "why", "norm")] + [
        ("outcome", ctypes.c_int), ("has_bias", ctypes.c_int), ("before", ctypes.c_double), ("after", ctypes.c_double),
        ("ridge", ctypes.c_double), ("rows", ctypes.c_size_t), ("held", ctypes.c_size_t)] + [
        (name, _View) for name in ("new_weight", "new_bias", "weight_from", "bias_from")] + [
        (name, ctypes.c_int) for name in ("weight_shared", "bias_shared", "norm_shared")]

class _InitializerInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * _TEXT), ("first", ctypes.c_size_t), ("count", ctypes.c_size_t)]

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
        raise ImportError("lgelu: no liblgelu_convert.so; pip install examples/torch, make -C examples torch, or name it in "
                          "LGELU_CONVERT_LIBRARY")
    lib, p, integer, text = ctypes.CDLL(path), ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    for name, result, arguments in (
            ("convert_open", p, [text, ctypes.c_size_t, p, text]), ("convert_close", None, [p]),
            ("convert_message", text, [p]), ("convert_gates", integer, [p]), ("convert_gate", None, [p, integer, p]),
            ("convert_plan", None, [p, p]), ("convert_add", integer, [p, p, integer]), ("convert_prepare", integer, [p]),
            ("convert_layers", integer, [p]), ("convert_layer", None, [p, integer, p]),
            ("convert_leave", None, [p, integer, text, integer]), ("convert_initializers", integer, [p]),
            ("convert_initializer", None, [p, integer, p]), ("convert_run", integer, [p]),
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

def _check_model(model):
    """Raises ValueError for a model that cannot be converted whatever its inputs are."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"lgelu: refit: expected an nn.Module, found {type(model).__name__}")
    for path, m in model.named_modules():
        place = f"module '{path}'" if path else "the model"
        if isinstance(m, torch.jit.ScriptModule):
            raise ValueError(f"lgelu: refit: {place} is a torch.jit.ScriptModule, whose code cannot be changed; refit the module that "
                             f"it was made from")
        if isinstance(m, nn.parallel.DistributedDataParallel):
            raise ValueError(f"lgelu: refit: {place} is a DistributedDataParallel, whose processes would each convert their own copy; "
                             f"refit its .module before it is wrapped")
        for name, p in list(m._parameters.items()) + list(m._buffers.items()):
            if p is not None and (nn.parameter.is_lazy(p) or p.device.type == "meta"):
                raise ValueError(f"lgelu: refit: {place}: '{name}' has no values yet")

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
    """Writes padding="same" as numbers, which the exporter knows, and circular padding as a concatenation: the exporter of PyTorch
    1.13 writes other elements."""
    if not isinstance(m, nn.modules.conv._ConvNd) or m.transposed: return
    if m.padding_mode == "circular":
        around = list(m._reversed_padding_repeated_twice)
        m.register_forward_pre_hook(lambda m, args: (_circular(args[0], around), *args[1:]))
        m.padding, m.padding_mode = (0,) * len(m.kernel_size), "zeros"
    if not isinstance(m.padding, str): return
    if m.padding == "same" and m.padding_mode == "zeros":
        total = [d * (k - 1) for d, k in zip(m.dilation, m.kernel_size)]
        if all(t % 2 == 0 for t in total): m.padding = tuple(t // 2 for t in total)
        else: m.padding, m.padding_mode = (0,) * len(total), "constant"        # by F.pad, which may be uneven
    elif m.padding == "valid" or m.padding_mode != "zeros": m.padding = (0,) * len(m.kernel_size)

def _circular(x, around):
    """F.pad(x, around, "circular")"""
    for k in range(len(around) // 2):
        axis, before, after = x.dim() - 1 - k, around[2 * k], around[2 * k + 1]
        size = x.shape[axis]
        x = torch.cat([x.narrow(axis, size - before, before), x, x.narrow(axis, 0, after)], axis)
    return x

def _plain_norm(m):
    """Writes by other operations what the exporter does not know: a batch normalisation that has no running statistics, and an
    instance normalisation that has some."""
    per_channel = lambda v, x: v.reshape([1, -1] + [1] * (x.dim() - 2))
    def forward(x):
        if m.running_mean is None:
            axes = [d for d in range(x.dim()) if d != 1]
            mean = x.mean(axes, keepdim=True)
            variance = (x - mean).square().mean(axes, keepdim=True)
        else: mean, variance = per_channel(m.running_mean, x), per_channel(m.running_var, x)
        y = (x - mean) / (variance + m.eps).sqrt()
        return y if m.weight is None else y * per_channel(m.weight, x) + per_channel(m.bias, x)
    batch = isinstance(m, nn.modules.batchnorm._BatchNorm) and m.running_mean is None
    instance = isinstance(m, nn.modules.instancenorm._InstanceNorm) and m.running_mean is not None
    if batch or instance: m.forward = forward

def _untie(model):
    """Gives each module that shares a parameter with another one a parameter of its own."""
    seen = set()
    for m in model.modules():
        for name, p in list(m._parameters.items()):
            if p is None: continue
            if id(p) in seen: m._parameters[name] = nn.Parameter(p.detach().clone(), p.requires_grad)
            seen.add(id(p))

def _copy_of(model, untie):
    """The model in float on the CPU in eval mode, its weights plain, its gates apart."""
    memo = {id(v): v.detach().clone() for m in model.modules() for v in vars(m).values()
            if torch.is_tensor(v) and v.grad_fn is not None}                  # what weight_norm has computed
    try: work = copy.deepcopy(model, memo)
    except Exception as e: raise ValueError(f"lgelu: refit: the model cannot be copied: {_said(e)}") from e
    work = work.cpu().float().eval()
    _plain_weights(work)
    _split_shared(work)
    for m in list(work.modules()):
        _plain_padding(m)
        _plain_norm(m)
        for name, value in list(vars(m).items()):
            if not _is_function(value): continue
            vars(m).pop(name)                                                 # it may hide a module of this name
            setattr(m, name, _Function(value))
        if hasattr(m, "activation_relu_or_gelu"): m.activation_relu_or_gelu = 0      # no fast path: see _fast_paths
        if hasattr(m, "use_nested_tensor"): m.use_nested_tensor = False
    if untie: _untie(work)
    for p in work.parameters(): p.requires_grad_(p.is_floating_point())
    return work

# ---- [3] ARGUMENTS ----
def _said(e):
    """What an exception reports, in one line."""
    line = next((l.strip() for l in str(e).splitlines() if l.strip()), "")
    for end in (" [Caused by", " Please feel free", " File a bug report"): line = line.split(end)[0]
    return f"{type(e).__name__}: {line[:300]}" if line else type(e).__name__

def _fields(value):
    """What a nest of tensors has one level below; None: it is none."""
    if isinstance(value, dict): return list(value.values())
    if isinstance(value, (tuple, list)): return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, f.name) for f in dataclasses.fields(value)]
    return None

def _tensors(value):
    """The tensors of a nest of tuples, lists, dictionaries and dataclasses, in order."""
    if torch.is_tensor(value): return [value]
    return [t for v in _fields(value) or [] for t in _tensors(v)]

def _rebuilt(value, tensors):
    """The same nest with other tensors, taken from an iterator."""
    if torch.is_tensor(value): return next(tensors)
    if isinstance(value, dict):
        parts = [(k, _rebuilt(v, tensors)) for k, v in value.items()]
        try: return type(value)(parts)
        except TypeError: return dict(parts)
    if isinstance(value, (tuple, list)):
        parts = [_rebuilt(v, tensors) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **{f.name: _rebuilt(getattr(value, f.name), tensors) for f in dataclasses.fields(value)})
    return value

def _without(value):
    """The same nest with None in the places of tensors."""
    return _rebuilt(value, iter([None] * len(_tensors(value))))

def _same(a, b):
    """Whether two nests without tensors are equal, as far as their objects can be compared."""
    try: return type(a) is type(b) and bool(a == b)
    except Exception: return True

def _plain(x):
    """A tensor as the file takes it: on the CPU, floats as float32."""
    x = x.detach().cpu()
    if x.is_sparse or x.is_quantized: x = x.to_dense() if x.is_sparse else x.dequantize()
    return (x.float() if x.is_floating_point() else x).contiguous()

def _call(model, batch):
    """The tensors that the model makes of a batch."""
    if isinstance(batch, dict): y = model(**batch)
    else: y = model(*batch) if isinstance(batch, (tuple, list)) else model(batch)
    return _tensors(y)

class _Flat(nn.Module):
    """A model as a function from a list of tensors to a tuple of tensors."""
    def __init__(self, model, batch):
        super().__init__()
        self.model, self.batch = model, batch
        self.training = True    # of this module alone: so the exporter does not merge parameters that are equal by chance

    def forward(self, *tensors):
        return tuple(_call(self.model, _rebuilt(self.batch, iter(tensors))))

    @torch.no_grad()
    def outputs(self, tensors):
        """What it makes of copies of the tensors: a model may write to its inputs."""
        return [y.clone() for y in self(*[t.clone() for t in tensors])]

def _own_outputs(model, batches):
    """What the model itself, not a copy, makes of each batch in eval mode; None where it cannot be called, as in float16 on the
    CPU."""
    modes = [(m, m.training) for m in model.modules()]
    try:
        model.eval()
        made = []
        for batch in batches:
            copies = iter([t.detach().clone() for t in _tensors(batch)])
            with torch.no_grad(): made.append([_plain(y.clone()) for y in _call(model, _rebuilt(batch, copies))])
        return made
    except Exception: return None
    finally:
        for m, mode in modes: m.training = mode

# ---- [4] THE FILE ----
def _in_projection_packed(q, k, v, w, b=None):
    """torch.nn.functional's, with sizes of the weight in place of sizes of q, so that its slices are constants of the file."""
    n, linear = int(w.shape[0]) // 3, nn.functional.linear
    part = lambda x, first, end: linear(x, w[first * n:end * n], None if b is None else b[first * n:end * n])
    if k is v and q is k: return linear(q, w, b).chunk(3, dim=-1)
    if k is v: return (part(q, 0, 1), *part(k, 1, 3).chunk(2, dim=-1))
    return part(q, 0, 1), part(k, 1, 2), part(v, 2, 3)

@contextlib.contextmanager
def _constant_slices():
    kept = getattr(nn.functional, "_in_projection_packed", None)
    if kept: nn.functional._in_projection_packed = _in_projection_packed
    try: yield
    finally:
        if kept: nn.functional._in_projection_packed = kept

def _export(flat, batches, names, outputs):
    """The file's bytes."""
    first, file, open_ = batches[0], io.BytesIO(), {}
    for i, (name, x) in enumerate(zip(names, first)):
        differ = {d for d in range(x.dim()) if d == 0 or any(b[i].shape[d] != x.shape[d] for b in batches)}
        if differ: open_[name] = {d: f"{name}_{d}" for d in differ}
    more = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    try:
        with warnings.catch_warnings(), torch.enable_grad(), _constant_slices():
            warnings.simplefilter("ignore")
            torch.onnx.export(flat, tuple(t.clone() for t in first), file, opset_version=17, do_constant_folding=False,
                              input_names=names, output_names=outputs, dynamic_axes=open_,
                              training=torch.onnx.TrainingMode.PRESERVE, **more)
    except Exception as e:
        raise RuntimeError(f"lgelu: refit: PyTorch cannot export this model to ONNX: {_said(e)}") from e
    return file.getvalue()

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

_CLOSE = 1e-3                               # the distance of outputs that only rounding sets apart is below it

def _farthest(made, wanted):
    """(distance, output) of the floating point output that is farthest from the one wanted"""
    if len(made) != len(wanted): return math.inf, 0
    distances = [(_distance(y, t), i) for i, (y, t) in enumerate(zip(made, wanted)) if t.is_floating_point()]
    return max(distances, default=(0.0, 0))

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

class _Use:
    """A call of a module that may be a gate: its path, which of the calls of this module it is, counted from 0, and samples of
    what it read and made. `gates` are those of the file that it computes."""
    def __init__(self, path, count, x, y):
        self.path, self.count, self.shape, self.y = path, count, tuple(y.shape), _sample(y)
        self.x, self.gates = x, []

def _may_be_gate(m):
    """Whether a module has no matrix: at most vectors, such as a slope for each channel."""
    return all(p.numel() == max(p.shape, default=1) for p in m.parameters())

class _Watch:
    """Calls a function with the path of a module, which of its calls it is, what `keep` makes of its first tensor argument, and
    its result, each time a module that may be a gate is called; `paths`: of these modules alone. forward is replaced on the
    object, as a call need not go through hooks."""
    def __init__(self, model, seen, keep=_sample, paths=None):
        self.model, self.seen, self.keep, self.paths, self.replaced, self.counts = model, seen, keep, paths, [], {}

    def __enter__(self):
        for path, m in self.model.named_modules():
            if path in self.paths if self.paths is not None else _may_be_gate(m):
                self.replaced.append((m, vars(m).get("forward")))
                m.forward = functools.partial(self.called, path, m.forward)

    def __exit__(self, *_):
        for m, own in self.replaced:
            if own is None: del m.forward
            else: m.forward = own

    def called(self, path, forward, *args, **kwargs):
        x = next((a for a in (*args, *kwargs.values()) if torch.is_tensor(a)), None)
        kept = None if x is None else self.keep(x)                            # before the call: it may change its input in place
        y = forward(*args, **kwargs)
        count = self.counts[path] = self.counts.get(path, -1) + 1
        if x is not None and torch.is_tensor(y) and x.shape == y.shape and x.is_floating_point() and y.is_floating_point():
            self.seen(path, count, kept, y)
        return y

def _uses(flat, first):
    """The calls of modules that may be gates, in one call of the model, and how often each module is called, by path."""
    uses = []
    watch = _Watch(flat.model, lambda path, count, x, y: uses.append(_Use(path, count, x, y)))
    with watch: flat.outputs(first)
    return uses, {path: count + 1 for path, count in watch.counts.items()}

class _Gate:
    """A gate of the file, and the calls of modules that compute it: y = outer(f(inner(x))), each a line. Several calls compute
    one gate where the exporter has merged equal nodes."""
    def __init__(self, number, info):
        self.number, self.relus = number, info.replaced
        self.name, self.why, self.input, self.output, self.node = (
            getattr(info, key).decode(errors="replace") for key in ("name", "why", "input", "output", "node"))
        self.kind, self.uses, self.lines, self.shape, self.z, self.f = _kinds[info.kind], [], (), None, None, None

    def find(self, uses):
        """Looks for the calls whose values agree: of those that agree by the simplest lines the innermost."""
        found = {}
        for use in uses:
            if use.shape != self.shape: continue
            inner, outer = _line(use.x, self.z), _line(self.f, use.y)
            if inner is not None and outer is not None: found.setdefault((inner, outer), []).append(use)
        if not found: return
        self.lines = min(found, key=lambda lines: lines != ((1.0, 0.0), (1.0, 0.0)))
        of = found[self.lines]
        self.uses = [u for u in of if not any(v.path.startswith(u.path + ".") or (not u.path and v.path) for v in of)]
        for u in self.uses: u.gates.append(self)

    def calls(self):
        """Which calls of its module it is, counted from 1, for the report."""
        return [u.count + 1 for u in self.uses if u.path == self.uses[0].path]

    def place(self):
        """Its name in the report."""
        return self.uses[0].path or "the model" if self.uses else self.node or self.output

    def function(self, model):
        """The name of its function; of one that has none, the class of its module."""
        named = self.name != "unnamed" or not self.uses
        return self.name if named else type(model.get_submodule(self.uses[0].path)).__name__

_smooth = tuple(getattr(nn, kind) for kind in ("GELU", "SiLU", "Mish", "ELU", "CELU", "SELU", "Softplus", "Hardswish", "LogSigmoid"))

def _is_smooth(m):
    """Whether a module is a smooth gate by its class."""
    return isinstance(m, _smooth) or type(m).__name__ == "LambdaGELU"

def _unseen(model, gates, uses):
    """Entries of the report for modules that are smooth gates by their class, but compute no gate of the file."""
    seen, called = ({u.path for u in some} for some in ([u for g in gates for u in g.uses], uses))
    for path, m in model.named_modules():
        if path in seen or not _is_smooth(m): continue
        why = "it is a part of a gate with what follows it, or its values do not depend on the inputs" if path in called \
            else "it is not called for these inputs"
        yield {"kind": "gate", "name": path, "calls": [], "function": type(m).__name__, "replaced": 0, "why": why, "error": 0.0}

def _sample_gates(gates, file, names, first):
    """Reads samples of what the gates read and make, those aside that are piecewise linear."""
    wanted = [g for g in gates if g.kind in ("smooth", "leaky", "stays") and not (file("keep", g.input.encode())
                                                                                 or file("keep", g.output.encode()))]
    values = file.values(names, first, [v for g in wanted for v in (g.input, g.output)])
    for g, z, f in zip(wanted, values[::2], values[1::2]): g.shape, g.z, g.f = tuple(f.shape), _sample(z), _sample(f)

def _find_modules(gates, uses):
    """Looks for the calls of modules that compute the gates: first of those that are to be replaced."""
    for g in gates:
        if g.relus: g.find(uses)
    others = [u for u in uses if not u.gates]
    for g in gates:
        if not g.relus and g.shape is not None: g.find(others)
    _pair_equals(uses)

def _pair_equals(uses):
    """As many gates as calls with equal values, such as those of two branches that read the same: the first gate is the first
    call's, and so on."""
    alike = {}
    for u in uses: alike.setdefault(tuple(u.gates), []).append(u)
    for of, calls in alike.items():
        if len(of) < 2 or len(of) != len(calls): continue
        for g, u in zip(of, calls): g.uses, u.gates = [u], [g]

class Relus(nn.Module):
    """y = base + Σₖ slope[k]·ReLU(z - kink[k]) + line·z with z = inner[0]·x + inner[1], by channel along `axis`, counted from the
    last as -1, -2, ...; 0: one for all."""
    def __init__(self, kink, slope, base, line=None, axis=0, inner=(1.0, 0.0)):
        super().__init__()
        self.axis, self.inner = axis, tuple(inner)
        for name, value in (("kink", kink), ("slope", slope), ("base", base), ("line", line)):
            self.register_buffer(name, None if value is None else torch.as_tensor(value, dtype=torch.float32))

    def along(self, values):
        return values.reshape(-1, *[1] * (-self.axis - 1)) if self.axis else values.reshape(())

    def forward(self, x):
        z = x if self.inner == (1.0, 0.0) else self.inner[0] * x + self.inner[1]
        y = self.along(self.base)
        for kink, slope in zip(self.kink.unbind(), self.slope.unbind()): y = y + self.along(slope) * torch.relu(z - self.along(kink))
        return (y if self.line is None else y + self.along(self.line) * z).to(x.dtype)

    def extra_repr(self):
        return f"{len(self.kink)} ReLUs, {self.kink.shape[1]} channels" + (f", axis={self.axis}" if self.axis else "")

class PerCall(nn.ModuleList):
    """A module that a forward calls several times: its k-th call since that forward began is computed by the k-th module here.
    The calls are counted, so a model runs one forward at a time, and torch.utils.checkpoint may repeat all of them, not some."""
    def __init__(self, modules):
        super().__init__(modules)
        self.next = 0

    def forward(self, x):
        k, self.next = self.next, (self.next + 1) % len(self)
        return self[k](x)

class _FirstCall:
    """A hook of a model: with its forward the calls are counted from 0 again, whatever ended the one before."""
    def __init__(self, paths): self.paths = paths

    def __call__(self, model, args):
        for path in self.paths: model.get_submodule(path).next = 0

def _replacement(gate, info):
    """The module that computes what the file has in place of a gate."""
    if not info.channels: return nn.ReLU()
    def floats(pointer, *shape):
        return torch.tensor(pointer[:math.prod(shape)]).reshape(shape)
    n = info.channels
    kink, slope = floats(info.kink, info.replaced, n), floats(info.slope, info.replaced, n)
    base, line = floats(info.base, n), floats(info.line, n) if info.line else torch.zeros(n)
    (p, q), (a, b) = gate.lines
    if (p, q, a, b) == (1.0, 0.0, 1.0, 0.0) and len(kink) == 1 and not bool(kink.any() or base.any() or line.any()) \
            and bool((slope == 1).all()): return nn.ReLU()
    return Relus(kink, a * slope, a * base + b, a * line if bool(line.any()) else None, info.axis if n > 1 else 0, (p, q))

# ---- [6] LAYERS ----
class _Owners:
    """The parameters and buffers of a model, and the modules that have them."""
    def __init__(self, model):
        self.model, self.of = model, {}
        for path, m in model.named_modules():
            for name, p in list(m._parameters.items()) + list(m._buffers.items()):
                if p is not None: self.of.setdefault(id(p), []).append((path, name))

    def find(self, name):
        """(path, name) of the parameter or buffer that the exporter calls so, or None"""
        if not name.startswith("model."): return None
        path, _, key = name[len("model."):].rpartition(".")
        try: m = self.model.get_submodule(path)
        except AttributeError: return None
        return None if m._parameters.get(key, m._buffers.get(key)) is None else (path, key)

def _value(model, place):
    """The parameter or buffer at (path, name)."""
    m = model.get_submodule(place[0])
    return m._parameters.get(place[1], m._buffers.get(place[1]))

def _overlapping(model):
    """The places of parameters and buffers that share memory with another one, or with themselves."""
    spans, found = [], set()
    for path, m in model.named_modules():
        for name, p in list(m._parameters.items()) + list(m._buffers.items()):
            if p is None or not p.numel() or p.layout != torch.strided: continue
            reach = 1 + sum((n - 1) * s for n, s in zip(p.shape, p.stride()))
            if reach < p.numel(): found.add((path, name))
            spans.append((str(p.device), p.data_ptr(), p.data_ptr() + reach * p.element_size(), id(p), (path, name)))
    spans.sort(key=lambda s: s[:3])
    for i, (device, _, end, own, place) in enumerate(spans):
        for other in spans[i + 1:]:
            if other[0] != device or other[1] >= end: break
            if other[3] != own: found |= {place, other[4]}
    return found

_with_bias = tuple(getattr(nn, kind).forward for kind in ("Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
                                                          "ConvTranspose2d", "ConvTranspose3d"))

class _Elements:
    """Where the elements of an array of the file come from: parts of parameters. `why` is a reason that they cannot be set."""
    def __init__(self, view, shared, initializers, owners, overlapping):
        self.parts, self.why = [], None
        numbers = _tensor(view)
        if numbers is None: self.why = "its weight is no parameter of the model, or computed from one"
        else: self.find(numbers.reshape(-1), initializers, owners)
        places = [place for place, _, _ in self.parts]
        if self.why is None and shared:
            self.why = f"{self.names()} is read elsewhere, too: by a tied layer, or as its module is called several times"
        elif any(place in overlapping for place in places):
            self.why = f"{self.names()} shares its memory with another parameter"

    def find(self, numbers, initializers, owners):
        firsts = torch.tensor([i.first for i in initializers])
        of = torch.bucketize(numbers, firsts, right=True) - 1
        for k in of.unique().tolist():
            name = initializers[k].name.decode(errors="replace") if k >= 0 else ""
            place = owners.find(name)
            if place is None: self.why = f"its weight '{name}' is no parameter of the model" if name else \
                "some elements of its weight are constants"
            else:
                at = (of == k).nonzero().reshape(-1)
                self.parts.append((place, numbers[at] - initializers[k].first, at))

    def names(self): return ", ".join(f"'{path}.{name}'".replace("'.", "'") for (path, name), _, _ in self.parts)

    @torch.no_grad()
    def set(self, model, array):
        """Sets the elements in the model's parameters."""
        array = array.reshape(-1)
        for place, where, at in self.parts:
            p = _value(model, place)
            flat = p.detach().clone(memory_format=torch.contiguous_format).reshape(-1)
            flat[where] = array[at].to(flat.dtype)
            p.copy_(flat.reshape(p.shape))

class _Layer:
    """A matrix of the file and the parameters that hold it."""
    def __init__(self, number, info, initializers, owners, overlapping):
        self.number, self.model = number, owners.model
        self.node, self.has_bias = info.node.decode(errors="replace"), bool(info.has_bias)
        more = initializers, owners, overlapping
        self.weight = _Elements(info.weight_from, info.weight_shared, *more)
        self.bias = _Elements(info.bias_from, info.bias_shared, *more) if self.has_bias else None
        norm = None if info.norm_shared else owners.find(info.norm.decode(errors="replace"))
        self.norm = norm if norm not in overlapping else None
        self.why = self.weight.why and self.weight.why.encode()               # the library keeps the text

    def place(self):
        """Its name in the report."""
        if not self.weight.parts: return self.node
        path, name = self.weight.parts[0][0]
        return path or name

    def module(self):
        """The module whose weight alone it is, or None."""
        if len(self.weight.parts) != 1 or self.weight.parts[0][0][1] != "weight": return None
        return self.model.get_submodule(self.weight.parts[0][0][0])

    def takes_bias(self):
        """Whether a change of its biases can be set: where they are, in the normalisation behind it, or as new ones."""
        if self.has_bias: return self.bias.why is None
        m = self.module()
        return self.takes_norm() or (m is not None and m._parameters.get("bias", 0) is None and type(m).forward in _with_bias)

    def takes_norm(self):
        if self.has_bias or self.norm is None or self.norm[1] != "bias": return False
        m = self.model.get_submodule(self.norm[0])
        return isinstance(m, nn.modules.batchnorm._BatchNorm) and m.running_var is not None and m.weight is not None

    @torch.no_grad()
    def set(self, info):
        """Sets the weights and biases of the converted file in the module."""
        weight, bias = _tensor(info.new_weight), _tensor(info.new_bias)
        if weight is not None: self.weight.set(self.model, weight)
        if bias is None: return
        if self.has_bias: self.bias.set(self.model, bias)
        elif self.takes_norm():
            m = self.model.get_submodule(self.norm[0])
            m.bias.add_((bias.reshape(-1).double() * m.weight.double() / (m.running_var.double() + m.eps).sqrt()).float())
        else: self.module().bias = nn.Parameter(bias.reshape(-1).float())

# ---- [7] THE CHANGE ----
def _fast_paths(model):
    """nn.TransformerEncoderLayer has a fast path for inference that calls no activation: it computes ReLU where
    activation_relu_or_gelu is 1, GELU where it is 2, and is not taken where it is 0."""
    for m in model.modules():
        if hasattr(m, "activation_relu_or_gelu"):
            act = getattr(m, "activation", None)
            if isinstance(act, (nn.ReLU, Relus, PerCall)): m.activation_relu_or_gelu = 1 if isinstance(act, nn.ReLU) else 0
        if getattr(m, "use_nested_tensor", False):
            if any(getattr(layer, "activation_relu_or_gelu", 1) == 0 for layer in m.modules()): m.use_nested_tensor = False

def _hooks(module):
    """The names of the dictionaries in which a module keeps its hooks for forward and backward."""
    return [key for key in vars(module) if "_hooks" in key and "state_dict" not in key]

def _kept(old):
    """The module of a call that stays as it is: the old one, whose hooks the module of all calls takes over."""
    if not isinstance(old, nn.Module): return _Function(old)
    kept = copy.copy(old)
    for key in _hooks(old): vars(kept)[key] = type(vars(old)[key])()
    return kept

def _put(model, path, calls):
    """Puts a module in the place of another, whose hooks it takes over, or of a function. `calls` has one for each call of it, or
    one for all; None: this call stays as it is."""
    parent, _, name = path.rpartition(".")
    parent = model.get_submodule(parent)
    old = getattr(parent, name)
    module = calls[0] if len(calls) == 1 else PerCall([_kept(old) if m is None else m for m in calls])
    vars(parent).pop(name, None)
    setattr(parent, name, module.train(getattr(old, "training", parent.training)))
    for key in _hooks(old) if isinstance(old, nn.Module) else ():
        if key in vars(module): vars(module)[key] = vars(old)[key]

def _put_all(model, modules):
    """The same for `modules`, lists of calls by path."""
    for path, calls in modules.items(): _put(model, path, calls)
    several = [path for path, calls in modules.items() if len(calls) > 1]
    if several: model.register_forward_pre_hook(_FirstCall(several))
    _fast_paths(model)

def _compare(flat, modules, data, file, names, batches, outputs):
    """Compares the outputs of the module with those of the converted file; raises RuntimeError where they differ. `modules` are
    the new modules by path, with their gates; data is the original file. Returns the outputs."""
    results = []
    for b, batch in enumerate(batches):
        try: results.append(flat.outputs(batch))
        except Exception as e: raise RuntimeError(f"lgelu: refit: the converted module fails: {_said(e)}") from e
        theirs = file.values(names, batch, outputs)
        apart, worst = _farthest(results[-1], theirs)
        if apart <= _CLOSE: continue
        gate = _first_difference(flat, modules, file, names, batch)
        raise RuntimeError(f"lgelu: refit: {outputs[worst]} of the module differs by {apart:.2g} from the converted file's in batch "
                           f"{b}, first behind {gate}")
    return results

def _first_difference(flat, modules, file, names, batch):
    """The first gate whose values in the module and in the converted file differ."""
    made, wrong = [], []
    with _Watch(flat.model, lambda path, count, x, y: made.append((path, count, y.clone()))): flat.outputs(batch)
    for path, count, y in made:
        for g in modules.get(path, []):
            for u in g.uses:
                if (u.path, u.count) != (path, count): continue
                value, = file.values(names, batch, [g.output])
                if not _distance(y, g.lines[1][0] * value + g.lines[1][1]) <= _CLOSE: wrong.append(path)
    return f"gate '{wrong[0]}'" if wrong else "the last gate"

def _check_export(flat, file, names, batches, teacher, outputs):
    """Raises where the exported file computes something else than the module."""
    for b, batch in enumerate(batches):
        try: made = file.values(names, batch, outputs)
        except RuntimeError as e:
            if b == 0: raise
            raise RuntimeError(f"{e}, in batch {b}: the export holds sizes of batch 0, so that all batches need the same shapes") from e
        apart, worst = _farthest(made, teacher[b])
        if apart <= _CLOSE: continue
        reason = "its forward goes another way there than in batch 0, by which it is exported"
        if b == 0: reason = "PyTorch's exporter writes something else for this model"
        elif [t.shape for t in batch] != [t.shape for t in batches[0]]:
            reason = "the export holds sizes of batch 0, so that all batches need the same shapes"
        raise RuntimeError(f"lgelu: refit: {outputs[worst]} of the exported file differs by {apart:.2g} from the module's in batch {b}: "
                           f"{reason}")

# ---- [8] DISTILLATION ----
def _variance(t):
    """The variance of values, at least a part of their mean square, as the denominator of a loss."""
    return torch.maximum(t.var(unbiased=False), 1e-4 * t.square().mean()).clamp(min=1e-30)

def _squares(y, t, variance=None):
    """The mean square of the differences beside the variance of what is wanted, over what is finite in it; variance: another one."""
    finite = t.isfinite()
    y, t = y[finite], t[finite]
    if not t.numel(): return 0.0
    return (y - t).square().mean() / (_variance(t) if variance is None else variance)

def _log_probabilities(y, axis):
    """The logarithms of the probabilities that an output is, or whose logits it is."""
    sums = y.sum(axis)
    if bool((y >= 0).all()) and bool(((sums - 1).abs() < 1e-3).all()): return y.clamp(min=1e-30).log()
    return y.log_softmax(axis)

def _divergence(y, t, axis):
    """KL(t, y) of probabilities along an axis, the mean over the others."""
    y, t = _log_probabilities(y, axis), _log_probabilities(t, axis)
    p = t.exp()
    return torch.where(p > 0, p * (t - y), torch.zeros_like(p)).sum(axis).mean()

def _used(batches):
    """How many of the batches a conversion with steps uses: the last eighth is held out, from the closed form, too."""
    return len(batches) - max(1, len(batches) // 8)

def _scale(p, axis):
    """What the elements of a parameter are trained as multiples of, so that one rate fits all layers: those of a matrix of the norm of
    the weights of their output channel, others, and those of a channel without weights, of the root of the mean square of all, at
    least 0.01. axis: that of the output channels; None: it is no matrix."""
    p = p.detach()
    root = p.square().mean().sqrt().clamp(min=0.01)
    if axis is None: return root
    norm = p.square().sum([d for d in range(p.dim()) if d != axis], keepdim=True).sqrt()
    return torch.where(norm > 1e-6, norm, root)

def _trained(model):
    """(tensor, axis of its output channels or None) of all that learns: parameters, and the constants of Relus."""
    seen, found = set(), []
    for m in model.modules():
        axis = 1 if isinstance(m, nn.modules.conv._ConvTransposeNd) else 0
        learn = [(p, axis if p.dim() > 1 else None) for p in m._parameters.values() if p is not None and p.requires_grad]
        if isinstance(m, Relus): learn += [(b, None) for b in m.buffers()]
        found += [(p, axis) for p, axis in learn if id(p) not in seen]
        seen |= {id(p) for p, _ in learn}
    return found

_CHECKS, _WARM = 20, 50                     # measurements on what is held out; steps in which the rate rises, at most a twentieth of all
_LEAST_RATE, _RATE = 3e-4, 3e-3              # of those that are chosen: outputs change in _STEPS_TO steps by as much as they differ from
_STEPS_TO = 30                              # those of the original before the first one
_INNER = 60                                 # the weight of what the gates read in the first step, falling as the rate; 1 on what is held out
_LEARN, _ADDS, _ROWS = 32, 4, 512           # batches read before the first step; steps between two readings; rows of a reading, at most
_MOST, _DAMPING = 1536, 0.01                # inputs of a whitened matrix, at most; what is added to the diagonal of their moments
_KEEP, _KEEP_NORM, _KEEP_ROWS = 0.9, 0.98, 0.97     # what stays of gradients and norms in a step, of moments in a reading

class _Whitened:
    """Steps of a Linear or convolution y = W x + b along the gradient as it would be if its inputs had no correlation and one size:
    g (A + damping)⁻¹, where A is the mean of x xᵀ over rows x that it reads, with a 1 behind them where there is a bias. This is the
    input's half of K-FAC (Martens and Grosse 2015, arXiv 1503.05671, section 3). rate: by what part of its deviation an output
    changes in a step."""
    def __init__(self, m):
        self.m, self.weights = m, [p for p in (m.weight, m.bias) if p is not None]
        self.groups, self.inputs = getattr(m, "groups", 1), m.weight[0].numel()
        self.n, self.rows, self.steps, self.momentum, self.norm = self.inputs + len(self.weights) - 1, 0.0, 0, 0.0, 0.0
        self.moment = m.weight.new_zeros(self.groups, self.n, self.n, requires_grad=False)

    @classmethod
    def fits(cls, m):
        known = type(m).forward in (nn.Linear.forward, nn.Conv1d.forward, nn.Conv2d.forward) and "forward" not in vars(m)
        plain = known and m._parameters.get("weight") is not None and getattr(m, "padding_mode", "zeros") == "zeros"
        return plain and not isinstance(getattr(m, "padding", 0), str) and m.weight[0].numel() + (m.bias is not None) <= _MOST

    def matrix(self, tensors):
        """A weight and a bias, or their gradients, as rows of outputs: (groups, outputs of one, n)."""
        return torch.cat([t.reshape(self.groups, len(t) // self.groups, -1) for t in tensors], -1)

    def windows(self, x):
        """What the outputs read, (groups, rows, inputs), of at most about _ROWS of them."""
        if isinstance(self.m, nn.Linear): return x.reshape(1, -1, self.inputs)[:, ::max(1, x.numel() // self.inputs // _ROWS)]
        m, flat = self.m, isinstance(self.m, nn.Conv1d)
        kernel, dilation, padding, stride = ((one, *v) if flat else v for v, one in (
            (m.kernel_size, 1), (m.dilation, 1), (m.padding, 0), (m.stride, 1)))
        x = x.unsqueeze(-2) if flat else x
        x = x if x.dim() == 4 else x.unsqueeze(0)
        places = math.prod((x.shape[2 + i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in (0, 1))
        x = x[::max(1, len(x) * places // max(_ROWS, places))]                # whole samples first, as windows take much memory
        x = nn.functional.unfold(x, kernel, dilation, padding, stride).transpose(1, 2).reshape(-1, self.groups, self.inputs)
        return x[::max(1, len(x) // _ROWS)].transpose(0, 1)

    def add(self, m, args, y):
        """A hook that adds the rows of a call to the moments."""
        with torch.no_grad():
            x = self.windows(args[0].detach())
            x = torch.cat([x, x.new_ones(*x.shape[:2], self.n - self.inputs)], -1)
            self.moment += x.transpose(1, 2) @ x
            self.rows += x.shape[1]

    def invert(self, damping):
        """In double, on the CPU, as not every device has doubles. damping: a part of the mean square of the group's inputs, or of a
        tenth of all groups' if that is more, and of the square of the 1."""
        a = self.moment.to("cpu", torch.float64) / self.rows
        square = a.diagonal(0, 1, 2)[:, :self.inputs].mean(1)
        add = damping * torch.maximum(square, square.mean() / 10 + 1e-12)
        diagonal = torch.full((self.groups, self.n), damping, dtype=a.dtype)
        diagonal[:, :self.inputs] = add[:, None]
        self.inverse = torch.linalg.inv_ex(a + diagonal.diag_embed())[0].to(self.moment)
        self.deviation = self.deviations()

    def deviations(self):
        """Those of the outputs, (groups, outputs of one)."""
        w = self.matrix(self.weights)
        product = w @ self.moment / self.rows
        mean = product[..., -1] if self.n > self.inputs else 0
        return ((product * w).sum(-1) - mean ** 2).clamp(min=1e-12).sqrt()

    def turned(self, g): return g @ self.inverse

    def step(self, rate):
        self.steps += 1
        if self.steps <= 8 or self.steps == 16 or self.steps % 20 == 0: self.invert(max(_DAMPING, self.n / (4 * self.rows)))
        g = self.matrix([torch.zeros_like(p) if p.grad is None else p.grad for p in self.weights])
        turned = self.turned(g)
        self.momentum = _KEEP * self.momentum + (1 - _KEEP) * turned
        self.norm = _KEEP_NORM * self.norm + (1 - _KEEP_NORM) * (g * turned).sum(-1).clamp(min=0)
        norm = (self.norm / (1 - _KEEP_NORM ** self.steps)).sqrt() + 1e-20
        change = (rate / (1 - _KEEP ** self.steps) * self.deviation / norm).unsqueeze(-1) * self.momentum
        for p, c in zip(self.weights, change.split([self.inputs, self.n - self.inputs][:len(self.weights)], -1)): p.sub_(c.reshape(p.shape))

def _whitened(model):
    """The matrices of a model whose parameters no other module has."""
    owners = [id(p) for m in model.modules() for p in m._parameters.values() if p is not None]
    found = [_Whitened(m) for m in dict.fromkeys(model.modules()) if _Whitened.fits(m)]
    return [w for w in found if all(owners.count(id(p)) == 1 for p in w.weights)]

class _Distillation:
    """Steps for a converted model, towards what the original makes and what its gates read: no labels. Matrices move along whitened
    gradients, all else by Adam. The rate rises over the first steps and falls along a cosine. Of the states at the beginning and at
    the end of each twentieth of the steps the one is kept whose loss is least on what is held out."""
    def __init__(self, student, teacher, paths, batches, classes, augment, device):
        self.paths, self.classes, self.augment, self.device = list(paths), classes, augment, device
        self.student, self.teacher = student.to(device), teacher.to(device)
        self.used, self.batches = _used(batches), batches
        self.trained = _trained(student)
        self.weights = [p for p, _ in self.trained]
        self.whitened, self.variances = _whitened(student.model), []

    def values(self, flat, tensors):
        """(outputs, what the gates read in the order of their calls)"""
        read = []
        with _Watch(flat.model, lambda path, count, x, y: read.append(x), torch.clone, self.paths):
            return flat(*[t.clone() for t in tensors]), read

    @contextlib.contextmanager
    def reading(self):
        """The calls in this context change the moments of the matrices."""
        for w in self.whitened: w.moment, w.rows = w.moment * _KEEP_ROWS, w.rows * _KEEP_ROWS
        hooks = [w.m.register_forward_hook(w.add) for w in self.whitened]
        try: yield
        finally:
            for h in hooks: h.remove()

    @torch.no_grad()
    def learn(self, order):
        """Takes from batches the first moments, and the variance of what each gate reads. Matrices that no call has used as such stay
        with Adam, whose weights are first + scale·move."""
        reads = []
        for k in order:
            batch = self.on_device(self.batches[k])
            with self.reading(): self.values(self.student, batch)
            reads.append([(t.isfinite().sum(), t.sum(), t.square().sum()) for t in
                          (t[t.isfinite()].double().cpu() for t in self.values(self.teacher, batch)[1])])
        for of in zip(*reads):
            count, first, second = (sum(v) / max(sum(r[0] for r in of), 1) for v in zip(*of))
            self.variances.append(max(float(second - first ** 2), 1e-4 * float(second), 1e-30))
        self.whitened = [w for w in self.whitened if w.rows]
        taken = {id(p) for w in self.whitened for p in w.weights}
        rest = [(p, axis) for p, axis in self.trained if id(p) not in taken]
        self.rest = [(p, p.detach().clone(), _scale(p, axis), torch.zeros_like(p.detach())) for p, axis in rest]

    def apart(self, made, wanted):
        """How far outputs are from those wanted."""
        of = [(y, t) for y, t in zip(made, wanted) if t.is_floating_point()]
        each = [_squares(y, t) for y, t in of[1:]] if self.classes is not None else [_squares(y, t) for y, t in of]
        if self.classes is not None and of: each.insert(0, _divergence(*of[0], self.classes))
        return sum(each)

    def losses(self, tensors):
        """Of the outputs, and the mean over what the gates read."""
        with torch.no_grad(): wanted, reads = self.values(self.teacher, tensors)
        made, read = self.values(self.student, tensors)
        inside = [_squares(*of) for of in zip(read, reads, self.variances)]
        return self.apart(made, wanted), sum(inside) / max(len(inside), 1)

    def on_device(self, batch): return [t.to(self.device) for t in batch]

    @torch.no_grad()
    def held_out(self):
        """The losses of the held-out batches, the means over them."""
        of = [self.losses(self.on_device(b)) for b in self.batches[self.used:]]
        return [sum(float(loss) for loss in losses) / len(of) for losses in zip(*of)]

    def order(self, steps, seed):
        """Which batch each step takes: all of them in a random order, then again in another one."""
        random, order = torch.Generator().manual_seed(seed), []
        while len(order) < steps: order += torch.randperm(self.used, generator=random).tolist()
        return order[:steps]

    def gradients(self, batch, inner, reads):
        """Sets the gradients of the loss of a batch, those of the moves, too. inner: the weight of what the gates read. reads: the
        moments change."""
        for p in self.weights: p.grad = None
        with torch.enable_grad(), self.reading() if reads else contextlib.nullcontext():
            outputs, inside = self.losses(self.on_device(batch))
            (outputs + inner * inside).backward()
        for p, _, scale, move in self.rest: move.grad = None if p.grad is None else p.grad * scale

    @torch.no_grad()
    def move(self, rate):
        for w in self.whitened: w.step(rate)
        for p, first, scale, move in self.rest: p.copy_(first + scale * move)

    def run(self, steps, lr, seed):
        """Returns the entry of the report."""
        gates = [p for p in self.weights if not p.requires_grad]              # buffers, whose gradients end with this function
        for p in gates: p.requires_grad_(True)
        self.learn(self.order(min(_LEARN, self.used), seed))
        outputs, inside = self.held_out()
        before = least = outputs + inside
        lr = min(max(_LEAST_RATE, math.sqrt(inside) / _STEPS_TO), _RATE) if lr is None else lr
        optimizer = torch.optim.Adam([move for *_, move in self.rest], lr=lr) if self.rest else None
        state = lambda: [p.detach().clone() for p in self.weights]
        best, at, checks = state(), 0, {(k + 1) * steps // _CHECKS for k in range(_CHECKS)}
        warm = max(1, min(_WARM, steps / 20))
        for step, k in enumerate(self.order(steps, seed)):
            left = 0.5 * (1 + math.cos(math.pi * step / steps))
            rate = lr * min((step + 1) / warm, 1) * left
            self.gradients(self.batches[k] if self.augment is None else self.augmented(k), _INNER * left, step % _ADDS == 0)
            if optimizer:
                optimizer.param_groups[0]["lr"] = rate
                optimizer.step()
            self.move(rate)
            if step + 1 in checks:
                now = sum(self.held_out())
                if now < least: least, best, at = now, state(), step + 1
        with torch.no_grad():
            for p, kept in zip(self.weights, best): p.copy_(kept)
        for p in self.weights: p.grad = None
        for p in gates: p.requires_grad_(False)
        return {"kind": "distillation", "name": f"the last {len(self.batches) - self.used} of {len(self.batches)} batches", "lr": lr,
                "step": at, "before": before, "after": least}

    def augmented(self, k):
        """Batch k as the user's function changes it."""
        batch = _rebuilt(self.student.batch, iter([t.clone() for t in self.batches[k]]))
        return [_plain(t) for t in _tensors(self.augment(batch))]

# ---- [9] COMMIT ----
def _set(tensor, values):
    """Writes in place; a tensor that was made in inference mode is written in that mode."""
    with torch.inference_mode(tensor.is_inference()), torch.no_grad(): tensor.copy_(values)

class _Undo:
    """The state of a model, to which it is set back after an error: what its modules are and have, and the elements of what was
    written in place."""
    def __init__(self, model):
        self.elements, self.modules = [], []
        self.memory = [(t, t.detach()) for t in (*model.parameters(), *model.buffers())]
        for m in model.modules():
            inside = [(v, v.copy()) for v in vars(m).values() if isinstance(v, (dict, list, set))]
            self.modules.append((m, m.__class__, dict(vars(m)), inside))

    def write(self, tensor, values):
        """Writes in place what can be undone."""
        self.elements.append((tensor, tensor.detach().clone()))
        _set(tensor, values)

    def back(self):
        for tensor, values in reversed(self.elements): _set(tensor, values)
        for tensor, same in self.memory:                 # remove_parametrizations gives a parameter other memory
            if tensor.data_ptr() != same.data_ptr(): tensor.data = same
        for m, kind, attributes, inside in self.modules:
            m.__class__ = kind
            vars(m).clear()
            vars(m).update(attributes)
            for container, content in inside:            # the same objects: handles of hooks refer to them
                container.clear()
                (container.extend if isinstance(container, list) else container.update)(content)

def _state(model):
    """Copies of all parameters and buffers by place."""
    return {(path, name): p.detach().clone() for path, m in model.named_modules()
            for name, p in list(m._parameters.items()) + list(m._buffers.items()) if p is not None}

@torch.no_grad()
def _commit(model, work, before, modules, undo, untie):
    """Sets in the model what has changed in the copy since it had the values `before`; modules: the new ones of each call by
    path."""
    modes = {path: m.training for path, m in model.named_modules()}
    model.eval()                                # spectral_norm changes its weight when it is computed in training mode
    _plain_weights(model)
    owners, written = _Owners(model), set()
    for (path, name), now in _state(work).items():
        if any((path + ".").startswith(gate + ".") for gate in modules): continue
        old = before.get((path, name))
        if old is not None and torch.equal(now, old): continue
        m = model.get_submodule(path)
        mine = _value(model, (path, name))
        if mine is None:
            like = m.weight                     # whose biases they are
            m._parameters[name] = nn.Parameter(now.to(like), requires_grad=like.requires_grad)
        elif untie and len(owners.of.get(id(mine), ())) > 1:
            m._parameters[name] = nn.Parameter(now.to(mine), requires_grad=mine.requires_grad)
        elif id(mine) not in written:
            wide = mine.dtype == torch.float64                   # keeps the digits of what has not changed
            written.add(id(mine))
            undo.write(mine, mine + (now.double() - old.double()).to(mine.device) if wide else now)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    _put_all(model, {path: [m and copy.deepcopy(m).to(device) for m in calls] for path, calls in modules.items()})
    for path, m in model.named_modules():
        if path in modes: m.training = modes[path]

def _check_model_itself(model, batches, own, teacher, results):
    """Raises RuntimeError where the outputs of the model differ from those of its copy by more than they did before."""
    now = _own_outputs(model, batches)
    if now is None: raise RuntimeError("lgelu: refit: the converted model cannot be called")
    for b in range(len(batches)):
        apart, worst = _farthest(now[b], results[b])
        before, _ = _farthest(own[b], teacher[b])               # the rounding of a 16-bit model
        if apart > _CLOSE + 4 * before:
            raise RuntimeError(f"lgelu: refit: output_{worst} of the converted model differs by {apart:.2g} from its converted copy's "
                               f"in batch {b}")

# ---- [10] FUNCTIONS ----
class _NoModule(Exception):
    """No module computes some of the gates args[0]."""

class _Proxy(fx.Proxy):
    """A value of a traced forward. It can be unpacked, as in b, c, h, w = x.shape, with any version of Python."""
    def __iter__(self):
        frame = inspect.currentframe().f_back
        for i in dis.get_instructions(frame.f_code):
            if i.offset == frame.f_lasti and i.opname == "UNPACK_SEQUENCE": return iter([self[k] for k in range(i.argval)])
        return super().__iter__()

class _Tracer(fx.Tracer):
    def proxy(self, node): return _Proxy(node, self)

class _Recorder(fx.Interpreter):
    """Runs a graph, and keeps a sample of each floating point value by node."""
    def run_node(self, n):
        value = super().run_node(n)
        if torch.is_tensor(value) and value.is_floating_point(): self.samples[n.name] = tuple(value.shape), _sample(value)
        return value

def _bound(model, batch):
    """The arguments of a forward by name."""
    signature = inspect.signature(model.forward)
    if isinstance(batch, dict): bound = signature.bind(**batch)
    else: bound = signature.bind(*batch) if isinstance(batch, (tuple, list)) else signature.bind(batch)
    bound.apply_defaults()
    return bound.arguments

def _traced(model, batch, gates):
    """The model's graph by torch.fx on a copy of its parameters, with modules that compute the gates; None: it cannot be
    traced, or has not all of them."""
    try:
        root = copy.deepcopy(model)
        fixed = {name: value for name, value in _bound(model, batch).items() if not _tensors(value)}
        graph = fx.GraphModule(root, _Tracer().trace(root, concrete_args=fixed or None), type(model).__name__)
        graph.train(model.training)
        work = _copy_of(graph, False)
        recorder = _Recorder(work)
        recorder.samples = {}
        with torch.no_grad():
            recorder.run(*_rebuilt(list(_bound(model, batch).values()), iter([_plain(t).clone() for t in _tensors(batch)])))
    except Exception: return None
    made = []
    for g in gates:
        if not _isolate(graph, g, recorder.samples, made): return None
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph

def _isolate(graph, gate, samples, made):
    """Makes modules of the nodes that compute a gate; `made` are the nodes that call such modules. Returns whether there is one
    that computes it, made here or before."""
    def same(n, values):
        shape, sample = samples.get(n.name, ((), None))
        return shape == gate.shape and _line(sample, values) == (1.0, 0.0)
    found = False
    for end in [n for n in graph.graph.nodes if n not in made and same(n, gate.f)]:
        inside, begin = _between(end, lambda n: same(n, gate.z))
        if begin is None or any(n in made for n in inside): continue          # what passes a gate on, as dropout does
        found = True
        if end.op == "call_module": continue
        part, value, name = fx.Graph(), {}, f"gate_{len(made)}"
        value[begin] = part.placeholder("x")
        for n in graph.graph.nodes:
            if n in inside: value[n] = part.node_copy(n, lambda m: value[m])
        part.output(value[end])
        graph.add_submodule(name, fx.GraphModule(graph, part))
        with graph.graph.inserting_after(end): new = graph.graph.call_module(name, (begin,))
        end.replace_all_uses_with(new)
        made.append(new)
    return found

def _between(end, is_begin):
    """(nodes, begin): the nodes that compute `end` of a node that is_begin, constants aside; begin None: other values meet them"""
    inside, waiting, begin = set(), [end], None
    while waiting:
        n = waiting.pop()
        if n in inside: continue
        if n is not end and is_begin(n):
            if begin not in (None, n): return inside, None
            begin = n
            continue
        if n.op == "placeholder": return inside, None
        inside.add(n)
        waiting += n.all_input_nodes
    return inside, begin

def _places(work, batch, gates):
    """For each gate where it is called, as "model.py, line 12", as far as it can be found."""
    found = {}
    try: from torch.overrides import TorchFunctionMode
    except ImportError: return found
    own = os.path.dirname(torch.__file__), os.path.abspath(__file__)
    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            y = function(*args, **(kwargs or {}))
            if not torch.is_tensor(y) or not y.is_floating_point(): return y
            with torch._C.DisableTorchFunction():
                for g in gates:
                    if tuple(y.shape) != g.shape or _line(_sample(y), g.f) != (1.0, 0.0): continue
                    frame = inspect.currentframe()
                    while frame and os.path.abspath(frame.f_code.co_filename).startswith(own): frame = frame.f_back
                    if frame:
                        found[g] = f"{os.path.basename(frame.f_code.co_filename)}, line {frame.f_lineno}"
            return y
    try:
        with Mode(): work.outputs(batch)
    except Exception: pass
    return found

# ---- [11] REFIT ----
def _checked(model, batches, what, relus, steps, augment):
    """The batches as a list of nests, and as a list of lists of tensors."""
    _check_model(model)
    if what not in ("full", "biases", "cold"):
        raise ValueError(f"lgelu: refit: what is 'full', 'biases' or 'cold', not {what!r}")
    if not 1 <= relus <= 14: raise ValueError(f"lgelu: refit: 1 to 14 ReLUs a gate, not {relus}")
    if steps < 0: raise ValueError(f"lgelu: refit: 0 or more steps, not {steps}")
    batches = [batches] if torch.is_tensor(batches) or isinstance(batches, dict) else list(batches)
    tensors = [[_plain(t) for t in _tensors(b)] for b in batches]
    for b, batch in enumerate(batches):
        if not tensors[b]: raise ValueError(f"lgelu: refit: batch {b} has no tensor; it is of type {type(batch).__name__}")
        if not _same(_without(batch), _without(batches[0])):
            raise ValueError(f"lgelu: refit: batch {b} has other arguments than batch 0 beside its tensors")
    if augment is not None and not steps: raise ValueError("lgelu: refit: augment changes the batches of steps=N, and there are none")
    if steps and len(batches) < 2: raise ValueError("lgelu: refit: steps expects two batches or more: the last eighth is held out")
    samples = sum(next((len(t) for t in b if t.dim()), 0) for b in tensors)
    if samples < 8: raise ValueError(f"lgelu: refit: {samples} inputs, expected at least 8")
    for b, of in enumerate(tensors):
        if len(of) != len(tensors[0]):
            raise ValueError(f"lgelu: refit: batch {b} has {len(of)} tensors, batch 0 has {len(tensors[0])}")
        for i, (t, first) in enumerate(zip(of, tensors[0])):
            if t.dtype not in _types: raise ValueError(f"lgelu: refit: input_{i} is of type {t.dtype}, which the evaluator does not have")
            if t.dim() != first.dim() or t.dtype != first.dtype:
                raise ValueError(f"lgelu: refit: input_{i} of batch {b} has {t.dim()} dimensions of {t.dtype}, that of batch 0 "
                                 f"{first.dim()} of {first.dtype}")
    return batches, tensors

def _teach(flat, tensors):
    """The outputs of the original for all batches."""
    teacher = []
    for b, batch in enumerate(tensors):
        try: teacher.append(flat.outputs(batch))
        except Exception as e:
            labels = "; labels are no argument: [x for x, _ in loader]" if isinstance(e, TypeError) and len(batch) == 2 else ""
            raise ValueError(f"lgelu: refit: the model cannot be called with batch {b}, whose elements are the arguments of its "
                             f"forward: {_said(e)}{labels}") from e
        if not teacher[b]: raise ValueError("lgelu: refit: the model returns no tensor, alone or in a tuple, list, dictionary or dataclass")
        if any(t.is_floating_point() and bool(t.isnan().any()) for t in teacher[b]):
            raise ValueError(f"lgelu: refit: values that are not finite in the model's outputs for batch {b}")
        if len(teacher[b]) != len(teacher[0]):
            raise ValueError(f"lgelu: refit: the model returns {len(teacher[b])} tensors for batch {b}, {len(teacher[0])} for batch 0")
    if _farthest(flat.outputs(tensors[0]), teacher[0])[0] > 1e-6:
        raise ValueError("lgelu: refit: two calls of the model with the same inputs differ: its forward draws random numbers, or keeps a "
                         "state")
    return teacher

@dataclasses.dataclass
class _Training:
    """The options of the steps of distillation."""
    steps: int
    lr: float
    classes: int
    augment: object
    device: object
    seed: int

class _Job:
    """One conversion: the options, the copy, the exported file."""
    def __init__(self, model, batches, tensors, options, untie):
        self.model, self.batches, self.tensors, self.options, self.untie = model, batches, tensors, options, untie
        self.names = [f"input_{i}" for i in range(len(tensors[0]))]
        self.work = _copy_of(model, untie)
        self.flat = _Flat(self.work, batches[0])
        self.teacher = _teach(self.flat, tensors)
        self.outputs = [f"output_{i}" for i in range(len(self.teacher[0]))]
        self.data = _export(self.flat, tensors, self.names, self.outputs)
        self.entries, self.uses, self.counts = [], None, {}
        self.fitted = len(tensors)

    def convert(self, training, onnx):
        """Returns nothing; what it has found is in self.entries."""
        if training.steps: self.fitted = _used(self.tensors)
        with _File(self.data) as file, _Object("convert", self.data, len(self.data), ctypes.byref(self.options)) as engine:
            _check_export(self.flat, file, self.names, self.tensors, self.teacher, self.outputs)
            gates = self.find_gates(engine, file, onnx)
            self.solve(engine, gates, onnx)
            at, size = engine("file", ctypes.byref(size := ctypes.c_size_t())), size.value
            if not at: raise RuntimeError(f"lgelu: refit: {engine('message').decode(errors='replace')}")
            converted = ctypes.string_at(at, size)
            self.describe(engine, gates)
            with _File(converted) as new:
                if onnx: self.write(new, converted, onnx)
                else: self.change(engine, gates, new, training)

    def find_gates(self, engine, file, onnx):
        gates = []
        for k in range(engine("gates")):
            info = _GateInfo()
            engine("gate", k, ctypes.byref(info))
            gates.append(_Gate(k, info))
        _sample_gates(gates, file, self.names, self.tensors[0])
        if not onnx:
            self.uses, self.counts = _uses(self.flat, self.tensors[0])
            _find_modules(gates, self.uses)
            if any(g.relus and not g.uses for g in gates): raise _NoModule([g for g in gates if g.relus])
        if not any(g.relus for g in gates):
            left = "; ".join(f"{g.function(self.work)} at {g.place()} stays: {g.why}" for g in gates if g.why and (g.kind == "stays" or g.uses))
            raise ValueError("lgelu: refit: there is no smooth gate to replace in this model" + (left and ": " + left))
        return gates

    def solve(self, engine, gates, onnx):
        """Runs the engine; layers whose weights cannot be set in the module are left."""
        engine("plan", (ctypes.c_int * (len(gates) + 1))(*[g.relus for g in gates]))
        for batch in self.tensors[:self.fitted]: engine.must("add", _inputs(self.names, batch), len(batch))
        engine.must("prepare")
        initializers = []
        for k in range(engine("initializers")):
            info = _InitializerInfo()
            engine("initializer", k, ctypes.byref(info))
            if info.first: initializers.append(info)
        initializers.sort(key=lambda i: i.first)
        owners, overlapping, self.layers = _Owners(self.work), _overlapping(self.model), []
        for k in range(engine("layers")):
            info = _LayerInfo()
            engine("layer", k, ctypes.byref(info))
            layer = _Layer(k, info, initializers, owners, overlapping)
            self.layers.append(layer)
            if not onnx: engine("leave", k, layer.why, not layer.why and not layer.takes_bias())
        engine.must("run")

    def describe(self, engine, gates):
        """The entries of gates and layers in the report."""
        self.gates, self.infos = [], []
        for g in gates:
            info = _GateInfo()
            engine("gate", g.number, ctypes.byref(info))
            if info.replaced: self.gates.append((g, info))
            self.entries.append({"kind": "gate", "name": g.place(), "calls": g.calls(), "function": g.function(self.work), "replaced": info.replaced,
                                 "why": None if info.replaced else g.why or info.why.decode(errors="replace"), "error": info.error})
        if self.uses is not None: self.entries += _unseen(self.work, gates, self.uses)
        for layer in self.layers:
            info = _LayerInfo()
            engine("layer", layer.number, ctypes.byref(info))
            self.infos.append(info)
            self.entries.append({"kind": "layer", "name": layer.place(), "outcome": _outcomes[info.outcome],
                                 "why": info.why.decode(errors="replace") or None, "before": info.before, "after": info.after,
                                 "ridge": info.ridge, "rows": info.rows})

    def add_outputs(self, results):
        for i, name in enumerate(self.outputs):
            if not self.teacher[0][i].is_floating_point(): continue
            now, then = (torch.cat([r[i].reshape(-1) for r in of]) for of in (results, self.teacher))
            self.entries.append({"kind": "output", "name": name, "change": _distance(now, then)})

    def write(self, file, converted, path):
        """Writes the converted file, by another name until it is whole."""
        self.add_outputs([file.values(self.names, batch, self.outputs) for batch in self.tensors])
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            with open(temporary, "wb") as out: out.write(converted)
            os.replace(temporary, path)
        except OSError as e: raise OSError(e.errno, e.strerror, path) from None
        finally:
            if os.path.exists(temporary): os.remove(temporary)

    def change(self, engine, gates, file, training):
        """Changes the copy, compares it with the file, and changes the model."""
        before, of = _state(self.work), {}
        for layer, info in zip(self.layers, self.infos): layer.set(info)
        for g, _ in self.gates:
            for path in {u.path for u in g.uses}: of.setdefault(path, []).append(g)
        modules = self.replacements()
        _put_all(self.work, modules)
        results = _compare(self.flat, of, self.data, file, self.names, self.tensors, self.outputs)
        if training.steps:
            try: self.distill(modules, training)
            except Exception as e: raise RuntimeError(f"lgelu: refit: the converted model cannot be trained: {_said(e)}") from e
            results = [self.flat.outputs(batch) for batch in self.tensors]
        self.add_outputs(results)
        self.apply(before, modules, results)

    def distill(self, modules, training):
        """Trains the copy, on the device of the model unless another one is named."""
        device = training.device or next((p.device for p in self.model.parameters()), torch.device("cpu"))
        teacher = _Flat(_copy_of(self.model, self.untie), self.batches[0])
        job = _Distillation(self.flat, teacher, modules, self.tensors, training.classes, training.augment, device)
        try: self.entries.append(job.run(training.steps, training.lr, training.seed))
        finally: self.flat.cpu()

    def replacements(self):
        """The new modules by path: a list with one for each call, None where it stays; one for all calls where each is nn.ReLU."""
        modules = {}
        for g, info in self.gates:
            for u in g.uses:
                calls = modules.setdefault(u.path, [None] * self.counts[u.path])
                if u.gates[0] is g: calls[u.count] = _replacement(g, info)
        return {path: calls[:1] if all(isinstance(m, nn.ReLU) for m in calls) else calls for path, calls in modules.items()}

    def apply(self, before, modules, results):
        """Sets in the model what has changed in the copy. After any error, the user's interruption too, the model is as it was."""
        undo = _Undo(self.model)
        try:
            own = _own_outputs(self.model, self.batches)
            _commit(self.model, self.work, before, modules, undo, self.untie)
            if own is not None: _check_model_itself(self.model, self.batches, own, self.teacher, results)
        except BaseException:
            undo.back()
            raise

def _warn_left(entries):
    """Warns of matrices behind a replaced gate that could not be changed: the outputs then change as by a cold swap."""
    left = [e for e in entries if e["kind"] == "layer" and e["why"] and e["outcome"] == "left" and "depends on" not in e["why"]]
    if left:
        warnings.warn(f"lgelu: refit: {len(left)} of the matrices behind a gate stay as they are, the first '{left[0]['name']}': "
                      f"{left[0]['why']}; see report=[]", stacklevel=4)

_FAR = 0.2                                  # of an output's root mean square

def _warn_far(entries):
    """Warns where one ReLU a gate moves an output by more than _FAR."""
    far = [e for e in entries if e["kind"] == "output" and e["change"] > _FAR]
    if far:
        worst = max(far, key=lambda e: e["change"])
        warnings.warn(f"lgelu: refit: {worst['name']} changes by {worst['change']:.2g} of its root mean square; relus=3 is nearer",
                      stacklevel=4)

def _no_module(job, gates):
    """The error for gates that no module computes."""
    lost = [g for g in gates if not g.uses]
    places = _places(job.flat, job.tensors[0], lost)
    where = ", ".join(f"{g.name} ({places.get(g, 'at ' + g.place())})" for g in lost)
    return ValueError(f"lgelu: refit: no module computes {where}: it is a function call inside a forward, which cannot be changed "
                      f"there. Put a module such as nn.GELU() in its place, or write the converted network as a file with "
                      f"refit(..., onnx='relu.onnx')")

def refit(model, batches, what="full", relus=1, leaky=False, fitted=False, line=False, ridge=0.0, rows=0, memory=0, seed=1, steps=0,
          lr=None, classes=None, augment=None, device=None, onnx=None, untie=False, report=None):
    """See lgelu.refit."""
    if report is not None and not hasattr(report, "extend"):
        raise TypeError(f"lgelu: refit: report is a list, not {type(report).__name__}")
    batches, tensors = _checked(model, batches, what, relus, steps, augment)
    options = _Options(("full", "biases", "cold").index(what), relus, leaky, fitted, line, ridge, rows, memory, seed)
    training = _Training(steps, lr, classes, augment, device, seed)
    job = _Job(model, batches, tensors, options, untie)
    try: job.convert(training, onnx)
    except _NoModule as e:
        gates = e.args[0]
        model = _traced(model, batches[0], gates)
        if model is None: raise _no_module(job, gates) from None
        job = _Job(model, batches, tensors, options, untie)
        try: job.convert(training, None)
        except _NoModule as e: raise _no_module(job, e.args[0]) from None
    if report is not None: report.extend(job.entries)
    if what == "full": _warn_left(job.entries)
    if what == "full" and relus == 1: _warn_far(job.entries)
    return model
