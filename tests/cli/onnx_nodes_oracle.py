"""ONNX's backend node tests through `halftone import` and `predict`.

    onnx_nodes_oracle.py HALFTONE [--only GLOB] [--verbose] [--at-least N]

Takes the cases of onnx.backend.test.case.node that are valid at opset 17 and
of float32, int64 and bool, gives shapes, axes and bounds as initialisers, and
compares. Prints how many are right, refused, wrong; fails if any that is taken
is wrong.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import os
import re
import sys
import tempfile
import zipfile

import numpy as np
import onnx
from onnx import checker, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from oracle_calls import run

# What came later and is taken as it is.
NEWER = {"AffineGrid"}

DTYPES = {
    onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
}
# Which inputs are no data.
BOUNDS = {
    "AffineGrid": [1],
    "CenterCropPad": [1],
    "Clip": [1, 2],
    "ConstantOfShape": [0],
    "CumSum": [1],
    "Dropout": [1, 2],
    "Expand": [1],
    "OneHot": [1, 2],
    "Pad": [1, 2, 3],
    "ScatterND": [1],
    "Range": [0, 1, 2],
    "Reshape": [1],
    "Resize": [1, 2, 3],
    "Slice": [1, 2, 3, 4],
    "Split": [1],
    "Squeeze": [1],
    "Tile": [1],
    "TopK": [1],
    "Trilu": [1],
    "Unsqueeze": [1],
    "Upsample": [1],
}
# Cases of ONNX's reference that ONNX Runtime and PyTorch both compute
# otherwise, and so do we: it puts corners by the product of size and scale, of
# which they take the whole part. Values that agree are an error here: then the
# list is old.
OTHERWISE = {
    "test_resize_downsample_scales_linear_align_corners",
    "test_resize_downsample_scales_cubic_align_corners",
}
for reduction in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min",
                  "Prod", "Sum", "SumSquare"):
    BOUNDS["Reduce" + reduction] = [1]


def at_opset_17(model):
    """The model, of opset 17 where it names a newer one; None: it is not."""
    newer = any(node.op_type in NEWER for node in model.graph.node)
    for one in model.opset_import:
        if one.domain not in ("", "ai.onnx"):
            return None
        if one.version > 17 and not newer:
            one.version = 17
            try:
                checker.check_model(model, full_check=True)
            except Exception:  # pylint: disable=broad-except
                return None
    return model


def dtypes_fit(model):
    for value in list(model.graph.input) + list(model.graph.output):
        if not value.type.HasField("tensor_type"):
            return False
        if value.type.tensor_type.elem_type not in DTYPES:
            return False
    return True


def bind(model, inputs):
    """Bounds as initialisers; returns the feeds that are left."""
    bounds = set()
    for node in model.graph.node:
        for i in BOUNDS.get(node.op_type, []):
            if i < len(node.input) and node.input[i]:
                bounds.add(node.input[i])
    feeds = {}
    kept = []
    for value, array in zip(model.graph.input, inputs):
        if value.name in bounds:
            model.graph.initializer.append(
                numpy_helper.from_array(np.asarray(array), value.name))
        else:
            kept.append(value)
            feeds[value.name] = np.asarray(array)
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return feeds


def ask(halftone, case):
    """("right" | "refused" | "wrong", why)."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    inputs, expected = case.data_sets[0]
    feeds = bind(model, inputs)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.onnx")
        onnx.save(model, path)
        ours = os.path.join(folder, "net.pbtxt")
        code, said = run([halftone, "import", path, "-o", ours], 120)
        if code != 0:
            lines = said.strip().splitlines()
            kind = "refused" if code in (1, 2) else "wrong"
            return kind, (lines[1] if len(lines) > 1 else
                          lines[0] if lines else "?").strip()
        data = os.path.join(folder, "in.npz")
        if not feeds:
            feeds = {"unused": np.zeros(1, np.float32)}
        np.savez(data, **feeds)
        out = os.path.join(folder, "out.npz")
        words = ["predict", ours, "--data", "npz:" + data, "-o", out]
        weights = ours.replace(".pbtxt", ".safetensors")
        if os.path.exists(weights):
            words += ["--init", weights]
        code, said = run([halftone] + words, 120)
        if code != 0:
            return "unrun", said.strip().splitlines()[-1] if said else code
        found = np.load(out)
        for value, array in zip(model.graph.output, expected):
            if value.name not in found:
                return "wrong", "no output %s among %s" % (value.name,
                                                           list(found))
            mine, theirs = found[value.name], np.asarray(array)
            if mine.shape != theirs.shape:
                return "wrong", "shape %s, expected %s" % (mine.shape,
                                                           theirs.shape)
            if not np.allclose(mine.astype(np.float64),
                               theirs.astype(np.float64),
                               rtol=1e-4,
                               atol=1e-4,
                               equal_nan=True):
                return "wrong", "values"
    return "right", ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("halftone")
    parser.add_argument("--only", default="*")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--at-least", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    flags = parser.parse_args()
    cases = []
    for case in collect_testcases(None):
        if case.model is None or not fnmatch.fnmatch(case.name, flags.only):
            continue
        if at_opset_17(case.model) is not None and dtypes_fit(case.model):
            cases.append(case)
    counts = collections.Counter()
    why = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(flags.jobs) as pool:
        answers = pool.map(lambda case: ask(flags.halftone, case), cases)
        for case, (kind, text) in zip(cases, answers):
            if case.name in OTHERWISE:
                expected = (kind, text) == ("wrong", "values")
                kind = "otherwise" if expected else "wrong"
            counts[kind] += 1
            if kind == "refused":
                why[re.sub(r"; first at .*| x\d+", "", text)] += 1
            if kind in ("wrong", "unrun") or flags.verbose:
                print(kind, case.name, text)
    for text, count in why.most_common():
        print("%5d  %s" % (count, text[:150]))
    print(len(cases), "cases:", dict(counts))
    if counts["right"] < flags.at_least:
        return 1
    return 1 if counts["wrong"] + counts["unrun"] > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
