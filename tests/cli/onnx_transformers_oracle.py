"""Small nets of Hugging Face's through PyTorch 2's exporter and `halftone`.

    onnx_transformers_oracle.py HALFTONE [--only GLOB,GLOB]

Each is exported by torch.onnx.export(dynamo=True), once as the exporter writes
it, to predict, and once with no parameter folded into another, to train. Outputs
equal PyTorch's to 1e-4 of the largest, three SGD steps' losses (lr 0.01, batch
4, dropout 0) to 1e-4.
"""

import argparse
import fnmatch
import logging
import os
import sys
import tempfile
import warnings

import numpy as np
import torch
import transformers as hf

from oracle_calls import call, predicted, trained

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
TEXT = dict(SIZES, vocab_size=100)
CAUSAL = dict(TEXT, num_key_value_heads=1, use_cache=False)
PLACES, SIDE, FRAMES = 12, 32, 4


def gpt2():
    return hf.GPT2LMHeadModel(
        hf.GPT2Config(n_embd=32,
                      n_layer=2,
                      n_head=2,
                      vocab_size=100,
                      n_positions=64,
                      use_cache=False,
                      resid_pdrop=0,
                      embd_pdrop=0,
                      attn_pdrop=0))


NETS = {
    "bert":
        lambda: hf.BertForSequenceClassification(hf.BertConfig(**TEXT)),
    "bert_masked":
        lambda: hf.BertForMaskedLM(hf.BertConfig(**TEXT)),
    "bloom":
        lambda: hf.BloomForCausalLM(
            hf.BloomConfig(vocab_size=100,
                           hidden_size=32,
                           n_layer=2,
                           n_head=2,
                           use_cache=False,
                           hidden_dropout=0,
                           attention_dropout=0)),
    "deberta":
        lambda: hf.DebertaV2ForSequenceClassification(
            hf.DebertaV2Config(**TEXT)),
    "deberta_relative":
        lambda: hf.DebertaV2ForSequenceClassification(
            hf.DebertaV2Config(relative_attention=True,
                               position_buckets=8,
                               pos_att_type=["p2c", "c2p"],
                               **TEXT)),
    "gpt2":
        gpt2,
    "gpt_neox":
        lambda: hf.GPTNeoXForCausalLM(
            hf.GPTNeoXConfig(use_cache=False, **TEXT)),
    "llama":
        lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**CAUSAL)),
    "qwen2":
        lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**CAUSAL)),
    "vit":
        lambda: hf.ViTForImageClassification(
            hf.ViTConfig(image_size=SIDE, patch_size=8, **SIZES)),
    "swin":
        lambda: hf.SwinForImageClassification(
            hf.SwinConfig(image_size=SIDE,
                          patch_size=2,
                          embed_dim=16,
                          depths=[2, 2],
                          num_heads=[2, 4],
                          window_size=4,
                          drop_path_rate=0)),
    "timesformer":
        lambda: hf.TimesformerForVideoClassification(
            hf.TimesformerConfig(image_size=SIDE,
                                 patch_size=8,
                                 num_frames=FRAMES,
                                 drop_path_rate=0,
                                 **SIZES)),
    "bit":
        lambda: hf.BitForImageClassification(
            hf.BitConfig(embedding_size=8,
                         hidden_sizes=[8, 16, 24, 32],
                         depths=[1, 1, 1, 1],
                         num_groups=4)),
    "efficientnet":
        lambda: hf.EfficientNetForImageClassification(
            hf.EfficientNetConfig(image_size=2 * SIDE,
                                  width_coefficient=0.25,
                                  depth_coefficient=0.25,
                                  hidden_dim=320,
                                  initializer_range=0.5,
                                  drop_connect_rate=0,
                                  dropout_rate=0)),
    "convnext":
        lambda: hf.ConvNextForImageClassification(
            hf.ConvNextConfig(hidden_sizes=[8, 16, 32, 64],
                              depths=[1, 1, 1, 1])),
    "segformer":
        lambda: hf.SegformerForSemanticSegmentation(
            hf.SegformerConfig(hidden_sizes=[8, 16, 32, 64],
                               depths=[1, 1, 1, 1],
                               num_attention_heads=[1, 1, 2, 2],
                               decoder_hidden_size=32)),
}
IMAGES = {
    "vit": SIDE,
    "swin": SIDE,
    "timesformer": SIDE,
    "bit": 2 * SIDE,
    "efficientnet": 2 * SIDE,
    "convnext": 2 * SIDE,
    "segformer": 2 * SIDE,
}


class Logits(torch.nn.Module):

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x).logits


def build(name):
    torch.manual_seed(0)
    net = Logits(NETS[name]())
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    side = IMAGES.get(name)
    if side is not None:
        frames = [FRAMES] if name == "timesformer" else []
        return net, torch.randn(12, *frames, 3, side, side)
    return net, torch.randint(0, 99, (12, PLACES))


def export(net, x, path, optimize):
    net.eval()
    with torch.no_grad():
        torch.onnx.export(net, (x,),
                          path,
                          dynamo=True,
                          optimize=optimize,
                          input_names=["x"],
                          output_names=["logits"],
                          dynamic_shapes={"x": {
                              0: torch.export.Dim("batch")
                          }},
                          verbose=False)


def predict_error(halftone, net, x, folder):
    path = os.path.join(folder, "net")
    export(net, x[:2], path + ".onnx", optimize=True)
    call([halftone, "import", path + ".onnx"])
    found = predicted(halftone, path, x[:3])
    expected = net(x[:3]).detach().numpy()
    return np.abs(found - expected).max() / np.abs(expected).max()


def losses(net, x, label, axis):
    """Of three steps."""
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    made = []
    for i in range(0, 12, 4):
        optimizer.zero_grad()
        logits = net(x[i:i + 4])
        loss = torch.nn.functional.cross_entropy(logits.movedim(axis, 1),
                                                 label[i:i + 4])
        loss.backward()
        optimizer.step()
        made.append(loss.item())
    return made


def train_error(halftone, net, x, folder):
    path = os.path.join(folder, "whole")
    export(net, x[:4], path + ".onnx", optimize=False)
    with torch.no_grad():
        dims = list(net(x[:1]).shape)
    axis = 2 if len(dims) == 3 else 1  # of a language model the last
    classes = dims.pop(axis)
    label = torch.randint(0, classes, (12, *dims[1:]))
    call([
        halftone, "import", path + ".onnx", "--loss", "cross_entropy:logits",
        "--class-axis",
        str(axis)
    ])
    found = trained(halftone, path, x, label)
    expected = losses(net, x, label, axis)
    if len(found) != len(expected):
        return 1.0
    return max(abs(f - e) / abs(e) for f, e in zip(found, expected))


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser()
    parser.add_argument("halftone")
    parser.add_argument("--only", default="*")
    flags = parser.parse_args()
    bad = 0
    for name in NETS:
        if not any(
                fnmatch.fnmatch(name, one) for one in flags.only.split(",")):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                net, x = build(name)
                errors = (predict_error(flags.halftone, net, x, folder),
                          train_error(flags.halftone, net, x, folder))
                verdict = "ok" if max(errors) <= 1e-4 else "WRONG"
                text = "outputs %.1e, losses %.1e" % errors
            except Exception as failure:  # pylint: disable=broad-except
                verdict, text = "FAILED", str(failure)[:1500]
        bad += verdict != "ok"
        print("%-12s %s %s" % (name, verdict, text), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
