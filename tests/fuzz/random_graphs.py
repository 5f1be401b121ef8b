"""Draws models: any DAG of ops on small odd shapes, a loss on its leaves."""

import math

import torch
import torch.nn.functional as F

from random_graph import RANKS, DoesNotFit, Graph, require
from random_layers import LAYERS
from random_losses import LOSSES
from random_moves import MOVES
from random_recurrences import rnn
from random_values import VALUES
from random_windows import WINDOWS


def mix_samples(g):
    """An op that sees a batch as a whole; ranks, who have a part, differ."""
    require(g.may_mix)
    x = g.pick(RANKS, lambda v: v.numel() < 4000)
    dims = g.shape(x)
    form = g.random.random()
    if form < 0.3:
        mean = g.op("reduce_mean", {"X": x},
                    lambda a: a.mean(0, True), {
                        "dim": [0],
                        "keep_dim": True
                    },
                    pooled=False)
        g.op("elementwise_sub", {"X": x, "Y": mean}, torch.sub)
    elif form < 0.5:
        require(len(dims) == 2)
        gram = g.op("matmul", {
            "X": x,
            "Y": x
        },
                    lambda a, b: a.t() @ b, {"trans_x": True},
                    pooled=False)
        gram = g.op("tanh", {"X": gram}, torch.tanh, pooled=False)
        g.op("matmul", {"X": x, "Y": gram}, torch.matmul)
    elif form < 0.8:
        require(len(dims) > 2)
        there = list(range(1, len(dims))) + [0]
        back = [len(dims) - 1] + list(range(len(dims) - 1))
        made = g.op("transpose", {"X": x},
                    lambda a: a.permute(there).contiguous(), {"axis": there},
                    pooled=False)
        made = g.op("relu", {"X": made}, F.relu, pooled=False)
        g.op("transpose", {"X": made}, lambda a: a.permute(back).contiguous(),
             {"axis": back})
    else:
        merged = [-1] + (dims[2:] or dims[1:])
        made = g.op("reshape", {"X": x},
                    lambda a: a.reshape(merged), {"shape": merged},
                    pooled=False)
        made = g.op("tanh", {"X": made}, torch.tanh, pooled=False)
        g.op("reshape", {"X": made}, lambda a: a.reshape([-1] + dims[1:]),
             {"shape": [-1] + dims[1:]})
    g.mixes_samples = True


DRAWS = {
    **LAYERS,
    **MOVES,
    **VALUES,
    **WINDOWS, rnn: 1,
    mix_samples: 1
}


def add_feeds(g):
    choice = g.random.choice
    kind = choice(["image"] * 5 + ["sequence"] * 2 + ["vector"] * 2 +
                  ["volume"])
    if kind == "image":
        sizes = [1, 3, 5, 7, 8, 9, 12, 14]
        dims = [g.width(), choice(sizes), choice(sizes)]
    elif kind == "volume":
        dims = [choice([1, 2, 3, 4, 6, 8])]
        dims += [choice([1, 2, 3, 5, 6]) for _ in range(3)]
    elif kind == "sequence":
        dims = [choice([1, 3, 5, 7, 8]), g.width()]
    else:
        dims = [choice([1, 3, 7, 17, 24])]
    g.feed("x", dims)
    if g.chance(0.3):
        g.feed("x2", dims)


def add_loss(g):
    """Of most of what nobody reads; some stay dead."""
    leaves = [n for n in g.pool if not g.uses[n] and g.values[n].dim() > 1]
    alive = [n for n in leaves if len(leaves) == 1 or g.chance(0.88)]
    parts = []
    for name in alive or leaves[:1] or g.pool[-1:]:
        if g.values[name].dim() > 2:
            name = g.op("flatten", {"X": name},
                        lambda a: a.flatten(1),
                        checked=False)
        size = g.shape(name)[1]
        if size > 40:
            w = g.parameter([size, 9], 1 / math.sqrt(size))
            name = g.op("matmul", {
                "X": name,
                "Y": w
            }, torch.matmul, checked=False)
        parts.append(name)
    made = parts[0]
    if len(parts) > 1:
        made = g.op("concat", {"X": parts},
                    lambda *all: torch.cat(all, 1), {"axis": 1},
                    checked=False)
    size = g.shape(made)[1]

    def logits(classes):
        inputs = {
            "X": made,
            "Y": g.parameter([size, classes], 0.7 / math.sqrt(size))
        }
        if g.chance(0.5):
            inputs["Bias"] = g.bias(classes)
        return g.op("matmul",
                    inputs,
                    lambda a, w, b=0: a @ w + b,
                    checked=False)

    g.random.choices(list(LOSSES), LOSSES.values())[0](g, logits)
    g.loss = g.op("mean", {"X": g.losses}, lambda a: a.mean(), checked=False)


def draw(seed, size):
    """The model of a seed, of at least `size` ops.

    A third of the seeds has no batch norm, without which gradients may be
    merged; a quarter may mix samples, and is not for ranks if it does.
    """
    g = Graph(seed, batch_norm=seed % 3 != 0, may_mix=seed % 4 == 1)
    add_feeds(g)
    kinds, weights = list(DRAWS), list(DRAWS.values())
    for _ in range(20 * size):
        if len(g.ops) >= size:
            break
        try:
            g.random.choices(kinds, weights)[0](g)
        except DoesNotFit:
            pass  # what it had made by then stays, dead or alive
    add_loss(g)
    g.drop_unread()
    if g.chance(0.15) and len(g.parameters) > 3:
        g.frozen.add(g.random.choice(list(g.parameters)))
    return g
