#include "graph/io/zoo.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/io/zoo_builder.h"

namespace halftone {
namespace {

proto::Model MnistConvnet() {
  ZooBuilder b("mnist_convnet");
  std::string x = b.Images(1, 28, {}, {255});
  x = b.Conv("conv1", x, 1, 16, {5, 1, 2}, /*bias=*/true);
  x = b.Relu("relu1", b.BatchNorm("bn1", x, 16));
  x = b.MaxPool("pool1", x, {2, 2, 0});
  x = b.Conv("conv2", x, 16, 32, {5, 1, 2}, /*bias=*/true);
  x = b.Relu("relu2", b.BatchNorm("bn2", x, 32));
  x = b.MaxPool("pool2", x, {2, 2, 0});
  x = b.Flatten("flat", x);
  x = b.LinearAndAdd("fc", "logits", x, 32 * 7 * 7, 10);
  b.Classify(x, /*top5=*/false);
  return b.Take();
}

proto::Model Mlp() {
  ZooBuilder b("mlp");
  std::string x = b.Flatten("flat", b.Images(1, 28, {}, {255}));
  x = b.Relu("relu1", b.Linear("fc1", "fc1", x, 28 * 28, 256));
  x = b.Linear("fc2", "logits", x, 256, 10);
  b.Classify(x, /*top5=*/false);
  return b.Take();
}

// Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where
// the shape changes.
std::string BasicBlock(ZooBuilder& b, const std::string& name,
                       const std::string& x, int64_t in, int64_t out,
                       int64_t stride) {
  std::string y =
      b.Conv(name + "/conv1", x, in, out, {3, stride, 1}, /*bias=*/false);
  y = b.Relu(name + "/relu1", b.BatchNorm(name + "/bn1", y, out));
  y = b.Conv(name + "/conv2", y, out, out, {3, 1, 1}, /*bias=*/false);
  y = b.BatchNorm(name + "/bn2", y, out);
  std::string shortcut = x;
  if (in != out) {
    shortcut = b.Conv(name + "/down_conv", x, in, out, {1, stride, 0},
                      /*bias=*/false);
    shortcut = b.BatchNorm(name + "/down_bn", shortcut, out);
  }
  return b.Relu(name + "/relu2", b.Add(name + "/add", y, shortcut));
}

proto::Model SmallResnet() {
  ZooBuilder b("small_resnet");
  std::string x = b.Images(1, 28, {}, {255});
  x = b.Conv("conv1", x, 1, 8, {3, 1, 1}, /*bias=*/false);
  x = b.Relu("relu1", b.BatchNorm("bn1", x, 8));
  x = BasicBlock(b, "layer1", x, 8, 8, 1);
  x = BasicBlock(b, "layer2", x, 8, 16, 2);
  x = BasicBlock(b, "layer3", x, 16, 32, 2);
  x = b.Flatten("flat", b.GlobalAveragePool("pool", x));
  x = b.LinearAndAdd("fc", "logits", x, 32, 10);
  b.Classify(x, /*top5=*/false);
  return b.Take();
}

// ImageNet's mean and standard deviation, of pixels 0 to 255.
std::string ImageNet(ZooBuilder& b) {
  return b.Images(3, 224, {123.675, 116.28, 103.53}, {58.395, 57.12, 57.375});
}

// 1x1, 3x3, 1x1 beside a shortcut; the stride is that of the 3x3 (v1.5).
std::string Bottleneck(ZooBuilder& b, const std::string& name,
                       const std::string& x, int64_t in, int64_t width,
                       int64_t stride) {
  const int64_t out = 4 * width;
  const auto conv = [&](const std::string& which, const std::string& input,
                        int64_t from, int64_t to, const Window& window) {
    const std::string made =
        b.DeepConv(absl::StrCat(name, "/", which, "conv"), input, from, to,
                   window, /*bias=*/false);
    return b.BatchNorm(absl::StrCat(name, "/", which, "bn"), made, to);
  };
  std::string y = b.Relu(name + "/a_relu", conv("a_", x, in, width, {1, 1, 0}));
  y = b.Relu(name + "/b_relu", conv("b_", y, width, width, {3, stride, 1}));
  y = conv("c_", y, width, out, {1, 1, 0});
  const std::string shortcut =
      in == out ? x : conv("down_", x, in, out, {1, stride, 0});
  return b.Relu(name + "/relu", b.Add(name + "/add", y, shortcut));
}

proto::Model Resnet50() {
  ZooBuilder b("resnet50");
  std::string x =
      b.DeepConv("conv1", ImageNet(b), 3, 64, {7, 2, 3}, /*bias=*/false);
  x = b.Relu("relu1", b.BatchNorm("bn1", x, 64));
  x = b.MaxPool("pool1", x, {3, 2, 1});
  const int64_t blocks[] = {3, 4, 6, 3};
  int64_t in = 64;
  for (int layer = 0; layer < 4; ++layer) {
    const int64_t width = 64 << layer;
    for (int64_t block = 0; block < blocks[layer]; ++block) {
      const int64_t stride = layer > 0 && block == 0 ? 2 : 1;
      x = Bottleneck(b, absl::StrCat("layer", layer + 1, "/block", block), x,
                     in, width, stride);
      in = 4 * width;
    }
  }
  x = b.Flatten("flat", b.GlobalAveragePool("pool", x));
  x = b.LinearAndAdd("fc", "logits", x, in, 1000);
  b.Classify(x, /*top5=*/true);
  return b.Take();
}

proto::Model Vgg16() {
  ZooBuilder b("vgg16");
  std::string x = ImageNet(b);
  const int64_t convs[] = {2, 2, 3, 3, 3};
  int64_t in = 3;
  for (int stage = 0; stage < 5; ++stage) {
    const int64_t out = std::min<int64_t>(64 << stage, 512);
    for (int64_t i = 0; i < convs[stage]; ++i) {
      const std::string name = absl::StrCat(stage + 1, "_", i + 1);
      x = b.DeepConv("conv" + name, x, in, out, {3, 1, 1}, /*bias=*/true);
      x = b.Relu("relu" + name, x);
      in = out;
    }
    x = b.MaxPool(absl::StrCat("pool", stage + 1), x, {2, 2, 0});
  }
  x = b.Flatten("flat", x);
  in *= 7 * 7;
  for (const std::string n : {"6", "7"}) {
    x = b.Linear("fc" + n, "fc" + n, x, in, 4096);
    x = b.Dropout("drop" + n, b.Relu("relu" + n, x), 0.5);
    in = 4096;
  }
  x = b.Linear("fc8", "logits", x, in, 1000);
  b.Classify(x, /*top5=*/true);
  return b.Take();
}

struct Entry {
  const char* name;
  proto::Model (*make)();
};
constexpr Entry kZoo[] = {
    {"mnist_convnet", MnistConvnet},
    {"mlp", Mlp},
    {"small_resnet", SmallResnet},
    {"resnet50", Resnet50},
    {"vgg16", Vgg16},
};

}  // namespace

std::vector<std::string> ZooNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kZoo) names.emplace_back(entry.name);
  return names;
}

absl::StatusOr<proto::Model> ZooModel(absl::string_view name) {
  for (const Entry& entry : kZoo) {
    if (entry.name == name) return entry.make();
  }
  return UsageError("no model is called \"", name, "\"",
                    NearestHint(name, ZooNames()),
                    " (all: ", absl::StrJoin(ZooNames(), " "), ")");
}

}  // namespace halftone
