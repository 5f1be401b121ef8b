#!/usr/bin/env python3
"""Test accuracy on the digits, for each precision, over seeds.

    bazel build //tools:halftone && tests/benchmarks/digits_accuracy.py

Trains models/mnist_convnet.pbtxt for 5 epochs, batch 64, SGD 0.01 with
momentum 0.9, once per strategy and seed, and prints accuracies in percent,
their mean and the difference to FP32's.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

STRATEGIES = ["fp32", "o1", "o2", "o1_bf16", "o2_bf16", "o3"]


def accuracy(binary, strategy, seed, ranks, directory):
    out = os.path.join(directory, f"{strategy}-{seed}")
    subprocess.run(
        [binary, "run", "models/mnist_convnet.pbtxt",
         "--strategy", f"models/mnist_{strategy}.pbtxt",
         "--set", f"train.seed={seed}", "--ranks", str(ranks),
         "--data", "idx:models/digits", "--out", out],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
        return 100 * json.load(file)["metrics"]["top1"]["value"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", default="bazel-bin/tools/halftone")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    reference = None
    with tempfile.TemporaryDirectory() as directory:
        for strategy in STRATEGIES:
            found = [accuracy(arguments.binary, strategy, seed,
                              arguments.ranks, directory)
                     for seed in range(1, arguments.seeds + 1)]
            mean = statistics.mean(found)
            if reference is None:
                reference = mean
            each = " ".join(f"{value:.1f}" for value in found)
            print(f"{strategy:8s} mean {mean:.2f}  {mean - reference:+.2f}"
                  f"  seeds {each}", flush=True)


if __name__ == "__main__":
    main()
