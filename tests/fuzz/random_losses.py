"""Losses: how each is drawn from a model's last [B, N], and its PyTorch.

A loss takes the graph and `made`, a function that makes logits of so many
classes; it sets the graph's output and its losses, a number or some a sample.
"""

import torch
import torch.nn.functional as F


def probabilities(g, name, classes, function):
    """A feed of numbers that the model makes probabilities of."""
    target = g.feed(name, [classes], pooled=False)
    kind, attributes = (("sigmoid", {}) if function is torch.sigmoid else
                        ("softmax", {
                            "axis": -1
                        }))
    return unchecked(g, kind, {"X": target}, function, attributes)


def unchecked(g, kind, inputs, function, attributes=None, outputs=("Out",)):
    """Whatever the values are: a model has to have a loss."""
    return g.op(kind,
                inputs,
                function,
                attributes,
                outputs,
                pooled=False,
                checked=False)


def rows(a):
    return F.softmax(a, -1)


def log_rows(g, x):
    return unchecked(g, "log_softmax", {"X": x},
                     lambda a: F.log_softmax(a, -1), {"axis": -1})


def cross_entropy(g, made):
    g.output = made(6)
    label = g.feed("label", [], below=6)
    g.losses = unchecked(g,
                         "softmax_with_cross_entropy", {
                             "Logits": g.output,
                             "Label": label
                         },
                         lambda a, y: F.cross_entropy(a, y, reduction="none"),
                         outputs=["Loss"])


def soft_cross_entropy(g, made):
    g.output = made(6)
    label = probabilities(g, "target", 6, rows)
    g.losses = unchecked(
        g, "softmax_with_cross_entropy", {
            "Logits": g.output,
            "Label": label
        },
        lambda a, y: -(y * F.log_softmax(a, -1)).sum(-1, keepdim=True),
        {"soft_label": True}, ["Loss"])


def negative_log_likelihood(g, made):
    g.output = log_rows(g, made(6))
    label = g.feed("label", [], below=6)
    g.losses = unchecked(g, "nll_loss", {
        "X": g.output,
        "Label": label
    }, lambda a, y: F.nll_loss(a, y, reduction="none"))


def divergence(g, made):
    g.output = log_rows(g, made(4))
    target = probabilities(g, "target", 4, rows)
    g.losses = unchecked(g,
                         "kldiv_loss", {
                             "X": g.output,
                             "Target": target
                         },
                         lambda a, y: F.kl_div(a, y, reduction="none"),
                         outputs=["Loss"])


def squares(g, made):
    g.output = made(5)
    target = g.feed("target", [5], pooled=False)
    g.losses = unchecked(g, "square_error_cost", {
        "X": g.output,
        "Y": target
    }, lambda a, y: (a - y)**2)


def huber(g, made):
    g.output = made(3)
    target = g.feed("target", [3], pooled=False)
    delta = g.random.choice([0.5, 1.0])
    g.losses = unchecked(
        g, "huber_loss", {
            "X": g.output,
            "Y": target
        },
        lambda a, y: F.huber_loss(a, y, reduction="none", delta=delta),
        {"delta": delta})


def binary_logits(g, made):
    g.output = made(3)
    label = probabilities(g, "target", 3, torch.sigmoid)
    g.losses = unchecked(
        g, "sigmoid_cross_entropy_with_logits", {
            "X": g.output,
            "Label": label
        }, lambda a, y: F.binary_cross_entropy_with_logits(
            a, y, reduction="none"))


def binary_entropy(g, made):
    g.output = unchecked(g, "sigmoid", {"X": made(3)}, torch.sigmoid)
    label = probabilities(g, "target", 3, torch.sigmoid)
    if g.chance(0.5):
        # PyTorch's own takes no NaN, which overflows in f16 make.
        g.losses = unchecked(
            g, "bce_loss", {
                "X": g.output,
                "Label": label
            }, lambda a, y: -y * torch.log(a).clamp(-100) -
            (1 - y) * torch.log(1 - a).clamp(-100))
    else:
        g.losses = unchecked(g,
                             "log_loss", {
                                 "Predicted": g.output,
                                 "Labels": label
                             },
                             lambda a, y: -y * torch.log(a + 1e-4) -
                             (1 - y) * torch.log(1 - a + 1e-4),
                             outputs=["Loss"])


LOSSES = {
    cross_entropy: 4,
    squares: 4,
    binary_entropy: 1,
    binary_logits: 1,
    divergence: 1,
    huber: 1,
    negative_log_likelihood: 1,
    soft_cross_entropy: 1,
}
