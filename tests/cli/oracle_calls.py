"""How the scripts beside it call halftone."""

import json
import os
import subprocess

import numpy as np


def run(words, timeout=None):
    """Exit code, and what was said to either stream."""
    made = subprocess.run(words,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          text=True,
                          timeout=timeout)
    return made.returncode, made.stdout


def call(words):
    """What was said; an exception if it failed."""
    code, said = run(words)
    if code != 0:
        raise RuntimeError(" ".join(words[:3]) + ": " + said.strip())
    return said


def predicted(halftone, stem, x):
    """The logits of an imported model, STEM.pbtxt with its weights, for x."""
    np.savez(stem + ".npz", x=x.numpy())
    call([
        halftone, "predict", stem + ".pbtxt", "--init", stem + ".safetensors",
        "--data", "npz:" + stem + ".npz", "-o", stem + ".out.npz"
    ])
    return np.load(stem + ".out.npz")["logits"]


def trained(halftone, stem, x, label):
    """Losses of SGD's steps (lr 0.01, batch 4) over all of x, in its order."""
    np.savez(stem + ".npz", x=x.numpy(), label=label.numpy())
    call([
        halftone, "run", stem + ".pbtxt", "--init", stem + ".safetensors",
        "--data", "npz:" + stem + ".npz", "--no-shuffle", "--batch-size", "4",
        "--epochs", "1", "--set", "optimizer.sgd.weight_decay=0", "--lr",
        "0.01", "--set", "lr.constant=true", "--log-every", "1", "--out",
        stem + ".run"
    ])
    return [
        event["loss"]
        for event in events(stem + ".run")
        if event["event"] == "step"
    ]


def events(folder):
    """Of a run directory's metrics."""
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
