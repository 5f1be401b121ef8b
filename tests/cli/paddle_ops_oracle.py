"""Functions of Paddle's that are ops or several ops of ours, beside Paddle.

paddle_ops_oracle.py HALFTONE [--only NAME,NAME]: each on a parameter times its
feeds, as nets of paddle_training_oracle.py: three steps of SGD from the same
start, so that values and gradients are compared. (Paddle 2.6.2's gradients of
gather along another axis than the first, and of expand_as, are wrong on CPUs:
they are not here.)
"""
import argparse
import sys
import tempfile

try:
    import paddle
    from paddle.nn import functional as F
except ImportError as error:
    print("skip", error)
    sys.exit()

import numpy
from paddle import nn

import paddle_nets
import paddle_training_oracle

CASES = {}


def case(name, make, *dims, of=None):
    """make(x, ...): feeds of these dims, the first times a parameter, of it."""

    def net():
        f = paddle_nets.Feeds()
        feeds = [f.floats(f"x{i}", *one) for i, one in enumerate(dims)]
        weight = paddle.create_parameter(
            [dims[0][-1]], "float32", name="scale.w_0",
            default_initializer=nn.initializer.Uniform(0.5, 1.0))
        first = feeds[0] * weight
        made = make(of(first) if of else first, *feeds[1:])
        if isinstance(made, (list, tuple)):
            made = paddle.concat([paddle.flatten(one, 1) for one in made], 1)
        return paddle.mean(made * made), f

    CASES[name] = net


def within_1(x):
    return 0.9 * paddle.tanh(x)


def share(x):
    return 0.05 + 0.9 * F.sigmoid(x)


def above_1(x):
    return 1.2 + F.relu(x)


def positive(x):
    return 0.3 + paddle.abs(x)


def weight(*dims):
    return paddle.create_parameter(list(dims), "float32", name="more.w_0")


def real(x):
    return paddle.cast(x, "float32")


def ints(*values):
    return paddle.assign(numpy.array(values))


def of_dim(fn, x, ids, y, *more):
    """fn(x, ids, y) along the dim after the batch."""
    made = fn(paddle.transpose(x, [1, 0, 2]), ids,
              paddle.transpose(y, [1, 0, 2]), *more)
    return paddle.transpose(made, [1, 0, 2])


for fn in (paddle.sinh, paddle.cosh, paddle.asinh, paddle.atan, paddle.expm1,
           paddle.trunc, paddle.frac, paddle.stanh, F.softshrink,
           F.hardshrink, F.tanhshrink, F.thresholded_relu, F.selu, F.celu,
           F.softsign, F.log_sigmoid, F.normalize):
    case(fn.__name__, fn, (3, 4))
for fn, domain in ((paddle.tan, within_1), (paddle.asin, within_1),
                   (paddle.acos, within_1), (paddle.atanh, within_1),
                   (paddle.acosh, above_1), (paddle.log1p, positive),
                   (paddle.log2, positive), (paddle.log10, positive),
                   (paddle.logit, share)):
    case(fn.__name__, fn, (3, 4), of=domain)
for fn in (paddle.fmax, paddle.fmin, paddle.dist, F.smooth_l1_loss,
           F.cosine_similarity):
    case(fn.__name__, fn, (3, 4), (3, 4))
for fn in (paddle.amax, paddle.amin, paddle.logsumexp, paddle.median,
           paddle.nansum, paddle.std, paddle.unbind, paddle.norm):
    case(fn.__name__, lambda x, fn=fn: fn(x, axis=1), (3, 5))
case("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), (2, 4, 6))
case("lerp", lambda x, y: paddle.lerp(x, y, 0.3), (3, 4), (3, 4))
# (No gradient goes through it.)
case("mod", lambda x: x + paddle.mod(x, paddle.full([1], 0.7)), (3, 4))
case("mod_of_negative",
     lambda x: x + paddle.mod(x, paddle.full([1], -0.7)), (3, 4))
case("whole_mod", lambda x: x * real(paddle.arange(-4, 4) % 3), (3, 8))
case("floor_divide",
     lambda x: x * real(paddle.arange(-4, 4) // 3), (3, 8))
case("increment", lambda x: x * paddle.increment(paddle.full([1], 1.0)), (4,))
case("isnan", lambda x: x + real(paddle.isnan(paddle.log(x))), (4,))
case("isinf", lambda x: x + real(paddle.isinf(paddle.exp(200 * x))), (4,))
case("isfinite", lambda x: x * real(paddle.isfinite(x)), (4,))
case("multiplex",
     lambda x, y: paddle.multiplex([x, y], paddle.cast(x[:, :1] > 0, "int32")),
     (4,), (4,))
# Products.
case("dot", paddle.dot, (4,), (4,))
case("mv", lambda x: paddle.mv(x, weight(4)), (4,))
case("addmm", lambda x: paddle.addmm(x, x, weight(4, 4), 0.5, 2.0), (4,))
case("kron", lambda x: paddle.kron(x, weight(2, 3)), (4,))
case("einsum", lambda x, y: paddle.einsum("bij,bjk->bik", x, y), (3, 4), (4, 2))
case("einsum_in_turn",
     lambda x, y: paddle.einsum("bij,bkj,bil->bkl", x, y, x), (3, 4), (2, 4))
case("einsum_of_one", lambda x: paddle.einsum("bij->ji", x), (3, 4))
case("bilinear", lambda x, y: nn.Bilinear(4, 5, 3)(x, y), (4,), (5,))
case("frobenius", lambda x: paddle.norm(x, axis=[1, 2]), (3, 4))
# Places.
case("sort", lambda x: paddle.sort(x, 1), (3, 4))
case("sort_falling", lambda x: paddle.sort(x, 2, descending=True), (3, 4))
case("topk_least", lambda x: paddle.topk(x, 2, 1, largest=False)[0], (3, 4))
case("index_sample",
     lambda x: paddle.index_sample(x, paddle.argsort(x, 1)[:, :2]), (4,))
case("indexed_by_list", lambda x: x[:, [0, 2]], (3, 4))
case("gather_nd",
     lambda x: paddle.gather_nd(paddle.transpose(x, [1, 2, 0]),
                                ints([0, 1], [2, 3], [2, 0])), (3, 4))
case("repeat_interleave", lambda x: paddle.repeat_interleave(x, 2, 1), (3, 4))
case("crop", lambda x: paddle.crop(x, [-1, 2, 2], [0, 1, 1]), (3, 4))
case("unfold", lambda x: F.unfold(x, 2, 2, [1, 0, 1, 2]), (3, 4, 5))
case("fold", lambda x: F.fold(F.unfold(x, [2, 3], 1, 1), [4, 5], [2, 3], 1, 1),
     (3, 4, 5))
case("maxout", lambda x: F.maxout(x, 2), (4, 3, 3))
case("temporal_shift",
     lambda x: F.temporal_shift(paddle.reshape(x, [-1, 4, 3, 3]), 2, 0.3),
     (2, 4, 3, 3))
case("diagonal", lambda x: paddle.diagonal(x, 0, 1, 2), (4, 4))
case("diagonal_above", lambda x: paddle.diagonal(x, 1, 1, 2), (3, 4))
case("diagonal_below", lambda x: paddle.diagonal(x, -1, 1, 2), (3, 4))
case("trace", lambda x: paddle.trace(x, 0, 1, 2), (4, 4))
case("diag_embed", lambda x: x + paddle.sum(F.diag_embed(x), 1), (4,))
case("eye", lambda x: paddle.matmul(x, paddle.eye(4, 3)), (4,))
case("linspace", lambda x: x * paddle.linspace(0, 1, 4), (4,))
# Writes into places.
setitem = paddle.static.setitem
EVERY = slice(None)
case("set_number", lambda x: setitem(x, (EVERY, 0), 1.5), (3, 4))
case("set_slice",
     lambda x, y: setitem(x, (EVERY, slice(1, 3), slice(2, None)), y[:, 1:3, :2]),
     (3, 4), (3, 4))
case("set_row", lambda x, y: setitem(x, (EVERY, 1), y), (3, 4), (4,))
case("set_shifted",
     lambda x: setitem(x, (EVERY, slice(1, None)), x[:, :-1]), (3, 4))
case("set_steps",
     lambda x, y: setitem(x, (EVERY, slice(None, None, 2)), y), (5, 4), (3, 4))
case("set_steps_down",
     lambda x, y: setitem(x, (EVERY, slice(-1, 0, -2)), y), (5, 4), (2, 4))
case("set_where", lambda x, y: setitem(x, x > y, 0.5), (3, 4), (3, 4))
case("scatter",
     lambda x, y: of_dim(paddle.scatter, x, ints(2, 0), y),
     (3, 4), (2, 4))
case("scatter_sums",
     lambda x, y: of_dim(paddle.scatter, x, ints(2, 0, 2), y, False),
     (3, 4), (3, 4))
case("scatter_nd_add",
     lambda x, y: of_dim(paddle.scatter_nd_add, x, ints([2], [0], [2]), y),
     (3, 4), (3, 4))
case("scatter_elements",
     lambda x, y: paddle.scatter_nd_add(
         paddle.transpose(x, [1, 2, 0]), ints([2, 1], [0, 3], [2, 1]),
         paddle.transpose(y, [1, 0])), (3, 4), (3,))
# (Its gradient for X alone ends Paddle.)
case("index_add",
     lambda x, y: paddle.index_add(x, ints(2, 0, 2), 1, y * weight(4)),
     (3, 4), (3, 4))
case("index_fill", lambda x: paddle.index_fill(x, ints(2, 0), 1, 0.5), (3, 4))
# Other sizes and places of images.
case("bicubic", lambda x: F.interpolate(x, [5, 7], mode="bicubic"), (2, 4, 4))
case("bicubic_corners",
     lambda x: F.interpolate(x, [3, 7], mode="bicubic", align_corners=True),
     (2, 4, 5))
case("grid_sample",
     lambda x, y: F.grid_sample(x, paddle.tanh(y)), (2, 4, 5), (3, 3, 2))
case("grid_sample_border",
     lambda x, y: F.grid_sample(x, y, padding_mode="border",
                                align_corners=False), (2, 4, 5), (3, 3, 2))
case("grid_sample_reflection",
     lambda x, y: F.grid_sample(x, 2 * y, padding_mode="reflection"),
     (2, 4, 5), (3, 3, 2))
case("affine_grid",
     lambda x, y: F.grid_sample(y * weight(5),
                                F.affine_grid(x, [-1, 2, 3, 5])),
     (2, 3), (2, 4, 5))
case("affine_grid_of_centers",
     lambda x, y: F.grid_sample(y * weight(5), F.affine_grid(
         x, [x.shape[0], 2, 6, 2], align_corners=False)), (2, 3), (2, 4, 5))
# As many as there are samples, and more of each.
case("tile_as_batch", lambda x: x * paddle.tile(
    weight(1, 4), [paddle.shape(x)[0], 1]), (4,))
case("tile_in_parts", lambda x: x * paddle.reshape(
    paddle.tile(weight(3, 1), [paddle.shape(x)[0], 4]), [-1, 3, 4]), (3, 4))


def run():
    parser = argparse.ArgumentParser()
    parser.add_argument("halftone")
    parser.add_argument("--only", default=",".join(CASES))
    flags = parser.parse_args()
    paddle.enable_static()
    right = 0
    names = flags.only.split(",")
    for name in names:
        paddle_nets.NETS[name] = CASES[name]
        with tempfile.TemporaryDirectory() as work:
            try:
                right += paddle_training_oracle.compare(flags.halftone, name,
                                                        work)
            except RuntimeError as error:
                print(f"FAILED  {name}: {error}")
    print(f"{right} of {len(names)} as in Paddle")
    sys.exit(right != len(names))


if __name__ == "__main__":
    run()
