#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/philox.h"
#include "graph/base/text.h"
#include "runtime/data/data_format.h"

namespace halftone {
namespace runtime {
namespace {

// The order of samples alone takes 8 bytes each, and time.
constexpr int64_t kMostSynthetic = 100000000;

// Deterministic noise with labels that it predicts a little: for benchmarks.
class SyntheticDataset : public Dataset {
 public:
  SyntheticDataset(std::vector<FeedSpec> feeds, int64_t size, int64_t seed)
      : feeds_(std::move(feeds)), size_(size), seed_(seed) {}

  int64_t size() const override { return size_; }
  absl::Status Read(const SampleId& sample, int feed,
                    absl::Span<uint8_t> out) const override {
    const FeedSpec& spec = feeds_[feed];
    const uint64_t key =
        PhiloxKey(static_cast<uint64_t>(seed_), 0xda7a0000u + feed);
    const int64_t n = spec.elements();
    const int64_t index = spec.whole ? 0 : sample.index;
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

}  // namespace

absl::StatusOr<OpenedData> OpenSynthetic(const std::string& place, Feeds feeds,
                                         const DataOptions& options) {
  int64_t size = 1024;
  if (!place.empty() &&
      (!absl::SimpleAtoi(place, &size) || size < 1 || size > kMostSynthetic)) {
    return UsageError("--data synthetic:", place,
                      ": expected synthetic or synthetic:SAMPLES, at most ",
                      kMostSynthetic, " of them");
  }
  if (!HasSamples(feeds)) size = 1;
  const std::vector<FeedSpec> specs(feeds.begin(), feeds.end());
  OpenedData data;
  data.train = std::make_unique<SyntheticDataset>(specs, size, options.seed);
  data.test = std::make_unique<SyntheticDataset>(
      specs, std::max<int64_t>(size / 4, 1), options.seed + 1);
  return data;
}

}  // namespace runtime
}  // namespace halftone
