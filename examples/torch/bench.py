# SPDX-License-Identifier: MIT-0
"""bench.py: the gate beside torch.nn.functional.gelu, forward and forward + backward, on 1 and 2 threads, and the peak of memory.

    python3 bench.py [--seconds 20] [--type float32] [--lam 2] [--elements 64,1024]

Each time is the least of interleaved rounds; a ratio below 1 means that ours is faster. `λ driven` has a λ that is a number, as
while a plan drives it; `learned` has a λ with a gradient, which GELU does not compute. --extension: instead, microseconds of a call
beside the same gate as a C++ extension, bench_extension.cpp, which is built for this (Debian: libtorch-dev, pybind11-dev). Memory: what a process of its own adds to
its peak beyond x, in bytes per element."""
import argparse, os, subprocess, sys, tempfile, time

def memory(which, name, n, lam):
    import torch, lgelu
    peak = lambda: 1024 * int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
    torch.set_num_threads(1)
    small, l = torch.randn(100, dtype=getattr(torch, name), requires_grad=True), torch.tensor(lam, requires_grad=True)
    act = {"torch": torch.nn.functional.gelu, "driven": lambda x: lgelu.gate(x, lam),
           "learned": lambda x: lgelu.gate(x, l)}[which]
    act(small).sum().backward()
    x = torch.randn(n).to(getattr(torch, name)).requires_grad_()
    dy = torch.ones(n, dtype=x.dtype)
    with open("/proc/self/clear_refs", "w") as f: f.write("5")             # the peak begins here
    before = peak()
    act(x).backward(dy)
    print((peak() - before) / n)

def extension(seconds, lam, sizes):
    import torch, lgelu
    from torch.utils import cpp_extension
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as build:
        start = time.perf_counter()
        made = cpp_extension.load("bench_extension", [here + "/bench_extension.cpp"], build_directory=build,
                                  extra_cflags=["-O1"], extra_include_paths=["/usr/include/torch/csrc/api/include"])
        print(f"built in {time.perf_counter() - start:.0f} s; microseconds of a call, 1 thread, float32, λ = {lam:g}")
    made.open_library(lgelu._lib._name)
    torch.set_num_threads(1)
    learned = torch.tensor(lam, requires_grad=True)
    acts = {"GELU": torch.nn.functional.gelu, "λ driven": lambda x: lgelu.gate(x, lam), "C++": lambda x: made.driven(x, lam),
            "λ learned": lambda x: lgelu.gate(x, learned), "C++, learned": lambda x: made.learned(x, learned)}
    for n in sizes:
        x, dy = torch.randn(n), torch.randn(n)
        a = x.clone().requires_grad_()
        jobs = {("forward", k): (lambda act=act: act(x)) for k, act in acts.items() if "learned" not in k}
        jobs.update({("forward + backward", k): (lambda act=act: act(a).backward(dy)) for k, act in acts.items()})
        least, end = dict.fromkeys(jobs, float("inf")), time.perf_counter() + seconds / len(sizes)
        while time.perf_counter() < end:
            for k, job in jobs.items():
                start = time.perf_counter()
                for _ in range(30): job()
                least[k] = min(least[k], (time.perf_counter() - start) / 30 * 1e6)
        for part in "forward", "forward + backward":
            print(f"{n:9} {part:>18}: " + ", ".join(f"{k} {us:.1f}" for (p, k), us in least.items() if p == part))

def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--type", default="float32", choices=["float32", "bfloat16", "float64"])
    p.add_argument("--lam", type=float, default=2.0)
    p.add_argument("--elements", type=lambda s: [int(n) for n in s.split(",")], default=[1 << 10, 1 << 14, 1 << 18, 1 << 22])
    p.add_argument("--extension", action="store_true")
    p.add_argument("--memory", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.memory: return memory(a.memory[0], a.type, int(a.memory[1]), a.lam)
    if a.extension: return extension(a.seconds, a.lam, a.elements)
    import torch, lgelu
    sizes = a.elements
    learned = torch.tensor(a.lam, requires_grad=True)
    acts = {"torch": torch.nn.functional.gelu, "driven": lambda x: lgelu.gate(x, a.lam),
            "learned": lambda x: lgelu.gate(x, learned)}
    print(f"PyTorch {torch.__version__}, {a.type}, λ = {a.lam:g}, x ~ N(0, 1); ns per element, ratio: ours to PyTorch's GELU")
    print(f"{'threads':>7} {'elements':>9}  {'forward':>30}  {'forward + backward':>48}")
    print(f"{'':17}  {'GELU':>8} {'ours':>10} {'ratio':>10}  {'GELU':>8} {'λ driven':>10} {'ratio':>8} {'λ learned':>10} "
          f"{'ratio':>8}")
    for threads in 1, 2:
        torch.set_num_threads(threads)
        for n in sizes:
            x = torch.randn(n).to(getattr(torch, a.type)).requires_grad_()
            dy, plain = torch.randn(n).to(x.dtype), x.detach()
            loops = min(max(1, (1 << 17) // n), 50)                            # short: other programs interrupt some rounds only
            def both(act):
                x.grad = learned.grad = None
                act(x).backward(dy)
            jobs = {("forward", k): (lambda act=act: act(plain)) for k, act in acts.items() if k != "learned"}
            jobs.update({("both", k): (lambda act=act: both(act)) for k, act in acts.items()})
            least = dict.fromkeys(jobs, float("inf"))
            end = time.perf_counter() + a.seconds / (2 * len(sizes))
            while True:
                for k, job in jobs.items():
                    start = time.perf_counter()
                    for _ in range(loops): job()
                    least[k] = min(least[k], (time.perf_counter() - start) / loops / n * 1e9)
                if time.perf_counter() > end: break
            f, b = ({k: least[part, k] for p, k in least if p == part} for part in ("forward", "both"))
            print(f"{threads:7} {n:9}  {f['torch']:8.3f} {f['driven']:10.3f} {f['driven'] / f['torch']:10.2f}  {b['torch']:8.3f} "
                  f"{b['driven']:10.3f} {b['driven'] / b['torch']:8.2f} {b['learned']:10.3f} {b['learned'] / b['torch']:8.2f}")
    for which in acts:
        command = [sys.executable, __file__, "--type", a.type, "--lam", str(a.lam), "--memory", which, str(1 << 24)]
        said = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(f"peak of memory, forward + backward of 2^24 elements, {which:>7}: {said:5.2f} bytes per element beside x and dy")

if __name__ == "__main__": main()
