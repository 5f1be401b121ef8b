"""Random models under many settings, against PyTorch in f64 and each other.

    random_graphs_oracle.py HALFTONE [--seeds A:B] [--size OPS] [--only CHECKS]
        [--minutes M] [--jobs N] [--threads N] [--folder FOLDER]

Each seed is a model of random_graphs.py that is trained for two or three steps.
What a setting may not change is held bit by bit (recomputation, a budget of
memory, sharding, ranks of virtual shards, resuming); what sums in another order
is held to PyTorch as far as f32 says anything (random_training.py); levels are
held to what rounding each op's result does to PyTorch's gradients. A failure is
printed with its seed, its check and its command; the seed's folder stays.
"""

import argparse
import concurrent.futures
import os
import shutil
import sys
import tempfile
import time
import traceback
import warnings

import torch

import random_graphs
from random_checks import CHECKS, Case


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("halftone")
    parser.add_argument("--seeds", default="0:50", help="A:B, without B")
    parser.add_argument("--size", type=int, default=12, help="least ops")
    parser.add_argument("--only", default=",".join(CHECKS), help="checks")
    parser.add_argument("--minutes", type=float, help="no seed begins later")
    parser.add_argument("--jobs", type=int, default=2, help="seeds at a time")
    parser.add_argument("--threads", type=int, default=1, help="of a rank")
    parser.add_argument("--folder", help="where what failed stays")
    flags = parser.parse_args()
    flags.halftone = os.path.abspath(flags.halftone)
    flags.only = flags.only.split(",")
    for check in flags.only:
        if check not in CHECKS:
            parser.error("no check %s; there are %s" %
                         (check, ", ".join(CHECKS)))
    flags.folder = os.path.abspath(flags.folder or
                                   tempfile.mkdtemp(prefix="random_graphs."))
    flags.until = time.time() + 60 * (flags.minutes or 1e6)
    return flags


def failures_of(seed, flags):
    """What is wrong with a seed, as text; None if there was no time."""
    if time.time() > flags.until:
        return None
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    folder = os.path.join(flags.folder, "%d.%d" % (seed, flags.size))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    said = []
    try:
        case = Case(random_graphs.draw(seed, flags.size), folder,
                    flags.halftone, flags.threads)
        for check in flags.only:
            for what, command in case.failures_of(check):
                said.append(
                    "seed %d, size %d, check %s: %s\n  %s\n  again: %s "
                    "HALFTONE --seeds %d:%d --size %d --only %s" %
                    (seed, flags.size, check, what, command, sys.argv[0], seed,
                     seed + 1, flags.size, check))
    except Exception:  # pylint: disable=broad-except
        said.append("seed %d, size %d: %s" %
                    (seed, flags.size, traceback.format_exc()))
    if not said:
        shutil.rmtree(folder)
    return said


def main():
    flags = parsed()
    first, end = (int(number) for number in flags.seeds.split(":"))
    ran = bad = 0
    with concurrent.futures.ProcessPoolExecutor(flags.jobs) as pool:
        for said in pool.map(failures_of, range(first, end),
                             [flags] * (end - first)):
            ran += said is not None
            bad += bool(said)
            for text in said or []:
                print(text, flush=True)
    print("%d of %d seeds, %d failed%s" %
          (ran, end - first, bad, ": " + flags.folder if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
