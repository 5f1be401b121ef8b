#!/usr/bin/env python3
"""Steps of 2 and 4 CPU ranks, measured, beside what plan --timeline says.

    bazel build //tools:halftone //tests/benchmarks:link_benchmark
    tests/benchmarks/compare_timeline.py

A prediction profiles a single rank, beside as many others as keep all cores
busy, and measures the link; between two of them so many ranks train, whose
median step is held against their mean. Prints a line a case: medians over the
rounds, the median of the rounds' ratios, and the ratio of all. Whoever else
computes on these cores makes ranks wait for each other, which no profile of one
rank knows of: the machine has to be idle.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

MLP = """name: "large_mlp"  format: 1
feed { name: "image" dtype: U8 dims: [-1, 1, 28, 28] }
feed { name: "label" dtype: I64 dims: [-1] }
op { type: "image_normalize" in { slot: "X" var: "image" }
     out { slot: "Out" var: "x" } attr { name: "std" f: 255 } }
op { type: "flatten" in { slot: "X" var: "x" } out { slot: "Out" var: "h0" } }
%s
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "h%d" }
     in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "ce" }
"""
LAYER = """param { name: "w%(n)d" dims: [%(i)d, %(o)d]
  init { kaiming_uniform { a: 2.236068 } } }
op { type: "matmul" in { slot: "X" var: "h%(p)d" }
     in { slot: "Y" var: "w%(n)d" } out { slot: "Out" var: "h%(n)d" } }
"""


def large_mlp():
    sizes = [784, 1024, 1024, 1024, 10]
    layers = [LAYER % {"n": n, "p": n - 1, "i": sizes[n - 1], "o": sizes[n]}
              for n in range(1, len(sizes))]
    return MLP % ("".join(layers), len(layers))


class Case:
    """A model, compiled for one rank's samples and for those of all."""

    def __init__(self, arguments, directory, name, source, flags, ranks):
        self.arguments, self.directory = arguments, directory
        self.name, self.ranks = name, ranks
        self.models = {}
        for world in (1, ranks):
            model = os.path.join(directory, f"{name}-{ranks}-{world}.htc")
            subprocess.run(
                [arguments.binary, "compile", source, *flags, "--set",
                 f"train.batch_size={arguments.samples * world}", "-o", model],
                check=True, stdout=subprocess.DEVNULL)
            self.models[world] = model

    def data(self, world):
        """As many samples a rank however many ranks there are."""
        if self.name == "mnist_convnet":
            return "idx:models/digits"
        steps = self.arguments.steps // 2
        return f"synthetic:{self.arguments.samples * steps * world}"

    def start(self, world, out, *flags, epochs=2):
        binary = [self.arguments.binary]
        if world > 1:
            binary += ["launch", "--ranks", str(world)]
        model = self.models[world]
        return subprocess.Popen(
            binary + ["run", model, "--data", self.data(world),
                      "--epochs", str(epochs), "--threads", "1", "--out", out, *flags],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def finish(self, process):
        if process.wait() != 0:
            sys.exit(f"{self.name}: {process.args} ended with "
                     f"{process.returncode}")

    def profile(self, number):
        """The trace of one rank of as many as there are cores for."""
        alone = min(self.ranks, self.arguments.cores)
        base = os.path.join(self.directory, f"one-{number}")
        beside = [self.start(1, f"{base}-{i}", epochs=1000)
                  for i in range(1, alone)]
        try:
            self.finish(self.start(1, base, f"--profile={base}.json"))
        finally:
            for process in beside:
                process.kill()
                process.wait()
        return base + ".json"

    def link(self):
        file = os.path.join(self.directory, "link.json")
        with open(file, "w", encoding="utf-8") as out:
            subprocess.run([self.arguments.link_benchmark, str(self.ranks)],
                           check=True, stdout=out)
        return file

    def predicted(self, number):
        share = min(1, self.arguments.cores / self.ranks)
        plan = subprocess.run(
            [self.arguments.binary, "plan", self.models[self.ranks],
             "--timeline", "--json", "--ranks", str(self.ranks),
             "--profile", self.profile(number), "--link", self.link(),
             "--cores-per-rank", str(share)],
            check=True, stdout=subprocess.PIPE)
        return json.loads(plan.stdout)["step_ms"]

    def measured(self, number):
        out = os.path.join(self.directory, f"all-{number}")
        self.finish(self.start(self.ranks, out))
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            return json.load(file)["step_ms_median"]


def compare(case, numbers):
    """Each round's measurement and the predictions right before and behind it,
    as a machine that others use, too, is now slow and now fast for seconds."""
    around, measured = [case.predicted(next(numbers))], []
    for _ in range(case.arguments.rounds):
        measured.append(case.measured(next(numbers)))
        around.append(case.predicted(next(numbers)))
    predicted = [(a + b) / 2 for a, b in zip(around, around[1:])]
    ratios = [p / m for p, m in zip(predicted, measured)]
    print(f"{case.name:14} {case.ranks} ranks  "
          f"predicted {statistics.median(predicted):8.3f} ms  "
          f"measured {statistics.median(measured):8.3f} ms  "
          f"ratio {statistics.median(ratios):.3f}  "
          f"({min(ratios):.3f} .. {max(ratios):.3f})  "
          f"of all {sum(predicted) / sum(measured):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", default="bazel-bin/tools/halftone")
    parser.add_argument("--link-benchmark", dest="link_benchmark",
                        default="bazel-bin/tests/benchmarks/link_benchmark")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=200, help="of one run")
    parser.add_argument("--samples", type=int, default=32, help="of one rank")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--only", help="one of the models")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        mlp = os.path.join(directory, "large_mlp.pbtxt")
        with open(mlp, "w", encoding="utf-8") as file:
            file.write(large_mlp())
        resnet = os.path.join(directory, "resnet.pbtxt")
        subprocess.run(
            [arguments.binary, "zoo", "resnet18", "--image-size", "32",
             "--classes", "10", "--width", "16", "-o", resnet], check=True)
        convnet = ("models/mnist_convnet.pbtxt",
                   ["--strategy", "models/mnist_o1.pbtxt"])
        plain = ["--level", "O0", "--set", "optimizer.momentum.momentum=0.9",
                 "lr.base=0.0001"]
        sources = {"mnist_convnet": convnet, "large_mlp": (mlp, plain),
                   "resnet18": (resnet, plain)}
        numbers = iter(range(1 << 30))
        for name, (source, flags) in sources.items():
            if arguments.only not in (None, name):
                continue
            for ranks in arguments.ranks:
                compare(Case(arguments, directory, name, source, flags, ranks),
                        numbers)


if __name__ == "__main__":
    main()
