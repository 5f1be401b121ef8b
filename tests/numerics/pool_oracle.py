"""Pools one image in every way of the test beside, by PyTorch or by Paddle.

Prints a line per result: name=values. An image of n by n holds 0, 1/4, 2/4 ...
of a fixed order.
"""
import itertools
import sys


def image(n):
    return [((i * 7 + 3) % (n * n) - n * n // 2) / 4 for i in range(n * n)]


def combinations():
    for n, k, s, p, ceil in itertools.product(
            (4, 5, 6, 7), (2, 3), (1, 2, 3), (0, 1), (0, 1)):
        for kind in ("max", "exclusive", "inclusive"):
            yield n, k, s, p, ceil, kind


def by_torch():
    import torch
    from torch.nn import functional as F

    def pool(n, k, s, p, ceil, kind):
        x = torch.tensor(image(n)).reshape(1, 1, n, n)
        if kind == "max":
            return F.max_pool2d(x, k, s, p, ceil_mode=bool(ceil))
        return F.avg_pool2d(x, k, s, p, ceil_mode=bool(ceil),
                            count_include_pad=kind == "inclusive")

    return lambda *c: pool(*c).flatten().tolist()


def by_paddle():
    import numpy
    import paddle
    paddle.enable_static()

    def pool(n, k, s, p, ceil, kind):
        main = paddle.static.Program()
        with paddle.static.program_guard(main, paddle.static.Program()):
            x = paddle.static.data("x", [1, 1, n, n], "float32")
            block = main.global_block()
            out = block.create_var(name="out", dtype="float32")
            block.append_op(
                type="pool2d", inputs={"X": [x]}, outputs={"Out": [out]},
                attrs=dict(pooling_type="max" if kind == "max" else "avg",
                           ksize=[k, k], strides=[s, s], paddings=[p, p],
                           ceil_mode=bool(ceil), global_pooling=False,
                           exclusive=kind != "inclusive", adaptive=False,
                           padding_algorithm="EXPLICIT", data_format="NCHW"))
            feed = numpy.array(image(n), "float32").reshape(1, 1, n, n)
            executor = paddle.static.Executor(paddle.CPUPlace())
            return executor.run(main, feed={"x": feed}, fetch_list=[out])[0]

    return lambda *c: pool(*c).flatten().tolist()


pool = {"torch": by_torch, "paddle": by_paddle}[sys.argv[1]]()
for c in combinations():
    print("%d.%d.%d.%d.%d.%s=%s" %
          (c + (" ".join(repr(v) for v in pool(*c)),)))
