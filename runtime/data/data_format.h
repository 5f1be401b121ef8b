// The kinds of data that --data takes: a new one is a file, its line in the
// table and its cases. Nothing outside knows of any of them.
#ifndef HALFTONE_RUNTIME_DATA_DATA_FORMAT_H_
#define HALFTONE_RUNTIME_DATA_DATA_FORMAT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/data/dataset.h"
#include "runtime/data/image_source.h"

namespace halftone {
namespace runtime {

using Feeds = absl::Span<const FeedSpec>;

// What `data verify` says of a split or an array.
struct DataFacts {
  std::string name;
  std::string what;  // "100 images 28x28"
  std::vector<std::pair<std::string, int64_t>> numbers;
};

struct DataFormat {
  absl::string_view kind;
  absl::string_view place;  // what follows the colon, in usage texts
  bool needs_place = true;
  // One of the two: any feeds, or labelled pictures.
  absl::StatusOr<OpenedData> (*open)(const std::string& place, Feeds feeds,
                                     const DataOptions& options) = nullptr;
  absl::StatusOr<ImageSplits> (*open_images)(
      const std::string& place,
      const std::vector<std::string>& classes) = nullptr;
  // Of data that is no pictures: all of it, read. Null: it holds none.
  absl::StatusOr<std::vector<DataFacts>> (*look_over)(
      const std::string& place, int64_t max_unpack) = nullptr;
  // The member of `data verify --json` that has those whose names are the
  // data's own; "": names are ours, each is a member of the whole.
  absl::string_view facts_in = "";
  // Whether what it has is for whatever feeds there are, also for none.
  bool for_any_feeds = false;
};
absl::Span<const DataFormat> DataFormats();

// "idx:DIR, npz:FILE, ...".
std::string DataUsage();

// The format of "KIND:PLACE", and the place. Errors: kUsage.
absl::StatusOr<const DataFormat*> FindDataFormat(absl::string_view source,
                                                 std::string* place);

// ---- The formats.

// MNIST's files, plain or .gz, in a folder: u8 images, resized bilinearly with
// half-pixel centres to the feed's height and width.
absl::StatusOr<OpenedData> OpenIdx(const std::string& place, Feeds feeds,
                                   const DataOptions& options);

// The array called like a feed is the feed's (`feed_map`: "image=x" gives the
// array image to the feed x, or the array x to the feed image). Its first dim
// counts samples, which all have as many of; what is the same in every step is
// whole. The file is one split, `train`.
absl::StatusOr<OpenedData> OpenNpz(const std::string& place, Feeds feeds,
                                   const DataOptions& options);

absl::StatusOr<std::vector<DataFacts>> LookOverIdx(const std::string& place,
                                                   int64_t max_unpack);
absl::StatusOr<std::vector<DataFacts>> LookOverNpz(const std::string& place,
                                                   int64_t max_unpack);

// Noise, and labels drawn from the same numbers: for benchmarks.
absl::StatusOr<OpenedData> OpenSynthetic(const std::string& place, Feeds feeds,
                                         const DataOptions& options);

// Token ids, cut into blocks: see token_data.cc.
absl::StatusOr<OpenedData> OpenTokens(const std::string& place, Feeds feeds,
                                      const DataOptions& options);

absl::StatusOr<std::vector<DataFacts>> LookOverTokens(const std::string& place,
                                                      int64_t max_unpack);

// ---- Shared by formats of pictures with labels.

// Positions of the feeds for pictures and labels, called `image` and `label`
// unless --feed maps them. A picture may come alone. Errors: kUsage for the
// map, kModel if the model has others.
struct ImageFeeds {
  int image = -1, label = -1;
};
absl::StatusOr<ImageFeeds> MatchImageFeeds(
    absl::string_view kind, Feeds feeds,
    absl::Span<const std::string> feed_map);

// Decoded, cropped and augmented as `options` say: u8[B,1 or 3,H,W] with labels
// i64[B], or f32[B,classes]. Of a picture that is a mix of two, those have the
// shares of both, numbers are one of the two, drawn by the shares: the mean
// loss is the same. What is broken is found here if it is to be left out.
absl::StatusOr<OpenedData> OpenPictures(absl::string_view kind,
                                        ImageSplits splits, Feeds feeds,
                                        const DataOptions& options);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_DATA_FORMAT_H_
