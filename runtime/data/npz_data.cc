#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/stable_hasher.h"
#include "graph/base/text.h"
#include "runtime/data/data_format.h"
#include "runtime/data/npy_file.h"
#include "runtime/data/zip_archive.h"

namespace halftone {
namespace runtime {
namespace {

// As much as fits into memory.
constexpr int64_t kMostBytes = std::numeric_limits<int64_t>::max();

// A feed's array, row-major in the feed's dtype.
struct NpzColumn {
  absl::string_view bytes;  // of the file, or of one of those below
  std::unique_ptr<std::string> unpacked = std::make_unique<std::string>();
  std::unique_ptr<std::string> converted = std::make_unique<std::string>();
  bool whole = false;
};

class NpzDataset : public Dataset {
 public:
  NpzDataset(std::unique_ptr<std::string> content,
             std::vector<NpzColumn> columns, int64_t size)
      : content_(std::move(content)),
        columns_(std::move(columns)),
        size_(size) {}

  int64_t size() const override { return size_; }
  absl::Status Read(const SampleId& sample, int feed,
                    absl::Span<uint8_t> out) const override {
    const NpzColumn& column = columns_[feed];
    const size_t at = column.whole ? 0 : sample.index * out.size();
    if (!out.empty()) std::memcpy(out.data(), &column.bytes[at], out.size());
    return absl::OkStatus();
  }
  std::string Description() const override {
    return absl::StrCat("npz, ", WithCommas(size_),
                        size_ == 1 ? " sample" : " samples");
  }
  absl::StatusOr<uint64_t> ContentHash() const override {
    StableHasher hasher;
    for (const NpzColumn& column : columns_) hasher.Append(column.bytes);
    return hasher.hash();
  }

 private:
  std::unique_ptr<std::string> content_;  // columns refer to it
  std::vector<NpzColumn> columns_;
  int64_t size_;
};

class Opener {
 public:
  Opener(const std::string& path, absl::Span<const FeedSpec> feeds,
         int64_t max_unpack)
      : path_(path), feeds_(feeds), max_unpack_(max_unpack) {}

  absl::Status MapNames(absl::Span<const std::string> feed_map);
  absl::StatusOr<OpenedData> Open();

 private:
  absl::StatusOr<const ZipArchive::Member*> Find(const ZipArchive& archive,
                                                 const FeedSpec& feed) const;
  absl::StatusOr<NpzColumn> Read(const ZipArchive& archive,
                                 const FeedSpec& feed);
  absl::Status CheckDims(const NpyArray& array, const FeedSpec& feed);
  absl::Status CheckLabels(const FeedSpec& feed, const NpyArray& array,
                           absl::string_view bytes) const;
  bool IsFeed(absl::string_view name) const {
    for (const FeedSpec& feed : feeds_) {
      if (feed.name == name) return true;
    }
    return false;
  }
  std::vector<std::string> FeedNames() const {
    std::vector<std::string> names;
    for (const FeedSpec& feed : feeds_) names.push_back(feed.name);
    return names;
  }

  const std::string& path_;
  absl::Span<const FeedSpec> feeds_;
  int64_t max_unpack_;
  std::map<std::string, std::string> array_of_;  // by feed
  int64_t samples_ = -1;
  std::string counted_;  // the array in which they were counted
  std::vector<std::string> notes_;
};

absl::Status Opener::MapNames(absl::Span<const std::string> feed_map) {
  for (const FeedSpec& feed : feeds_) array_of_[feed.name] = feed.name;
  for (const std::string& item : feed_map) {
    const size_t equals = item.find('=');
    const std::string left = item.substr(0, equals);
    const std::string right =
        equals == std::string::npos ? "" : item.substr(equals + 1);
    if (left.empty() || right.empty()) {
      return UsageError("--feed ", item, ": expected ARRAY=FEED");
    }
    if (IsFeed(right)) {
      array_of_[right] = left;
    } else if (IsFeed(left)) {
      array_of_[left] = right;
    } else {
      return UsageError("--feed ", item, ": expected ARRAY=FEED; the model's ",
                        "feeds are ", absl::StrJoin(FeedNames(), ", "),
                        NearestHint(right, FeedNames()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const ZipArchive::Member*> Opener::Find(
    const ZipArchive& archive, const FeedSpec& feed) const {
  const std::string& wanted = array_of_.at(feed.name);
  std::vector<std::string> names;
  const ZipArchive::Member* found = nullptr;
  for (const ZipArchive::Member& member : archive.members()) {
    names.emplace_back(absl::StripSuffix(member.name, ".npy"));
    if (names.back() != wanted) continue;
    if (found != nullptr) {
      return ModelError(path_, ": two arrays are called ", wanted,
                        "; save it with one");
    }
    found = &member;
  }
  if (found != nullptr) return found;
  constexpr size_t kMost = 20;
  const size_t more = names.size() > kMost ? names.size() - kMost : 0;
  std::vector<std::string> shown(names.begin(), names.end() - more);
  return ModelError(path_, ": no array is called ", wanted, "; it holds ",
                    shown.empty() ? "none" : absl::StrJoin(shown, ", "),
                    more > 0 ? absl::StrCat(" and ", more, " more") : "",
                    NearestHint(wanted, names), "; map another one with ",
                    "--feed ARRAY=", feed.name);
}

absl::Status Opener::CheckDims(const NpyArray& array, const FeedSpec& feed) {
  absl::Span<const int64_t> dims = array.dims;
  const std::string wanted =
      absl::StrCat(NumpyName(feed.dtype), "[", feed.whole ? "" : "samples",
                   feed.whole || feed.dims.empty() ? "" : ",",
                   absl::StrJoin(feed.dims, ","), "]");
  const bool counts = !feed.whole && !dims.empty();
  if (counts) dims.remove_prefix(1);
  if (counts == feed.whole || dims != absl::MakeConstSpan(feed.dims)) {
    return ModelError(array.file, ": ", Describe(array), ", feed ", feed.name,
                      " takes ", wanted, "; reshape it, or change the feed");
  }
  if (feed.whole) return absl::OkStatus();
  const int64_t samples = array.dims[0];
  if (samples < 1) {
    return ModelError(array.file, ": ", Describe(array),
                      ": expected samples, found none");
  }
  if (samples_ >= 0 && samples != samples_) {
    return ModelError(array.file, ": ", WithCommas(samples), " samples, but ",
                      counted_, " has ", WithCommas(samples_),
                      "; all arrays that are cut into samples must have ",
                      "equally many");
  }
  samples_ = samples;
  counted_ = array.file;
  return absl::OkStatus();
}

absl::Status Opener::CheckLabels(const FeedSpec& feed, const NpyArray& array,
                                 absl::string_view bytes) const {
  if (feed.classes <= 0 || feed.dtype != DType::kI64) return absl::OkStatus();
  for (size_t i = 0; i < bytes.size() / sizeof(int64_t); ++i) {
    int64_t label = 0;
    std::memcpy(&label, &bytes[i * sizeof(label)], sizeof(label));
    if ((label >= 0 && label < feed.classes) || label == feed.ignored) continue;
    return ModelError(array.file, ": label ", label, ", element ", i,
                      ": expected 0 to ", feed.classes - 1, " (the model has ",
                      feed.classes, " classes) or ", feed.ignored,
                      " (ignored); take another model or other ", "data");
  }
  return absl::OkStatus();
}

absl::StatusOr<NpzColumn> Opener::Read(const ZipArchive& archive,
                                       const FeedSpec& feed) {
  HT_ASSIGN_OR_RETURN(const ZipArchive::Member* member, Find(archive, feed));
  NpzColumn column;
  column.whole = feed.whole;
  HT_ASSIGN_OR_RETURN(
      const absl::string_view npy,
      archive.Read(*member, max_unpack_, column.unpacked.get()));
  HT_ASSIGN_OR_RETURN(
      const NpyArray array,
      ParseNpy(npy, absl::StrCat(path_, ": ", array_of_.at(feed.name)),
               feed.dtype));
  HT_RETURN_IF_ERROR(CheckDims(array, feed));
  std::string note;
  HT_ASSIGN_OR_RETURN(column.bytes, ElementsAs(array, feed.dtype,
                                               column.converted.get(), &note));
  HT_RETURN_IF_ERROR(CheckLabels(feed, array, column.bytes));
  if (!note.empty()) notes_.push_back(note);
  const bool in_place = column.converted->empty();
  if (!in_place) column.unpacked->clear(), column.unpacked->shrink_to_fit();
  return column;
}

absl::StatusOr<OpenedData> Opener::Open() {
  auto content = std::make_unique<std::string>();
  HT_ASSIGN_OR_RETURN(*content, ReadFile(path_, kMostBytes));
  HT_ASSIGN_OR_RETURN(const ZipArchive archive,
                      ZipArchive::Parse(*content, path_));
  std::vector<NpzColumn> columns;
  for (const FeedSpec& feed : feeds_) {
    HT_ASSIGN_OR_RETURN(NpzColumn column, Read(archive, feed));
    columns.push_back(std::move(column));
  }
  OpenedData data;
  data.train = std::make_unique<NpzDataset>(
      std::move(content), std::move(columns), samples_ < 0 ? 1 : samples_);
  data.notes = std::move(notes_);
  return data;
}

}  // namespace

absl::StatusOr<OpenedData> OpenNpz(const std::string& place, Feeds feeds,
                                   const DataOptions& options) {
  Opener opener(place, feeds, options.max_unpack);
  HT_RETURN_IF_ERROR(opener.MapNames(options.feed_map));
  return opener.Open();
}

absl::StatusOr<std::vector<DataFacts>> LookOverNpz(const std::string& place,
                                                   int64_t max_unpack) {
  HT_ASSIGN_OR_RETURN(const std::string content, ReadFile(place, kMostBytes));
  HT_ASSIGN_OR_RETURN(const ZipArchive archive,
                      ZipArchive::Parse(content, place));
  std::vector<DataFacts> facts;
  for (const ZipArchive::Member& member : archive.members()) {
    std::string unpacked;
    HT_ASSIGN_OR_RETURN(const absl::string_view npy,
                        archive.Read(member, max_unpack, &unpacked));
    const std::string name(absl::StripSuffix(member.name, ".npy"));
    HT_ASSIGN_OR_RETURN(const NpyArray array,
                        ParseNpy(npy, absl::StrCat(place, ": ", name)));
    facts.push_back({name,
                     Describe(array),
                     {{"bytes", static_cast<int64_t>(array.data.size())}}});
  }
  return facts;
}

}  // namespace runtime
}  // namespace halftone
