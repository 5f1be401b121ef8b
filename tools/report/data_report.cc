#include "tools/report/data_report.h"

#include <chrono>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "runtime/log/words.h"
#include "tools/common/json_text.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;

// A screen of classes; --json has all.
constexpr size_t kShownClasses = 20;
constexpr size_t kShownBroken = 20;

std::string ClassName(int64_t label, const std::vector<std::string>& classes) {
  return label < static_cast<int64_t>(classes.size()) ? classes[label]
                                                      : absl::StrCat(label);
}

// One that is no UTF-8 as text has it: names that differ stay different.
std::string JsonName(const std::string& name) {
  using OnError = Json::error_handler_t;
  const Json json = name;
  const bool is_utf8 = json.dump(-1, ' ', false, OnError::replace) ==
                       json.dump(-1, ' ', false, OnError::ignore);
  return is_utf8 ? name : PrintableName(name);
}

std::string Sizes(const runtime::ImageScan& scan) {
  const std::string least =
      absl::StrCat(scan.least_width, "x", scan.least_height);
  const std::string most = absl::StrCat(scan.most_width, "x", scan.most_height);
  return least == most ? least : absl::StrCat(least, " to ", most);
}

std::string ClassLines(const runtime::ImageScan& scan,
                       const std::vector<std::string>& classes) {
  std::string text;
  size_t shown = 0;
  for (const auto& [label, images] : scan.readable) {
    if (shown++ == kShownClasses) break;
    absl::StrAppend(&text, "  ", PrintableName(ClassName(label, classes)), "  ",
                    WithCommas(images), "\n");
  }
  if (scan.readable.size() > kShownClasses) {
    absl::StrAppend(
        &text, "  ... ",
        runtime::Count(scan.readable.size() - kShownClasses, "other class"),
        "\n");
  }
  return text;
}

}  // namespace

std::string ScanText(const std::string& source,
                     const std::vector<ScannedSplit>& splits,
                     const std::vector<std::string>& classes) {
  std::string text = absl::StrCat("data     ", PrintableName(source), "\n");
  size_t broken = 0;
  for (const ScannedSplit& split : splits) {
    const runtime::ImageScan& scan = split.scan;
    absl::StrAppend(
        &text, absl::StrFormat("%-8s ", split.name),
        runtime::Count(scan.count(), "picture"), " in ",
        WithCommas(static_cast<int64_t>(scan.readable.size())),
        scan.readable.size() == 1 ? " class" : " classes", ", ", Sizes(scan),
        absl::StrFormat(", mean %.2f %.2f %.2f", scan.mean[0], scan.mean[1],
                        scan.mean[2]),
        scan.broken.empty()
            ? ""
            : absl::StrCat("; ",
                           WithCommas(static_cast<int64_t>(scan.broken.size())),
                           " broken"),
        "\n", ClassLines(scan, classes));
    for (const runtime::BrokenImage& image : scan.broken) {
      if (broken++ < kShownBroken) {
        absl::StrAppend(&text, "broken   ", PrintableName(image.why), "\n");
      }
    }
  }
  if (broken > kShownBroken) {
    absl::StrAppend(&text, "broken   ... ",
                    WithCommas(static_cast<int64_t>(broken - kShownBroken)),
                    " others: --json names all\n");
  }
  return text;
}

std::string ScanJson(const std::string& source,
                     const std::vector<ScannedSplit>& splits,
                     const std::vector<std::string>& classes) {
  Json object = {{"schema", 1}, {"data", source}};
  for (const ScannedSplit& split : splits) {
    const runtime::ImageScan& scan = split.scan;
    Json counts = Json::object(), broken = Json::array();
    for (const auto& [label, images] : scan.readable) {
      counts[JsonName(ClassName(label, classes))] = images;
    }
    for (const runtime::BrokenImage& image : scan.broken) {
      broken.push_back(JsonName(image.why));
    }
    object[split.name] = {{"images", scan.count()},
                          {"classes", counts},
                          {"least_width", scan.least_width},
                          {"least_height", scan.least_height},
                          {"most_width", scan.most_width},
                          {"most_height", scan.most_height},
                          {"mean", scan.mean},
                          {"broken", broken}};
  }
  return JsonText(object);
}

std::string FactsText(const std::string& source,
                      const std::vector<runtime::DataFacts>& facts) {
  std::string text = absl::StrCat("data     ", PrintableName(source), "\n");
  for (const runtime::DataFacts& part : facts) {
    absl::StrAppend(&text, absl::StrFormat("%-8s ", PrintableName(part.name)),
                    part.what);
    for (const auto& [name, number] : part.numbers) {
      absl::StrAppend(&text, ", ", absl::StrReplaceAll(name, {{"_", " "}}), " ",
                      WithCommas(number));
    }
    text += "\n";
  }
  return text;
}

std::string FactsJson(const std::string& source,
                      const std::vector<runtime::DataFacts>& facts,
                      absl::string_view facts_in) {
  Json object = {{"schema", 1}, {"data", source}};
  Json& parts = facts_in.empty() ? object : object[std::string(facts_in)];
  for (const runtime::DataFacts& part : facts) {
    Json& to = parts[JsonName(part.name)];
    to["what"] = part.what;
    for (const auto& [name, number] : part.numbers) to[name] = number;
  }
  return JsonText(object);
}

double ReadSpeed::samples_per_second() const {
  return seconds > 0 ? static_cast<double>(samples) / seconds : 0;
}

absl::StatusOr<ReadSpeed> MeasureReading(
    const runtime::Dataset& data, const std::vector<runtime::FeedSpec>& feeds,
    const runtime::SamplerOptions& sampler, int workers, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto since = Clock::now();
  runtime::ReaderOptions options;
  options.workers = workers;
  options.epochs = int64_t{1} << 32;  // more than there is time for
  const auto reader = runtime::MakeBatchReader(&data, feeds, sampler, options);
  ReadSpeed speed;
  speed.workers = workers;
  while (speed.seconds < seconds) {
    HT_ASSIGN_OR_RETURN(const runtime::Batch* const read, reader->Next());
    speed.samples += read->share.global_count;
    speed.seconds = std::chrono::duration<double>(Clock::now() - since).count();
  }
  return speed;
}

std::string SpeedText(const std::string& description,
                      const std::vector<ReadSpeed>& speeds) {
  std::string text =
      absl::StrCat("data     ", PrintableName(description), "\n");
  for (const ReadSpeed& speed : speeds) {
    const double rate = speed.samples_per_second();
    absl::StrAppend(
        &text, absl::StrFormat("%-11s%s samples/s, %s per worker\n",
                               runtime::Count(speed.workers, "worker"),
                               WithCommas(std::llround(rate)),
                               WithCommas(std::llround(rate / speed.workers))));
  }
  return text;
}

std::string SpeedJson(const std::string& description,
                      const std::vector<ReadSpeed>& speeds) {
  Json rows = Json::array();
  for (const ReadSpeed& speed : speeds) {
    rows.push_back({{"workers", speed.workers},
                    {"samples", speed.samples},
                    {"seconds", speed.seconds},
                    {"samples_per_second", speed.samples_per_second()}});
  }
  return JsonText({{"schema", 1}, {"data", description}, {"read", rows}});
}

}  // namespace tools
}  // namespace halftone
