"""Convolutions, pools and resizing: how each is drawn, and its PyTorch.

WINDOWS has all with their weights in the draw.
"""

import math

import torch
import torch.nn.functional as F

from random_graph import divisors, require


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


WINDOWS = {
    conv2d: 5,
    conv1d: 1,
    conv_transpose: 1,
    conv3d: 1,
    grid_sampler: 1,
    interpolate: 1,
    pool1d: 1,
    pool2d: 1,
    pool3d: 1,
}
