"""Norms, products and blocks of layers: how each is drawn, and its PyTorch.

LAYERS has all with their weights in the draw.
"""

import math

import torch
import torch.nn.functional as F

from random_graph import divisors, product, require
from random_windows import conv2d, pool2d


def batch_norm(g, x=None):
    choice = g.random.choice
    require(g.batch_norm)
    x = x or g.pick(range(2, 6))
    channels = g.shape(x)[1]
    # Of a rank that has one sample, too, more than a few numbers.
    require(g.values[x][:1].numel() // channels >= 4)
    momentum, epsilon = choice([0.9, 0.8, 0.99]), choice([1e-5, 1e-3])
    mean = g.statistic(channels, -0.2, 0.2)
    variance = g.statistic(channels, 0.5, 1.5)

    def testing(a, scale, bias, mean, variance):
        mean, spread, scale, bias = [
            v.view([1, -1] + [1] * (a.dim() - 2))
            for v in (mean, torch.sqrt(variance + epsilon), scale, bias)
        ]
        return (a - mean) / spread * scale + bias

    def normed(a, scale, bias, *_):
        dims = [d for d in range(a.dim()) if d != 1]
        mean, variance = a.mean(dims), a.var(dims, unbiased=False)
        return testing(a, scale, bias, mean, variance), mean, variance

    made = g.op("batch_norm", {
        "X": x,
        "Scale": g.gain(channels),
        "Bias": g.bias(channels),
        "Mean": mean,
        "Variance": variance
    },
                normed, {
                    "epsilon": epsilon,
                    "momentum": momentum
                }, ["Y", "BatchMean", "BatchVariance", "BatchCount"],
                pooled=1)
    g.ops[-1].running = (momentum, mean, variance)
    g.ops[-1].testing = testing
    g.has_batch_norm = True
    return made


def residual_block(g):
    """Convolution, batch norm, perhaps a sum, an activation and what follows:
    what fusions and layouts are for."""
    chance, choice = g.chance, g.random.choice
    x = g.pick([4])
    made = batch_norm(g, conv2d(g, x))
    if chance(0.4):
        others = [name for name in g.like(made) if name != made]
        if chance(0.3):
            branch = conv2d(g, x)
            if g.shape(branch) == g.shape(made):
                others = [batch_norm(g, branch)]
        if others:
            pair = [made, choice(others)]
            g.random.shuffle(pair)
            made = g.op("elementwise_add", {
                "X": pair[0],
                "Y": pair[1]
            }, torch.add)
    if chance(0.8):
        made = g.op("relu", {"X": made}, F.relu)
    if chance(0.3):
        pool2d(g, made)
    elif chance(0.5):
        conv2d(g, made)


def layer_norm(g):
    x = g.pick(range(2, 6))
    axis = g.random.randrange(1, g.values[x].dim())
    dims = g.shape(x)[axis:]
    require(3 <= product(dims) <= 3000)
    root = g.chance(0.25)
    inputs, epsilon = {"X": x}, 1e-3
    if g.chance(0.8):
        inputs["Scale"] = g.gain(product(dims))
        if not root and g.chance(0.8):
            inputs["Bias"] = g.bias(product(dims))

    def shaped(parameter):
        return None if parameter is None else parameter.view(dims)

    attributes = {"begin_norm_axis": axis, "epsilon": epsilon}
    if root:
        g.op("rms_norm", inputs,
             lambda a, w=None: F.rms_norm(a, dims, shaped(w), epsilon),
             attributes, ["Y", "MeanSquare"])
    else:
        g.op(
            "layer_norm", inputs, lambda a, w=None, b=None: F.layer_norm(
                a, dims, shaped(w), shaped(b), epsilon), attributes,
            ["Y", "Mean", "Variance"])


def group_norm(g):
    x = g.pick(range(3, 6))
    channels = g.shape(x)[1]
    instance = g.chance(0.4)
    groups = channels if instance else g.random.choice(divisors(channels))
    require(g.values[x][0].numel() // groups >= 3)
    inputs, epsilon = {"X": x}, 1e-3
    if g.chance(0.8):
        inputs["Scale"] = g.gain(channels)
        if g.chance(0.8):
            inputs["Bias"] = g.bias(channels)

    def normed(a, w=None, b=None):
        return F.group_norm(a, groups, w, b, epsilon)

    if instance:
        g.op("instance_norm", inputs, normed, {"epsilon": epsilon},
             ["Y", "SavedMean", "SavedVariance"])
    else:
        g.op("group_norm", inputs, normed, {
            "groups": groups,
            "epsilon": epsilon
        }, ["Y", "Mean", "Variance"])


def matmul(g):
    choice = g.random.choice
    x = g.pick([2, 3], lambda v: v.shape[-1] <= 1500)
    inner, outer = g.shape(x)[-1], g.width()
    turned = g.chance(0.3)
    dims = [outer, inner] if turned else [inner, outer]
    tied = g.parameters_of(dims) if g.chance(0.3) else []
    w = choice(tied) if tied else g.parameter(dims, 1 / math.sqrt(inner))
    inputs = {"X": x, "Y": w}
    if g.chance(0.5):
        inputs["Bias"] = g.bias(outer)
    made = g.op(
        "matmul", inputs, lambda a, w, b=0: a @ (w.t() if turned else w) + b,
        {"trans_y": True} if turned else {})
    if g.chance(0.5):
        kind, attributes, function = choice([
            ("relu", {}, F.relu),
            ("gelu", {
                "approximate": "tanh"
            }, lambda a: F.gelu(a, approximate="tanh")),
            ("gelu", {}, F.gelu),
        ])
        g.op(kind, {"X": made}, function, attributes)


def tied_matmul(g):
    """By a parameter that others read, as it stands or turned."""
    tied = [p for p, start in g.parameters.items() if start.ndim == 2]
    require(tied)
    w = g.random.choice(tied)
    dims = g.shape(w)
    x = g.pick([2, 3], lambda v: v.shape[-1] in dims)
    turned = g.shape(x)[-1] == dims[1]
    g.op("matmul", {
        "X": x,
        "Y": w
    }, lambda a, w: a @ (w.t() if turned else w), {"trans_y": turned})


def made_weight(g):
    """By a matrix made of parameters alone, as weight normalisation has it."""
    x = g.pick([2], lambda v: v.shape[1] <= 200)
    inner, outer = g.shape(x)[1], g.width()
    w = g.parameter([inner, outer], 1.0)
    form = g.random.random()
    if form < 0.4:
        made = g.op("elementwise_mul", {
            "X": w,
            "Y": g.gain(outer)
        },
                    torch.mul,
                    pooled=False)
    elif form < 0.7:
        made = g.op("tanh", {"X": w}, torch.tanh, pooled=False)
    else:
        norm = g.op("p_norm", {"X": w},
                    lambda a: a.norm(2, 0, True), {
                        "porder": 2.0,
                        "axis": 0,
                        "keepdim": True
                    },
                    pooled=False)
        made = g.op("elementwise_div", {
            "X": w,
            "Y": norm
        },
                    torch.div,
                    pooled=False)
    scale = 1 / math.sqrt(inner)
    made = g.op("scale", {"X": made},
                lambda a: a * scale, {"scale": scale},
                pooled=False)
    g.op("matmul", {"X": x, "Y": made}, torch.matmul)


def mul(g):
    """matmul of dims that are taken together."""
    x = g.pick([3, 4], lambda v: v[0].numel() <= 1500)
    dims = g.shape(x)
    rows = g.random.randrange(1, len(dims))
    outer = g.width()
    w = g.parameter([product(dims[rows:]), outer])
    g.op("mul", {
        "X": x,
        "Y": w
    }, lambda a, w: a.flatten(rows) @ w, {"x_num_col_dims": rows})


def plain_attention(g):
    """Products of values, in the middle a softmax: what is fused, or not."""
    x = g.pick([3])
    inner = g.shape(x)[2]
    y = g.random.choice([
        name for name in g.pool
        if g.values[name].dim() == 3 and g.shape(name)[2] == inner
    ])
    made = g.op("matmul", {
        "X": x,
        "Y": y
    }, lambda a, b: a @ b.transpose(1, 2), {"trans_y": True})
    if g.chance(0.7):
        scale = 1 / math.sqrt(inner)
        made = g.op("scale", {"X": made}, lambda a: a * scale,
                    {"scale": scale})
        made = g.op("softmax", {"X": made}, lambda a: F.softmax(a, -1))
        g.op("matmul", {"X": made, "Y": y}, torch.matmul)


def attention(g):
    choice = g.random.choice
    x = g.pick([3], lambda v: v.shape[2] <= 600)
    _, length, inner = g.shape(x)
    heads, width = choice([1, 2, 3, 4]), choice([1, 3, 4, 8, 16, 17])
    shared = choice(divisors(heads))  # heads of keys and values
    of_value = choice([width, width, 5])

    def projection(heads, width):
        made = g.op("matmul", {
            "X": x,
            "Y": g.parameter([inner, heads * width])
        },
                    torch.matmul,
                    pooled=False)
        return g.op("reshape", {"X": made},
                    lambda a: a.reshape(a.shape[0], length, heads, width),
                    {"shape": [0, length, heads, width]},
                    pooled=g.chance(0.2))

    inputs = {
        "Q": projection(heads, width),
        "K": projection(shared, width),
        "V": projection(shared, of_value)
    }
    if g.chance(0.3):
        inputs["Mask"] = g.feed(g.name("mask"), [choice([1, heads]), 1, length],
                                pooled=False)
    causal = g.chance(0.4)

    def attend(q, k, v, mask=0):
        q, k, v = [t.transpose(1, 2) for t in (q, k, v)]
        k = k.repeat_interleave(heads // shared, 1)
        v = v.repeat_interleave(heads // shared, 1)
        scores = q @ k.transpose(2, 3) / math.sqrt(width) + mask
        if causal:
            later = torch.ones(length, length).triu(1).bool()
            scores = scores.masked_fill(later, -math.inf)
        return (F.softmax(scores, -1) @ v).transpose(1, 2).contiguous()

    made = g.op("scaled_dot_product_attention",
                inputs,
                attend, {"causal": causal}, ["Out", "LogSumExp"],
                pooled=False)
    g.op("flatten", {"X": made}, lambda a: a.flatten(2), {"start_axis": 2})


def embedding(g):
    choice = g.random.choice
    rows, length = choice([2, 5, 11]), choice([1, 3, 7])
    ids = g.feed(g.name("ids"), [length], below=rows)
    tied = [
        p for p, start in g.parameters.items()
        if start.ndim == 2 and start.shape[0] == rows
    ]
    if tied and g.chance(0.4):
        w = choice(tied)
    else:
        w = g.parameter([rows, g.width()], 0.7)
    padding = choice([-1, -1, 0])

    def look_up(w, ids):
        made = F.embedding(ids, w)
        return made if padding < 0 else made * (ids != padding).unsqueeze(-1)

    g.op("lookup_table_v2", {
        "W": w,
        "Ids": ids
    }, look_up, {"padding_idx": padding} if padding >= 0 else {})


LAYERS = {
    residual_block: 4,
    matmul: 3,
    attention: 1,
    batch_norm: 1,
    embedding: 1,
    group_norm: 1,
    layer_norm: 1,
    made_weight: 1,
    mul: 1,
    plain_attention: 1,
    tied_matmul: 1,
}
