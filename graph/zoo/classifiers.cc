// Classifiers of images, with torchvision's sizes and initialisers.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/zoo/families.h"

namespace halftone {
namespace zoo {
namespace {

constexpr int64_t kImageSize = 224;
constexpr int64_t kClasses = 1000;
// Of ImageNet's classes, top5 is published, too.
constexpr int64_t kManyClasses = 100;

void ClassifyImages(ModelBuilder& b, const Value& logits, int64_t classes) {
  b.Classify(logits, /*top5=*/classes >= kManyClasses);
}

// For deep networks of rectifiers.
LayerInit Kaiming(bool bias) { return {KaimingNormal(), Constant(0), bias}; }

// Of standard deviation sqrt(2 / fan_out).
LayerInit KaimingFanOut(int64_t out, const Window& window) {
  const double fan_out =
      static_cast<double>(out * window.size * window.size / window.groups);
  return {Normal(std::round(std::sqrt(2 / fan_out) * 1e6) / 1e6), {}, false};
}

// 1x1, 3x3, 1x1, or two 3x3, beside a shortcut.
Value ResidualBlock(ModelBuilder& b, const std::string& name, const Value& x,
                    int64_t in, int64_t width, int64_t stride,
                    bool bottleneck) {
  const int64_t out = bottleneck ? 4 * width : width;
  const auto conv = [&](const std::string& which, const Value& input,
                        int64_t from, int64_t to, const Window& window) {
    const Value made = b.Conv(absl::StrCat(name, "/", which, "conv"), input,
                              from, to, window, Kaiming(/*bias=*/false));
    return b.BatchNorm(absl::StrCat(name, "/", which, "bn"), made, to);
  };
  Value y;
  if (bottleneck) {
    y = b.Relu(name + "/a_relu", conv("a_", x, in, width, {1, 1, 0}));
    y = b.Relu(name + "/b_relu", conv("b_", y, width, width, {3, stride, 1}));
    y = conv("c_", y, width, out, {1, 1, 0});
  } else {
    y = b.Relu(name + "/a_relu", conv("a_", x, in, width, {3, stride, 1}));
    y = conv("b_", y, width, width, {3, 1, 1});
  }
  const Value shortcut =
      in == out && stride == 1 ? x : conv("down_", x, in, out, {1, stride, 0});
  return b.Relu(name + "/relu", b.Add(name + "/add", y, shortcut));
}

// A convolution of a given name, its norm of another.
Value ConvNorm(ModelBuilder& b, const std::string& conv,
               const std::string& norm, const Value& x, int64_t in, int64_t out,
               const Window& window,
               const ModelBuilder::Attrs& norm_attrs = {}) {
  const Value y = b.Conv(conv, x, in, out, window, KaimingFanOut(out, window));
  return b.BatchNorm(norm, y, out, norm_attrs);
}

// 1x1 that widens, 3x3 of each channel, 1x1 that narrows.
Value InvertedResidual(ModelBuilder& b, const std::string& name, const Value& x,
                       int64_t in, int64_t out, int64_t stride,
                       int64_t expand) {
  const int64_t hidden = in * expand;
  const std::string conv = name + ".conv.";
  int next = 0;
  Value y = x;
  if (expand != 1) {
    y = ConvNorm(b, conv + "0.0", conv + "0.1", y, in, hidden, {});
    y = b.Unary("relu6", conv + "0.2", y);
    ++next;
  }
  const std::string depthwise = absl::StrCat(conv, next++, ".");
  y = ConvNorm(b, depthwise + "0", depthwise + "1", y, hidden, hidden,
               {3, stride, 1, hidden});
  y = b.Unary("relu6", depthwise + "2", y);
  y = ConvNorm(b, absl::StrCat(conv, next), absl::StrCat(conv, next + 1), y,
               hidden, out, {});
  return stride == 1 && in == out ? b.Add(name, x, y) : y;
}

// A norm, its rectifier and a convolution behind them.
Value NormReluConv(ModelBuilder& b, const std::string& name,
                   const std::string& which, const Value& x, int64_t in,
                   int64_t out, const Window& window) {
  Value y = b.BatchNorm(absl::StrCat(name, "norm", which), x, in);
  y = b.Relu(absl::StrCat(name, "relu", which), y);
  return b.Conv(absl::StrCat(name, "conv", which), y, in, out, window,
                Kaiming(/*bias=*/false));
}

Value Silu(ModelBuilder& b, const std::string& name, const Value& x) {
  return b.Unary("silu", name, x);
}

// Channels weighed by what all of the image says (Hu et al. 2017).
Value SqueezeExcite(ModelBuilder& b, const std::string& name, const Value& x,
                    int64_t channels, int64_t squeezed) {
  const auto init = [](int64_t out) {
    LayerInit made = KaimingFanOut(out, {});
    made.bias = Constant(0);
    made.has_bias = true;
    return made;
  };
  Value y = b.GlobalAveragePool(name + ".avgpool", x);
  y = b.Conv(name + ".fc1", y, channels, squeezed, {}, init(squeezed));
  y = Silu(b, name + ".activation", y);
  y = b.Conv(name + ".fc2", y, squeezed, channels, {}, init(channels));
  y = b.Unary("sigmoid", name + ".scale_activation", y);
  return b.Op("elementwise_mul", name, {{"X", {x}}, {"Y", {y}}});
}

struct MbConv {
  int64_t expand, kernel, stride, in, out;
  double drop;  // probability with which a sample passes a residual block by
};

Value MbConvBlock(ModelBuilder& b, const std::string& name, const Value& x,
                  const MbConv& block) {
  const int64_t hidden = block.in * block.expand;
  Value y = x;
  int next = 0;
  const auto part = [&](int64_t in, int64_t out, const Window& window) {
    const std::string conv = absl::StrCat(name, ".block.", next++, ".");
    return std::pair(conv,
                     ConvNorm(b, conv + "0", conv + "1", y, in, out, window));
  };
  if (block.expand != 1) {
    const auto [prefix, made] = part(block.in, hidden, {});
    y = Silu(b, prefix + "2", made);
  }
  const auto [prefix, made] =
      part(hidden, hidden,
           {block.kernel, block.stride, (block.kernel - 1) / 2, hidden});
  y = Silu(b, prefix + "2", made);
  y = SqueezeExcite(b, absl::StrCat(name, ".block.", next++), y, hidden,
                    std::max<int64_t>(1, block.in / 4));
  y = part(hidden, block.out, {}).second;
  if (block.stride != 1 || block.in != block.out) return y;
  y = b.DropSamples(name + ".stochastic_depth", y, block.drop);
  return b.Add(name, x, y);
}

}  // namespace

Value ImageNet(ModelBuilder& b, int64_t size) {
  return b.Images(3, size, {123.675, 116.28, 103.53}, {58.395, 57.12, 57.375});
}

proto::Model ResNet(const std::string& name, const std::vector<int>& blocks,
                    bool bottleneck, const ZooOptions& options) {
  const int64_t base = options.width.value_or(64);
  const int64_t classes = options.classes.value_or(kClasses);
  ModelBuilder b(name);
  Value x = ImageNet(b, options.image_size.value_or(kImageSize));
  x = b.Conv("conv1", x, 3, base, {7, 2, 3}, Kaiming(/*bias=*/false));
  x = b.Relu("relu1", b.BatchNorm("bn1", x, base));
  x = b.MaxPool("pool1", x, {3, 2, 1});
  int64_t in = base;
  for (size_t layer = 0; layer < blocks.size(); ++layer) {
    const int64_t width = base << layer;
    for (int block = 0; block < blocks[layer]; ++block) {
      const int64_t stride = layer > 0 && block == 0 ? 2 : 1;
      x = ResidualBlock(b, absl::StrCat("layer", layer + 1, "/block", block), x,
                        in, width, stride, bottleneck);
      in = bottleneck ? 4 * width : width;
    }
  }
  x = b.Flatten("flat", b.GlobalAveragePool("pool", x));
  x = LinearAndAdd(b, "fc", "logits", x, in, classes);
  ClassifyImages(b, x, classes);
  return b.Take();
}

proto::Model Vgg(const std::string& name, const std::vector<int>& convs,
                 bool batch_norm, const ZooOptions& options) {
  const int64_t size = options.image_size.value_or(kImageSize);
  const int64_t classes = options.classes.value_or(kClasses);
  const int64_t base = options.width.value_or(64);
  ModelBuilder b(name);
  Value x = ImageNet(b, size);
  int64_t in = 3;
  for (size_t stage = 0; stage < convs.size(); ++stage) {
    const int64_t out = std::min(base << stage, 8 * base);
    for (int i = 0; i < convs[stage]; ++i) {
      const std::string which = absl::StrCat(stage + 1, "_", i + 1);
      x = b.Conv("conv" + which, x, in, out, {3, 1, 1}, Kaiming(/*bias=*/true));
      if (batch_norm) x = b.BatchNorm("bn" + which, x, out);
      x = b.Relu("relu" + which, x);
      in = out;
    }
    x = b.MaxPool(absl::StrCat("pool", stage + 1), x, {2, 2, 0});
  }
  x = b.Flatten("flat", x);
  in *= (size / 32) * (size / 32);
  const int64_t hidden = 64 * base;
  for (const std::string n : {"6", "7"}) {
    x = b.Linear("fc" + n, x, in, hidden);
    x = b.Dropout("drop" + n, b.Relu("relu" + n, x), 0.5);
    in = hidden;
  }
  x = b.Linear("fc8", x, in, classes, {}, "logits");
  ClassifyImages(b, x, classes);
  return b.Take();
}

proto::Model MobileNetV2(const ZooOptions& options) {
  struct Stage {
    int64_t expand, out, blocks, stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2},
                               {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2},
                               {6, 320, 1, 1}};
  constexpr int64_t kLast = 1280;
  const int64_t classes = options.classes.value_or(kClasses);
  ModelBuilder b("mobilenet_v2");
  Value x = ImageNet(b, options.image_size.value_or(kImageSize));
  int64_t in = 32;
  x = ConvNorm(b, "features.0.0", "features.0.1", x, 3, in, {3, 2, 1});
  x = b.Unary("relu6", "features.0.2", x);
  int index = 1;
  for (const Stage& stage : kStages) {
    for (int64_t i = 0; i < stage.blocks; ++i) {
      x = InvertedResidual(b, absl::StrCat("features.", index++), x, in,
                           stage.out, i == 0 ? stage.stride : 1, stage.expand);
      in = stage.out;
    }
  }
  const std::string last = absl::StrCat("features.", index, ".");
  x = ConvNorm(b, last + "0", last + "1", x, in, kLast, {});
  x = b.Unary("relu6", last + "2", x);
  x = b.Flatten("flat", b.GlobalAveragePool("pool", x));
  x = b.Dropout("classifier.0", x, 0.2);
  x = b.Linear("classifier.1", x, kLast, classes, {Normal(0.01), Constant(0)},
               "logits");
  ClassifyImages(b, x, classes);
  return b.Take();
}

proto::Model DenseNet121(const ZooOptions& options) {
  constexpr int64_t kGrowth = 32;
  constexpr int kBlocks[] = {6, 12, 24, 16};
  const int64_t classes = options.classes.value_or(kClasses);
  ModelBuilder b("densenet121");
  Value x = ImageNet(b, options.image_size.value_or(kImageSize));
  int64_t channels = 2 * kGrowth;
  x = b.Conv("features.conv0", x, 3, channels, {7, 2, 3}, Kaiming(false));
  x = b.BatchNorm("features.norm0", x, channels);
  x = b.Relu("features.relu0", x);
  x = b.MaxPool("features.pool0", x, {3, 2, 1});
  for (int block = 1; block <= 4; ++block) {
    for (int layer = 1; layer <= kBlocks[block - 1]; ++layer) {
      const std::string name =
          absl::StrCat("features.denseblock", block, ".denselayer", layer, ".");
      Value y = NormReluConv(b, name, "1", x, channels, 4 * kGrowth, {});
      y = NormReluConv(b, name, "2", y, 4 * kGrowth, kGrowth, {3, 1, 1});
      x = b.Op("concat", name + "concat", {{"X", {x, y}}}, {{"axis", 1}});
      channels += kGrowth;
    }
    if (block == 4) break;
    const std::string name = absl::StrCat("features.transition", block, ".");
    x = NormReluConv(b, name, "", x, channels, channels / 2, {});
    x = b.AveragePool(name + "pool", x, {2, 2, 0});
    channels /= 2;
  }
  x = b.Relu("relu", b.BatchNorm("features.norm5", x, channels));
  x = b.Flatten("flat", b.GlobalAveragePool("pool", x));
  LayerInit init;
  init.bias = Constant(0);
  x = b.Linear("classifier", x, channels, classes, init, "logits");
  ClassifyImages(b, x, classes);
  return b.Take();
}

proto::Model EfficientNetB0(const ZooOptions& options) {
  struct Stage {
    int64_t expand, kernel, stride, out, blocks;
  };
  constexpr Stage kStages[] = {
      {1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
      {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
  constexpr int64_t kLast = 1280;
  constexpr int kBlocks = 16;
  const int64_t classes = options.classes.value_or(kClasses);
  ModelBuilder b("efficientnet_b0");
  Value x = ImageNet(b, options.image_size.value_or(kImageSize));
  int64_t in = 32;
  x = ConvNorm(b, "features.0.0", "features.0.1", x, 3, in, {3, 2, 1});
  x = Silu(b, "features.0.2", x);
  int stage_index = 1, block = 0;
  for (const Stage& stage : kStages) {
    for (int64_t i = 0; i < stage.blocks; ++i) {
      x = MbConvBlock(b, absl::StrCat("features.", stage_index, ".", i), x,
                      {stage.expand, stage.kernel, i == 0 ? stage.stride : 1,
                       in, stage.out, 0.2 * block++ / kBlocks});
      in = stage.out;
    }
    ++stage_index;
  }
  const std::string last = absl::StrCat("features.", stage_index, ".");
  x = Silu(b, last + "2",
           ConvNorm(b, last + "0", last + "1", x, in, kLast, {}));
  x = b.Flatten("flat", b.GlobalAveragePool("pool", x));
  x = b.Dropout("classifier.0", x, 0.2);
  const double bound = 1 / std::sqrt(static_cast<double>(classes));
  x = b.Linear("classifier.1", x, kLast, classes,
               {Uniform(std::round(bound * 1e6) / 1e6), Constant(0)}, "logits");
  ClassifyImages(b, x, classes);
  return b.Take();
}

}  // namespace zoo
}  // namespace halftone
