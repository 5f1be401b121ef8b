// MNIST-shaped data: an image feed and a label feed over two IDX arrays.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/stable_hasher.h"
#include "runtime/data/data_format.h"
#include "runtime/data/idx_file.h"
#include "runtime/data/resize.h"

namespace halftone {
namespace runtime {
namespace {

// Up to this size images are resized once, on opening; others when they are
// read, so that small images cannot fill the memory.
constexpr int64_t kMostResized = int64_t{16} << 20;

// An image feed and a label feed over two IDX arrays.
class IdxDataset : public Dataset {
 public:
  IdxDataset(std::string description, IdxArray images,
             std::vector<uint8_t> labels, int image_feed, int64_t height,
             int64_t width)
      : description_(std::move(description)),
        images_(std::move(images)),
        labels_(std::move(labels)),
        image_feed_(image_feed),
        height_(height),
        width_(width) {}

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  absl::Status Read(const SampleId& sample, int feed,
                    absl::Span<uint8_t> out) const override {
    const int64_t index = sample.index;
    if (feed == image_feed_) {
      const int64_t h = images_.dims[1], w = images_.dims[2];
      const auto* image =
          reinterpret_cast<const uint8_t*>(&images_.bytes[index * h * w]);
      if (h == height_ && w == width_) {
        std::memcpy(out.data(), image, out.size());
      } else {
        ResizeBilinear(image, h, w, out.data(), height_, width_);
      }
    } else {
      const int64_t label = labels_[index];
      std::memcpy(out.data(), &label, sizeof(label));
    }
    return absl::OkStatus();
  }
  std::string Description() const override { return description_; }
  absl::StatusOr<uint64_t> ContentHash() const override {
    StableHasher hasher;
    hasher.Append(images_.bytes);
    hasher.Append(
        {reinterpret_cast<const char*>(labels_.data()), labels_.size()});
    return hasher.hash();
  }

 private:
  std::string description_;
  IdxArray images_;
  std::vector<uint8_t> labels_;
  int image_feed_;
  int64_t height_, width_;  // of the feed
};

absl::Status CheckFeeds(Feeds feeds, const ImageFeeds& match) {
  const FeedSpec& x = feeds[match.image];
  if (x.dtype != DType::kU8 || x.whole || x.dims.size() < 2 ||
      x.elements() != x.dims.back() * x.dims[x.dims.size() - 2]) {
    return ModelError("feed ", x.name,
                      ": idx images are u8[B,1,H,W], the "
                      "model expects ",
                      Describe(x));
  }
  if (match.label < 0) return absl::OkStatus();
  const FeedSpec& y = feeds[match.label];
  if (y.dtype != DType::kI64 || y.whole || y.elements() != 1) {
    return ModelError("feed ", y.name,
                      ": idx labels are i64[B], the model "
                      "expects ",
                      Describe(y));
  }
  return absl::OkStatus();
}

void ResizeAll(IdxArray& images, int64_t height, int64_t width) {
  const int64_t n = images.dims[0], h = images.dims[1], w = images.dims[2];
  if (h == height && w == width) return;
  if (height * width > kMostResized / n) return;
  std::string resized(n * height * width, '\0');
  for (int64_t i = 0; i < n; ++i) {
    ResizeBilinear(reinterpret_cast<const uint8_t*>(&images.bytes[i * h * w]),
                   h, w,
                   reinterpret_cast<uint8_t*>(&resized[i * height * width]),
                   height, width);
  }
  images.bytes = std::move(resized);
  images.dims = {n, height, width};
}

absl::Status CheckSplit(const IdxArray& images, const IdxArray& labels) {
  const std::string found = absl::StrJoin(images.dims, "x");
  if (images.dims.size() != 3) {
    return ModelError(images.file, ": expected images, 3 dims (samples x ",
                      "height x width), found ", found);
  }
  if (images.dims[1] < 1 || images.dims[2] < 1) {
    return ModelError(images.file, ": expected images of a pixel or more, ",
                      "found ", found);
  }
  if (labels.dims.size() != 1) {
    return ModelError(labels.file, ": expected labels, 1 dim, found ",
                      absl::StrJoin(labels.dims, "x"));
  }
  if (images.dims[0] != labels.dims[0]) {
    return ModelError(images.file, ": ", images.dims[0], " images, but ",
                      labels.file, " has ", labels.dims[0],
                      " labels; take both from the same set");
  }
  if (images.dims[0] < 1) {
    return ModelError(images.file, ": expected images, found none");
  }
  return absl::OkStatus();
}

struct IdxSplit {
  IdxArray images, labels;
};
absl::StatusOr<IdxSplit> ReadSplit(const std::string& directory,
                                   absl::string_view split,
                                   int64_t max_unpack) {
  const std::string images_path =
      absl::StrCat(directory, "/", split, "-images-idx3-ubyte");
  const std::string labels_path =
      absl::StrCat(directory, "/", split, "-labels-idx1-ubyte");
  IdxSplit read;
  HT_ASSIGN_OR_RETURN(read.images, ReadIdx(images_path, max_unpack));
  HT_ASSIGN_OR_RETURN(read.labels, ReadIdx(labels_path, max_unpack));
  HT_RETURN_IF_ERROR(CheckSplit(read.images, read.labels));
  return read;
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenIdxSplit(
    const std::string& directory, absl::string_view split,
    absl::Span<const FeedSpec> feeds, const ImageFeeds& match,
    int64_t max_unpack) {
  HT_ASSIGN_OR_RETURN(IdxSplit read, ReadSplit(directory, split, max_unpack));
  IdxArray& images = read.images;
  const IdxArray& labels = read.labels;
  const FeedSpec& x = feeds[match.image];
  const int64_t classes = match.label < 0 ? 0 : feeds[match.label].classes;
  std::vector<uint8_t> values(labels.bytes.begin(), labels.bytes.end());
  for (size_t i = 0; classes > 0 && i < values.size(); ++i) {
    if (values[i] >= classes) {
      return ModelError(labels.file, ": label ", values[i], " of sample ", i,
                        ": expected 0 to ", classes - 1, " (the model has ",
                        classes, " classes); take another model or other data");
    }
  }
  const int64_t height = x.dims[x.dims.size() - 2], width = x.dims.back();
  const std::string description = absl::StrCat(
      images.dims[1], "x", images.dims[2], " -> ", height, "x", width);
  ResizeAll(images, height, width);
  return std::unique_ptr<Dataset>(std::make_unique<IdxDataset>(
      description, std::move(images), std::move(values), match.image, height,
      width));
}

}  // namespace

absl::StatusOr<OpenedData> OpenIdx(const std::string& place, Feeds feeds,
                                   const DataOptions& options) {
  HT_ASSIGN_OR_RETURN(const ImageFeeds match,
                      MatchImageFeeds("idx", feeds, options.feed_map));
  HT_RETURN_IF_ERROR(CheckFeeds(feeds, match));
  OpenedData data;
  HT_ASSIGN_OR_RETURN(data.train, OpenIdxSplit(place, "train", feeds, match,
                                               options.max_unpack));
  HT_ASSIGN_OR_RETURN(
      data.test, OpenIdxSplit(place, "t10k", feeds, match, options.max_unpack));
  return data;
}

absl::StatusOr<std::vector<DataFacts>> LookOverIdx(const std::string& place,
                                                   int64_t max_unpack) {
  std::vector<DataFacts> facts;
  for (const char* split : {"train", "t10k"}) {
    HT_ASSIGN_OR_RETURN(const IdxSplit read,
                        ReadSplit(place, split, max_unpack));
    const std::vector<int64_t>& dims = read.images.dims;
    const auto [least, most] =
        std::minmax_element(read.labels.bytes.begin(), read.labels.bytes.end(),
                            [](uint8_t a, uint8_t b) { return a < b; });
    facts.push_back({split,
                     absl::StrCat("images ", dims[1], "x", dims[2]),
                     {{"images", dims[0]},
                      {"least_label", static_cast<uint8_t>(*least)},
                      {"largest_label", static_cast<uint8_t>(*most)}}});
  }
  return facts;
}

}  // namespace runtime
}  // namespace halftone
