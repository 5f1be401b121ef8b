#!/usr/bin/env python3
"""window_benchmark beside PyTorch on the same tensors, and the ratios.

One core, f32 unless --dtype says otherwise. Prints a line per op: our
microseconds, PyTorch's, the ratio; the worst one last. Exit code 1 if that is
above --most.
"""

import sys

from ratios import compare


def cases(torch, dtype):
  """What PyTorch does for each case of window_benchmark: f()."""
  f, aten = torch.nn.functional, torch.ops.aten
  draw = lambda *dims: torch.randint(-8, 9, dims).to(dtype) / 8
  sequence, sequence_filter = draw(16, 64, 512), draw(64, 64, 3)
  image, up_filter, up = draw(8, 64, 28, 28), draw(64, 32, 2, 2), draw(
      8, 32, 56, 56)
  twice, third = draw(8, 64, 56, 56), draw(8, 64, 9, 9)
  volume, volume_filter = draw(2, 16, 16, 32, 32), draw(16, 16, 3, 3, 3)
  half, volume_up = draw(2, 16, 8, 16, 16), draw(16, 16, 2, 2, 2)
  shuffled, bias, volume_bias = draw(8, 16, 56, 56), draw(32), draw(16)
  grid = draw(8, 56, 56, 2)
  places = f.max_pool3d(volume, 2, return_indices=True)[1]

  def gradient(grad, image, weight, stride, padding, mask):
    n = weight.dim() - 2
    return lambda: aten.convolution_backward(
        grad, image, weight, None, [stride] * n, [padding] * n, [1] * n, False,
        [0] * n, 1, mask)

  def sampler_gradient(mask):
    return lambda: aten.grid_sampler_2d_backward(twice, image, grid, 0, 0, True,
                                                 mask)

  return {
      'conv1d': lambda: f.conv1d(sequence, sequence_filter, padding=1),
      'conv3d': lambda: f.conv3d(volume, volume_filter, padding=1),
      'conv3d_grad_input': gradient(volume, volume, volume_filter, 1, 1,
                                    [True, False, False]),
      'conv3d_grad_filter': gradient(volume, volume, volume_filter, 1, 1,
                                     [False, True, False]),
      'conv2d_transpose': lambda: f.conv_transpose2d(image, up_filter, bias, 2),
      'conv2d_transpose_by_input': lambda: f.conv2d(up, up_filter, stride=2),
      'conv2d_transpose_by_filter': gradient(image, up, up_filter, 2, 0,
                                             [False, True, False]),
      'conv3d_transpose': lambda: f.conv_transpose3d(half, volume_up,
                                                     volume_bias, 2),
      'max_pool3d': lambda: f.max_pool3d(volume, 2),
      'max_pool3d_grad': lambda: aten.max_pool3d_with_indices_backward(
          half, volume, [2] * 3, [2] * 3, [0] * 3, [1] * 3, False, places),
      'avg_pool3d': lambda: f.avg_pool3d(volume, 2),
      'avg_pool3d_grad': lambda: aten.avg_pool3d_backward(
          half, volume, [2] * 3, [2] * 3, [0] * 3, False, True, None),
      'adaptive_avg_pool2d': lambda: f.adaptive_avg_pool2d(image, 9),
      'adaptive_avg_pool2d_grad': lambda: aten._adaptive_avg_pool2d_backward(
          third, image),
      'bilinear': lambda: f.interpolate(image, scale_factor=2,
                                        mode='bilinear'),
      'bilinear_grad': lambda: aten.upsample_bilinear2d_backward(
          twice, twice.shape[2:], image.shape, False, 2.0, 2.0),
      'nearest': lambda: f.interpolate(image, scale_factor=2),
      'nearest_grad': lambda: aten.upsample_nearest2d_backward(
          twice, twice.shape[2:], image.shape, 2.0, 2.0),
      'trilinear': lambda: f.interpolate(half, scale_factor=2,
                                         mode='trilinear'),
      'trilinear_grad': lambda: aten.upsample_trilinear3d_backward(
          volume, volume.shape[2:], half.shape, False, 2.0, 2.0, 2.0),
      'bicubic': lambda: f.interpolate(image, scale_factor=2, mode='bicubic'),
      'bicubic_grad': lambda: aten.upsample_bicubic2d_backward(
          twice, twice.shape[2:], image.shape, False, 2.0, 2.0),
      'grid_sampler': lambda: f.grid_sample(image, grid, align_corners=True),
      'grid_sampler_grad_input': sampler_gradient([True, False]),
      'grid_sampler_grad_grid': sampler_gradient([False, True]),
      'pixel_shuffle': lambda: f.pixel_shuffle(image, 2),
      'pixel_unshuffle': lambda: f.pixel_unshuffle(shuffled, 2),
  }


if __name__ == '__main__':
  sys.exit(compare(__doc__, 'window_benchmark', cases))
