"""A zoo model with the weights of torchvision's or Hugging Face's, against it.

zoo_oracle.py HALFTONE DIRECTORY CASE: prints the largest difference of the
outputs (of a classifier) or of three AdamW steps' losses (of a transformer or
an LSTM, without dropout), relative to the largest; or "skip" and what is not
here. A case that ends in _bf16 runs at O1.
"""
import json
import os
import re
import struct
import subprocess
import sys

HALFTONE, WORK, CASE = sys.argv[1:4]
try:
    import numpy
    import torch
    if CASE in ("bert", "bert_pretraining", "gpt2"):
        import transformers
    elif not CASE.startswith("lstm"):
        import torchvision
except ImportError as error:
    print("skip", error)
    sys.exit()

SEQUENCE, BATCH, STEPS = 32, 4, 3


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


def trained(name, model, arrays, loss_of, flags, tied):
    model.train()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.02)
    if hasattr(model, "tie_weights"):
        model.tie_weights()
    save({name: tensor for name, tensor in model.state_dict().items()
          if name not in tied})
    halftone("zoo", name, "--layers", "2", "--width", "128", "--sequence",
             str(SEQUENCE), *flags, "-o", path("m.pbtxt"))
    with open(path("m.pbtxt")) as file:
        text = re.sub(r'(attr \{ name: "(?:p|dropout_prob)" f: )[0-9.]+',
                      r"\g<1>0", file.read())
    with open(path("m.pbtxt"), "w") as file:
        file.write(text)
    numpy.savez(path("x.npz"), **arrays)
    level = (["--level", "O1", "--dtype", "bf16"] if CASE.endswith("_bf16")
             else ["--level", "O0"])
    halftone("run", path("m.pbtxt"), *level, "--set",
             "optimizer.adamw.weight_decay=0.01", "--lr", "0.001",
             "--batch-size", str(BATCH), "--epochs", "1", "--init",
             path("w.safetensors"), "--data", "npz:" + path("x.npz"),
             "--no-shuffle", "--log-every", "1", "--out", path("run"))
    with open(path("run/metrics.jsonl")) as file:
        events = [json.loads(line) for line in file]
    found = [e["loss"] for e in events if e["event"] == "step"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3,
                                  weight_decay=0.01)
    expected = []
    for step in range(STEPS):
        loss = loss_of(model, {
            name: torch.tensor(array[step * BATCH:(step + 1) * BATCH])
            for name, array in arrays.items()})
        expected.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return max(abs(a - b) / b for a, b in zip(found, expected, strict=True))


def tokens(words, length=SEQUENCE):
    return numpy.random.RandomState(0).randint(
        0, words, (BATCH * STEPS, length))


def bert(pretraining):
    config = transformers.BertConfig(
        num_hidden_layers=2, hidden_size=128, num_attention_heads=2,
        intermediate_size=512, num_labels=3, hidden_dropout_prob=0,
        attention_probs_dropout_prob=0)
    random = numpy.random.RandomState(1)
    ids = tokens(config.vocab_size)
    mask = numpy.ones_like(ids)
    mask[1, 20:] = mask[2, 5:] = 0
    arrays = {"input_ids": ids, "attention_mask": mask,
              "token_type_ids": random.randint(0, 2, ids.shape)}
    if not pretraining:
        arrays["label"] = random.randint(0, 3, len(ids))
        return trained(
            "bert_base", transformers.BertForSequenceClassification(config),
            arrays, lambda m, b: m(labels=b.pop("label"), **b).loss,
            ["--classes", "3"], [])
    arrays["label"] = numpy.where(random.rand(*ids.shape) < 0.15,
                                  tokens(config.vocab_size), -100)
    arrays["next_sentence_label"] = random.randint(0, 2, len(ids))
    return trained(
        "bert_base", transformers.BertForPreTraining(config), arrays,
        lambda m, b: m(labels=b.pop("label"), **b).loss,
        ["--head", "pretraining"],
        ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"])


def gpt2():
    config = transformers.GPT2Config(n_layer=2, n_embd=128, n_head=2,
                                     resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    ids = tokens(config.vocab_size, SEQUENCE + 1)
    return trained(
        "gpt2", transformers.GPT2LMHeadModel(config),
        {"input_ids": ids[:, :-1].copy(), "label": ids[:, 1:].copy()},
        lambda m, b: torch.nn.functional.cross_entropy(
            m(b["input_ids"]).logits.flatten(0, 1), b["label"].flatten()),
        [], ["lm_head.weight", "transformer.h.0.attn.bias",
             "transformer.h.1.attn.bias"])


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
        lambda m, b: torch.nn.functional.cross_entropy(
            m(b["input_ids"]).flatten(0, 1), b["label"].flatten()),
        ["--classes", str(words)], [])


def lstm_classifier():
    random = numpy.random.RandomState(1)
    ids = tokens(20000)
    return trained(
        "lstm_classifier", TextClassifier(20000, 128, 3),
        {"input_ids": ids, "label": random.randint(0, 3, len(ids)),
         "length": random.randint(1, SEQUENCE + 1, len(ids))},
        lambda m, b: torch.nn.functional.cross_entropy(
            m(b["input_ids"], b["length"]), b["label"]),
        ["--classes", "3"], [])


def vit():
    return torchvision.models.VisionTransformer(
        image_size=64, patch_size=16, num_layers=2, num_heads=2,
        hidden_dim=128, mlp_dim=512, num_classes=10)


torch.manual_seed(0)
if CASE == "gpt2":
    print(gpt2())
elif CASE.startswith("lstm_lm"):
    print(lstm_lm())
elif CASE.startswith("lstm_classifier"):
    print(lstm_classifier())
elif CASE.startswith("bert"):
    print(bert(CASE == "bert_pretraining"))
elif CASE == "vit_b_16":
    print(classifier(CASE, vit, ["--layers", "2", "--width", "128"]))
else:
    print(classifier(
        CASE, lambda: getattr(torchvision.models, CASE)(num_classes=10), []))
