"""A benchmark's times beside PyTorch's, on one core.

What counts is the thread's own time: a core that is shared changes it little.
"""

import argparse
import json
import re
import subprocess
import time


def microseconds(function, rounds):
  """The least of several rounds of calls that take 20 ms or more together."""
  start = time.thread_time()
  function()
  calls = max(1, int(0.02 / max(time.thread_time() - start, 1e-6)))
  best = float('inf')
  for _ in range(rounds):
    start = time.thread_time()
    for _ in range(calls):
      function()
    best = min(best, (time.thread_time() - start) / calls)
  return best * 1e6


def ours(binary, flags):
  """Microseconds by case, the least of the rounds."""
  done = subprocess.run(
      [binary, '--benchmark_format=json',
       '--benchmark_min_time=0.02', f'--benchmark_repetitions={flags.rounds}',
       f'--benchmark_filter=^({flags.filter})/{flags.dtype}$'],
      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
  best = {}
  for run in json.loads(done.stdout)['benchmarks']:
    if run.get('run_type') == 'aggregate':
      continue
    name = run['name'].split('/')[0]
    best[name] = min(best.get(name, float('inf')), run['cpu_time'])
  return best


def compare(doc, benchmark, cases_of):
  """Runs a benchmark and PyTorch beside it, and prints a line per case.

  benchmark: the binary's name in tests/benchmarks. cases_of(torch, dtype): what
  PyTorch does for each case: f(), or the two of which the first is to be timed
  less the second. The exit code: 1 if the worst ratio is above --most.
  """
  parser = argparse.ArgumentParser(description=doc.splitlines()[0])
  parser.add_argument('--dtype', default='f32', choices=('f32', 'bf16', 'f16'))
  parser.add_argument('--filter', default='.*', help='a regular expression')
  parser.add_argument('--rounds', type=int, default=7)
  parser.add_argument('--most', type=float, default=1.5)
  parser.add_argument('--' + benchmark.replace('_', '-'), dest='binary',
                      default='bazel-bin/tests/benchmarks/' + benchmark)
  flags = parser.parse_args()
  import torch
  torch.set_num_threads(1)
  torch.manual_seed(1)
  dtype = {'f32': torch.float32, 'bf16': torch.bfloat16,
           'f16': torch.float16}[flags.dtype]
  mine = ours(flags.binary, flags)
  worst = ('', 0.0)
  for name, function in cases_of(torch, dtype).items():
    if name not in mine or not re.fullmatch(flags.filter, name):
      continue
    try:
      whole, part = function if isinstance(function, tuple) else (function,
                                                                  None)
      theirs = microseconds(whole, flags.rounds)
      if part:
        theirs -= microseconds(part, flags.rounds)
    except NotImplementedError:
      print(f'{name:27} {mine[name]:8.0f} us  torch has none')
      continue
    ratio = mine[name] / theirs
    worst = max(worst, (name, ratio), key=lambda pair: pair[1])
    print(f'{name:27} {mine[name]:8.0f} us  torch {theirs:8.0f} us  '
          f'ratio {ratio:5.2f}', flush=True)
  print(f'worst    {worst[0]} {worst[1]:.2f}')
  return 1 if worst[1] > flags.most else 0
