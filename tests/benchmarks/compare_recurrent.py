#!/usr/bin/env python3
"""recurrent_benchmark beside PyTorch's layers of the same sizes, and the ratios.

One core, f32 unless --dtype says otherwise. Prints a line per layer and
direction: our microseconds, PyTorch's, the ratio; the worst one last. Exit code
1 if that is above --most. A gradient of PyTorch's is timed as forward and
backward, less forward.
"""

import argparse
import re
import sys

from compare_elementwise import microseconds, ours


def layer(torch, name, dtype):
  """Forward, and forward with backward, of "LSTM_35_20_650": two functions."""
  mode, steps, batch, width = re.fullmatch(r'(\w+?)_(\d+)_(\d+)_(\d+)',
                                           name).groups()
  make = {'LSTM': torch.nn.LSTM, 'GRU': torch.nn.GRU}.get(mode, torch.nn.RNN)
  net = make(int(width), int(width)).to(dtype)
  x = torch.randn(int(steps), int(batch), int(width)).to(dtype)
  x.requires_grad_()
  grad = torch.randn_like(x)

  def both():
    net.zero_grad()
    x.grad = None
    net(x)[0].backward(grad)

  return lambda: net(x), both


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--dtype', default='f32', choices=('f32', 'bf16', 'f16'))
  parser.add_argument('--filter', default='.*', help='a regular expression')
  parser.add_argument('--rounds', type=int, default=7)
  parser.add_argument('--most', type=float, default=1.5)
  parser.add_argument('--recurrent-benchmark',
                      default='bazel-bin/tests/benchmarks/recurrent_benchmark')
  flags = parser.parse_args()
  import torch
  torch.set_num_threads(1)
  torch.manual_seed(1)
  dtype = {'f32': torch.float32, 'bf16': torch.bfloat16,
           'f16': torch.float16}[flags.dtype]
  mine = ours(flags.recurrent_benchmark, flags)
  worst = ('', 0.0)
  for name in [name for name in mine if not name.endswith('_grad')]:
    forward, both = layer(torch, name, dtype)
    time = lambda f: microseconds(lambda x, y: f(), None, None, flags.rounds)
    there = time(forward)
    theirs = {name: there, name + '_grad': time(both) - there}
    for one, micros in theirs.items():
      if one not in mine:
        continue
      ratio = mine[one] / micros
      worst = max(worst, (one, ratio), key=lambda pair: pair[1])
      print(f'{one:27} {mine[one]:8.0f} us  torch {micros:8.0f} us  '
            f'ratio {ratio:5.2f}', flush=True)
  print(f'worst    {worst[0]} {worst[1]:.2f}')
  return 1 if worst[1] > flags.most else 0


if __name__ == '__main__':
  sys.exit(main())
