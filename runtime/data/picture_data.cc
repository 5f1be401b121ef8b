// Pictures with labels: decoded, cropped and augmented as they are read.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "runtime/data/data_format.h"
#include "runtime/data/image/transform.h"
#include "runtime/data/image_scan.h"
#include "runtime/data/sample_marks.h"

namespace halftone {
namespace runtime {
namespace {

struct PictureOptions {
  proto::Augment augment;
  bool augmented = false;  // else cropped alone
  int64_t seed = 0;
  int64_t max_unpack = 0;
};

// Zhang et al., "mixup: beyond empirical risk minimization" (2018): a sample is
// `weight` of itself and the rest of another one.
struct Mix {
  double weight = 1;
  int64_t other = 0;
  bool as_other = false;  // a label that can be one alone
};

class PictureDataset : public Dataset {
 public:
  PictureDataset(std::unique_ptr<ImageSource> source, Feeds feeds,
                 const ImageFeeds& match, PictureOptions options)
      : source_(std::move(source)),
        kept_(source_->size()),
        match_(match),
        options_(std::move(options)) {
    std::iota(kept_.begin(), kept_.end(), 0);
    const std::vector<int64_t>& dims = feeds[match.image].dims;
    feed_ = {static_cast<int>(dims[0]), dims[1], dims[2]};
    if (match.label >= 0 && feeds[match.label].dtype == DType::kF32) {
      shares_ = feeds[match.label].elements();
    }
  }

  int64_t size() const override { return static_cast<int64_t>(kept_.size()); }
  absl::Status Read(const SampleId& sample, int feed,
                    absl::Span<uint8_t> out) const override {
    SampleDraws draws(options_.seed, sample.epoch, sample.index);
    const Mix mix = DrawMix(draws);
    if (feed == match_.label) {
      WriteLabel(sample.index, mix, out.data());
      return absl::OkStatus();
    }
    Image image;
    HT_RETURN_IF_ERROR(Make(sample.index, draws, &image));
    if (mix.weight < 1) {
      // As the other is seen in this epoch by itself.
      SampleDraws others(options_.seed, sample.epoch, mix.other);
      DrawMix(others);
      Image other;
      HT_RETURN_IF_ERROR(Make(mix.other, others, &other));
      const auto own = static_cast<float>(mix.weight), rest = 1 - own;
      for (size_t i = 0; i < image.pixels.size(); ++i) {
        image.pixels[i] = static_cast<uint8_t>(
            own * static_cast<float>(image.pixels[i]) +
            rest * static_cast<float>(other.pixels[i]) + 0.5f);
      }
    }
    ToPlanes(image, out.data());
    return absl::OkStatus();
  }
  std::string Description() const override {
    return absl::StrCat(WithCommas(size()),
                        size() == 1 ? " picture" : " pictures", " -> ",
                        feed_.height, "x", feed_.width);
  }
  std::string Marks() const override {
    return MarkSamples(size(), [this](int64_t i) { return KeyOf(i); });
  }
  absl::Status CheckMarks(absl::string_view marks) const override {
    return runtime::CheckMarks(
        marks, size(), [this](int64_t i) { return KeyOf(i); },
        [this](int64_t i) { return source_->Name(kept_[i]); });
  }
  void LeaveOut(absl::Span<const int64_t> samples) override {
    auto next = samples.begin();
    size_t to = 0;
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (next != samples.end() && *next == static_cast<int64_t>(i)) {
        ++next;
      } else {
        kept_[to++] = kept_[i];
      }
    }
    kept_.resize(to);
  }

 private:
  uint64_t KeyOf(int64_t index) const { return source_->Key(kept_[index]); }
  Mix DrawMix(SampleDraws& draws) const {
    const double alpha = options_.augment.mixup();
    if (!options_.augmented || alpha <= 0) return {};
    const double weight = draws.SymmetricBeta(alpha);
    // The rest comes from any, so that the larger share may be its own.
    Mix mix;
    mix.weight = std::max(weight, 1 - weight);
    mix.other = draws.Below(size());
    mix.as_other = draws.Uniform() >= mix.weight;
    return mix;
  }

  absl::Status Make(int64_t index, SampleDraws& draws, Image* image) const {
    const int64_t at = kept_[index];
    std::string storage;
    HT_ASSIGN_OR_RETURN(const absl::string_view bytes,
                        source_->Read(at, &storage));
    HT_ASSIGN_OR_RETURN(const auto decoder, OpenImage(bytes, source_->Name(at),
                                                      options_.max_unpack));
    return options_.augmented
               ? Augmented(*decoder, options_.augment, feed_, draws, image)
               : CentreCrop(*decoder, options_.augment.eval_resize(), feed_,
                            image);
  }

  void WriteLabel(int64_t index, const Mix& mix, uint8_t* out) const {
    const int64_t one = mix.as_other && shares_ == 0 ? mix.other : index;
    const int64_t label = source_->Label(kept_[one]);
    if (shares_ == 0) {
      std::memcpy(out, &label, sizeof(label));
      return;
    }
    std::vector<float> shares(shares_);
    shares[label] += static_cast<float>(mix.weight);
    if (mix.weight < 1) {
      shares[source_->Label(kept_[mix.other])] +=
          static_cast<float>(1 - mix.weight);
    }
    std::memcpy(out, shares.data(), shares.size() * sizeof(float));
  }

  std::unique_ptr<ImageSource> source_;
  std::vector<int64_t> kept_;  // those that are not broken
  ImageFeeds match_;
  PictureOptions options_;
  FeedImage feed_;
  int64_t shares_ = 0;  // of a label f32[B,shares]; 0: labels are numbers
};

absl::Status CheckFeeds(absl::string_view kind, Feeds feeds,
                        const ImageFeeds& match, const DataOptions& options) {
  const FeedSpec& x = feeds[match.image];
  if (x.dtype != DType::kU8 || x.whole || x.dims.size() != 3 ||
      (x.dims[0] != 1 && x.dims[0] != 3)) {
    return ModelError("feed ", x.name, ": ", kind, " pictures are ",
                      "u8[B,3,H,W] or u8[B,1,H,W], the model expects ",
                      Describe(x));
  }
  const int64_t resize = options.augment.eval_resize();
  const int64_t side = std::max(x.dims[1], x.dims[2]);
  if (resize > 0 && resize < side) {
    return ModelError("train.augment.eval_resize: expected 0, or ", side,
                      " or more, the side of feed ", x.name, ", found ",
                      resize);
  }
  if (match.label < 0) return absl::OkStatus();
  const FeedSpec& y = feeds[match.label];
  const bool shares = y.dtype == DType::kF32 && y.dims.size() == 1;
  if (y.whole || !((y.dtype == DType::kI64 && y.elements() == 1) || shares)) {
    return ModelError(
        "feed ", y.name, ": ", kind, " labels are i64[B], or ",
        "f32[B,classes] with a share for each; the model expects ",
        Describe(y));
  }
  return absl::OkStatus();
}

absl::Status CheckLabels(const ImageSource& source, const FeedSpec& y) {
  const int64_t classes = y.dtype == DType::kF32 ? y.elements() : y.classes;
  for (int64_t i = 0; classes > 0 && i < source.size(); ++i) {
    if (source.Label(i) < classes) continue;
    return ModelError(source.Name(i), ": label ", source.Label(i),
                      ": expected 0 to ", classes - 1, " (the model has ",
                      classes, " classes); take another model or other data");
  }
  return absl::OkStatus();
}

absl::Status FindBroken(const ImageSource& source, bool test,
                        const DataOptions& options,
                        std::vector<BrokenSample>* found) {
  HT_ASSIGN_OR_RETURN(ImageScan scan,
                      ScanImages(source, options.workers, options.max_unpack,
                                 options.process, options.processes));
  for (BrokenImage& image : scan.broken) {
    found->push_back({test, image.index, std::move(image.why)});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OpenedData> OpenPictures(absl::string_view kind,
                                        ImageSplits splits, Feeds feeds,
                                        const DataOptions& options) {
  HT_ASSIGN_OR_RETURN(const ImageFeeds match,
                      MatchImageFeeds(kind, feeds, options.feed_map));
  HT_RETURN_IF_ERROR(CheckFeeds(kind, feeds, match, options));
  OpenedData data;
  data.notes = std::move(splits.notes);
  const bool numbers =
      match.label >= 0 && feeds[match.label].dtype != DType::kF32;
  if (options.augmented && options.augment.mixup() > 0 && numbers) {
    data.notes.push_back(absl::StrCat(
        "train.augment.mixup: labels are classes, so that a mix has one of its "
        "two, drawn by their shares; labels f32[B,classes] have both"));
  }
  const auto open = [&](std::unique_ptr<ImageSource> source,
                        bool test) -> absl::StatusOr<std::unique_ptr<Dataset>> {
    if (match.label >= 0) {
      HT_RETURN_IF_ERROR(CheckLabels(*source, feeds[match.label]));
    }
    if (options.skip_broken) {
      HT_RETURN_IF_ERROR(FindBroken(*source, test, options, &data.broken));
    }
    return std::make_unique<PictureDataset>(
        std::move(source), feeds, match,
        PictureOptions{options.augment, options.augmented && !test,
                       options.seed, options.max_unpack});
  };
  HT_ASSIGN_OR_RETURN(data.train, open(std::move(splits.train), false));
  if (splits.test != nullptr) {
    HT_ASSIGN_OR_RETURN(data.test, open(std::move(splits.test), true));
  }
  // Else after what the others have found is known.
  if (options.processes == 1) HT_RETURN_IF_ERROR(LeaveOut(&data));
  return data;
}

}  // namespace runtime
}  // namespace halftone
