#!/usr/bin/env python3
"""train_benchmark and pytorch_benchmark.py in alternation, and their ratio.

The two take turns --rounds times in one run, on the first device of
CUDA_VISIBLE_DEVICES; the ratio is that of the medians over the rounds. Prints a
line per round and, last, one of JSON. Exit code: that of whichever cannot be
measured.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def last_line(command):
  """The JSON that a benchmark ends with; ends this program if there is none."""
  done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
  if done.returncode != 0:
    print(f'error    {" ".join(command)}: exit code {done.returncode}',
          file=sys.stderr)
    sys.exit(done.returncode if done.returncode > 0 else 1)
  return json.loads(done.stdout.splitlines()[-1])


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--model', default='resnet50')
  parser.add_argument('--level', default='O1')
  parser.add_argument('--dtype', default='fp16')
  parser.add_argument('--batch', type=int, default=256)
  parser.add_argument('--steps', type=int, default=50)
  parser.add_argument('--warmup', type=int, default=10)
  parser.add_argument('--rounds', type=int, default=3)
  parser.add_argument('--sequence', type=int, default=0)
  parser.add_argument('--threads', type=int, default=0)
  parser.add_argument('--cpu', action='store_true')
  parser.add_argument('--compile', default='max-autotune')
  parser.add_argument('--train-benchmark',
                      default=os.path.join(HERE, 'train_benchmark'))
  flags = parser.parse_args()
  common = [f'--{name}={getattr(flags, name)}'
            for name in ('model', 'level', 'dtype', 'batch', 'steps', 'warmup')]
  common += [f'--{name}={getattr(flags, name)}'
             for name in ('sequence', 'threads') if getattr(flags, name)]
  ours = [flags.train_benchmark] + common
  theirs = [sys.executable, os.path.join(HERE, 'pytorch_benchmark.py'),
            f'--compile={flags.compile}'] + common
  if flags.cpu:
    theirs.append('--cpu')
  else:
    ours.append('--gpu=0')
    os.environ.setdefault('CUDA_VISIBLE_DEVICES', '0')
  speeds = {'halftone': [], 'torch': []}
  firsts = {'halftone': [], 'torch': []}
  memory = {}
  for number in range(flags.rounds):
    for system, command in (('halftone', ours), ('torch', theirs)):
      result = last_line(command)
      speeds[system].append(result['samples_per_second'])
      firsts[system].append(result['first_step_ms'] / result['step_ms'])
      memory[system] = result['rss_growth_bytes']
      print(f'round {number + 1}  {result["system"]:14}  '
            f'{result["samples_per_second"]:10.1f} samples/s  '
            f'{result["step_ms"]:9.3f} ms', flush=True)
  medians = {name: statistics.median(values) for name, values in speeds.items()}
  print(json.dumps({
      'schema': 1, 'model': flags.model, 'level': flags.level,
      'dtype': flags.dtype, 'batch': flags.batch, 'rounds': flags.rounds,
      'halftone_samples_per_second': medians['halftone'],
      'torch_samples_per_second': medians['torch'],
      'ratio': medians['halftone'] / medians['torch'],
      'first_step_in_steps': {
          name: statistics.median(values) for name, values in firsts.items()},
      'memory_ratio': memory['halftone'] / memory['torch'],
      'spread': {name: (max(values) - min(values)) / medians[name]
                 for name, values in speeds.items()}}))
  return 0


if __name__ == '__main__':
  sys.exit(main())
