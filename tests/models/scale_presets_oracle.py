"""The loss scale after each step by PyTorch's operator of GradScaler.

Reads runs, a line each, 1 for a step that was not finite; prints a line of
setting.run=scales.
"""
import sys

import torch

SETTINGS = [(2.0, 0.5, 2000), (1.7, 0.8, 3)]


def scales(run, growth_factor, backoff_factor, interval):
    scale = torch.full((1,), 65536.0)
    growth = torch.zeros(1, dtype=torch.int32)
    found = [torch.zeros(1), torch.ones(1)]
    for verdict in run:
        torch._amp_update_scale_(scale, growth, found[int(verdict)],
                                 growth_factor, backoff_factor, interval)
        yield scale.item()


with open(sys.argv[1]) as runs:
    for i, run in enumerate(runs):
        for k, setting in enumerate(SETTINGS):
            print("%d.%d=%s" % (k, i, " ".join(
                repr(s) for s in scales(run.strip(), *setting))))
