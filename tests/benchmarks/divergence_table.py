#!/usr/bin/env python3
"""Which precision trains a residual net at which rate, and why not.

    bazel build //tools:halftone && tests/benchmarks/divergence_table.py

Trains models/small_resnet.pbtxt on the digits with Adam, its filters drawn from
N(0, 64^2): batch norm makes the net indifferent to their size, but gradients
shrink by as much, to where f16 ends. A line per precision, a column per rate:
accuracy and what `halftone report` says of the run beside FP32's; below, why.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

LEVELS = {
    "FP32": ["--level", "O0"],
    "O1": ["--level", "O1"],
    "O2": ["--level", "O2"],
    "O3": ["--level", "O3"],
    "O3 + FP32 batch norm": ["--level", "O3", "--set",
                             "amp.keep_batchnorm_fp32=true"],
}


def model(directory, std):
    with open("models/small_resnet.pbtxt", encoding="utf-8") as file:
        text = file.read()
    text, count = re.subn(
        r'(name: "[^"]*(?:conv[12]|down_conv)\.w" dims: \[[\d, ]+\]) init \{ '
        r'kaiming_uniform \{[^}]*\} \}',
        rf"\1 init {{ normal {{ std: {std} }} }}", text)
    if count != 9:
        sys.exit(f"models/small_resnet.pbtxt: {count} filters, expected 9")
    path = os.path.join(directory, "net.pbtxt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def train(arguments, net, out, rate, flags):
    done = subprocess.run(
        [arguments.binary, "run", net, *flags,
         "--set", "optimizer.adam.beta1=0.9", "--set", "lr.constant=true",
         "--batch-size", "256", "--epochs", str(arguments.epochs),
         "--lr", rate, "--data", "idx:models/digits", "--out", out,
         "--fetch", "*.grad:exponents"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 5):  # 5: diverged
        sys.exit(done.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", default="bazel-bin/tools/halftone")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--std", type=float, default=64)
    parser.add_argument("--rates", nargs="+", default=["0.01", "0.1", "1"])
    arguments = parser.parse_args()
    rows, reasons = {name: [] for name in LEVELS}, []
    with tempfile.TemporaryDirectory() as directory:
        net = model(directory, arguments.std)
        for rate in arguments.rates:
            outs = [os.path.join(directory, f"{rate}-{i}")
                    for i in range(len(LEVELS))]
            for out, flags in zip(outs, LEVELS.values()):
                train(arguments, net, out, rate, flags)
            report = json.loads(subprocess.run(
                [arguments.binary, "report", *outs, "--json"], check=True,
                stdout=subprocess.PIPE).stdout)
            for name, run in zip(LEVELS, report["runs"]):
                metric = run["summary"]["metrics"].get("top1")
                went, why = run["went"], run["why"]
                for out, level in zip(outs, LEVELS):
                    went = went.replace(out, level)
                top1 = f"{100 * metric['value']:.1f} % " if metric else ""
                rows[name].append(top1 + went)
                if why:
                    reasons.append(f"{name}, {rate}: {'; '.join(why)}")
    width = max(len(cell) for row in rows.values() for cell in row) + 2
    print(" " * 22 + "".join(f"lr {rate}".ljust(width)
                             for rate in arguments.rates).rstrip())
    for name, row in rows.items():
        print(name.ljust(22) + "".join(c.ljust(width) for c in row).rstrip())
    print(*reasons, sep="\n")


if __name__ == "__main__":
    main()
