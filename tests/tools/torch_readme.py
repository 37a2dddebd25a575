# SPDX-License-Identifier: MIT-0
# torch_readme.py README: the Python of examples/torch/README.md as it is written there, on a model and data that its reader would have.
# Run in a folder that has what the page says is copied.
import re, sys, warnings
import torch
from torch import nn

blocks = re.findall(r"```python\n(.*?)```", open(sys.argv[1]).read(), re.S)
torch.set_num_threads(1)
torch.manual_seed(1)
failed = 0
for k, block in enumerate(blocks):
    model = nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.Linear(32, 5))
    data = [(torch.randn(16, 20), torch.randint(0, 5, (16,))) for _ in range(40)]
    names = dict(torch=torch, model=model, loss=nn.CrossEntropyLoss(), batches=data, steps=40, loader=data, device="cpu")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(block, names)
        why = "" if isinstance(names["model"][1], nn.ReLU) else f"the gate is {names['model'][1]}"
    except Exception as e: why = f"{type(e).__name__}: {e}"
    print(f"FAIL snippet {k + 1} of {len(blocks)}: {why}" if why else f"ok snippet {k + 1} of {len(blocks)} of README.md ends with an nn.ReLU")
    failed |= bool(why)
sys.exit(failed or len(blocks) != 2)
