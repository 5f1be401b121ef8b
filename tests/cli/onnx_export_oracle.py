"""`halftone export --format onnx` against onnx.checker and ONNX Runtime.

    onnx_export_oracle.py HALFTONE [--only GLOB,GLOB] [--dtype f16]

Each model of the zoo (small) and of models/: the checker takes what is written,
shapes inferred, ONNX Runtime computes what `predict` does, and what `import`
makes of it predicts the same again.
"""

import argparse
import fnmatch
import glob
import json
import os
import struct
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import checker

from oracle_calls import call

SMALL = {
    "resnet18": ["--image-size", "64", "--classes", "10"],
    "resnet34": ["--image-size", "64", "--classes", "10"],
    "resnet50": ["--image-size", "64", "--classes", "10"],
    "resnet101": ["--image-size", "64", "--classes", "10"],
    "vgg11": ["--image-size", "64", "--classes", "10"],
    "vgg11_bn": ["--image-size", "64", "--classes", "10"],
    "vgg16": ["--image-size", "64", "--classes", "10"],
    "vgg16_bn": ["--image-size", "64", "--classes", "10"],
    "mobilenet_v2": ["--image-size", "64", "--classes", "10"],
    "densenet121": ["--image-size", "64", "--classes", "10"],
    "efficientnet_b0": ["--image-size", "64", "--classes", "10"],
    "vit_s_16": ["--image-size", "64", "--layers", "2"],
    "vit_b_16": ["--image-size", "64", "--layers", "2"],
    "unet2d": ["--image-size", "64", "--width", "8"],
    "unet2d group": ["--image-size", "64", "--width", "8", "--norm", "group"],
    "unet3d": ["--image-size", "32", "--width", "8"],
    "bert_base": ["--layers", "2", "--sequence", "16"],
    "bert_base class": [
        "--layers", "2", "--sequence", "16", "--head", "classification"
    ],
    "bert_large": ["--layers", "2", "--sequence", "16"],
    "gpt2": ["--layers", "2", "--sequence", "16"],
    "gpt2_medium": ["--layers", "2", "--sequence", "16"],
    "lstm_lm": ["--width", "32", "--sequence", "8"],
    "lstm_classifier": ["--width", "32", "--sequence", "50"],
}
BATCH = 3


def feeds_of(model):
    """Random ones, by the graph's inputs."""
    random = np.random.RandomState(0)
    feeds = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        dims = [d.dim_value or BATCH for d in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if dtype == np.float32:
            feeds[value.name] = random.randn(*dims).astype(dtype)
        elif dtype == np.uint8:
            feeds[value.name] = random.randint(0, 256, dims).astype(dtype)
        else:
            most = 2 if "type" in value.name or "mask" in value.name else 50
            least = 1 if "length" in value.name else 0
            feeds[value.name] = random.randint(least, most, dims).astype(dtype)
    return feeds


def predict(halftone, folder, model, feeds, words):
    data = os.path.join(folder, "in.npz")
    np.savez(data, **feeds)
    out = os.path.join(folder, "out.npz")
    call([halftone, "predict", model, "--data", "npz:" + data, "-o", out] +
         words)
    return dict(np.load(out))


def error_of(found, expected):
    worst = 0.0
    for name, array in expected.items():
        mine = found[name].astype(np.float64)
        theirs = array.astype(np.float64)
        if mine.shape != theirs.shape:
            raise RuntimeError("%s: shape %s, expected %s" %
                               (name, mine.shape, theirs.shape))
        largest = max(np.abs(theirs).max(), 1e-6)
        worst = max(worst, np.abs(mine - theirs).max() / largest)
    return worst


def write_weights(model, path):
    """Others than the initial ones, of which some are zeros, as safetensors."""
    random = np.random.RandomState(1)
    header, data, end = {}, [], 0
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype == np.float32:
            array = (array * (1 + 0.1 * random.randn(*array.shape)) +
                     0.02 * random.randn(*array.shape)).astype(np.float32)
            array = np.abs(array) if tensor.name.endswith("var") else array
        data.append(array.tobytes())
        header[tensor.name] = {
            "dtype": {"f": "F", "i": "I", "b": "BOOL", "u": "U"}[
                array.dtype.kind] + str(8 * array.dtype.itemsize),
            "shape": list(array.shape),
            "data_offsets": [end, end + len(data[-1])]
        }
        end += len(data[-1])
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def check(halftone, model, dtype, folder):
    path = os.path.join(folder, "net.onnx")
    weights = os.path.join(folder, "weights.safetensors")
    export = [
        halftone, "export", model, "--format", "onnx", "--dtype", dtype, "-o",
        path
    ]
    call(export)
    write_weights(onnx.load(path), weights)
    call(export + ["--init", weights])
    exported = onnx.load(path)
    checker.check_model(exported, full_check=True)
    feeds = feeds_of(exported)
    low = [] if dtype == "f32" else ["--level", "O1", "--dtype", "fp16"]
    expected = predict(halftone, folder, model, feeds,
                       ["--init", weights] + low)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path,
                                           options,
                                           providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    found = dict(zip(names, session.run(names, feeds)))
    runtime = error_of(found, expected)
    again = os.path.join(folder, "again.pbtxt")
    call([halftone, "import", path, "-o", again])
    words = []
    if os.path.exists(again.replace(".pbtxt", ".safetensors")):
        words = ["--init", again.replace(".pbtxt", ".safetensors")]
    back = error_of(predict(halftone, folder, again, feeds, words), expected)
    return len(exported.graph.node), runtime, back


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("halftone")
    parser.add_argument("--only", default="*")
    parser.add_argument("--models", default="models")
    parser.add_argument("--dtype", default="f32")
    flags = parser.parse_args()
    # Of 16 bits: the sums of others are in another order.
    bound = 1e-4 if flags.dtype == "f32" else 5e-3
    files = {}
    for path in sorted(glob.glob(os.path.join(flags.models, "*.pbtxt"))):
        with open(path) as text:
            if "op {" in text.read():
                files[os.path.basename(path)] = path
    bad = 0
    print("%-20s %6s %10s %10s" % ("model", "nodes", "runtime", "back"))
    for name in list(SMALL) + list(files):
        if not any(fnmatch.fnmatch(name, one)
                   for one in flags.only.split(",")):
            continue
        start = time.time()
        with tempfile.TemporaryDirectory() as folder:
            try:
                model = files.get(name)
                if model is None:
                    model = os.path.join(folder, "net.pbtxt")
                    call([flags.halftone, "zoo",
                          name.split()[0], "-o", model] + SMALL[name])
                nodes, runtime, back = check(flags.halftone, model,
                                             flags.dtype, folder)
                good = max(runtime, back) <= bound
                text = "%6d %10.1e %10.1e %s" % (nodes, runtime, back,
                                                 "ok" if good else "WRONG")
            except Exception as failure:  # pylint: disable=broad-except
                good, text = False, "FAILED " + str(failure)[:1500]
        bad += not good
        print("%-20s %s (%.0f s)" % (name, text, time.time() - start),
              flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
