// Nets that say something of each pixel or voxel.
#include <numeric>

#include "absl/strings/str_cat.h"
#include "graph/zoo/families.h"

namespace halftone {
namespace zoo {
namespace {

struct Unet {
  ModelBuilder& b;
  int64_t directions;
  std::string norm;

  Window Of(int64_t size, int64_t stride, int64_t padding) const {
    return {size, stride, padding, 1, directions};
  }

  Value Norm(const std::string& name, const Value& x, int64_t channels) const {
    constexpr int64_t kGroups = 8;
    if (norm == "group") {
      // Groups divide the channels, whatever width is asked for.
      return b.GroupNorm(name, x, channels, std::gcd(kGroups, channels));
    }
    return b.BatchNorm(name, x, channels, {},
                       norm == "sync" ? "sync_batch_norm" : "batch_norm");
  }

  // Two convolutions, each with its norm and rectifier.
  Value Twice(const std::string& name, const Value& x, int64_t in,
              int64_t out) const {
    const LayerInit init = {KaimingNormal(), {}, /*has_bias=*/false};
    Value y = x;
    for (int i = 1; i <= 2; ++i) {
      const std::string n = absl::StrCat(name, "/", i);
      y = b.Conv(n + "_conv", y, i == 1 ? in : out, out, Of(3, 1, 1), init);
      y = b.Relu(n + "_relu", Norm(n + "_norm", y, out));
    }
    return y;
  }
};

}  // namespace

proto::Model UNet(const std::string& name, int64_t directions, int64_t depth,
                  const UNetSizes& sizes, const ZooOptions& options) {
  const int64_t size = options.image_size.value_or(sizes.image_size);
  const int64_t classes = options.classes.value_or(2);
  const int64_t base = options.width.value_or(sizes.width);
  ModelBuilder b(name);
  std::vector<int64_t> image = {-1, sizes.channels}, label = {-1};
  image.insert(image.end(), directions, size);
  label.insert(label.end(), directions, size);
  b.Feed("image", proto::F32, image);
  b.Feed("label", proto::I64, label);
  const Unet net = {b, directions, options.norm};
  Value x = "image";
  int64_t in = sizes.channels;
  std::vector<Value> beside;
  for (int64_t level = 0; level < depth; ++level) {
    const int64_t out = base << level;
    x = net.Twice(absl::StrCat("down", level), x, in, out);
    beside.push_back(x);
    x = b.MaxPool(absl::StrCat("pool", level), x, net.Of(2, 2, 0));
    in = out;
  }
  x = net.Twice("bottom", x, in, base << depth);
  for (int64_t level = depth - 1; level >= 0; --level) {
    const int64_t out = base << level;
    const std::string n = absl::StrCat("up", level);
    x = b.ConvTranspose(n + "/up", x, 2 * out, out, net.Of(2, 2, 0));
    x = b.Op("concat", n + "/concat", {{"X", {beside[level], x}}},
             {{"axis", 1}});
    x = net.Twice(n, x, 2 * out, out);
  }
  x = b.Conv("head", x, base, classes, net.Of(1, 1, 0));
  std::vector<int64_t> channels_last = {0};
  for (int64_t d = 2; d < directions + 2; ++d) channels_last.push_back(d);
  channels_last.push_back(1);
  x = b.Unary("transpose", "logits", x, {{"axis", channels_last}});
  b.Classify(x, /*top5=*/false);
  return b.Take();
}

}  // namespace zoo
}  // namespace halftone
