#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/out_of_memory.h"
#include "graph/base/text.h"
#include "runtime/data/data_format.h"

namespace halftone {
namespace runtime {
namespace {

std::string UsageOf(const DataFormat& format) {
  const std::string place = absl::StrCat(":", format.place);
  return absl::StrCat(
      format.kind, format.needs_place ? place : absl::StrCat("[", place, "]"));
}

// What `options` ask of pictures, as fields of the strategy.
std::vector<std::string> AskedOfPictures(const DataOptions& options) {
  std::vector<std::string> fields;
  if (options.augmented) {
    const auto& reflection = *options.augment.GetReflection();
    std::vector<const google::protobuf::FieldDescriptor*> set;
    reflection.ListFields(options.augment, &set);
    for (const auto* field : set) {
      // A default of 0, which a resolved strategy has, asks for nothing.
      using Type = google::protobuf::FieldDescriptor;
      const bool nothing =
          (field->cpp_type() == Type::CPPTYPE_DOUBLE &&
           reflection.GetDouble(options.augment, field) == 0) ||
          (field->cpp_type() == Type::CPPTYPE_INT64 &&
           reflection.GetInt64(options.augment, field) == 0);
      if (nothing) continue;
      fields.push_back(absl::StrCat("train.augment.", field->name()));
    }
  }
  if (options.skip_broken) fields.push_back("train.broken_samples");
  return fields;
}

// That data of this kind has no use for them; "": nothing is asked.
std::string IdleFieldsNote(const DataFormat& format,
                           const DataOptions& options) {
  const std::vector<std::string> fields = AskedOfPictures(options);
  if (fields.empty()) return "";
  std::vector<std::string> kinds;
  for (const DataFormat& other : DataFormats()) {
    if (other.open_images != nullptr) kinds.emplace_back(other.kind);
  }
  return absl::StrCat(absl::StrJoin(fields, ", "), ": no effect on ",
                      format.kind, " data, only on ",
                      absl::StrJoin(kinds, ", "));
}

// What needs nothing of the data, as parameters alone, runs once.
class NoFeeds : public Dataset {
 public:
  int64_t size() const override { return 1; }
  absl::Status Read(const SampleId&, int, absl::Span<uint8_t>) const override {
    return absl::OkStatus();
  }
  std::string Description() const override { return "none of it is read"; }
};

}  // namespace

int64_t FeedSpec::elements() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

int64_t FeedSpec::bytes() const { return SizeOf(dtype) * elements(); }

std::string Describe(const FeedSpec& feed) {
  return absl::StrCat(Name(feed.dtype), "[", feed.whole ? "" : "B",
                      feed.whole || feed.dims.empty() ? "" : ",",
                      absl::StrJoin(feed.dims, ","), "]");
}

absl::Span<const DataFormat> DataFormats() {
  static constexpr DataFormat kFormats[] = {
      {"idx", "DIR", true, OpenIdx, nullptr, LookOverIdx},
      {"npz", "FILE", true, OpenNpz, nullptr, LookOverNpz, "arrays", true},
      {"imagefolder", "DIR", true, nullptr, OpenImageFolder},
      {"filelist", "FILE", true, nullptr, OpenFileList},
      {"tar", "PATTERN", true, nullptr, OpenTarShards},
      {"tokens", "FILE", true, OpenTokens, nullptr, LookOverTokens},
      {"synthetic", "SAMPLES", false, OpenSynthetic, nullptr, nullptr, "",
       true},
  };
  return kFormats;
}

std::string DataUsage() {
  std::vector<std::string> usages;
  for (const DataFormat& format : DataFormats()) {
    usages.push_back(UsageOf(format));
  }
  return absl::StrJoin(usages, ", ");
}

absl::StatusOr<const DataFormat*> FindDataFormat(absl::string_view source,
                                                 std::string* place) {
  const size_t colon = source.find(':');
  const std::string kind(source.substr(0, colon));
  *place = colon == absl::string_view::npos
               ? ""
               : std::string(source.substr(colon + 1));
  std::vector<std::string> kinds;
  for (const DataFormat& format : DataFormats()) {
    kinds.emplace_back(format.kind);
    if (format.kind != kind) continue;
    if (place->empty() && (format.needs_place || colon != source.npos)) {
      return UsageError("--data ", source, ": expected ", UsageOf(format));
    }
    return &format;
  }
  return UsageError("--data ", source, ": unknown kind of data \"", kind,
                    "\"; known: ", DataUsage(), NearestHint(kind, kinds));
}

absl::StatusOr<OpenedData> OpenData(absl::string_view source, Feeds feeds,
                                    const DataOptions& options) {
  const Doing doing("opening the data", source);
  std::string place;
  HT_ASSIGN_OR_RETURN(const DataFormat* const format,
                      FindDataFormat(source, &place));
  if (feeds.empty() && !format->for_any_feeds) {
    OpenedData data;
    data.train = std::make_unique<NoFeeds>();
    return data;
  }
  if (format->open != nullptr) {
    HT_ASSIGN_OR_RETURN(OpenedData data, format->open(place, feeds, options));
    const std::string note = IdleFieldsNote(*format, options);
    if (!note.empty()) data.notes.push_back(note);
    return data;
  }
  HT_ASSIGN_OR_RETURN(ImageSplits splits,
                      format->open_images(place, options.classes));
  std::vector<std::string> classes = splits.classes;
  HT_ASSIGN_OR_RETURN(
      OpenedData data,
      OpenPictures(format->kind, std::move(splits), feeds, options));
  data.classes = std::move(classes);
  data.pictures = true;
  return data;
}

absl::Status LeaveOut(OpenedData* data) {
  constexpr size_t kShown = 5;
  std::sort(data->broken.begin(), data->broken.end(),
            [](const BrokenSample& a, const BrokenSample& b) {
              return std::pair(a.test, a.index) < std::pair(b.test, b.index);
            });
  for (Dataset* const split : {data->train.get(), data->test.get()}) {
    if (split == nullptr) continue;
    const bool test = split == data->test.get();
    std::vector<int64_t> samples;
    std::string first;
    for (const BrokenSample& sample : data->broken) {
      if (sample.test != test) continue;
      if (samples.empty()) first = sample.why;
      if (samples.size() < kShown) {
        data->notes.push_back(absl::StrCat("broken, left out: ", sample.why));
      }
      samples.push_back(sample.index);
    }
    if (samples.empty()) continue;
    const int64_t all = split->size();
    split->LeaveOut(samples);
    data->left_out += static_cast<int64_t>(samples.size());
    const char* const name = test ? "val" : "train";
    data->notes.push_back(absl::StrCat(
        WithCommas(static_cast<int64_t>(samples.size())), " broken of ",
        WithCommas(all), " in ", name, " left out"));
    if (split->size() == 0) {
      return ModelError("all ", all, " pictures of ", name, " are broken; ",
                        first);
    }
  }
  data->broken.clear();
  return absl::OkStatus();
}

// The reader's names are "image" and "label"; --feed maps them.
absl::StatusOr<ImageFeeds> MatchImageFeeds(
    absl::string_view kind, Feeds feeds,
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
  ImageFeeds found;
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
    return ModelError(kind, " data feeds ", image, " and ", label,
                      "; the model's feeds are ", absl::StrJoin(names, ", "),
                      mistyped ? NearestHint(missing, names) : "",
                      "; map them with --feed image=NAME --feed label=NAME");
  }
  return found;
}

}  // namespace runtime
}  // namespace halftone
