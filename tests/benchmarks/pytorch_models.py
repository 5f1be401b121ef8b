"""The zoo's models in PyTorch, parameter for parameter.

mobilenet_v2 is torchvision's, bert_base and gpt2 are those of transformers,
where these are installed.
"""

import torch
from torch import nn


def _conv(inputs, outputs, size, stride=1, bias=False):
  conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=bias)
  nn.init.kaiming_normal_(conv.weight, nonlinearity='relu')
  if bias:
    nn.init.zeros_(conv.bias)
  return conv


class Bottleneck(nn.Module):
  """1x1, 3x3 with the stride (v1.5), 1x1, beside a shortcut."""

  def __init__(self, inputs, width, stride):
    super().__init__()
    outputs = 4 * width
    self.body = nn.Sequential(
        _conv(inputs, width, 1), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
        _conv(width, width, 3, stride), nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        _conv(width, outputs, 1), nn.BatchNorm2d(outputs))
    self.shortcut = nn.Identity()
    if inputs != outputs:
      self.shortcut = nn.Sequential(
          _conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
    self.relu = nn.ReLU(inplace=True)

  def forward(self, x):
    return self.relu(self.body(x) + self.shortcut(x))


def resnet50():
  layers = [_conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1)]
  inputs = 64
  for layer, blocks in enumerate((3, 4, 6, 3)):
    width = 64 << layer
    for block in range(blocks):
      layers.append(
          Bottleneck(inputs, width, 2 if layer > 0 and block == 0 else 1))
      inputs = 4 * width
  layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)]
  return nn.Sequential(*layers)


def vgg16():
  layers, inputs = [], 3
  for stage, convs in enumerate((2, 2, 3, 3, 3)):
    outputs = min(64 << stage, 512)
    for _ in range(convs):
      layers += [_conv(inputs, outputs, 3, bias=True), nn.ReLU(inplace=True)]
      inputs = outputs
    layers.append(nn.MaxPool2d(2, 2))
  layers.append(nn.Flatten())
  inputs *= 7 * 7
  for _ in range(2):
    layers += [nn.Linear(inputs, 4096), nn.ReLU(inplace=True), nn.Dropout(0.5)]
    inputs = 4096
  return nn.Sequential(*layers, nn.Linear(inputs, 1000))


def mnist_convnet():
  return nn.Sequential(
      nn.Conv2d(1, 16, 5, padding=2), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
      nn.MaxPool2d(2), nn.Conv2d(16, 32, 5, padding=2), nn.BatchNorm2d(32),
      nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
      nn.Linear(32 * 7 * 7, 10))


def mlp():
  return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(),
                       nn.Linear(256, 10))


def mobilenet_v2():
  import torchvision
  return torchvision.models.mobilenet_v2()


def bert_base():
  import transformers
  return transformers.BertForSequenceClassification(
      transformers.BertConfig(num_labels=2))


def gpt2():
  import transformers
  return transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))


class Images:
  """Pixels as bytes, normalised in the step, and a class for each image."""

  def __init__(self, channels, size, classes):
    self.channels, self.size, self.classes = channels, size, classes
    self.criterion = nn.CrossEntropyLoss()

  def batch(self, count, device, sequence):
    del sequence
    shape = (count, self.channels, self.size, self.size)
    pixels = torch.randint(0, 256, shape, dtype=torch.uint8, device=device)
    return (pixels.to(memory_format=torch.channels_last),
            torch.randint(0, self.classes, (count,), device=device))

  def loss(self, network, images, labels):
    return self.criterion(
        network(images.float().sub(127.5).div(127.5)), labels)


class Tokens:
  """Rows of tokens, and a class for each row or the token behind each."""

  def __init__(self, vocabulary, sequence, classes=0):
    self.vocabulary, self.sequence = vocabulary, sequence
    self.classes = classes

  def batch(self, count, device, sequence):
    shape = (count, sequence or self.sequence)
    tokens = torch.randint(0, self.vocabulary, shape, device=device)
    if self.classes == 0:
      return tokens, torch.randint(0, self.vocabulary, shape, device=device)
    return (tokens, torch.randint(0, self.classes, (count,), device=device),
            torch.randint(0, 2, shape, device=device),
            torch.ones(shape, dtype=torch.int64, device=device))

  def loss(self, network, tokens, labels, kinds=None, mask=None):
    extra = {} if kinds is None else {
        'token_type_ids': kinds, 'attention_mask': mask}
    return network(input_ids=tokens, labels=labels, **extra).loss


# name: (model, what it is trained on, parameters)
MODELS = {
    'resnet50': (resnet50, Images(3, 224, 1000), 25557032),
    'vgg16': (vgg16, Images(3, 224, 1000), 138357544),
    'mobilenet_v2': (mobilenet_v2, Images(3, 224, 1000), 3504872),
    'bert_base': (bert_base, Tokens(30522, 512, classes=2), 109483778),
    'gpt2': (gpt2, Tokens(50257, 1024), 124439808),
    'mnist_convnet': (mnist_convnet, Images(1, 28, 10), 29034),
    'mlp': (mlp, Images(1, 28, 10), 203530),
}
