"""Learning rates of torch.optim.lr_scheduler, a line per case: name=rates.

Each over 400 steps, 20 of them an epoch. The names are those of the test
beside.
"""
import warnings

import torch
from torch.optim import lr_scheduler as s

warnings.filterwarnings("ignore")
BASE, STEPS, EPOCH = 0.3, 400, 20


def warmed(make, steps):
    return lambda o: s.SequentialLR(
        o, [s.LinearLR(o, 1 / steps, 1, steps - 1), make(o)], [steps])


CASES = {  # (scheduler, steps between two calls of step())
    "step.epochs": (lambda o: s.StepLR(o, 3, 0.4), EPOCH),
    "step.steps": (lambda o: s.StepLR(o, 30), 1),
    "step.warm": (warmed(lambda o: s.StepLR(o, 30), 25), 1),
    "multi_step.epochs": (lambda o: s.MultiStepLR(o, [4, 9, 15]), EPOCH),
    "multi_step.steps": (lambda o: s.MultiStepLR(o, [1, 50, 333], 0.3), 1),
    "polynomial": (lambda o: s.PolynomialLR(o, STEPS, 1.7), 1),
    "polynomial.epochs": (lambda o: s.PolynomialLR(o, 8, 2), EPOCH),
    "exponential.epochs": (lambda o: s.ExponentialLR(o, 0.8), EPOCH),
    "exponential.steps": (lambda o: s.ExponentialLR(o, 0.99), 1),
    "exponential.warm": (warmed(lambda o: s.ExponentialLR(o, 0.99), 40), 1),
    "one_cycle": (lambda o: s.OneCycleLR(o, 0.7, STEPS), 1),
    "one_cycle.linear": (lambda o: s.OneCycleLR(
        o, 0.7, STEPS, pct_start=0.25, anneal_strategy="linear",
        div_factor=10, final_div_factor=100), 1),
    "one_cycle.three_phase": (lambda o: s.OneCycleLR(
        o, 0.7, STEPS, three_phase=True), 1),
    "cyclic": (lambda o: s.CyclicLR(o, 0.01, 0.1, 30), 1),
    "cyclic.triangular2": (lambda o: s.CyclicLR(
        o, 0.01, 0.1, 30, 17, mode="triangular2"), 1),
    "cyclic.exp_range": (lambda o: s.CyclicLR(
        o, 0.01, 0.1, 30, mode="exp_range", gamma=0.995), 1),
    "cyclic.epochs": (lambda o: s.CyclicLR(o, 0.01, 0.1, 3, 4), EPOCH),
    "cosine_restarts.steps": (
        lambda o: s.CosineAnnealingWarmRestarts(o, 30, 2, 0.03), 1),
    "cosine_restarts.epochs": (
        lambda o: s.CosineAnnealingWarmRestarts(o, 4), EPOCH),
    "cosine_restarts.warm": (warmed(
        lambda o: s.CosineAnnealingWarmRestarts(o, 30, 2), 40), 1),
}


def rates(make, every):
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=BASE, momentum=0.9)
    scheduler = make(optimizer)
    for step in range(STEPS):
        yield optimizer.param_groups[0]["lr"]
        optimizer.step()
        if (step + 1) % every == 0 and step + 1 < STEPS:
            scheduler.step()


def epoch_parts():
    """As its documentation has it: step(epoch + i / iterations)."""
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=BASE)
    scheduler = s.CosineAnnealingWarmRestarts(optimizer, 3, 2)
    for step in range(STEPS):
        scheduler.step(step / EPOCH)
        yield optimizer.param_groups[0]["lr"]


for name, (make, every) in CASES.items():
    print(name + "=" + " ".join(repr(float(r)) for r in rates(make, every)))
print("cosine_restarts.parts=" +
      " ".join(repr(float(r)) for r in epoch_parts()))
