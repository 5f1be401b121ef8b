"""Ops with parameters and windows: how each is drawn, what PyTorch makes of it.

LAYERS has them with their weights in the draw; random_values.py the others.
"""

import math

import torch
import torch.nn.functional as F

from random_graph import divisors, product, require


def conv2d(g, x=None):
    choice, chance = g.random.choice, g.chance
    x = x or g.pick([4])
    _, channels, *image = g.shape(x)
    groups = choice([1, 1, 1] + divisors(channels))
    filters = g.width()
    if groups > 1:
        filters = groups * choice([1, 1, 2, 3, 4, 8])
    if filters > 48:
        filters = groups
    kernel = [choice([1, 3, 3, 5])] * 2
    if chance(0.3):
        kernel = [choice([1, 3, 3, 2, 5]) for _ in range(2)]
    strides = [choice([1, 1, 2, 3])] * 2
    if chance(0.2):
        strides = [choice([1, 2]), choice([1, 2, 3])]
    dilation = choice([1, 1, 1, 2])
    pads = [k // 2 * dilation for k in kernel]
    if chance(0.4):
        pads = [choice([0, k // 2, 1, 2]) for k in kernel]
    if chance(0.1):  # before and after, top to right
        pads = [g.random.randrange(3) for _ in range(4)]
    around = pads if len(pads) == 4 else [p for p in pads for _ in range(2)]
    for i in range(2):
        require(image[i] + around[2 * i] +
                around[2 * i + 1] > dilation * (kernel[i] - 1))
    kind = "conv2d"
    if groups == channels > 1 and chance(0.5):
        kind = "depthwise_conv2d"
    dims = [filters, channels // groups] + kernel
    tied = g.parameters_of(dims) if chance(0.12) else []
    inputs = {
        "Input": x,
        "Filter": choice(tied) if tied else g.parameter(dims),
    }
    if chance(0.4):
        inputs["Bias"] = g.bias(filters)
    return g.op(
        kind, inputs, lambda a, w, b=None: F.conv2d(
            F.pad(a, around[2:] + around[:2]), w, b, strides, 0, dilation,
            groups), {
                "strides": strides,
                "paddings": pads,
                "dilations": [dilation] * 2,
                "groups": groups
            }, ["Output"])


TRANSPOSED = {
    3: ("conv1d_transpose", F.conv_transpose1d),
    4: ("conv2d_transpose", F.conv_transpose2d),
    5: ("conv3d_transpose", F.conv_transpose3d)
}


def conv_transpose(g):
    choice = g.random.choice
    x = g.pick([3, 4, 4, 5], lambda v: max(v.shape[2:]) <= 14)
    _, channels, *image = g.shape(x)
    kind, function = TRANSPOSED[len(image) + 2]
    groups = choice([1, 1] + divisors(channels))
    filters = groups * choice([1, 2, 3, 4])
    kernel, stride = choice([1, 2, 3, 4]), choice([1, 2, 3])
    pad, dilation = choice([0, 0, 1]), choice([1, 1, 2])
    further = choice([0] * 3 + list(range(stride)))
    for length in image:
        require((length - 1) * stride - 2 * pad + dilation *
                (kernel - 1) + further >= 0)
    if kind == "conv2d_transpose" and groups == channels and g.chance(0.5):
        kind = "depthwise_conv2d_transpose"
    inputs = {
        "Input": x,
        "Filter": g.parameter(
            [channels, filters // groups] + [kernel] * len(image),
            1 / math.sqrt(channels * kernel))
    }
    if g.chance(0.4):
        inputs["Bias"] = g.bias(filters)
    attributes = {
        "strides": [stride] * len(image),
        "paddings": [pad] * len(image),
        "dilations": [dilation] * len(image),
        "groups": groups
    }
    if further:
        attributes["output_padding"] = [further] * len(image)
    return g.op(
        kind, inputs, lambda a, w, b=None: function(
            a, w, b, stride, pad, further, groups, dilation), attributes,
        ["Output"])


def conv1d(g):
    choice = g.random.choice
    x = g.pick([3])
    _, channels, length = g.shape(x)
    groups = choice([1] + divisors(channels))
    filters = groups * choice([1, 2, 4])
    kernel, stride = choice([1, 3, 2, 5]), choice([1, 1, 2])
    pad, dilation = choice([0, kernel // 2]), choice([1, 1, 2])
    require(length + 2 * pad > dilation * (kernel - 1) and filters <= 40)
    inputs = {
        "Input": x,
        "Filter": g.parameter([filters, channels // groups, kernel])
    }
    if g.chance(0.4):
        inputs["Bias"] = g.bias(filters)
    return g.op(
        "conv1d", inputs, lambda a, w, b=None: F.conv1d(
            a, w, b, stride, pad, dilation, groups), {
                "strides": [stride],
                "paddings": [pad],
                "dilations": [dilation],
                "groups": groups
            }, ["Output"])


def conv3d(g):
    choice = g.random.choice
    x = g.pick([5])
    _, channels, *image = g.shape(x)
    groups = choice([1, 1] + divisors(channels))
    filters = groups * choice([1, 2, 3])
    kernel = [choice([1, 2, 3]) for _ in range(3)]
    strides = [choice([1, 1, 2]) for _ in range(3)]
    pads = [choice([0, k // 2]) for k in kernel]
    require(all(i + 2 * p >= k for i, p, k in zip(image, pads, kernel)))
    inputs = {
        "Input": x,
        "Filter": g.parameter([filters, channels // groups] + kernel)
    }
    if g.chance(0.4):
        inputs["Bias"] = g.bias(filters)
    return g.op(
        "conv3d", inputs, lambda a, w, b=None: F.conv3d(
            a, w, b, strides, pads, 1, groups), {
                "strides": strides,
                "paddings": pads,
                "groups": groups
            }, ["Output"])


def batch_norm(g, x=None):
    choice = g.random.choice
    require(g.batch_norm)
    x = x or g.pick(range(2, 6))
    channels = g.shape(x)[1]
    # Of a rank that has one sample, too, more than a few numbers.
    require(g.values[x][:1].numel() // channels >= 4)
    momentum, epsilon = choice([0.9, 0.8, 0.99]), choice([1e-5, 1e-3])
    mean, variance = g.statistic(channels, 0.0), g.statistic(channels, 1.0)

    def normed(a, scale, bias, *_):
        dims = [d for d in range(a.dim()) if d != 1]
        along = [1, -1] + [1] * (a.dim() - 2)
        mean, variance = a.mean(dims), a.var(dims, unbiased=False)
        spread = torch.sqrt(variance.view(along) + epsilon)
        y = (a - mean.view(along)) / spread * scale.view(along)
        return y + bias.view(along), mean, variance

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


def unlike(values):
    """Few are equal: whose maximum it is, is no matter of order."""
    return values.unique().numel() >= values.numel() * 0.9


def pool2d(g, x=None):
    choice, chance, below = g.random.choice, g.chance, g.random.randrange
    x = x or g.pick([4])
    image = g.shape(x)[2:]
    largest = chance(2 / 3)
    kind = "max" if largest else "avg"
    form = g.random.random()
    if form < 0.15:
        return g.op("pool2d", {"X": x},
                    lambda a: a.mean((2, 3), keepdim=True), {
                        "pooling_type": "avg",
                        "global_pooling": True
                    })
    if form < 0.3:
        sizes = [below(1, min(length, 5) + 1) for length in image]
        if largest and unlike(g.values[x]):
            function = F.adaptive_max_pool2d
        else:
            kind, function = "avg", F.adaptive_avg_pool2d
        return g.op("pool2d", {"X": x}, lambda a: function(a, sizes), {
            "pooling_type": kind,
            "adaptive": True,
            "ksize": sizes
        })
    kernel = [choice([1, 2, 2, 3, 3]), choice([2, 2, 3])]
    strides = [choice([1, 2, 2, 3]), choice([1, 2])]
    pads = [below(k // 2 + 1) for k in kernel]
    if chance(0.5):
        kernel, strides, pads = [2, 2], [2, 2], [0, 0]
    ceil, exclusive = chance(0.3), chance(0.5)
    require(all(i + 2 * p >= k for i, p, k in zip(image, pads, kernel)))
    attributes = {
        "pooling_type": kind,
        "ksize": kernel,
        "strides": strides,
        "paddings": pads,
        "ceil_mode": ceil
    }
    if largest:
        return g.op("pool2d", {"X": x}, lambda a: F.max_pool2d(
            a, kernel, strides, pads, 1, ceil), attributes)
    attributes["exclusive"] = exclusive
    return g.op(
        "pool2d", {"X": x}, lambda a: F.avg_pool2d(a, kernel, strides, pads,
                                                   ceil, not exclusive),
        attributes)


def pool1d(g):
    choice = g.random.choice
    x = g.pick([3])
    kernel = min(g.shape(x)[2], choice([1, 2, 3]))
    stride, pad = choice([1, 2]), choice([0, kernel // 2])
    attributes = {"ksize": [kernel], "strides": [stride], "paddings": [pad]}
    if g.chance(0.5):
        attributes["pooling_type"] = "max"
        g.op("pool1d", {"X": x},
             lambda a: F.max_pool1d(a, kernel, stride, pad), attributes)
    else:
        attributes.update(pooling_type="avg", exclusive=False)
        g.op("pool1d", {"X": x},
             lambda a: F.avg_pool1d(a, kernel, stride, pad), attributes)


def pool3d(g):
    choice = g.random.choice
    x = g.pick([5])
    kernel = [min(length, choice([1, 2, 3])) for length in g.shape(x)[2:]]
    strides = [choice([1, 2]) for _ in kernel]
    kind = choice(["max", "avg"])
    function = F.max_pool3d if kind == "max" else F.avg_pool3d
    g.op("pool3d", {"X": x}, lambda a: function(a, kernel, strides), {
        "pooling_type": kind,
        "ksize": kernel,
        "strides": strides
    })


MODES = {
    3: ["linear", "nearest"],
    4: ["bilinear", "bilinear", "bicubic", "nearest"],
    5: ["trilinear", "nearest"]
}


def interpolate(g):
    choice = g.random.choice
    x = g.pick([3, 4, 4, 5], lambda v: max(v.shape[2:]) <= 12)
    image = g.shape(x)[2:]
    mode = choice(MODES[len(image) + 2])
    sizes = [choice([2, 3, length * 2, length + 1]) for length in image]
    attributes = dict(zip(["out_w", "out_h", "out_d"], reversed(sizes)))
    attributes["align_corners"] = False
    corners = None
    if mode != "nearest":
        attributes["align_mode"] = 0
        corners = False
    g.op(
        mode + "_interp_v2", {"X": x}, lambda a: F.interpolate(
            a, sizes, mode=mode, align_corners=corners), attributes)


def grid_sampler(g):
    choice = g.random.choice
    x = g.pick([4])
    height, width = choice([1, 2, 3]), choice([1, 4])
    grid = g.feed(g.name("grid"), [height * width * 2], pooled=False)
    grid = g.op("tanh", {"X": grid}, torch.tanh, pooled=False)
    grid = g.op("reshape", {"X": grid},
                lambda a: a.reshape(-1, height, width, 2),
                {"shape": [0, height, width, 2]},
                pooled=False)
    corners, padding = g.chance(0.5), choice(["zeros", "border"])
    g.op("grid_sampler", {
        "X": x,
        "Grid": grid
    }, lambda a, b: F.grid_sample(
        a, b.to(a.dtype), align_corners=corners, padding_mode=padding), {
            "align_corners": corners,
            "padding_mode": padding
        }, ["Output"])


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
    conv2d: 5,
    residual_block: 4,
    matmul: 3,
    attention: 1,
    batch_norm: 1,
    conv1d: 1,
    conv_transpose: 1,
    conv3d: 1,
    embedding: 1,
    grid_sampler: 1,
    group_norm: 1,
    interpolate: 1,
    layer_norm: 1,
    made_weight: 1,
    mul: 1,
    plain_attention: 1,
    pool1d: 1,
    pool2d: 1,
    pool3d: 1,
    tied_matmul: 1,
}
