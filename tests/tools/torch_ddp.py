# SPDX-License-Identifier: MIT-0
# torch_ddp.py RANK STORE OUT [alone]: one of two processes that train by README.md's loop under DistributedDataParallel (gloo), with
# no option of it; STORE is the file by which they meet, OUT receives the parameters at the end of 40 steps and s at the first driven
# one. alone: one process on the batches of both, without DistributedDataParallel.
import os, sys
import torch
from torch import nn
import lgelu

rank, store, out = int(sys.argv[1]), *sys.argv[2:4]
alone, steps = "alone" in sys.argv, 40
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
torch.set_num_threads(1)
torch.manual_seed(3)                                     # the data; DistributedDataParallel gives all ranks the weights of rank 0
data = torch.randn(steps, 2, 16, 5)
torch.manual_seed(rank)
model = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Linear(16, 16), lgelu.LambdaGELU(channels=16), nn.Linear(16, 1))
lgelu.replace_gelu(model)
if not alone:
    torch.distributed.init_process_group("gloo", init_method=f"file://{os.path.abspath(store)}", rank=rank, world_size=2)
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(lgelu.parameter_groups(model, lr=1e-2, weight_decay=0.01, c=2))
plan = lgelu.Plan.to_relu(steps)
hardening = lgelu.Hardening(model, plan, optimizer)
held = None
for step in range(steps):
    x = data[step].reshape(-1, 5) if alone else data[step, rank]
    optimizer.zero_grad()
    ((model(x) - x[:, :1].abs()) ** 2).mean().backward()
    optimizer.step()
    hardening.step()
    if held is None and step >= plan.begin: held = [g.s.detach().clone() for g in hardening.gates]
state = model.state_dict() if alone else model.module.state_dict()
torch.save({"state": state, "held": held, "target": plan.target}, out)
