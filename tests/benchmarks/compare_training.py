#!/usr/bin/env python3
"""training_benchmark beside PyTorch on the same tensors, and the ratios.

One core, f32 unless --dtype says otherwise. Prints a line per op: our
microseconds, PyTorch's, the ratio; the worst one last. Exit code 1 if that is
above --most.
"""

import sys

from ratios import compare


def cases(torch, dtype):
  """What PyTorch does for each case of training_benchmark: f()."""
  f, aten = torch.nn.functional, torch.ops.aten
  draw = lambda *dims: torch.randint(-8, 9, dims).to(dtype) / 8
  share = lambda *dims: torch.empty(dims).uniform_(0.1, 0.9).to(dtype)
  numbers = lambda n: torch.arange(n) * 37 % 100
  images, other = draw(64, 16, 28, 28), draw(64, 16, 28, 28)
  part, share_of = share(64, 16, 28, 28), share(64, 16, 28, 28)
  rows, row, column, number = (draw(1024, 784), draw(784), draw(1024, 1),
                               draw(1))
  table, taken, few, labels = (draw(8192, 256), draw(2048, 256),
                               numbers(2048), numbers(1024))
  padded, pooled, halves = (draw(64, 16, 30, 30), draw(8, 64, 56, 56),
                            draw(8, 64, 28, 28))
  slopes, ones, one = draw(16), torch.ones(16), torch.ones(1)
  instances = images.reshape(1, 1024, 28, 28), other.reshape(1, 1024, 28, 28)
  each = torch.ones(1024)
  chosen = numbers(8192)[:, None]
  rest = [1, 1], False

  # f, its gradient where the places of maxima are given, and where they are
  # not: PyTorch has no gradient without, its forward pass has to find them.
  def pool(kernel, padding, pooled, halves):
    forward = lambda: f.max_pool2d(pooled, kernel, 2, padding,
                                   return_indices=True)[1]
    backward = lambda places: aten.max_pool2d_with_indices_backward(
        halves, pooled, [kernel] * 2, [2, 2], [padding] * 2, *rest, places)
    given = forward()
    return (lambda: f.max_pool2d(pooled, kernel, 2, padding),
            lambda: backward(given), lambda: backward(forward()))

  tiles, overlapping = pool(2, 0, pooled, halves), pool(3, 1, pooled, halves)
  last = pool(3, 1, *(x.to(memory_format=torch.channels_last)
                      for x in (pooled, halves)))
  p, g, m, v = (torch.ones(802816) for _ in range(4))
  step = torch.ones(())
  adam = dict(lr=1.0, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-8,
              amsgrad=False, maximize=False)
  sgd = dict(weight_decay=0.0, lr=1.0, dampening=0.0, nesterov=False,
             maximize=False, is_first_step=False)
  made = {
      'embedding': lambda: f.embedding(few, table),
      'embedding_grad': lambda: aten.embedding_dense_backward(
          taken, few, 8192, -1, False),
      'scatter': lambda: torch.index_copy(table, 0, few, taken),
      'scatter_sums': lambda: torch.index_add(table, 0, few, taken),
      'index_select_columns': lambda: torch.index_select(rows, 1, few[:64]),
      'one_hot': lambda: torch.zeros(8192, 100, dtype=dtype).scatter_(
          1, chosen, 1),
      'nll_loss': lambda: f.nll_loss(rows, labels, reduction='none'),
      'nll_loss_grad': lambda: aten.nll_loss_backward(
          each.to(dtype), rows, labels, None, 0, -100, one.to(dtype)[0]),
      'bce_loss': lambda: f.binary_cross_entropy(part, share_of,
                                                 reduction='none'),
      'sigmoid_cross_entropy_grad': lambda: (torch.sigmoid(images) - part)
                                            * other,
      'prelu_channels': lambda: f.prelu(images, slopes),
      'prelu_by_x': lambda: torch.where(images > 0, one.to(dtype), number),
      'bias_of_rows': lambda: rows + row,
      'bias_of_channels': lambda: images + slopes[:, None, None],
      'column_times_rows': lambda: rows * column,
      'times_number': lambda: rows * number,
      'sum_of_rows': lambda: torch.sum(rows, 0),
      'sum_of_channels': lambda: torch.sum(images, (0, 2, 3)),
      'scale_bias': lambda: f.batch_norm(images, ones, ones, ones, ones),
      'instance_norm_grad': lambda: aten.native_batch_norm_backward(
          instances[1], instances[0], each, None, None, each, each, True, 1e-5,
          [True] * 3),
      'reflect_grad': lambda: aten.reflection_pad2d_backward(padded, images,
                                                             [1] * 4),
      'replicate_grad': lambda: aten.replication_pad2d_backward(
          padded, images, [1] * 4),
      'max_pool2d': tiles[0],
      'max_pool2d_grad': tiles[1],
      'max_pool2d_overlapping': overlapping[0],
      'max_pool2d_overlapping_grad': overlapping[2],
      'max_pool2d_channels_last': last[0],
      'max_pool2d_channels_last_grad': last[2],
      'max_pool2d_argmax': overlapping[0],
      'max_pool2d_argmax_grad': overlapping[1],
      'max_pool2d_argmax_channels_last': last[0],
      'max_pool2d_argmax_channels_last_grad': last[1],
      'avg_pool2d': lambda: f.avg_pool2d(pooled, 2),
      'avg_pool2d_grad': lambda: aten.avg_pool2d_backward(
          halves, pooled, [2, 2], [2, 2], [0, 0], False, True, None),
      'avg_pool2d_overlapping': lambda: f.avg_pool2d(
          pooled, 3, 2, 1, count_include_pad=False),
      'avg_pool2d_overlapping_grad': lambda: aten.avg_pool2d_backward(
          halves, pooled, [3, 3], [2, 2], [1, 1], False, False, None),
      'fill_constant': lambda: torch.full((64, 16, 28, 28), 0.5, dtype=dtype),
      'sgd': lambda: torch._fused_sgd_([p], [g], [], momentum=0.0, **sgd),
      'momentum': lambda: torch._fused_sgd_([p], [g], [m], momentum=0.9,
                                            **sgd),
      'adam': lambda: torch._fused_adam_([p], [g], [m], [v], [], [step],
                                         **adam),
      'adamw': lambda: torch._fused_adamw_([p], [g], [m], [v], [], [step],
                                           **adam),
  }
  for to, name in ((torch.float32, 'f32'), (torch.float16, 'f16'),
                   (torch.bfloat16, 'bf16')):
    made['cast_to_' + name] = lambda to=to: images.to(to, copy=True)
  return made


if __name__ == '__main__':
  sys.exit(compare(__doc__, 'training_benchmark', cases))
