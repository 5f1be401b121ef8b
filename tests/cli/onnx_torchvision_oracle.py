"""torchvision's nets through torch.onnx.export, `import`, `predict` and `run`.

    onnx_torchvision_oracle.py HALFTONE [--only GLOB,GLOB] [--train]

Outputs equal PyTorch's to 1e-4 of the largest; with --train, three SGD steps'
losses (lr 0.01, batch 4, batch norm in training mode, dropout 0) to 1e-3, or to
four times what PyTorch's f32 and f64 differ where that is more. Weights are
random, images small.
"""

import argparse
import copy
import fnmatch
import os
import sys
import tempfile
import time
import warnings

import numpy as np
import torch
import torchvision

from oracle_calls import call, predicted, trained

NETS = {
    "alexnet": 224,
    "convnext_tiny": 64,
    "densenet121": 64,
    "efficientnet_b0": 64,
    "googlenet": 64,
    "inception_v3": 96,
    "mnasnet1_0": 64,
    "mobilenet_v2": 64,
    "mobilenet_v3_small": 64,
    "regnet_y_400mf": 64,
    "resnet18": 64,
    "resnet50": 64,
    "resnext50_32x4d": 64,
    "shufflenet_v2_x1_0": 64,
    "squeezenet1_1": 64,
    "swin_t": 64,
    "vgg11": 224,
    "vgg11_bn": 224,
    "vit_b_16": 224,
    "fcn_resnet50": 64,
    "deeplabv3_mobilenet_v3_large": 64,
    "lraspp_mobilenet_v3_large": 64,
}


class FirstOut(torch.nn.Module):

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        made = self.net(x)
        return made["out"] if isinstance(made, dict) else made


def build(name):
    torch.manual_seed(0)
    if hasattr(torchvision.models, name):
        extra = {}
        if name in ("googlenet", "inception_v3"):
            extra = {"aux_logits": False, "init_weights": False}
        net = getattr(torchvision.models, name)(weights=None, **extra)
    else:
        net = getattr(torchvision.models.segmentation,
                      name)(weights=None, weights_backbone=None)
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if type(module).__name__ == "StochasticDepth":
            module.p = 0.0
    for parameter in net.parameters():
        if not parameter.any():  # a head that begins with zeros shows nothing
            torch.nn.init.normal_(parameter, std=0.02)
    return FirstOut(net)


def export(net, x, path, training):
    mode = torch.onnx.TrainingMode
    torch.onnx.export(net, (x,),
                      path,
                      opset_version=17,
                      dynamo=False,
                      input_names=["x"],
                      output_names=["logits"],
                      dynamic_axes={"x": {
                          0: "batch"
                      }},
                      training=mode.TRAINING if training else mode.EVAL,
                      do_constant_folding=not training)


def check_predict(halftone, name, folder):
    net = build(name)
    size = NETS[name]
    net.train()
    with torch.no_grad():
        for _ in range(2):
            net(torch.randn(4, 3, size, size))  # running statistics
    net.eval()
    x = torch.randn(3, 3, size, size)
    path = os.path.join(folder, "net.onnx")
    export(net, x[:2], path, training=False)
    call([halftone, "import", path])
    found = predicted(halftone, os.path.join(folder, "net"), x)
    expected = net(x).detach().numpy()
    return np.abs(found - expected).max() / np.abs(expected).max(), 1e-4


def losses(net, x, label):
    """Of three steps."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    made = []
    for i in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x[4 * i:4 * i + 4]),
                                                 label[4 * i:4 * i + 4])
        loss.backward()
        optimizer.step()
        made.append(loss.item())
    return made


def worst(found, expected):
    return max(abs(f - e) / abs(e) for f, e in zip(found, expected))


def check_train(halftone, name, folder):
    net = build(name)
    size = NETS[name]
    net.train()
    x = torch.randn(12, 3, size, size)
    with torch.no_grad():
        shape = net(x[:4]).shape
    label = torch.randint(0, shape[1], (12,) + tuple(shape[2:]))
    # The exporter runs the net: running statistics would move.
    path = os.path.join(folder, "net.onnx")
    export(net, x[:4], path, training=True)
    call([halftone, "import", path, "--loss", "cross_entropy:logits"])
    found = trained(halftone, os.path.join(folder, "net"), x, label)
    # Of some nets three steps are no three decimals in f32, whoever computes
    # them: so far are PyTorch's from its own in f64.
    expected = losses(copy.deepcopy(net), x, label)
    exact = losses(net.double(), x.double(), label)
    print("  losses", found, "PyTorch's", expected, "in f64", exact)
    if len(found) != 3:
        return 1.0, 0.0
    error = min(worst(found, expected), worst(found, exact))
    return error, max(1e-3, 4 * worst(expected, exact))


def main():
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("halftone")
    parser.add_argument("--only", default="*")
    parser.add_argument("--train", action="store_true")
    flags = parser.parse_args()
    bad = 0
    for name in NETS:
        if not any(fnmatch.fnmatch(name, one)
                   for one in flags.only.split(",")):
            continue
        start = time.time()
        with tempfile.TemporaryDirectory() as folder:
            try:
                check = check_train if flags.train else check_predict
                error, bound = check(flags.halftone, name, folder)
                verdict = "ok" if error <= bound else "WRONG"
                text = "%.2e, bound %.1e" % (error, bound)
            except Exception as failure:  # pylint: disable=broad-except
                verdict, text = "FAILED", str(failure)[:1500]
        bad += verdict != "ok"
        print("%-30s %s %s (%.0f s)" % (name, verdict, text,
                                        time.time() - start),
              flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
