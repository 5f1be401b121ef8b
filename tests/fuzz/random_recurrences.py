"""rnn: how it is drawn, and its steps one by one, as PyTorch's own takes no
lengths without packing.
"""

import math

import torch
import torch.nn.functional as F


def sequence_first(a):
    return a.transpose(0, 1).contiguous()


def cell(mode, gates_x, gates_h, h, c):
    """A step of a recurrence: the new h and c."""
    if mode == "LSTM":
        i, f, g, o = (gates_x + gates_h).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c
    if mode == "GRU":
        rx, zx, nx = gates_x.chunk(3, -1)
        rh, zh, nh = gates_h.chunk(3, -1)
        n = torch.tanh(nx + torch.sigmoid(rx + rh) * nh)
        z = torch.sigmoid(zx + zh)
        return (1 - z) * n + z * h, c
    function = torch.tanh if mode == "RNN_TANH" else F.relu
    return function(gates_x + gates_h), c


def direction(mode, x, weights, biases, lengths, backward):
    """A direction of a layer over [T, B, I]; past a length zeros come out."""
    wx, wh = weights
    bx, bh = biases
    h = c = torch.zeros(x.shape[1], wh.shape[1], dtype=x.dtype)
    steps = range(x.shape[0])
    made = [None] * x.shape[0]
    for t in reversed(steps) if backward else steps:
        next_h, next_c = cell(mode, x[t] @ wx.t() + bx, h @ wh.t() + bh, h, c)
        if lengths is None:
            h, c = next_h, next_c
            made[t] = h
            continue
        inside = (t < lengths).view(-1, 1)
        made[t] = torch.where(inside, next_h, torch.zeros_like(next_h))
        h, c = torch.where(inside, next_h, h), torch.where(inside, next_c, c)
    return torch.stack(made)


def rnn(g):
    choice, chance = g.random.choice, g.chance
    x = g.pick([3], lambda v: v.shape[1] <= 10 and v.shape[2] <= 64)
    _, length, inner = g.shape(x)
    x = g.op("transpose", {"X": x},
             sequence_first, {"axis": [1, 0, 2]},
             pooled=False)
    mode = choice(["LSTM", "GRU", "RNN_TANH", "RNN_RELU"])
    width, layers = choice([1, 3, 4, 7, 16]), choice([1, 1, 2])
    directions = 2 if chance(0.4) else 1
    rows = {"LSTM": 4, "GRU": 3}.get(mode, 1) * width
    weights, biases = [], []
    for i in range(layers * directions):
        columns = inner if i < directions else directions * width
        weights += [
            g.parameter([rows, columns], 0.4 / math.sqrt(columns)),
            g.parameter([rows, width], 0.4 / math.sqrt(width))
        ]
        biases += [g.bias(rows), g.bias(rows)]
    biased, cut = chance(0.7), chance(0.3)
    inputs = {"Input": x, "WeightList": weights + biases * biased}
    if cut:
        lengths = g.feed(g.name("len"), [], below=length)
        g.feeds[lengths] += 1
        inputs["SequenceLength"] = lengths

    def run(x, *rest):
        lengths = rest[-1] if cut else None
        for layer in range(layers):
            made = []
            for d in range(directions):
                at = 2 * (layer * directions + d)
                of = len(weights) + at
                made.append(
                    direction(mode, x, rest[at:at + 2],
                              rest[of:of + 2] if biased else (0.0, 0.0),
                              lengths, d == 1))
            x = torch.cat(made, -1)
        return x

    made = g.op("rnn",
                inputs,
                run, {
                    "mode": mode,
                    "hidden_size": width,
                    "num_layers": layers,
                    "is_bidirec": directions == 2
                }, ["Out", "Gates", "Carried"],
                pooled=False)
    g.op("transpose", {"X": made}, sequence_first, {"axis": [1, 0, 2]})
