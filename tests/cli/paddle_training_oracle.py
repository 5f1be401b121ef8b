"""Nets of Paddle's, imported, beside Paddle: three steps of SGD.

paddle_training_oracle.py HALFTONE [--only NET,NET]: the nets of paddle_nets.py
without dropout, from the same start: the losses' differences have to be those
of roundings.
"""
import argparse
import json
import os
import struct
import sys
import tempfile

try:
    import numpy
    import paddle
except ImportError as error:
    print("skip", error)
    sys.exit()

import oracle_calls
import paddle_nets

# Of sums in another order, over three steps; as large as 2e-6 was seen.
MOST = 1e-5
RATE = 0.05


def save(path, tensors):
    header, data, at = {}, [], 0
    for name, array in sorted(tensors.items()):
        raw = array.astype("float32").tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape),
                        "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data.append(raw)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def trained(name, work):
    """Paddle's losses; leaves its program, start and data in `work`."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    main.random_seed = startup.random_seed = 1
    scope = paddle.static.Scope()
    with paddle.static.program_guard(main, startup), \
            paddle.utils.unique_name.guard(), \
            paddle.static.scope_guard(scope):
        loss, arrays = paddle_nets.NETS[name]()
        paddle.optimizer.SGD(RATE).minimize(loss)
        executor = paddle.static.Executor()
        executor.run(startup)
        save(os.path.join(work, "w.safetensors"), {
            var.name: numpy.array(scope.find_var(var.name).get_tensor())
            for var in main.list_vars() if var.persistable
            and var.name.rsplit(".", 1)[-1][:2] in ("w_", "b_")})
        with open(os.path.join(work, name + ".pdmodel"), "wb") as file:
            file.write(main.desc.serialize_to_string())
        numpy.savez(os.path.join(work, "x.npz"), **arrays)
        size = paddle_nets.BATCH
        return [
            float(executor.run(
                main, {feed: array[step * size:(step + 1) * size]
                       for feed, array in arrays.items()}, [loss])[0])
            for step in range(paddle_nets.STEPS)]


def compare(halftone, name, work):
    expected = trained(name, work)
    model = os.path.join(work, name)
    oracle_calls.call([halftone, "import", model + ".pdmodel"])
    oracle_calls.call([
        halftone, "run", model + ".pbtxt", "--level", "O0", "--set",
        "optimizer.sgd=", "--lr", str(RATE), "--batch-size",
        str(paddle_nets.BATCH), "--epochs", "1", "--init",
        os.path.join(work, "w.safetensors"), "--data",
        "npz:" + os.path.join(work, "x.npz"), "--no-shuffle", "--log-every",
        "1", "--out", model + ".run"])
    with open(os.path.join(model + ".run", "metrics.jsonl")) as file:
        events = [json.loads(line) for line in file]
    found = [event["loss"] for event in events if event["event"] == "step"]
    most = max(abs(a - b) / max(abs(b), 1e-3)
               for a, b in zip(found, expected, strict=True))
    print(f"{'ok' if most < MOST else 'FAILED':8}{name}: losses "
          f"{' '.join(f'{loss:.6f}' for loss in expected)}, {most:.1e} off")
    return most < MOST


def run():
    parser = argparse.ArgumentParser()
    parser.add_argument("halftone")
    parser.add_argument("--only", default=",".join(paddle_nets.NETS))
    flags = parser.parse_args()
    paddle_nets.DROPOUT["rate"] = 0.0
    paddle.enable_static()
    right = True
    for name in flags.only.split(","):
        with tempfile.TemporaryDirectory() as work:
            try:
                right = compare(flags.halftone, name, work) and right
            except RuntimeError as error:
                print(f"FAILED  {name}: {error}")
                right = False
    sys.exit(not right)


if __name__ == "__main__":
    run()
