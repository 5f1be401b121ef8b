"""A zoo model with the weights of torchvision's or Hugging Face's, against it.

zoo_oracle.py HALFTONE DIRECTORY CASE [--full]: prints the largest difference
of a classifier's outputs, relative to the largest; of a model that is trained
(without dropout) those of its outputs, of the loss's gradients (of a tensor the
norm of the difference by its norm, or by a thousandth of all tensors' where
that is more) and of three AdamW steps' losses. PyTorch computes in f64. Or
"skip" and what is not here. A case that ends in _bf16 runs at O1; --full: in
the size that the model is published in.
"""
import json
import os
import re
import struct
import subprocess
import sys

HALFTONE, WORK, CASE = sys.argv[1:4]
FULL = "--full" in sys.argv[4:]
MODEL = CASE.replace("_bf16", "")
try:
    import numpy
    import torch
    if MODEL in ("bert", "bert_pretraining", "gpt2"):
        import transformers
    elif not MODEL.startswith(("lstm", "unet")):
        import torchvision
except ImportError as error:
    print("skip", error)
    sys.exit()

SEQUENCE, BATCH, STEPS = 32, 4, 3
LEVEL = (["--level", "O1", "--dtype", "bf16"] if CASE.endswith("_bf16")
         else ["--level", "O0"])
SMALL = ["--layers", "2", "--width", "128", "--sequence", str(SEQUENCE)]


def path(name):
    return os.path.join(WORK, name)


def halftone(*words):
    return subprocess.run([HALFTONE, *words], check=True,
                          capture_output=True, text=True).stdout


def save(tensors):
    header, data, at = {}, [], 0
    for name, tensor in sorted(tensors.items()):
        if tensor.dtype != torch.float32:
            continue
        raw = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data.append(raw)
    text = json.dumps(header).encode()
    with open(path("w.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def classifier(name, make, flags):
    model = make().eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.01)
    save(model.state_dict())
    halftone("zoo", name, "--image-size", "64", "--classes", "10", *flags,
             "-o", path("m.pbtxt"))
    image = numpy.random.RandomState(0).randint(0, 256, (4, 3, 64, 64))
    numpy.savez(path("x.npz"), image=image.astype(numpy.uint8))
    halftone("predict", path("m.pbtxt"), "--init", path("w.safetensors"),
             "--data", "npz:" + path("x.npz"), "-o", path("y.npz"))
    mean = torch.tensor([123.675, 116.28, 103.53])[:, None, None]
    std = torch.tensor([58.395, 57.12, 57.375])[:, None, None]
    with torch.no_grad():
        expected = model((torch.tensor(image).float() - mean) / std).numpy()
    found = numpy.load(path("y.npz"))["logits"]
    return abs(found - expected).max() / abs(expected).max()


def saved(file):
    """The tensors of a .safetensors."""
    with open(path(file), "rb") as content:
        raw = content.read()
    (size,) = struct.unpack_from("<Q", raw)
    tensors = {}
    for name, head in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + at for at in head["data_offsets"])
        tensors[name] = torch.frombuffer(
            bytearray(raw[begin:end]), dtype=torch.float32).reshape(
                head["shape"]).double()
    return tensors


def run(optimizer, rate, data, out):
    """The losses of its steps."""
    words = []
    for setting in optimizer:
        words += ["--set", setting]
    halftone("run", path("m.pbtxt"), *LEVEL, *words, "--lr", str(rate),
             "--batch-size", str(BATCH), "--epochs", "1", "--init",
             path("w.safetensors"), "--data", "npz:" + path(data),
             "--no-shuffle", "--log-every", "1", "--out", path(out))
    with open(path(out + "/metrics.jsonl")) as file:
        events = [json.loads(line) for line in file]
    return [e["loss"] for e in events if e["event"] == "step"]


def outputs(model, batch, outputs_of):
    halftone("predict", path("m.pbtxt"), *LEVEL, "--init",
             path("w.safetensors"), "--batch-size", str(BATCH), "--data",
             "npz:" + path("first.npz"), "-o", path("y.npz"))
    model.eval()
    with torch.no_grad():
        expected = outputs_of(model, dict(batch)).numpy()
    model.train()
    found = numpy.load(path("y.npz"))["logits"].reshape(expected.shape)
    return abs(found - expected).max() / abs(expected).max()


def gradients(model, batch, loss_of, names, renamed):
    # As large a rate as leaves nothing of the parameters' own rounding.
    rate = 2.0**16
    run(["optimizer.sgd="], rate, "first.npz", "one")
    halftone("export", path("one"), *names, "-o", path("one.safetensors"))
    before, after = saved("w.safetensors"), saved("one.safetensors")
    model.zero_grad()
    loss_of(model, dict(batch)).backward()
    expected = {renamed(name): parameter.grad for name, parameter in
                model.named_parameters()}
    least = 1e-3 * sum(grad.norm()**2 for grad in expected.values())**0.5
    return max(
        ((before[name] - after[name]) / rate - grad).norm().item()
        / max(grad.norm(), least).item() for name, grad in expected.items())


def steps(model, batches, loss_of):
    found = run(["optimizer.adamw.weight_decay=0.01"], 0.001, "x.npz", "run")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3,
                                  weight_decay=0.01)
    expected = []
    for batch in batches:
        loss = loss_of(model, dict(batch))
        expected.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return max(abs(a - b) / b for a, b in zip(found, expected, strict=True))


def trained(name, model, arrays, loss_of, outputs_of, flags, names=(), tied=(),
            renamed=lambda name: name):
    model.train()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.02)
    if hasattr(model, "tie_weights"):
        model.tie_weights()
    save({renamed(name): tensor for name, tensor in model.state_dict().items()
          if name not in tied})
    model.double()
    halftone("zoo", name, *flags, "-o", path("m.pbtxt"))
    with open(path("m.pbtxt")) as file:
        text = re.sub(r'(attr \{ name: "(?:p|dropout_prob)" f: )[0-9.]+',
                      r"\g<1>0", file.read())
    with open(path("m.pbtxt"), "w") as file:
        file.write(text)
    numpy.savez(path("x.npz"), **arrays)
    numpy.savez(path("first.npz"),
                **{name: array[:BATCH] for name, array in arrays.items()})
    batches = [{name: torch.tensor(array[step * BATCH:(step + 1) * BATCH])
                for name, array in arrays.items()} for step in range(STEPS)]
    names = ["--names", names] if names else []
    return " ".join(str(each) for each in (
        outputs(model, batches[0], outputs_of),
        gradients(model, batches[0], loss_of, names, renamed),
        steps(model, batches, loss_of)))


def tokens(words, length=SEQUENCE):
    return numpy.random.RandomState(0).randint(
        0, words, (BATCH * STEPS, length))


def entropy(logits, label):
    return torch.nn.functional.cross_entropy(logits, label)


def bert(pretraining):
    small = {} if FULL else {
        "num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 2,
        "intermediate_size": 512}
    config = transformers.BertConfig(
        **small, num_labels=3, hidden_dropout_prob=0,
        attention_probs_dropout_prob=0)
    flags = ["--sequence", str(SEQUENCE)] if FULL else SMALL
    random = numpy.random.RandomState(1)
    ids = tokens(config.vocab_size)
    mask = numpy.ones_like(ids)
    mask[1, 20:] = mask[2, 5:] = 0
    arrays = {"input_ids": ids, "attention_mask": mask,
              "token_type_ids": random.randint(0, 2, ids.shape)}
    fed = lambda b: {name: b[name] for name in arrays if "label" not in name}

    def loss_of(model, batch):
        return model(labels=batch.pop("label"), **batch).loss

    if not pretraining:
        arrays["label"] = random.randint(0, 3, len(ids))
        return trained(
            "bert_base", transformers.BertForSequenceClassification(config),
            arrays, loss_of, lambda m, b: m(**fed(b)).logits,
            [*flags, "--classes", "3"], "hf")
    arrays["label"] = numpy.where(random.rand(*ids.shape) < 0.15,
                                  tokens(config.vocab_size), -100)
    arrays["next_sentence_label"] = random.randint(0, 2, len(ids))
    return trained(
        "bert_base", transformers.BertForPreTraining(config), arrays, loss_of,
        lambda m, b: m(**fed(b)).prediction_logits,
        [*flags, "--head", "pretraining"], "hf",
        ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"])


def gpt2():
    small = {} if FULL else {"n_layer": 2, "n_embd": 128, "n_head": 2}
    config = transformers.GPT2Config(**small, resid_pdrop=0, embd_pdrop=0,
                                     attn_pdrop=0)
    ids = tokens(config.vocab_size, SEQUENCE + 1)
    return trained(
        "gpt2", transformers.GPT2LMHeadModel(config),
        {"input_ids": ids[:, :-1].copy(), "label": ids[:, 1:].copy()},
        lambda m, b: entropy(m(b["input_ids"]).logits.flatten(0, 1),
                             b["label"].flatten()),
        lambda m, b: m(b["input_ids"]).logits,
        ["--sequence", str(SEQUENCE)] if FULL else SMALL, "hf",
        ["lm_head.weight", *(f"transformer.h.{layer}.attn.bias"
                             for layer in range(config.n_layer))])


class LanguageModel(torch.nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.encoder = torch.nn.Embedding(words, width)
        self.rnn = torch.nn.LSTM(width, width, 2, batch_first=True)
        self.decoder = torch.nn.Linear(width, words)

    def forward(self, input_ids):
        return self.decoder(self.rnn(self.encoder(input_ids))[0])


class TextClassifier(torch.nn.Module):
    def __init__(self, words, width, classes):
        super().__init__()
        self.embedding = torch.nn.Embedding(words, width)
        self.lstm = torch.nn.LSTM(width, width // 2, 2, batch_first=True,
                                  bidirectional=True)
        self.classifier = torch.nn.Linear(width, classes)

    def forward(self, input_ids, length):
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            self.embedding(input_ids), length, batch_first=True,
            enforce_sorted=False)
        hidden = self.lstm(packed)[1][0]
        return self.classifier(torch.cat([hidden[-2], hidden[-1]], 1))


def lstm_lm():
    words = 1000
    ids = tokens(words, SEQUENCE + 1)
    return trained(
        "lstm_lm", LanguageModel(words, 128),
        {"input_ids": ids[:, :-1].copy(), "label": ids[:, 1:].copy()},
        lambda m, b: entropy(m(b["input_ids"]).flatten(0, 1),
                             b["label"].flatten()),
        lambda m, b: m(b["input_ids"]), [*SMALL, "--classes", str(words)],
        "torchvision")


def lstm_classifier():
    random = numpy.random.RandomState(1)
    ids = tokens(20000)
    return trained(
        "lstm_classifier", TextClassifier(20000, 128, 3),
        {"input_ids": ids, "label": random.randint(0, 3, len(ids)),
         "length": random.randint(1, SEQUENCE + 1, len(ids))},
        lambda m, b: entropy(m(b["input_ids"], b["length"]), b["label"]),
        lambda m, b: m(b["input_ids"], b["length"]),
        [*SMALL, "--classes", "3"], "torchvision")


def vit():
    return torchvision.models.VisionTransformer(
        image_size=64, patch_size=16, num_layers=2, num_heads=2,
        hidden_dim=128, mlp_dim=512, num_classes=10)


def normalized(image):
    mean = torch.tensor([123.675, 116.28, 103.53])[:, None, None]
    std = torch.tensor([58.395, 57.12, 57.375])[:, None, None]
    return (image.double() - mean) / std


def vit_trained():
    random = numpy.random.RandomState(0)
    size, classes, flags = 64, 10, [*SMALL[:4], "--image-size", "64",
                                    "--classes", "10"]
    model = vit()
    if FULL:
        size, classes, flags = 224, 1000, []
        model = torchvision.models.VisionTransformer(
            image_size=224, patch_size=16, num_layers=12, num_heads=6,
            hidden_dim=384, mlp_dim=1536)
    torch.nn.init.normal_(model.heads.head.weight, std=0.02)
    count = BATCH * STEPS
    return trained(
        "vit_s_16", model,
        {"image": random.randint(0, 256, (count, 3, size, size)).astype(
            numpy.uint8), "label": random.randint(0, classes, count)},
        lambda m, b: entropy(m(normalized(b["image"])), b["label"]),
        lambda m, b: m(normalized(b["image"])), flags, "torchvision")


class UNet3d(torch.nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        widths = [width, 2 * width, 4 * width, 8 * width]
        self.down = [f"down{level}" for level in range(3)] + ["bottom"]
        self.up = ["up2", "up1", "up0"]
        before = 1
        for name, after in zip(self.down, widths):
            self.add_block(name, before, after)
            before = after
        for name, after in zip(self.up, widths[2::-1]):
            self.add_module(name + "/up", torch.nn.ConvTranspose3d(
                before, after, 2, 2))
            self.add_block(name, 2 * after, after)
            before = after
        self.add_module("head", torch.nn.Conv3d(width, classes, 1))

    def add_block(self, name, before, after):
        for each, channels in ("1", before), ("2", after):
            self.add_module(f"{name}/{each}_conv", torch.nn.Conv3d(
                channels, after, 3, padding=1, bias=False))
            self.add_module(f"{name}/{each}_norm", torch.nn.BatchNorm3d(after))

    def block(self, name, x):
        layers = self._modules
        for each in "12":
            x = layers[f"{name}/{each}_conv"](x)
            x = torch.relu(layers[f"{name}/{each}_norm"](x))
        return x

    def forward(self, x):
        skips = []
        for name in self.down:
            x = torch.nn.functional.max_pool3d(x, 2) if skips else x
            x = self.block(name, x)
            skips.append(x)
        for name, skip in zip(self.up, skips[2::-1]):
            x = self._modules[name + "/up"](x)
            x = self.block(name, torch.cat([skip, x], 1))
        return self.head(x)


def unet3d():
    random = numpy.random.RandomState(0)
    size, width = (32, 32) if FULL else (16, 8)
    count = BATCH * STEPS

    def renamed(name):
        norm = "norm" in name
        for ending, ours in (("weight", "scale" if norm else "w"),
                             ("bias", "bias" if norm else "b"),
                             ("running_mean", "mean"), ("running_var", "var")):
            name = re.sub(ending + "$", ours, name)
        return name

    image = random.randn(count, 1, size, size, size).astype(numpy.float32)
    return trained(
        "unet3d", UNet3d(width, 2),
        {"image": image, "label": (image[:, 0] > 0).astype(numpy.int64)},
        lambda m, b: entropy(m(b["image"].double()), b["label"]),
        lambda m, b: m(b["image"].double()).movedim(1, -1),
        ["--image-size", str(size), "--width", str(width)], renamed=renamed)


torch.manual_seed(0)
TRAINED = {"bert": lambda: bert(False), "bert_pretraining": lambda: bert(True),
           "gpt2": gpt2, "lstm_lm": lstm_lm, "lstm_classifier": lstm_classifier,
           "vit_s_16": vit_trained, "unet3d": unet3d}
if MODEL in TRAINED:
    print(TRAINED[MODEL]())
elif CASE == "vit_b_16":
    print(classifier(CASE, vit, ["--layers", "2", "--width", "128"]))
else:
    print(classifier(
        CASE, lambda: getattr(torchvision.models, CASE)(num_classes=10), []))
