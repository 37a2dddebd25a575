#!/usr/bin/env python3
"""Which library PyTorch multiplies matrices with: what is mapped into the process after a product. Exit status 3 for the reference
BLAS, a plain loop some forty times slower than the others.   SPDX-License-Identifier: MIT-0"""
import re, sys
import torch

torch.rand(300, 300) @ torch.rand(300, 300)
mapped = sorted({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line})
fast = [path for path in mapped if re.search(r"openblas[^/]*\.so|libmkl|libblis|libatlas|libarmpl|Accelerate", path)]
plain = [path for path in mapped if re.search(r"/libblas\.so", path) and not re.search("openblas|mkl|blis|atlas|armpl", path)]
if plain:
    print("the reference BLAS,", *plain)
    sys.exit(3)
elif fast:
    print(*fast)
elif torch.backends.mkl.is_available():
    print("MKL, built in")
else:
    print("unknown:", " ".join(re.findall(r"BLAS_INFO=\w+", torch.__config__.show())) or "it does not say")
