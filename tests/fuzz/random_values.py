"""Ops without parameters: how each is drawn, what PyTorch makes of it.

Element-wise ones and reductions; random_moves.py has those that move elements.
VALUES has all with their weights in the draw.
"""

import torch
import torch.nn.functional as F

from random_graph import RANKS, product, require

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
    ("label_smooth", {
        "epsilon": 0.1
    }, lambda a: a * 0.9 + 0.1 / a.shape[-1]),
    ("share_data", {}, lambda a: a.detach()),
    ("sign", {}, torch.sign),
    ("round", {}, torch.round),
    ("fill_zeros_like", {}, torch.zeros_like),
]
# Fewer, as nothing learns below them.
NO_GRADIENT = ("share_data", "sign", "round", "fill_zeros_like")


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


def power(g):
    """Of what is about 1, by a value or by what is repeated."""
    x = g.op("sigmoid", {"X": g.pick(RANKS)}, torch.sigmoid, pooled=False)
    x = g.op("scale", {"X": x},
             lambda a: a + 0.5, {
                 "scale": 1.0,
                 "bias": 0.5
             },
             pooled=False)
    if g.chance(0.5):
        y = g.op("tanh", {"X": g.random.choice(g.like(x))},
                 torch.tanh,
                 pooled=False)
    else:
        y = g.parameter([g.shape(x)[-1]], 0.3, 1.0, prefix="e")
    g.op("elementwise_pow", {"X": x, "Y": y}, torch.pow)


COMPARISONS = {
    "less_than": torch.lt,
    "less_equal": torch.le,
    "greater_than": torch.gt,
    "greater_equal": torch.ge,
    "equal": torch.eq,
    "not_equal": torch.ne
}
LOGIC = {
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor
}


def mask(g):
    """Comparisons, what they come to together, and the product with it."""
    x = g.pick(RANKS)
    y = g.parameter([g.shape(x)[-1]], 0.3, prefix="e")

    def compared():
        kind = g.random.choice(list(COMPARISONS))
        return g.op(kind, {
            "X": x,
            "Y": y
        },
                    COMPARISONS[kind],
                    pooled=False)

    made = compared()
    if g.chance(0.5):
        kind = g.random.choice(list(LOGIC))
        made = g.op(kind, {
            "X": made,
            "Y": compared()
        },
                    LOGIC[kind],
                    pooled=False)
    if g.chance(0.5):
        made = g.op("logical_not", {"X": made},
                    torch.logical_not,
                    pooled=False)
    made = g.op("cast", {"X": made},
                lambda a: a.float(), {"to": "f32"},
                pooled=False)
    g.op("elementwise_mul", {"X": x, "Y": made}, torch.mul)


def reduction(g):
    x = g.pick(RANKS)
    rank = g.values[x].dim()
    axes = sorted(g.random.sample(range(1, rank), g.random.randrange(1, rank)))
    keep = g.chance(0.5)
    kind = g.random.choice(
        ["reduce_sum"] + ["reduce_mean"] * 2 + ["reduce_max", "reduce_min"])

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


VALUES = {
    activation: 5,
    binary: 4,
    along_axis: 1,
    divide: 1,
    elementwise_chain: 1,
    mask: 1,
    of_positive: 1,
    p_norm: 1,
    power: 1,
    prelu: 1,
    reduce_prod: 1,
    reduction: 1,
    where: 1,
}
