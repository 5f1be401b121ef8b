#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/out_of_memory.h"
#include "graph/base/philox.h"
#include "graph/base/text.h"
#include "runtime/data/dataset.h"
#include "runtime/data/idx_file.h"
#include "runtime/data/npz_data.h"
#include "runtime/data/resize.h"

namespace halftone {
namespace runtime {
namespace {

int64_t Elements(const FeedSpec& feed) {
  int64_t n = 1;
  for (int64_t d : feed.dims) n *= d;
  return n;
}

std::string Describe(const FeedSpec& feed) {
  return absl::StrCat(Name(feed.dtype), "[", feed.whole ? "" : "B",
                      feed.whole || feed.dims.empty() ? "" : ",",
                      absl::StrJoin(feed.dims, ","), "]");
}

// The order of samples alone takes 8 bytes each, and time.
constexpr int64_t kMostSynthetic = 100000000;

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
  absl::Status Read(int64_t index, int feed,
                    absl::Span<uint8_t> out) const override {
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

 private:
  std::string description_;
  IdxArray images_;
  std::vector<uint8_t> labels_;
  int image_feed_;
  int64_t height_, width_;  // of the feed
};

// Deterministic noise with labels that it predicts a little: for benchmarks.
class SyntheticDataset : public Dataset {
 public:
  SyntheticDataset(std::vector<FeedSpec> feeds, int64_t size, int64_t seed)
      : feeds_(std::move(feeds)), size_(size), seed_(seed) {}

  int64_t size() const override { return size_; }
  absl::Status Read(int64_t index, int feed,
                    absl::Span<uint8_t> out) const override {
    const FeedSpec& spec = feeds_[feed];
    const uint64_t key =
        PhiloxKey(static_cast<uint64_t>(seed_), 0xda7a0000u + feed);
    const int64_t n = Elements(spec);
    if (spec.whole) index = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Philox4 draw = PhiloxDraw(key, 0, static_cast<uint64_t>(index),
                                      static_cast<uint32_t>(i / 4));
      Store(spec, draw.x[i % 4], i, out.data());
    }
    return absl::OkStatus();
  }
  std::string Description() const override {
    return absl::StrCat("synthetic, ", WithCommas(size_),
                        size_ == 1 ? " sample" : " samples");
  }

 private:
  static void Store(const FeedSpec& spec, uint32_t bits, int64_t i,
                    uint8_t* out) {
    if (spec.dtype == DType::kF32) {
      const float value = 2 * ToUniform(bits) - 1;
      std::memcpy(out + 4 * i, &value, sizeof(value));
    } else if (spec.dtype == DType::kU8 || spec.dtype == DType::kBool) {
      out[i] = spec.dtype == DType::kBool ? bits & 1 : bits & 0xff;
    } else {
      const int64_t bound = spec.classes > 0 ? spec.classes : 2;
      const int64_t value = bits % bound;
      const auto narrow = static_cast<int32_t>(value);
      const int size = SizeOf(spec.dtype);
      std::memcpy(out + size * i,
                  size == 4 ? static_cast<const void*>(&narrow) : &value, size);
    }
  }

  std::vector<FeedSpec> feeds_;
  int64_t size_, seed_;
};

struct IdxFeeds {
  int image = -1, label = -1;
};

// The reader's names are "image" and "label"; --feed maps them.
absl::StatusOr<IdxFeeds> MatchFeeds(absl::Span<const FeedSpec> feeds,
                                    absl::Span<const std::string> feed_map) {
  std::string image = "image", label = "label";
  for (const std::string& item : feed_map) {
    if (absl::StartsWith(item, "image=")) {
      image = item.substr(6);
    } else if (absl::StartsWith(item, "label=")) {
      label = item.substr(6);
    } else {
      return UsageError(
          "--feed ", item, ": expected image=NAME or label=NAME",
          NearestHint(item.substr(0, item.find('=')), {"image", "label"}));
    }
  }
  IdxFeeds found;
  std::vector<std::string> names;
  for (size_t i = 0; i < feeds.size(); ++i) {
    names.push_back(feeds[i].name);
    if (feeds[i].name == image) found.image = static_cast<int>(i);
    if (feeds[i].name == label) found.label = static_cast<int>(i);
  }
  // What needs no labels is fed none.
  const bool image_alone = feeds.size() == 1 && found.image >= 0;
  if (!image_alone &&
      (found.image < 0 || found.label < 0 || feeds.size() != 2)) {
    const std::string& missing = found.image < 0 ? image : label;
    const bool mistyped = found.image < 0 || found.label < 0;
    return ModelError("idx data feeds ", image, " and ", label,
                      "; the model's feeds are ", absl::StrJoin(names, ", "),
                      mistyped ? NearestHint(missing, names) : "",
                      "; map them with --feed image=NAME --feed label=NAME");
  }
  const FeedSpec& x = feeds[found.image];
  if (x.dtype != DType::kU8 || x.whole || x.dims.size() < 2 ||
      Elements(x) != x.dims.back() * x.dims[x.dims.size() - 2]) {
    return ModelError("feed ", x.name,
                      ": idx images are u8[B,1,H,W], the "
                      "model expects ",
                      Describe(x));
  }
  if (image_alone) return found;
  const FeedSpec& y = feeds[found.label];
  if (y.dtype != DType::kI64 || y.whole || Elements(y) != 1) {
    return ModelError("feed ", y.name,
                      ": idx labels are i64[B], the model "
                      "expects ",
                      Describe(y));
  }
  return found;
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

absl::StatusOr<std::unique_ptr<Dataset>> OpenIdxSplit(
    const std::string& directory, absl::string_view split,
    absl::Span<const FeedSpec> feeds, const IdxFeeds& match,
    int64_t max_unpack) {
  const std::string images_path =
      absl::StrCat(directory, "/", split, "-images-idx3-ubyte");
  const std::string labels_path =
      absl::StrCat(directory, "/", split, "-labels-idx1-ubyte");
  HT_ASSIGN_OR_RETURN(IdxArray images, ReadIdx(images_path, max_unpack));
  HT_ASSIGN_OR_RETURN(IdxArray labels, ReadIdx(labels_path, max_unpack));
  HT_RETURN_IF_ERROR(CheckSplit(images, labels));
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

absl::StatusOr<OpenedData> OpenIdx(const std::string& directory,
                                   absl::Span<const FeedSpec> feeds,
                                   absl::Span<const std::string> feed_map,
                                   int64_t max_unpack) {
  HT_ASSIGN_OR_RETURN(const IdxFeeds match, MatchFeeds(feeds, feed_map));
  OpenedData data;
  HT_ASSIGN_OR_RETURN(
      data.train, OpenIdxSplit(directory, "train", feeds, match, max_unpack));
  HT_ASSIGN_OR_RETURN(
      data.test, OpenIdxSplit(directory, "t10k", feeds, match, max_unpack));
  return data;
}

}  // namespace

absl::StatusOr<OpenedData> OpenData(absl::string_view source,
                                    absl::Span<const FeedSpec> feeds,
                                    absl::Span<const std::string> feed_map,
                                    int64_t seed, int64_t max_unpack) {
  const Doing doing("opening the data", source);
  absl::string_view rest = source;
  if (absl::ConsumePrefix(&rest, "idx:")) {
    return OpenIdx(std::string(rest), feeds, feed_map, max_unpack);
  }
  if (absl::ConsumePrefix(&rest, "npz:")) {
    return OpenNpz(std::string(rest), feeds, feed_map, max_unpack);
  }
  if (absl::ConsumePrefix(&rest, "synthetic")) {
    int64_t size = 1024;
    if (!rest.empty() &&
        (!absl::ConsumePrefix(&rest, ":") || !absl::SimpleAtoi(rest, &size) ||
         size < 1 || size > kMostSynthetic)) {
      return UsageError("--data ", source,
                        ": expected synthetic or synthetic:SAMPLES, at most ",
                        kMostSynthetic, " of them");
    }
    if (!HasSamples(feeds)) size = 1;
    const std::vector<FeedSpec> specs(feeds.begin(), feeds.end());
    OpenedData data;
    data.train = std::make_unique<SyntheticDataset>(specs, size, seed);
    data.test = std::make_unique<SyntheticDataset>(
        specs, std::max<int64_t>(size / 4, 1), seed + 1);
    return data;
  }
  const std::vector<std::string> known = {"idx", "npz", "synthetic"};
  const std::string kind(source.substr(0, source.find(':')));
  return UsageError("--data ", source, ": unknown kind of data \"", kind,
                    "\"; known: idx:DIR, npz:FILE, synthetic[:SAMPLES]",
                    NearestHint(kind, known));
}

}  // namespace runtime
}  // namespace halftone
