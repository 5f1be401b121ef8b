#!/usr/bin/env python3
"""recurrent_benchmark beside PyTorch's layers of the same sizes, and the ratios.

One core, f32 unless --dtype says otherwise. Prints a line per layer and
direction: our microseconds, PyTorch's, the ratio; the worst one last. Exit code
1 if that is above --most. A gradient of PyTorch's is timed as forward and
backward, less forward.
"""

import re
import sys

from ratios import compare


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


def cases(torch, dtype):
  """What PyTorch does for each case of recurrent_benchmark."""
  made = {}
  for name in ('LSTM_35_20_650', 'LSTM_35_20_200', 'LSTM_128_32_256',
               'GRU_35_20_650', 'GRU_128_32_256', 'RNN_TANH_35_20_650'):
    forward, both = layer(torch, name, dtype)
    made[name] = forward
    made[name + '_grad'] = (both, forward)
  return made


if __name__ == '__main__':
  sys.exit(compare(__doc__, 'recurrent_benchmark', cases))
