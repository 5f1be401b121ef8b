#!/usr/bin/env python3
"""Whole training steps in PyTorch, the other side of train_benchmark.

channels_last, autocast with GradScaler (O1) or FP32 (O0, TF32 off unless
--tf32), torch.compile with mode=max-autotune, SGD with momentum, random data
that lie on the device. Prints one line of JSON with the median of --steps steps.
"""

import argparse
import json
import os
import resource
import statistics
import sys
import time


def parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--model', default='resnet50')
  parser.add_argument('--level', default='O1', choices=('O0', 'O1'))
  parser.add_argument('--dtype', default='fp16', choices=('fp16', 'bf16'))
  parser.add_argument('--batch', type=int, default=256)
  parser.add_argument('--steps', type=int, default=50)
  parser.add_argument('--warmup', type=int, default=10)
  parser.add_argument('--sequence', type=int, default=0, help='tokens')
  parser.add_argument('--threads', type=int, default=0, help='on the CPU')
  parser.add_argument('--cpu', action='store_true')
  parser.add_argument('--tf32', action='store_true')
  parser.add_argument('--compile', default='max-autotune',
                      help='mode of torch.compile, or none')
  return parser.parse_args()


def make_step(torch, flags, device):
  """A function that does one step and returns its loss, on the device."""
  sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
  import pytorch_models
  make, task, count = pytorch_models.MODELS[flags.model]
  torch.manual_seed(1)
  network = make().to(device).to(memory_format=torch.channels_last)
  assert sum(p.numel() for p in network.parameters()) == count
  network.train()
  low = torch.float16 if flags.dtype == 'fp16' else torch.bfloat16
  amp = flags.level == 'O1'
  scaler = torch.amp.GradScaler(
      device, enabled=amp and low == torch.float16, init_scale=32768.0)
  optimizer = torch.optim.SGD(
      network.parameters(), lr=1e-3, momentum=0.9, fused=device == 'cuda')
  batch = task.batch(flags.batch, device, flags.sequence)

  def forward(*batch):
    return task.loss(network, *batch)

  if flags.compile != 'none':
    forward = torch.compile(forward, mode=flags.compile)

  def step():
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(device, dtype=low, enabled=amp):
      loss = forward(*batch)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss.detach()

  return step


def peak_rss():
  """The most memory that this process has held, in bytes."""
  return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(torch, flags, device, step):
  """Milliseconds of each of flags.steps steps, the first step's, the loss."""
  def wait():
    if device == 'cuda':
      torch.cuda.synchronize()

  begin = time.perf_counter()
  step()
  wait()
  first = 1000 * (time.perf_counter() - begin)
  for _ in range(flags.warmup - 1):
    loss = step()
  wait()
  if device == 'cuda':
    marks = [torch.cuda.Event(enable_timing=True)
             for _ in range(flags.steps + 1)]
    marks[0].record()
    for mark in marks[1:]:
      loss = step()
      mark.record()
    wait()
    times = [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
  else:
    times = []
    for _ in range(flags.steps):
      begin = time.perf_counter()
      loss = step()
      times.append(1000 * (time.perf_counter() - begin))
  return times, first, float(loss)


def main():
  flags = parse()
  try:
    import torch
  except ImportError:
    print('error    PyTorch is not here: pip install torch', file=sys.stderr)
    return 9
  device = 'cpu' if flags.cpu else 'cuda'
  if device == 'cuda' and not torch.cuda.is_available():
    print('error    PyTorch sees no GPU; --cpu measures the CPU',
          file=sys.stderr)
    return 9
  torch.backends.cuda.matmul.allow_tf32 = flags.tf32
  torch.backends.cudnn.allow_tf32 = flags.tf32
  torch.backends.cudnn.benchmark = True
  if flags.threads > 0:
    torch.set_num_threads(flags.threads)
  before = peak_rss()
  step = make_step(torch, flags, device)
  times, first, loss = measure(torch, flags, device, step)
  median = statistics.median(times)
  name = torch.cuda.get_device_name() if device == 'cuda' else 'cpu'
  print(json.dumps({
      'schema': 1, 'system': f'torch {torch.__version__}',
      'model': flags.model, 'level': flags.level, 'dtype': flags.dtype,
      'batch': flags.batch, 'device': name, 'compile': flags.compile,
      'steps': flags.steps, 'warmup': flags.warmup,
      'samples_per_second': 1000 * flags.batch / median, 'step_ms': median,
      'first_step_ms': first, 'rss_growth_bytes': peak_rss() - before,
      'loss': loss}))
  return 0


if __name__ == '__main__':
  sys.exit(main())
