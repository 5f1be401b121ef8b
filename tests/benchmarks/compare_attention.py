#!/usr/bin/env python3
"""attention_benchmark beside PyTorch on the same tensors, and the ratios.

One core, f32 unless --dtype says otherwise, 4 samples of 12 heads of 64. Prints
a line per length: our microseconds, PyTorch's, the ratio; the worst one last.
Exit code 1 if that is above --most.
"""

import sys

from ratios import compare


def cases(torch, dtype):
  """What PyTorch does for each case of attention_benchmark: f()."""
  aten = torch.ops.aten
  forward = aten._scaled_dot_product_flash_attention_for_cpu
  backward = aten._scaled_dot_product_flash_attention_for_cpu_backward
  made = {}
  for length in (128, 256, 512, 1024):
    x = (torch.rand(4, length, 12, 64) * 4 - 2).to(dtype).transpose(1, 2)
    for causal in (False, True):
      name = 'attention_causal' if causal else 'attention'
      out, sums = forward(x, x, x, 0.0, causal)
      made[f'{name}_{length}'] = lambda x=x, causal=causal: forward(
          x, x, x, 0.0, causal)
      made[f'{name}_grad_{length}'] = (
          lambda x=x, out=out, sums=sums, causal=causal: backward(
              x, x, x, x, out, sums, 0.0, causal))
  return made


if __name__ == '__main__':
  sys.exit(compare(__doc__, 'attention_benchmark', cases))
