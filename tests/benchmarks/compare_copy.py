#!/usr/bin/env python3
"""Bytes per second of element-wise ops, norms and updates beside a copy's.

On all cores, whose copies share the memory, for the machine's copy bandwidth is
the measure, or on one. Tensors that caches do not hold; what an op reads and
writes counts once; a copy of as many bytes, on as many threads, is timed in the
same run. Prints a line per op, the worst first: milliseconds, GB/s, the share of
a copy's. Exit code 1 if one is below --least.
"""

import argparse
import json
import re
import subprocess
import sys

# Their bytes say little: they read a part of a tensor, or one part again.
ELSEWHERE = ('gather.*|slice_.*|strided_slice|embedding.*|index_select.*|one_hot|'
             'nll_loss.*|.*pool2d.*|.*_grad_filter')


SUFFIXES = {'one': '', 'all': '/all/real_time'}


def runs(binary, flags):
  """(name, milliseconds, GB/s, share) by case, the best of the rounds."""
  def ask(*arguments):
    return subprocess.run([binary, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True).stdout.decode()

  suffix = f'/{flags.dtype}/large' + SUFFIXES[flags.threads]
  names = [line[:-len(suffix)]
           for line in ask('--benchmark_list_tests').splitlines()
           if line.endswith(suffix)]
  names = [name for name in names if re.fullmatch(flags.filter, name)
           and not re.fullmatch(ELSEWHERE, name)]
  if not names:
    return []
  output = ask('--benchmark_format=json', '--benchmark_min_time=0.1',
               f'--benchmark_repetitions={flags.rounds}',
               f'--benchmark_filter=^({"|".join(names)}){suffix}$')
  best = {}
  for run in json.loads(output)['benchmarks']:
    name = run['name'].split('/')[0]
    if run.get('run_type') == 'aggregate':
      continue
    timed = 'cpu_time' if flags.threads == 'one' else 'real_time'
    line = (run['of_copy'], run['bytes_per_second'] / 1e9, run[timed] / 1e3,
            name)
    best[name] = max(best.get(name, line), line)
  return best.values()


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--dtype', default='f32', choices=('f32', 'bf16', 'f16'))
  parser.add_argument('--threads', default='all', choices=SUFFIXES)
  parser.add_argument('--filter', default='.*',
                      help='a regular expression')
  parser.add_argument('--rounds', type=int, default=2)
  parser.add_argument('--least', type=float, default=0.7)
  parser.add_argument('--binaries', nargs='*', default=[
      'bazel-bin/tests/benchmarks/elementwise_benchmark',
      'bazel-bin/tests/benchmarks/training_benchmark'])
  flags = parser.parse_args()
  lines = sorted(line for binary in flags.binaries
                 for line in runs(binary, flags))
  for share, rate, milliseconds, name in lines:
    print(f'{name:27} {milliseconds:8.1f} ms {rate:6.1f} GB/s  '
          f'of a copy {share:5.2f}')
  return 1 if lines and lines[0][0] < flags.least else 0


if __name__ == '__main__':
  sys.exit(main())
