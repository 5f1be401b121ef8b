"""Trains a random graph by PyTorch, and says how exact the answer is."""

import dataclasses

import numpy as np
import torch

RATE, MOMENTUM = 0.004, 0.9


@dataclasses.dataclass
class Trained:
    """Of all steps the losses and a gradient's largest element, of the first
    all values and gradients, and the parameters and statistics after the last;
    in f64."""
    losses: list
    state: dict
    values: dict
    gradients: dict
    steepest: float = 0.0


class Rounded(torch.autograd.Function):
    """A value, and the gradient that comes back to it, as `to` has them."""

    @staticmethod
    def forward(context, value, to):
        context.to = to
        return value.to(to).to(value.dtype)

    @staticmethod
    def backward(context, gradient):
        return gradient.to(context.to).to(gradient.dtype), None


def batch_of(graph, dtype, first, end):
    batch = {}
    for name, data in graph.feeds.items():
        values = torch.from_numpy(data[first:end])
        batch[name] = values.to(dtype) if values.is_floating_point() else values
    return batch


def forward(graph, known, dtype, rounded=None, testing=False):
    """All values; with `rounded`, a dtype, as if they were of that."""
    if rounded is not None:
        for name, value in known.items():
            if value.is_floating_point() and name not in graph.statistics:
                known[name] = Rounded.apply(value, rounded)
    for op in graph.ops:
        function = op.testing if testing and op.testing else op.function
        results = function(*[known[name] for name in op.read])
        if not isinstance(results, (tuple, list)):
            results = (results,)
        for name, value in zip(op.made, results):
            if value.is_floating_point():
                value = value.to(dtype)
                if rounded is not None and name != graph.loss:
                    value = Rounded.apply(value, rounded)
            known[name] = value
    return known


def nudged(start, seed, epsilon=2.0**-23):
    """Parameters as far off as a dtype, f32, rounds them."""
    draws = np.random.default_rng(seed)
    return {
        name: values * (1 + draws.uniform(-1, 1, values.shape) * epsilon)
        for name, values in start.items()
    }


def train(graph,
          dtype=torch.float64,
          start=None,
          rounded=None,
          scale=1.0):
    """Momentum over the batches in their order, from the graph's start.

    `scale`: of the loss, taken from the gradients again.
    """
    begin = {**graph.parameters, **(start or {})}
    parameters = {
        name: torch.tensor(values,
                           dtype=dtype,
                           requires_grad=name not in graph.frozen)
        for name, values in begin.items()
    }
    statistics = {
        name: torch.tensor(values, dtype=dtype)
        for name, values in graph.statistics.items()
    }
    velocities = {}
    made = Trained([], {}, {}, {})
    for at in range(0, graph.samples, graph.batch):
        known = batch_of(graph, dtype, at, at + graph.batch)
        known.update(parameters)
        known.update(statistics)
        forward(graph, known, dtype, rounded)
        loss = known[graph.loss]
        learning = [n for n, p in parameters.items() if p.requires_grad]
        gradients = [None] * len(learning)
        if loss.requires_grad:
            gradients = torch.autograd.grad(loss * scale,
                                            [parameters[n] for n in learning],
                                            allow_unused=True)
        gradients = {
            n: g / scale for n, g in zip(learning, gradients) if g is not None
        }
        if not made.losses:
            made.values = {
                name: numbers(value)
                for name, value in known.items()
                if value.is_floating_point()
            }
            made.gradients = {n: numbers(g) for n, g in gradients.items()}
        made.losses.append(loss.item())
        for name, gradient in gradients.items():
            made.steepest = max(made.steepest, gradient.abs().max().item())
            before = velocities.get(name, torch.zeros_like(gradient))
            velocities[name] = MOMENTUM * before + gradient
            parameters[name] = (parameters[name] - RATE *
                                velocities[name]).detach().requires_grad_()
        for op in graph.ops:
            if op.running:
                momentum, *names = op.running
                for name, of_batch in zip(names, op.made[1:]):
                    statistics[name] = momentum * statistics[name] + (
                        1 - momentum) * known[of_batch].detach()
    for name, value in {**parameters, **statistics}.items():
        made.state[name] = numbers(value)
    return made


def predict(graph, dtype=torch.float64, start=None):
    """The output of all samples at test time."""
    known = batch_of(graph, dtype, 0, graph.samples)
    for name, values in {
            **graph.parameters,
            **graph.statistics,
            **(start or {})
    }.items():
        known[name] = torch.tensor(values, dtype=dtype)
    with torch.no_grad():
        return numbers(forward(graph, known, dtype, testing=True)[graph.output])


def numbers(tensor):
    return tensor.detach().double().numpy()


def farthest(found, expected):
    """By name: the largest difference of an element."""
    return {
        name: np.abs(found[name] - values).max(initial=0.0)
        for name, values in expected.items()
        if name in found
    }


class Reference:
    """What f64 says, and how far f32 may be from it.

    Beside a kink (relu at 0, a maximum) or a batch norm of few samples no two
    orders of summation agree. So the same is trained in f32, and in f64 from
    parameters that are nudged by a rounding: what these differ by is noise.
    """

    def __init__(self, graph):
        self.graph = graph
        self.exact = train(graph)
        others = self.others(train)
        self.losses = [
            max(abs(other.losses[i] - loss) for other in others)
            for i, loss in enumerate(self.exact.losses)
        ]
        self.noise = {}
        for kind in ("state", "values", "gradients"):
            expected = getattr(self.exact, kind)
            differences = [
                farthest(getattr(other, kind), expected) for other in others
            ]
            self.noise[kind] = {
                name: max(each.get(name, 0.0) for each in differences)
                for name in expected
            }
        self.rounded = {}

    def others(self, made_by):
        starts = [nudged(self.graph.parameters, seed) for seed in (1, 2)]
        return [made_by(self.graph, torch.float32)
               ] + [made_by(self.graph, start=start) for start in starts]

    def predicted(self):
        """The output at test time, and how far its elements may be off."""
        exact = predict(self.graph)
        return exact, max(
            np.abs(other - exact).max() for other in self.others(predict))

    def of_rounded(self, dtype, scale):
        """What is trained in the numbers of `dtype`, thrice: beside a kink two
        ways of rounding, too, may lie on different sides."""
        if dtype not in self.rounded:
            epsilon = torch.finfo(dtype).eps
            self.rounded[dtype] = [
                train(self.graph,
                      start=nudged(self.graph.parameters, seed, epsilon),
                      rounded=dtype,
                      scale=scale) for seed in range(3)
            ]
        return self.rounded[dtype]
