"""50 steps of torch.optim's methods, with their own defaults but where named.

Prints a line per case: name=parameters. Parameters and gradients of a step are
those of the test beside, exact in f32.
"""
import torch

N = 257
O = torch.optim
CASES = {
    "sgd": lambda p: O.SGD(p, 0.01, weight_decay=0.01),
    "momentum": lambda p: O.SGD(p, 0.01, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda p: O.SGD(p, 0.01, momentum=0.9, nesterov=True),
    "adam": lambda p: O.Adam(p, 0.01, weight_decay=0.01),
    "adamw": lambda p: O.AdamW(p, 0.01, weight_decay=0.1),
    "adagrad": lambda p: O.Adagrad(p),
    "adagrad_decays": lambda p: O.Adagrad(
        p, lr_decay=0.1, weight_decay=0.01, initial_accumulator_value=0.5),
    "rmsprop": lambda p: O.RMSprop(p, weight_decay=0.01),
    "rmsprop_momentum": lambda p: O.RMSprop(p, momentum=0.9),
    "rmsprop_centered": lambda p: O.RMSprop(p, alpha=0.9, centered=True),
    "rmsprop_both": lambda p: O.RMSprop(
        p, momentum=0.5, centered=True, weight_decay=0.01),
    "adadelta": lambda p: O.Adadelta(p, weight_decay=0.01),
    "adamax": lambda p: O.Adamax(p, 0.01, weight_decay=0.01),
}


def gradient(step):
    return torch.tensor(
        [((i * 37 + step * 101 + i * step) % 257 - 128) / 64 for i in range(N)])


for name, make in CASES.items():
    parameter = torch.tensor([((i * 53 + 7) % 129 - 64) / 32 for i in range(N)])
    parameter.requires_grad_()
    optimizer = make([parameter])
    for step in range(50):
        parameter.grad = gradient(step)
        optimizer.step()
    print(name + "=" + " ".join(repr(v) for v in parameter.tolist()))
