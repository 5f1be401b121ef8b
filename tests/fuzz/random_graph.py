"""A model that is put together op by op, with what PyTorch makes of each.

random_graphs.py draws the ops, which stand in the modules that it imports.
"""

import dataclasses
import math
import random
import typing

import numpy as np
import torch

# Further up f16 overflows soon, and so says nothing about the code.
LARGEST = 60
MOST_ELEMENTS = 60000
RANKS = range(2, 7)  # with a sample dim and another


class DoesNotFit(Exception):
    """What was drawn cannot be an op of this graph: another is drawn."""


def require(holds):
    if not holds:
        raise DoesNotFit()


def divisors(number):
    return [d for d in range(1, number + 1) if number % d == 0]


def product(dims):
    return int(np.prod(dims))


@dataclasses.dataclass
class Op:
    """An op of the model; `function` makes the first of its outputs, in their
    order, from its inputs in theirs."""
    type: str
    inputs: dict  # slot -> names
    outputs: dict
    attributes: dict
    function: typing.Callable
    read: list  # names
    made: list  # names of what `function` makes
    # Of batch norm: momentum and the statistics' names, and what it makes of
    # the same inputs at test time.
    running: tuple = None
    testing: typing.Callable = None


class Graph:
    """Names are v1, v2 ...; `values` are those of the first batch, in f32."""

    def __init__(self, seed, batch_norm=True, may_mix=False):
        self.seed = seed
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.batch_norm = batch_norm
        self.may_mix = may_mix
        choice = self.random.choice
        self.batch = choice([1, 2, 3, 4, 4, 5, 8])
        self.samples = self.batch * choice([2, 3])
        if self.random.random() < 0.5:  # a last batch that is smaller
            self.samples += self.random.randrange(self.batch)
        self.ops = []
        self.feeds = {}  # name -> all samples
        self.parameters = {}  # name -> where they begin
        self.frozen = set()
        self.statistics = {}
        self.values = {}
        self.uses = {}
        self.pool = []  # what an op may read
        self.has_batch_norm = False
        self.mixes_samples = False
        self.names = 0
        self.loss = self.losses = self.output = None

    def chance(self, share):
        return self.random.random() < share

    def width(self):
        """Around what kernels treat as a whole."""
        return self.random.choice([1, 2, 3, 4, 5, 7, 8, 16, 17, 32])

    def shape(self, name):
        return list(self.values[name].shape)

    def name(self, prefix="v"):
        self.names += 1
        return prefix + str(self.names)

    def feed(self, name, dims, below=None, pooled=True):
        """Normal numbers, or with `below` integers from 0."""
        dims = [self.samples] + list(dims)
        if below is None:
            data = self.numbers.standard_normal(dims).astype(np.float32)
        else:
            data = self.numbers.integers(0, below, dims).astype(np.int64)
        self.feeds[name] = data
        self.values[name] = torch.from_numpy(data[:self.batch])
        self.uses[name] = 0
        if below is None and pooled:
            self.pool.append(name)
        return name

    def parameter(self, dims, scale=None, mean=0.0, prefix="w"):
        name = self.name(prefix)
        if scale is None:
            fan_in = product(dims[1:]) if len(dims) > 2 else dims[0]
            scale = 1 / math.sqrt(max(fan_in, 1))
        start = self.numbers.standard_normal(dims) * scale + mean
        self.parameters[name] = start.astype(np.float32)
        self.values[name] = torch.from_numpy(self.parameters[name].copy())
        return name

    def bias(self, size):
        return self.parameter([size], 0.2, prefix="b")

    def gain(self, size):
        return self.parameter([size], 0.2, 1.0, prefix="g")

    def statistic(self, size, least, most):
        name = self.name("stat")
        start = self.numbers.uniform(least, most, [size])
        self.statistics[name] = start.astype(np.float32)
        self.values[name] = torch.from_numpy(self.statistics[name].copy())
        return name

    def op(self,
           kind,
           inputs,
           function,
           attributes=None,
           outputs=("Out",),
           pooled=True,
           checked=True):
        """Adds an op and returns the name of its first output.

        `inputs`: slot -> a name or some; `outputs`: a slot for each; `pooled`:
        whether others may read what `function` makes, or how many of them.
        """
        inputs = {
            slot: [names] if isinstance(names, str) else list(names)
            for slot, names in inputs.items()
        }
        read = [name for names in inputs.values() for name in names]
        with torch.no_grad():
            results = function(*[self.values[name] for name in read])
        if not isinstance(results, (tuple, list)):
            results = (results,)
        if checked:
            for result in results:
                require(not result.is_floating_point() or
                        not result.numel() or
                        (torch.isfinite(result).all() and
                         result.abs().max() <= LARGEST))
        by_slot = {}
        made = []
        for slot in outputs:
            made.append(self.name())
            by_slot.setdefault(slot, []).append(made[-1])
        self.ops.append(
            Op(kind, inputs, by_slot, attributes or {}, function, read,
               made[:len(results)]))
        for i, (name, result) in enumerate(zip(made, results)):
            self.values[name] = result
            self.uses[name] = 0
            wanted = pooled if isinstance(pooled, bool) else i < pooled
            if wanted and result.is_floating_point():
                self.pool.append(name)
        for name in read:
            self.uses[name] = self.uses.get(name, 0) + 1
        return made[0]

    def pick(self, ranks=None, suits=None):
        """A value to read, most often one of the latest that nobody reads."""
        fitting = [
            name for name in self.pool
            if (ranks is None or self.values[name].dim() in ranks) and
            self.values[name].numel() < MOST_ELEMENTS and
            (suits is None or suits(self.values[name]))
        ]
        require(fitting)
        if self.chance(0.65):
            fitting = [n for n in fitting if not self.uses[n]][-4:] or fitting
        return self.random.choice(fitting)

    def like(self, x):
        """Values of the shape of `x`, itself among them."""
        return [n for n in self.pool if self.shape(n) == self.shape(x)]

    def parameters_of(self, dims):
        return [
            name for name, start in self.parameters.items()
            if list(start.shape) == list(dims)
        ]

    def drop_unread(self):
        """Parameters, statistics and feeds of draws that came to nothing."""
        read = {name for op in self.ops for name in op.read}
        for kept in (self.parameters, self.statistics, self.feeds):
            for name in [name for name in kept if name not in read]:
                del kept[name]

    def text(self):
        """The model as a .pbtxt."""
        lines = ['name: "g%d" format: 1' % self.seed]
        for name, data in self.feeds.items():
            dtype = "F32" if data.dtype == np.float32 else "I64"
            lines.append('feed { name: "%s" dtype: %s dims: %s }' %
                         (name, dtype, [-1] + list(data.shape[1:])))
        for name, start in self.parameters.items():
            lines.append(
                'param { name: "%s" dims: %s init { normal { std: 0.1 } }%s }' %
                (name, list(start.shape),
                 " trainable: false" if name in self.frozen else ""))
        for name, start in self.statistics.items():
            lines.append('stat { name: "%s" dims: %s init { constant: 1 } }' %
                         (name, list(start.shape)))
        for op in self.ops:
            words = ['op { type: "%s"' % op.type]
            words += [slot_text("in", *slot) for slot in op.inputs.items()]
            words += [slot_text("out", *slot) for slot in op.outputs.items()]
            words += [attribute_text(*one) for one in op.attributes.items()]
            lines.append(" ".join(words) + " }")
        lines.append('loss { var: "%s" mean_over: "%s" }' %
                     (self.loss, self.losses))
        lines.append('output: "%s"' % self.output)
        return "\n".join(lines) + "\n"


def slot_text(kind, slot, names):
    return '%s { slot: "%s" %s }' % (kind, slot, " ".join(
        'var: "%s"' % name for name in names))


def attribute_text(name, value):
    if isinstance(value, bool):
        text = "b: " + str(value).lower()
    elif isinstance(value, int):
        text = "i: %d" % value
    elif isinstance(value, float):
        text = "f: %r" % value
    elif isinstance(value, str):
        text = 's: "%s"' % value
    else:
        text = " ".join("ints: %d" % one for one in value)
    return 'attr { name: "%s" %s }' % (name, text)
