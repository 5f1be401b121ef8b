"""Ops without parameters: how each is drawn, what PyTorch makes of it.

Element-wise ones, reductions and those that move elements. VALUES has all with
their weights in the draw.
"""

import torch
import torch.nn.functional as F

from random_graph import divisors, product, require

RANKS = range(2, 7)  # with a sample dim and another

# type, attributes, function
ACTIVATIONS = [
    ("relu", {}, F.relu),
    ("relu", {}, F.relu),
    ("relu", {}, F.relu),
    ("relu", {}, F.relu),
    ("gelu", {}, F.gelu),
    ("gelu", {
        "approximate": "tanh"
    }, lambda a: F.gelu(a, approximate="tanh")),
    ("silu", {}, F.silu),
    ("tanh", {}, torch.tanh),
    ("sigmoid", {}, torch.sigmoid),
    ("leaky_relu", {
        "alpha": 0.1
    }, lambda a: F.leaky_relu(a, 0.1)),
    ("elu", {
        "alpha": 1.0
    }, F.elu),
    ("softplus", {}, F.softplus),
    ("mish", {}, F.mish),
    ("hard_swish", {}, F.hardswish),
    ("hard_sigmoid", {
        "slope": 1 / 6
    }, F.hardsigmoid),
    ("hard_tanh", {}, F.hardtanh),
    ("relu6", {}, F.relu6),
    ("square", {}, torch.square),
    ("abs", {}, torch.abs),
    ("neg", {}, torch.neg),
    ("exp", {}, torch.exp),
    ("sin", {}, torch.sin),
    ("cos", {}, torch.cos),
    ("atan", {}, torch.atan),
    ("erf", {}, torch.erf),
    ("scale", {
        "scale": 0.7,
        "bias": 0.3
    }, lambda a: a * 0.7 + 0.3),
    ("scale", {
        "scale": -1.5,
        "bias": 0.5,
        "bias_after_scale": False
    }, lambda a: (a + 0.5) * -1.5),
    ("scale", {
        "scale": 1.0
    }, lambda a: a * 1.0),
    ("clip", {
        "min": -0.8,
        "max": 0.9
    }, lambda a: a.clamp(-0.8, 0.9)),
    ("swish", {
        "beta": 1.5
    }, lambda a: a * torch.sigmoid(1.5 * a)),
    ("pow", {
        "factor": 2.0
    }, lambda a: a**2),
    ("pow", {
        "factor": 3.0
    }, lambda a: a**3),
    ("assign", {}, lambda a: a),
    ("share_data", {}, lambda a: a.detach()),
    ("sign", {}, torch.sign),
]
NO_GRADIENT = ("share_data", "sign")  # fewer, as nothing learns below them


def activation(g):
    kind, attributes, function = g.random.choice(ACTIVATIONS)
    require(kind not in NO_GRADIENT or g.chance(0.4))
    return g.op(kind, {"X": g.pick()}, function, attributes)


def along_axis(g):
    x = g.pick(RANKS)
    axis = -1
    kind, function = g.random.choice([("softmax", F.softmax),
                                      ("log_softmax", F.log_softmax),
                                      ("cumsum", torch.cumsum)])
    if kind != "cumsum" and g.chance(0.5):
        axis = g.random.randrange(1, g.values[x].dim())
    g.op(kind, {"X": x}, lambda a: function(a, axis), {"axis": axis})


def of_positive(g):
    x = g.op("square", {"X": g.pick()}, torch.square, pooled=False)
    x = g.op("scale", {"X": x},
             lambda a: a + 0.5, {
                 "scale": 1.0,
                 "bias": 0.5
             },
             pooled=False)
    kind = g.random.choice(["sqrt", "rsqrt", "log", "reciprocal"])
    g.op(kind, {"X": x}, getattr(torch, kind))


def prelu(g):
    x = g.pick(RANKS)
    mode = g.random.choice(["all", "channel", "element"])
    dims = g.shape(x)
    along = [1, -1] + [1] * (len(dims) - 2)
    if mode == "all":
        dims = [1]
    elif mode == "channel":
        dims = [dims[1]]
    else:
        dims = dims[1:]
    require(product(dims) <= 2000)
    slope = g.parameter(dims, 0.1, 0.2, prefix="a")
    g.op(
        "prelu", {
            "X": x,
            "Alpha": slope
        }, lambda x, a: torch.where(
            x > 0, x, (a.view(along) if mode == "channel" else a) * x),
        {"mode": mode})


BINARY = [("elementwise_add", torch.add)] * 5 + [
    ("elementwise_mul", torch.mul)
] * 3 + [("elementwise_sub", torch.sub)] * 2 + [
    ("elementwise_max", torch.maximum), ("elementwise_min", torch.minimum)
]


def binary(g):
    """With a value, or with a parameter that is repeated."""
    choice, chance = g.random.choice, g.chance
    x = g.pick()
    dims = g.shape(x)
    axis = None
    form = g.random.random()
    if form < 0.65:
        others = g.like(x)
        if chance(0.3):  # dims of 1 are repeated, of either
            others = [
                name for name in g.pool if len(g.shape(name)) == len(dims) and
                all(a == b or (i > 0 and 1 in (a, b))
                    for i, (a, b) in enumerate(zip(dims, g.shape(name))))
            ]
        y = choice(others)
    elif form < 0.8 and len(dims) > 1:
        last = g.random.randrange(1, len(dims))
        repeated = [d if chance(0.8) else 1 for d in dims[-last:]]
        require(product(repeated) <= 2000)
        y = g.parameter(repeated, 0.3, 0.2, prefix="e")
    elif len(dims) > 2:
        y = g.parameter([dims[1]], 0.3, 0.2, prefix="e")
        axis = 1
    else:
        y = g.parameter([1], 0.3, 0.2, prefix="e")
    kind, function = choice(BINARY)
    require(x != y or kind not in ("elementwise_max", "elementwise_min"))
    if axis is not None:
        along = [-1] + [1] * (len(dims) - 2)
        return g.op(kind, {
            "X": x,
            "Y": y
        }, lambda a, b: function(a, b.view(along)), {"axis": axis})
    if len(g.shape(y)) == len(dims) and chance(0.3):
        x, y = y, x
    return g.op(kind, {"X": x, "Y": y}, function)


def elementwise_chain(g):
    for _ in range(g.random.randrange(3, 7)):
        activation(g) if g.chance(0.5) else binary(g)


def divide(g):
    x = g.pick()
    y = g.op("exp", {"X": g.random.choice(g.like(x))}, torch.exp)
    g.op("elementwise_div", {"X": x, "Y": y}, torch.div)


def where(g):
    x = g.pick()
    y, z = g.random.choice(g.like(x)), g.random.choice(g.like(x))
    require(y != z)
    larger = g.op("greater_than", {"X": x, "Y": y}, torch.gt, pooled=False)
    g.op("where", {"Condition": larger, "X": x, "Y": z}, torch.where)


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


def reduction(g):
    x = g.pick(RANKS)
    rank = g.values[x].dim()
    axes = sorted(g.random.sample(range(1, rank), g.random.randrange(1, rank)))
    keep = g.chance(0.5)
    kind = g.random.choice(
        ["reduce_sum", "reduce_mean", "reduce_mean", "reduce_max", "reduce_min"])

    def extreme(a, sign):
        """As each that equals it gets the whole gradient, unlike amax's."""
        most = (sign * a).amax(axes, keepdim=True).detach()
        equal = (sign * a == most).to(a.dtype)
        made = sign * most + ((a - sign * most) * equal).sum(axes, True)
        return made if keep else made.squeeze(axes)

    function = {
        "reduce_sum": lambda a: a.sum(axes, keep),
        "reduce_mean": lambda a: a.mean(axes, keep),
        "reduce_max": lambda a: extreme(a, 1),
        "reduce_min": lambda a: extreme(a, -1),
    }[kind]
    g.op(kind, {"X": x}, function, {
        "dim": [a if g.chance(0.7) else a - rank for a in axes],
        "keep_dim": keep
    })


def reduce_prod(g):
    x = g.pick(RANKS, lambda v: v.shape[-1] < 5 and v.abs().min() > 0.02)
    g.op("reduce_prod", {"X": x}, lambda a: a.prod(-1, True), {
        "dim": [-1],
        "keep_dim": True
    })


def p_norm(g):
    x = g.pick(RANKS, lambda v: v.abs().sum(-1).min() > 0.2)
    g.op("p_norm", {"X": x}, lambda a: a.norm(2, -1, True), {
        "porder": 2.0,
        "axis": -1,
        "keepdim": True
    })


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
    last_first = [p for i in range(len(pads) - 2, -1, -2) for p in pads[i:i + 2]]
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
             {"downscale_factor": 2})


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


VALUES = {
    activation: 5,
    binary: 4,
    along_axis: 1,
    concat: 1,
    divide: 1,
    elementwise_chain: 1,
    expand: 1,
    gather: 1,
    of_positive: 1,
    one_hot: 1,
    p_norm: 1,
    pad: 1,
    pad3d: 1,
    part_of: 1,
    pixel_shuffle: 1,
    prelu: 1,
    reduce_prod: 1,
    reduction: 1,
    reshape: 2,
    several: 1,
    split: 1,
    split_channels: 1,
    take_along_axis: 1,
    top_k: 1,
    transpose: 1,
    unstack: 1,
    where: 1,
}
