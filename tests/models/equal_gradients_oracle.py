"""Trains a model of the test beside by PyTorch, in f64, from the same start.

python equal_gradients_oracle.py MODEL STEPS FILE: FILE holds a line per tensor,
"name dim,dim=value value ..."; so does what is printed, with all losses as
"loss". Plain SGD with momentum on the whole batch.
"""
import sys

import torch
from torch.nn import functional as F

LR, MOMENTUM = 0.1, 0.9


def convolutions(x, p):
    c1 = F.conv2d(x["image"], p["w1"], p["b1"], padding=1)
    c2 = F.conv2d(x["image"], p["w2"], p["b2"], padding=1)
    return (c1 + c2).flatten(1) @ p["w"] + p["b"]


def recurrent(x, p):
    h = torch.tanh(x["x"] @ p["w0"])
    for _ in range(2):
        h = torch.tanh(x["x"] @ p["wi"] + p["bi"] + h @ p["wh"] + p["bh"])
    return h @ p["w"] + p["b"]


def read(path):
    tensors = {}
    for line in open(path):
        head, values = line.split("=")
        name, dims = head.split(" ")
        values = torch.tensor([float(v) for v in values.split()],
                              dtype=torch.float64)
        tensors[name] = values.reshape([int(d) for d in dims.split(",")])
    return tensors


model = {"Convolutions": convolutions, "Recurrent": recurrent}[sys.argv[1]]
inputs = read(sys.argv[3])
label = inputs.pop("label").long()
feeds = {k: inputs.pop(k) for k in ("x", "image")}
params = {k: v.requires_grad_() for k, v in inputs.items()}
sgd = torch.optim.SGD(params.values(), lr=LR, momentum=MOMENTUM)
losses = []
for _ in range(int(sys.argv[2])):
    sgd.zero_grad()
    loss = F.cross_entropy(model(feeds, params), label)
    loss.backward()
    sgd.step()
    losses.append(loss.item())
for name, value in list(params.items()) + [("loss", torch.tensor(losses))]:
    print("%s %s=%s" % (name, ",".join(str(d) for d in value.shape),
                        " ".join(repr(v) for v in value.flatten().tolist())))
