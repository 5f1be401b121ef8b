"""The zoo's models in PyTorch, parameter for parameter, without torchvision."""

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


# name: (model, channels, height and width, classes, parameters)
MODELS = {
    'resnet50': (resnet50, 3, 224, 1000, 25557032),
    'vgg16': (vgg16, 3, 224, 1000, 138357544),
    'mnist_convnet': (mnist_convnet, 1, 28, 10, 29034),
}
