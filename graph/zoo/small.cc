// The models of models/.
#include "absl/strings/str_cat.h"
#include "graph/zoo/families.h"

namespace halftone {
namespace zoo {
namespace {

// Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where
// the shape changes.
Value SmallBlock(ModelBuilder& b, const std::string& name, const Value& x,
                 int64_t in, int64_t out, int64_t stride) {
  Value y = b.Conv(name + "/conv1", x, in, out, {3, stride, 1}, NoBias());
  y = b.Relu(name + "/relu1", b.BatchNorm(name + "/bn1", y, out));
  y = b.Conv(name + "/conv2", y, out, out, {3, 1, 1}, NoBias());
  y = b.BatchNorm(name + "/bn2", y, out);
  Value shortcut = x;
  if (in != out) {
    shortcut =
        b.Conv(name + "/down_conv", x, in, out, {1, stride, 0}, NoBias());
    shortcut = b.BatchNorm(name + "/down_bn", shortcut, out);
  }
  return b.Relu(name + "/relu2", b.Add(name + "/add", y, shortcut));
}

}  // namespace

Value LinearAndAdd(ModelBuilder& b, const std::string& name,
                   const std::string& result, const Value& x, int64_t in,
                   int64_t out) {
  b.Linear(name, x, in, out, NoBias());
  b.Param(name + ".b", {out}, UniformBias(in));
  return b.Add(result, name, name + ".b");
}

proto::Model MnistConvnet() {
  ModelBuilder b("mnist_convnet");
  Value x = b.Images(1, 28, {}, {255});
  x = b.Conv("conv1", x, 1, 16, {5, 1, 2});
  x = b.Relu("relu1", b.BatchNorm("bn1", x, 16));
  x = b.MaxPool("pool1", x, {2, 2, 0});
  x = b.Conv("conv2", x, 16, 32, {5, 1, 2});
  x = b.Relu("relu2", b.BatchNorm("bn2", x, 32));
  x = b.MaxPool("pool2", x, {2, 2, 0});
  x = b.Flatten("flat", x);
  x = LinearAndAdd(b, "fc", "logits", x, 32 * 7 * 7, 10);
  b.Classify(x, /*top5=*/false);
  return b.Take();
}

proto::Model Mlp() {
  ModelBuilder b("mlp");
  Value x = b.Flatten("flat", b.Images(1, 28, {}, {255}));
  x = b.Relu("relu1", b.Linear("fc1", x, 28 * 28, 256));
  x = b.Linear("fc2", x, 256, 10, {}, "logits");
  b.Classify(x, /*top5=*/false);
  return b.Take();
}

proto::Model SmallResnet() {
  ModelBuilder b("small_resnet");
  Value x = b.Images(1, 28, {}, {255});
  x = b.Conv("conv1", x, 1, 8, {3, 1, 1}, NoBias());
  x = b.Relu("relu1", b.BatchNorm("bn1", x, 8));
  x = SmallBlock(b, "layer1", x, 8, 8, 1);
  x = SmallBlock(b, "layer2", x, 8, 16, 2);
  x = SmallBlock(b, "layer3", x, 16, 32, 2);
  x = b.Flatten("flat", b.GlobalAveragePool("pool", x));
  x = LinearAndAdd(b, "fc", "logits", x, 32, 10);
  b.Classify(x, /*top5=*/false);
  return b.Take();
}

}  // namespace zoo
}  // namespace halftone
