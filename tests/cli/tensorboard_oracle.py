"""A run's event file as TensorBoard's own reader sees it.

    tensorboard_oracle.py tools/halftone

Trains for an epoch and compares scalars and histograms with metrics.jsonl; the
graph has to hang together. Needs the package tensorboard.
"""
import json
import os
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing import event_accumulator


def train(halftone, out):
    subprocess.run(
        [
            halftone, "run", "models/mnist_convnet.pbtxt", "--strategy",
            "models/mnist_o1.pbtxt", "--data", "idx:models/digits", "--epochs",
            "1", "--fetch", "*.grad:exponents", "--fetch", "fc.w.grad:hist",
            "--out", out
        ],
        check=True)
    with open(os.path.join(out, "metrics.jsonl")) as lines:
        return [json.loads(line) for line in lines]


def near(a, b):
    return abs(a - b) <= 1e-6 * abs(b)


def check_scalars(board, steps):
    for tag, value in [
        ("loss", lambda e: e["loss"]),
        ("skipped", lambda e: e["skipped"]),
        ("loss_scaling", lambda e: e["loss_scaling"]),
        ("ms/step", lambda e: e["ms"]["step"]),
        ("ms/fwd_bwd", lambda e: e["ms"]["fwd_bwd"]),
    ]:
        found = [(s.step, s.value) for s in board.Scalars(tag)]
        expected = [(e["step"], value(e)) for e in steps]
        assert len(found) == len(expected), tag
        for (step, got), (at, want) in zip(found, expected):
            assert step == at and near(got, want), tag
    assert all(s.value > 0 for s in board.Scalars("samples_per_second"))


def check_histograms(board, steps):
    last = steps[-1]
    names = list(last["fetches"])
    assert len(names) == 11, names
    for name in names:
        values = board.Histograms(name)[-1]
        assert values.step == last["step"], name
        histogram, fetch = values.histogram_value, last["fetches"][name]
        if name.endswith(":hist"):
            want = fetch[3:]
            # Of f32, whose digits metrics.jsonl has.
            assert near(histogram.min, fetch[0]), name
            assert near(histogram.max, fetch[1]), name
        else:
            want = [fetch["flushed"]] + fetch["bins"] + [fetch["overflowed"]]
            assert histogram.bucket_limit == list(range(-24, 18)), name
        assert histogram.bucket == want, name
        assert histogram.num == sum(want), name
    whole = board.Histograms("exponents")[-1].histogram_value
    assert whole.num + sum(
        last["fetches"][n]["zero"]
        for n in names if n.endswith(":exponents")) == 29034, whole.num


def check_graph(board):
    graph = board.Graph()
    names = {node.name for node in graph.node}
    assert len(names) == len(graph.node) > 50
    for node in graph.node:
        for source in node.input:
            assert source.split(":")[0] in names, source
    ops = {node.name: node for node in graph.node}
    conv = ops["conv1"]
    assert conv.op == "conv2d"
    assert conv.attr["T"].type == 19, conv  # DT_HALF
    shape = conv.attr["_output_shapes"].list.shape[0]
    assert [dim.size for dim in shape.dim] == [-1, 16, 28, 28], shape
    assert conv.attr["role"].s == b"forward"


def main():
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run")
        events = train(sys.argv[1], out)
        board = event_accumulator.EventAccumulator(
            out, size_guidance={"scalars": 0, "histograms": 0})
        board.Reload()
        steps = [e for e in events if e["event"] == "step"]
        check_scalars(board, steps)
        check_histograms(board, steps)
        check_graph(board)
        print("same", len(steps), "steps")


main()
