"""Ops that move elements: how each is drawn, what PyTorch makes of it.

MOVES has all with their weights in the draw.
"""

import torch
import torch.nn.functional as F

from random_graph import RANKS, divisors, product, require


def reshape(g):
    choice = g.random.choice
    x = g.pick(RANKS)
    dims = g.shape(x)
    form = g.random.random()
    if form < 0.25:
        return g.op("flatten", {"X": x}, lambda a: a.flatten(1))
    if form < 0.35:
        require(len(dims) < 5)
        axis = g.random.randrange(1, len(dims) + 1)
        return g.op("unsqueeze", {"X": x}, lambda a: a.unsqueeze(axis),
                    {"axes": [axis]})
    if form < 0.42:
        single = [i for i in range(1, len(dims)) if dims[i] == 1]
        require(single and len(dims) > 2)
        axis = choice(single)
        return g.op("squeeze", {"X": x}, lambda a: a.squeeze(axis),
                    {"axes": [axis]})
    count = product(dims[1:])
    first = choice(divisors(count))
    made = [first, count // first]
    if g.chance(0.6):
        second = choice(divisors(count // first))
        made = [first, second, count // first // second]
    samples = 0 if first == 1 or g.chance(0.7) else -1
    return g.op("reshape", {"X": x}, lambda a: a.reshape([a.shape[0]] + made),
                {"shape": [samples] + made})


def split_channels(g):
    """What has five dims for those that want them."""
    x = g.pick([4])
    dims = g.shape(x)
    first = g.random.choice(divisors(dims[1]))
    made = [first, dims[1] // first] + dims[2:]
    g.op("reshape", {"X": x}, lambda a: a.reshape([a.shape[0]] + made),
         {"shape": [0] + made})


def transpose(g):
    x = g.pick(range(3, 7))
    order = list(range(1, g.values[x].dim()))
    g.random.shuffle(order)
    order = [0] + order
    g.op("transpose", {"X": x}, lambda a: a.permute(order).contiguous(),
         {"axis": order})


def concat(g):
    x = g.pick(RANKS)
    dims = g.shape(x)
    axis = g.random.randrange(1, len(dims))
    fitting = [
        name for name in g.pool if len(g.shape(name)) == len(dims) and
        all(i == axis or a == b
            for i, (a, b) in enumerate(zip(dims, g.shape(name))))
    ]
    parts = [x] + [
        g.random.choice(fitting) for _ in range(g.random.randrange(1, 3))
    ]
    g.random.shuffle(parts)
    g.op("concat", {"X": parts}, lambda *all: torch.cat(all, axis),
         {"axis": axis if g.chance(0.7) else axis - len(dims)})


def split(g):
    x = g.pick(RANKS)
    axis = g.random.randrange(1, g.values[x].dim())
    length = g.shape(x)[axis]
    require(length > 1)
    if g.chance(0.5):
        parts = g.random.choice(divisors(length)[1:])
        require(parts <= 4)
        g.op("split", {"X": x}, lambda a: torch.chunk(a, parts, axis), {
            "axis": axis,
            "num": parts
        }, ["Out"] * parts)
    else:
        first = g.random.randrange(1, length)
        sections = [first, length - first]
        g.op("split", {"X": x}, lambda a: torch.split(a, sections, axis), {
            "axis": axis,
            "sections": sections
        }, ["Out"] * 2)


def unstack(g):
    x = g.pick(range(3, 7))
    axis = g.random.randrange(1, g.values[x].dim())
    parts = g.shape(x)[axis]
    require(2 <= parts <= 4)
    g.op("unstack", {"X": x}, lambda a: torch.unbind(a, axis), {"axis": axis},
         ["Y"] * parts)


def part_of(g):
    """slice, strided_slice or flip."""
    x = g.pick(RANKS)
    axis = g.random.randrange(1, g.values[x].dim())
    length = g.shape(x)[axis]
    start = g.random.randrange(length)
    end = g.random.randrange(start + 1, length + 1)
    form = g.random.random()
    attributes = {"axes": [axis], "starts": [start], "ends": [end]}
    if form < 0.5:
        g.op("slice", {"Input": x},
             lambda a: a.narrow(axis, start, end - start), attributes)
    elif form < 0.7:
        attributes.update(ends=[start + 1], decrease_axis=[axis])
        g.op("slice", {"Input": x}, lambda a: a.select(axis, start),
             attributes)
    elif form < 0.85:
        stride = attributes["strides"] = [g.random.choice([1, 2, 3])]
        g.op(
            "strided_slice", {"Input": x}, lambda a: a.index_select(
                axis, torch.arange(start, end, stride[0])), attributes)
    else:
        g.op("flip", {"X": x}, lambda a: a.flip(axis), {"axis": [axis]})


def pad(g):
    x = g.pick([2, 3, 4])
    pads = [
        g.random.choice([0, 0, 1, 2])
        for _ in range(2 * (g.values[x].dim() - 1))
    ]
    value = g.random.choice([0.0, 0.0, 1.5])
    # PyTorch's begin with the last dim.
    last_first = []
    for i in range(len(pads) - 2, -1, -2):
        last_first += pads[i:i + 2]
    g.op("pad", {"X": x}, lambda a: F.pad(a, last_first, value=value), {
        "paddings": [0, 0] + pads,
        "pad_value": value
    })


def pad3d(g):
    x = g.pick([5])
    mode = g.random.choice(["constant", "reflect", "replicate", "circular"])
    pads = []
    for length in reversed(g.shape(x)[2:]):
        most = length - 1 if mode == "reflect" else length
        pads += [min(g.random.choice([0, 1, 2]), most) for _ in range(2)]
    g.op("pad3d", {"X": x}, lambda a: F.pad(a, pads, mode=mode), {
        "paddings": pads,
        "mode": mode
    })


def expand(g):
    x = g.pick(RANKS, lambda v: v.numel() < 3000)
    dims = g.shape(x)
    if g.chance(0.5):
        require(1 in dims[1:])
        made = [-1] + [
            g.random.choice([2, 3]) if d == 1 and g.chance(0.7) else -1
            for d in dims[1:]
        ]
        g.op("expand_v2", {"X": x}, lambda a: a.expand(made).contiguous(),
             {"shape": made})
    else:
        times = [1] + [g.random.choice([1, 1, 2]) for _ in dims[1:]]
        g.op("tile", {"X": x}, lambda a: a.repeat(times),
             {"repeat_times": times})


def pixel_shuffle(g):
    if g.chance(0.5):
        x = g.pick([4], lambda v: v.shape[1] % 4 == 0)
        g.op("pixel_shuffle", {"X": x}, lambda a: F.pixel_shuffle(a, 2),
             {"upscale_factor": 2})
    else:
        x = g.pick([4], lambda v: v.shape[2] % 2 == v.shape[3] % 2 == 0)
        g.op("pixel_unshuffle", {"X": x}, lambda a: F.pixel_unshuffle(a, 2),
             {"upscale_factor": 2})


def gather(g):
    """By indices that the model makes."""
    x = g.pick(RANKS)
    axis = g.random.randrange(1, g.values[x].dim())
    length = g.shape(x)[axis]
    start, step = g.random.choice([0, 0, 1]), g.random.choice([1, 1, 2])
    end = g.random.randrange(1, min(length, 9) + 1)
    indices = list(range(start, end, step))
    require(indices)
    made = g.op("arange", {},
                lambda: torch.tensor(indices), {
                    "start": float(start),
                    "end": float(indices[-1] + step),
                    "step": float(step)
                },
                pooled=False)
    kind, name = g.random.choice([("gather", "axis"), ("index_select", "dim")])
    g.op(kind, {
        "X": x,
        "Index": made
    }, lambda a, i: a.index_select(axis, i), {name: axis})


def take_along_axis(g):
    x = g.pick([2], lambda v: 1 < v.shape[1] < 40)
    ids = g.feed(g.name("ids"), [g.random.choice([1, 2, 4])],
                 below=g.shape(x)[1])
    g.op("take_along_axis", {
        "Input": x,
        "Index": ids
    }, lambda a, i: torch.gather(a, 1, i), {"Axis": 1}, ["Result"])


def one_hot(g):
    depth = g.random.choice([2, 5])
    ids = g.feed(g.name("ids"), [g.random.choice([1, 3])], below=depth)
    g.op("one_hot_v2", {"X": ids}, lambda i: F.one_hot(i, depth).float(),
         {"depth": depth})


def top_k(g):
    x = g.pick(RANKS, lambda v: v.unique().numel() == v.numel())
    count = g.random.randrange(1, g.shape(x)[-1] + 1)
    g.op("top_k", {"X": x}, lambda a: a.topk(count, -1)[0], {"k": count},
         ["Out", "Indices"])


def scatter(g):
    """Values of a part of its axis over others of that axis."""
    x = g.pick(RANKS, lambda v: v.shape[1] > 1)
    length = g.shape(x)[1]
    count = g.random.randrange(1, length)
    ids = g.op("arange", {},
               lambda: torch.arange(count), {"end": float(count)},
               pooled=False)
    part = g.op("slice", {"Input": x},
                lambda a: a.narrow(1, length - count, count), {
                    "axes": [1],
                    "starts": [length - count],
                    "ends": [length]
                },
                pooled=False)
    g.op("scatter", {
        "X": x,
        "Ids": ids,
        "Updates": part
    }, lambda a, i, u: a.index_copy(1, i, u), {"axis": 1})


def several(g):
    x = g.pick()
    others = g.like(x)
    terms = [x] + [
        g.random.choice(others) for _ in range(g.random.randrange(1, 4))
    ]
    if g.chance(0.5):
        return g.op("sum", {"X": terms}, lambda *all: sum(all))
    axis = g.random.randrange(1, g.values[x].dim() + 1)
    return g.op("stack", {"X": terms}, lambda *all: torch.stack(all, axis),
                {"axis": axis}, ["Y"])


MOVES = {
    reshape: 2,
    concat: 1,
    expand: 1,
    gather: 1,
    one_hot: 1,
    pad: 1,
    pad3d: 1,
    part_of: 1,
    pixel_shuffle: 1,
    scatter: 1,
    several: 1,
    split: 1,
    split_channels: 1,
    take_along_axis: 1,
    top_k: 1,
    transpose: 1,
    unstack: 1,
}
