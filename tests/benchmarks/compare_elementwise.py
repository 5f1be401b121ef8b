#!/usr/bin/env python3
"""elementwise_benchmark beside PyTorch on the same tensor, and the ratios.

One core, f32 unless --dtype says otherwise, 64 images of 16 x 28 x 28. Prints a
line per op: our microseconds, PyTorch's, the ratio; the worst one last. Exit
code 1 if that is above --most.
"""

import sys

from ratios import compare


def cases(torch):
  """What PyTorch does for each case of elementwise_benchmark: f(x, y)."""
  f, aten = torch.nn.functional, torch.ops.aten
  root = 2 / 3.141592653589793 ** 0.5
  copy = torch.contiguous_format
  eight = torch.tensor([7, 0, 3, 3, 20, 1, 9, 27])
  made = {}

  def every_third(x):
    if x.shape not in made:
      made[x.shape] = (torch.arange(x.numel()) % 3 == 0).reshape(x.shape)
    return made[x.shape]

  def ones(dims, like=None):
    dtype = torch.float32 if like is None else like.dtype
    if (dims, dtype) not in made:
      made[dims, dtype] = torch.ones(dims, dtype=dtype)
    return made[dims, dtype]

  def classes(n):
    if n not in made:
      made[n] = torch.arange(n) * 11 % 28
    return made[n]

  def less_one(p):
    p[torch.arange(1024), classes(1024)] -= 1
    return p

  rows = lambda x: x.reshape(1024, 784)
  half = lambda x: torch.full([1], 0.25, dtype=x.dtype)
  return {
      'gelu': lambda x, y: f.gelu(x),
      'gelu_tanh': lambda x, y: f.gelu(x, approximate='tanh'),
      'gelu_grad': lambda x, y: aten.gelu_backward(y, x),
      'gelu_grad_tanh': lambda x, y: aten.gelu_backward(y, x,
                                                        approximate='tanh'),
      'tanh': lambda x, y: torch.tanh(x),
      'tanh_grad': lambda x, y: aten.tanh_backward(y, x),
      'sigmoid': lambda x, y: torch.sigmoid(x),
      'sigmoid_grad': lambda x, y: aten.sigmoid_backward(y, x),
      'exp': lambda x, y: torch.exp(x),
      'log': lambda x, y: torch.log(x),
      'sqrt': lambda x, y: torch.sqrt(x),
      'rsqrt': lambda x, y: torch.rsqrt(x),
      'relu': lambda x, y: f.relu(x),
      'square': lambda x, y: torch.square(x),
      'abs': lambda x, y: torch.abs(x),
      'scale': lambda x, y: x * 1.5,
      'clip': lambda x, y: torch.clamp(x, -1, 1),
      'clip_grad': lambda x, y: aten.hardtanh_backward(y, x, -1, 1),
      'neg': lambda x, y: torch.neg(x),
      'swish': lambda x, y: f.silu(x),
      'hard_tanh': lambda x, y: f.hardtanh(x),
      'relu_grad': lambda x, y: aten.threshold_backward(y, x, 0),
      'abs_grad': lambda x, y: y * torch.sign(x),
      'swish_grad': lambda x, y: aten.silu_backward(y, x),
      'hard_tanh_grad': lambda x, y: aten.hardtanh_backward(y, x, -1, 1),
      'add': lambda x, y: x + y,
      'sub': lambda x, y: x - y,
      'mul': lambda x, y: x * y,
      'sum': lambda x, y: x + y,
      'square_error_cost': lambda x, y: f.mse_loss(x, y, reduction='none'),
      'div': lambda x, y: x / y,
      'max': lambda x, y: torch.maximum(x, y),
      'min': lambda x, y: torch.minimum(x, y),
      'power': lambda x, y: torch.pow(x, y),
      'prelu': lambda x, y: f.prelu(x, half(x)),
      'reciprocal': lambda x, y: torch.reciprocal(x),
      'reciprocal_grad': lambda x, y: -y * (x * x),
      'floor': lambda x, y: torch.floor(x),
      'ceil': lambda x, y: torch.ceil(x),
      'round': lambda x, y: torch.round(x),
      'sign': lambda x, y: torch.sign(x),
      'sin': lambda x, y: torch.sin(x),
      'cos': lambda x, y: torch.cos(x),
      'atan': lambda x, y: torch.atan(x),
      'erf': lambda x, y: torch.erf(x),
      'erf_grad': lambda x, y: root * torch.exp(-(x.pow(2))) * y,
      'pow_2': lambda x, y: torch.pow(x, 2),
      'pow_3': lambda x, y: torch.pow(x, 3),
      'pow_2.5': lambda x, y: torch.pow(x, 2.5),
      'relu6': lambda x, y: f.relu6(x),
      'relu6_grad': lambda x, y: aten.hardtanh_backward(y, x, 0, 6),
      'brelu': lambda x, y: f.hardtanh(x),
      'brelu_grad': lambda x, y: aten.hardtanh_backward(y, x, -1, 1),
      'leaky_relu': lambda x, y: f.leaky_relu(x),
      'leaky_relu_grad': lambda x, y: aten.leaky_relu_backward(y, x, 0.02,
                                                               False),
      'elu': lambda x, y: f.elu(x),
      'elu_grad': lambda x, y: aten.elu_backward(y, 1, 1, 1, False, x),
      'silu': lambda x, y: f.silu(x),
      'silu_grad': lambda x, y: aten.silu_backward(y, x),
      'hard_swish': lambda x, y: f.hardswish(x),
      'hard_swish_grad': lambda x, y: aten.hardswish_backward(y, x),
      'hard_sigmoid': lambda x, y: f.hardsigmoid(x),
      'hard_sigmoid_grad': lambda x, y: aten.hardsigmoid_backward(y, x),
      'softplus': lambda x, y: f.softplus(x),
      'softplus_grad': lambda x, y: aten.softplus_backward(y, x, 1, 20),
      'mish': lambda x, y: f.mish(x),
      'mish_grad': lambda x, y: aten.mish_backward(y, x),
      'equal': lambda x, y: torch.eq(x, y),
      'less_than': lambda x, y: torch.lt(x, y),
      'logical_and': lambda x, y: torch.logical_and(x, y),
      'logical_not': lambda x, y: torch.logical_not(x),
      'reduce_max': lambda x, y: torch.amax(x),
      'reduce_max_rows': lambda x, y: torch.amax(x, -1),
      'reduce_max_images': lambda x, y: torch.amax(x, 0),
      'reduce_min': lambda x, y: torch.amin(x),
      'reduce_sum': lambda x, y: torch.sum(x),
      'reduce_sum_rows': lambda x, y: torch.sum(x, -1),
      'reduce_sum_images': lambda x, y: torch.sum(x, 0),
      'reduce_mean_planes': lambda x, y: torch.mean(x, (2, 3)),
      'reduce_prod_rows': lambda x, y: torch.prod(x, -1),
      'arg_max_rows': lambda x, y: torch.argmax(x, -1),
      'arg_max_images': lambda x, y: torch.argmax(x, 0),
      'arg_max_all': lambda x, y: torch.argmax(x),
      'arg_min_rows': lambda x, y: torch.argmin(x, -1),
      'top_k': lambda x, y: torch.topk(rows(x), 5),
      'p_norm_rows': lambda x, y: torch.linalg.vector_norm(x, 2, -1),
      'p_norm_all': lambda x, y: torch.linalg.vector_norm(x, 2),
      'p_norm_3': lambda x, y: torch.linalg.vector_norm(x, 3, -1),
      'cumsum_rows': lambda x, y: torch.cumsum(x, -1),
      'cumsum_images': lambda x, y: torch.cumsum(x, 0),
      'log_softmax': lambda x, y: torch.log_softmax(x, -1),
      'log_softmax_grad': lambda x, y: aten._log_softmax_backward_data(
          y, x, -1, x.dtype),
      'where': lambda x, y: torch.where(every_third(x), x, y),
      'slice_channels': lambda x, y: x[:, 4:12].clone(memory_format=copy),
      'slice_columns': lambda x, y: x[..., 2:26].clone(memory_format=copy),
      'strided_slice': lambda x, y: x[..., ::2, ::2].clone(memory_format=copy),
      'flip_columns': lambda x, y: torch.flip(x, (-1,)),
      'flip_images': lambda x, y: torch.flip(x, (0,)),
      'pad': lambda x, y: f.pad(x, (1, 1, 1, 1)),
      'pad3d_reflect': lambda x, y: f.pad(x, (1, 1, 1, 1), mode='reflect'),
      'expand': lambda x, y: x.expand(2, *x.shape).clone(memory_format=copy),
      'transpose': lambda x, y: x.permute(0, 2, 3, 1).clone(
          memory_format=copy),
      'assign': lambda x, y: x.clone(),
      'tile': lambda x, y: torch.tile(x, (2,)),
      'concat_channels': lambda x, y: torch.cat((x, y), 1),
      'concat_columns': lambda x, y: torch.cat((x, y), 3),
      'stack_last': lambda x, y: torch.stack((x, y), -1),
      'split_columns': lambda x, y: [part.clone(memory_format=copy)
                                     for part in torch.split(x, 14, 3)],
      'gather_images': lambda x, y: torch.index_select(x, 0, eight),
      'gather_columns': lambda x, y: torch.index_select(x, 3, eight),
      'softmax': lambda x, y: torch.softmax(x, -1),
      'huber_loss': lambda x, y: f.huber_loss(x, y, reduction='none'),
      'sigmoid_cross_entropy': lambda x, y: f.binary_cross_entropy_with_logits(
          x, y, reduction='none'),
      'kldiv_loss': lambda x, y: f.kl_div(x, y, reduction='none'),
      'label_smooth': lambda x, y: x * 0.9 + 0.1 / 28,
      'soft_cross_entropy': lambda x, y: f.cross_entropy(
          rows(x), rows(y), reduction='none'),
      'cross_entropy': lambda x, y: f.cross_entropy(
          rows(x), classes(1024), reduction='none'),
      'cross_entropy_grad': lambda x, y: less_one(torch.softmax(rows(x), -1)),
      'softmax_rows': lambda x, y: torch.softmax(rows(x), -1),
      'softmax_grad': lambda x, y: aten._softmax_backward_data(y, x, -1,
                                                               x.dtype),
      'softmax_grad_rows': lambda x, y: aten._softmax_backward_data(
          rows(y), rows(x), -1, x.dtype),
      'log_softmax_rows': lambda x, y: torch.log_softmax(rows(x), -1),
      'log_softmax_grad_rows': lambda x, y: aten._log_softmax_backward_data(
          rows(y), rows(x), -1, x.dtype),
      'batch_norm': lambda x, y: aten.native_batch_norm(
          x, ones(16), ones(16), None, None, True, 0.1, 1e-5),
      'batch_norm_grad': lambda x, y: aten.native_batch_norm_backward(
          y, x, ones(16), None, None, ones(16), ones(16), True, 1e-5,
          [True] * 3),
      'layer_norm': lambda x, y: f.layer_norm(
          rows(x), [784], ones(784, x), ones(784, x)),
      'layer_norm_short': lambda x, y: f.layer_norm(
          x, [28], ones(28, x), ones(28, x)),
      'layer_norm_grad': lambda x, y: aten.native_layer_norm_backward(
          rows(y), rows(x), [784], ones((1024, 1), x), ones((1024, 1), x),
          ones(784, x), ones(784, x), [True] * 3),
      'rms_norm': lambda x, y: f.rms_norm(rows(x), [784], ones(784, x)),
      'group_norm': lambda x, y: f.group_norm(x, 4, ones(16, x), ones(16, x)),
      'group_norm_grad': lambda x, y: aten.native_group_norm_backward(
          y, x, ones((64, 4), x), ones((64, 4), x), ones(16, x), 64, 16, 784,
          4, [True] * 3),
      'instance_norm': lambda x, y: f.instance_norm(
          x, weight=ones(16, x), bias=ones(16, x)),
      'mean': lambda x, y: torch.mean(x),
  }


def drawn_cases(torch, dtype):
  """The cases with their tensors, as elementwise_benchmark draws them."""
  shape = (64, 16, 28, 28)
  # Both signs, or above 0 alone.
  above = torch.empty(shape).uniform_(0.05, 3)
  signs = torch.ones(above.numel())
  signs[::2] = -1
  signed = (above * signs.reshape(shape)).to(dtype)
  above = above.to(dtype)
  other = above.flip(0)
  positive = ('log', 'sqrt', 'rsqrt', 'pow_2.5', 'power')

  def bound(name, function):
    x = above if name in positive else signed
    return lambda: function(x, other)

  return {name: bound(name, function)
          for name, function in cases(torch).items()}


if __name__ == '__main__':
  sys.exit(compare(__doc__, 'elementwise_benchmark', drawn_cases))
