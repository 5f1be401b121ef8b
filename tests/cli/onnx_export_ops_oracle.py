"""Single ops through `halftone export --format onnx`, against literal numbers.

    onnx_export_ops_oracle.py HALFTONE [--cases tests/ops/cases] [--only GLOB]

Each conformance case of an op that ONNX Runtime can be fed is a model of that
op alone; what ONNX Runtime computes of the exported one is what the case says.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import glob
import json
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import checker

from oracle_calls import run

DTYPES = {
    "f32": np.float32,
    "i64": np.int64,
    "i32": np.int32,
    "bool": np.bool_,
    "u8": np.uint8,
}
# What ONNX leaves to who runs it (NaN, indices beyond the bounds, elements
# outside the image alone), and what is not there in a test.
ELSEWHERE = {
    ("dropout*", "*"),
    ("gather", "no_such_integer"),
    ("grid_sampler", "far_away"),
    ("index_select", "no_such_integer"),
    ("scatter", "no_such_slice"),
    ("take_along_axis", "no_such_*"),
    ("arg_*", "nan_*"),
    ("pool?d", "all_minus_inf"),
    ("scaled_dot_product_attention", "dropout*"),
    ("scaled_dot_product_attention", "left_out_by_infinity"),
    ("reduce_prod", "wraps"),
    ("arange", "quarters"),
}
MARKS = {"int": "i", "float": "f", "bool": "b", "string": "s", "dtype": "s"}


def read_cases(path):
    """Dicts with name, in, out, attrs, only."""
    cases, last = [], None
    with open(path) as lines:
        for line in lines:
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] == "case":
                cases.append({
                    "name": words[1],
                    "in": [],
                    "out": [],
                    "attr": [],
                    "only": {}
                })
            elif words[0] in ("in", "out"):
                last = words[3:]
                cases[-1][words[0]].append((words[1], words[2], last))
            elif words[0] == "attr":
                cases[-1]["attr"].append((words[1], words[2:]))
            elif words[0] == "only":
                cases[-1]["only"][words[1]] = words[2:]
            elif words[0][0] in "-0123456789.in" and last is not None:
                last.extend(words)
    return cases


def array(dims, words, dtype):
    shape = [int(d) for d in dims.strip("[]").split(",") if d]
    values = np.array([float(word) for word in words])
    return values.astype(DTYPES[dtype]).reshape(shape)


def type_of(slot, case):
    """Of a slot: where a variable may be it, f32, but i64 of indices."""
    kind = slot["type"]
    if kind in DTYPES:
        return kind
    usual = "i64" if kind in ("TIndex", "TL") else "f32"
    allowed = case["only"].get(kind, [usual])
    for one in (usual, "f32", "i64", "i32", "bool", "u8"):
        if one in allowed:
            return one
    return None


def attr_text(spec, name, words):
    kind = spec["kind"]

    def one(word):
        return "\"%s\"" % word if MARKS.get(kind, "i") == "s" else word

    if kind in MARKS:
        return "attr { name: \"%s\" %s: %s }" % (name, MARKS[kind],
                                                 one(words[0]))
    mark = {"ints": "ints", "floats": "floats", "strings": "strings"}[kind]
    return "attr { name: \"%s\" %s: [%s] }" % (name, mark, ", ".join(words))


def ask(halftone, op, case):
    """("right" | "wrong" | "left out" | "refused", why)."""
    slots = {s["name"]: s for s in op["inputs"] + op["outputs"]}
    attrs = {a["name"]: a for a in op["attributes"]}
    if any(fnmatch.fnmatch(op["name"], one) and
           fnmatch.fnmatch(case["name"], other) for one, other in ELSEWHERE):
        return "left out", "elsewhere"
    if any("nan" in words for _, _, words in case["out"]):
        return "left out", "NaN"
    feeds, lines, ins = {}, [], collections.OrderedDict()
    for i, (slot, dims, words) in enumerate(case["in"]):
        dtype = type_of(slots[slot], case)
        if dtype is None or not words:
            return "left out", "dtype"
        name = "in%d" % i
        feeds[name] = array(dims, words, dtype)
        if 0 in feeds[name].shape:
            return "left out", "no elements"
        lines.append("feed { name: \"%s\" dtype: %s dims: %s }" %
                     (name, dtype.upper(), list(feeds[name].shape)))
        ins.setdefault(slot, []).append(name)
    node = "op { name: \"op\" type: \"%s\"" % op["name"]
    for slot, names in ins.items():
        node += " in { slot: \"%s\" %s }" % (slot, " ".join(
            "var: \"%s\"" % name for name in names))
    outs = collections.OrderedDict()
    for i, (slot, dims, words) in enumerate(case["out"]):
        outs.setdefault(slot, []).append(("out%d" % i, dims, words))
    first = next(iter(outs))
    for slot, values in outs.items():
        if slot == first or slots[slot]["list"]:
            node += " out { slot: \"%s\" %s }" % (slot, " ".join(
                "var: \"%s\"" % value[0] for value in values))
    for name, words in case["attr"]:
        node += " " + attr_text(attrs[name], name, words)
    lines.append(node + " }")
    lines += ["output: \"%s\"" % value[0] for value in outs[first]]
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "net.pbtxt")
        with open(model, "w") as text:
            text.write("name: \"net\" format: 1\n" + "\n".join(lines) + "\n")
        path = os.path.join(folder, "net.onnx")
        code, said = run([halftone, "export", model, "--format", "onnx", "-o",
                          path])
        if code != 0:
            if "cannot be exported" in said:
                return "refused", said.strip().splitlines()[-1]
            return "left out", said.strip()[:300]
        exported = onnx.load(path)
        checker.check_model(exported, full_check=True)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(
            path, options, providers=["CPUExecutionProvider"])
        used = {value.name for value in session.get_inputs()}
        made = session.run([value[0] for value in outs[first]],
                           {k: v for k, v in feeds.items() if k in used})
    for found, (_, dims, words) in zip(made, outs[first]):
        shape = [int(d) for d in dims.strip("[]").split(",") if d]
        expected = np.array([float(word) for word in words]).reshape(shape)
        if list(found.shape) != shape:
            return "wrong", "shape %s, expected %s" % (found.shape, shape)
        if not np.allclose(found.astype(np.float64),
                           expected,
                           rtol=1e-4,
                           atol=1e-4,
                           equal_nan=True):
            return "wrong", "found %s, expected %s" % (
                found.ravel()[:6], expected.ravel()[:6])
    return "right", ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("halftone")
    parser.add_argument("--cases", default="tests/ops/cases")
    parser.add_argument("--only", default="*")
    parser.add_argument("--at-least", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    flags = parser.parse_args()
    known = {
        op["name"]: op
        for op in json.loads(run([flags.halftone, "ops", "--json"])[1])["ops"]
    }
    work = []
    for path in sorted(glob.glob(os.path.join(flags.cases, "*.txt"))):
        name = os.path.basename(path)[:-4]
        if name in known and fnmatch.fnmatch(name, flags.only):
            work += [(known[name], case) for case in read_cases(path)]

    def safe(job):
        try:
            return ask(flags.halftone, *job)
        except Exception as failure:  # pylint: disable=broad-except
            return "wrong", str(failure)[:600]

    counts = collections.Counter()
    refused = set()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (op, case), (kind, why) in zip(work, pool.map(safe, work)):
            counts[kind] += 1
            if kind == "refused":
                refused.add(op["name"])
            if kind == "wrong" or flags.verbose:
                print(kind, op["name"], case["name"], why)
    print("refused:", " ".join(sorted(refused)))
    print(len(work), "cases:", dict(counts))
    return 1 if counts["wrong"] or counts["right"] < flags.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
