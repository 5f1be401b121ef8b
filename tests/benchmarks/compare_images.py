#!/usr/bin/env python3
"""data_benchmark's pictures beside torchvision's pipeline on Pillow.

Both decode JPEGs of 500 x 375 (the same edges and noise), cut out and resize a
random part to 224 x 224, flip half of them; torchvision's also makes a tensor of
it and normalises, which is the model's here. CPU time on one core: ours,
torchvision's, the ratio. Exit code 1 if we are not --least times as fast.
"""

import argparse
import io
import json
import subprocess
import sys
import time

PICTURES = 32


def photographs(np, image):
  """As Photograph of data_benchmark.cc, in files."""
  random = np.random.default_rng(1)
  y, x = np.mgrid[0:375, 0:500]
  across, down = 200 * x // 500, 200 * y // 375
  smooth = np.stack([across + 20, down + 40, (across + down) // 2], -1)
  edges = np.where((x // 25 + y // 25) % 2 == 0, 60, 0)[..., None]
  files = []
  for _ in range(PICTURES):
    noise = random.integers(0, 16, smooth.shape)
    pixels = (smooth // 2 + edges + noise).astype(np.uint8)
    content = io.BytesIO()
    image.fromarray(pixels).save(content, 'JPEG', quality=87)
    files.append(content.getvalue())
  return files


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--rounds', type=int, default=5)
  parser.add_argument('--least', type=float, default=1.3)
  parser.add_argument('--data-benchmark', dest='binary',
                      default='bazel-bin/tests/benchmarks/data_benchmark')
  flags = parser.parse_args()
  import numpy as np
  import torch
  from PIL import Image
  from torchvision import transforms
  torch.set_num_threads(1)
  change = transforms.Compose([
      transforms.RandomResizedCrop(224),
      transforms.RandomHorizontalFlip(),
      transforms.ToTensor(),
      transforms.Normalize([.485, .456, .406], [.229, .224, .225])
  ])
  files = photographs(np, Image)
  theirs, ours = float('inf'), float('inf')
  for _ in range(flags.rounds):
    start = time.process_time()
    for content in files:
      change(Image.open(io.BytesIO(content)).convert('RGB'))
    theirs = min(theirs, (time.process_time() - start) / PICTURES * 1e6)
    done = subprocess.run([flags.binary, '--benchmark_format=json',
                           '--benchmark_filter=Jpegs'],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True)
    ours = min(ours, json.loads(done.stdout)['benchmarks'][0]['cpu_time'])
  print(f'JPEG 500x375 to 224x224: {ours:.0f} us, torchvision {theirs:.0f} us, '
        f'{theirs / ours:.2f} times as fast, {1e6 / ours:.0f} images/s')
  return 0 if theirs / ours >= flags.least else 1


if __name__ == '__main__':
  sys.exit(main())
