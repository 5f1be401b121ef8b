#include "tools/report/run_history.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/json/json_reader.h"
#include "graph/ir/gradient_names.h"

namespace halftone {
namespace tools {
namespace {

constexpr double kLargestStep = 9e18;  // that an int64 holds
constexpr int64_t kMaxSummaryBytes = int64_t{64} << 20;
constexpr size_t kMaxLineBytes = size_t{1} << 24;

// Numbers, and the strings "nan", "inf" and "-inf"; false: something else.
bool ToNumber(const nlohmann::json& json, double* number) {
  if (json.is_number()) {
    *number = json.get<double>();
    return true;
  }
  if (!json.is_string()) return false;
  const auto& text = json.get_ref<const std::string&>();
  if (text != "nan" && text != "inf" && text != "-inf") return false;
  *number = std::strtod(text.c_str(), nullptr);
  return true;
}

class Reader {
 public:
  explicit Reader(RunHistory* history) : history_(*history) {}

  void Add(const nlohmann::json& line) {
    double step = 0;
    if (!line.is_object() || !line.contains("step") ||
        !ToNumber(line["step"], &step) || !std::isfinite(step)) {
      return;
    }
    history_.last_step =
        std::max(history_.last_step,
                 static_cast<int64_t>(std::clamp(step, 0.0, kLargestStep)));
    const std::string event = line.value("event", "");
    if (event == "step") {
      for (const char* key : {"loss", "lr", "loss_scaling", "grad_norm"}) {
        AddValue(key, step, line, key);
      }
      AddAll("ms.", step, line, "ms");
      AddOfEach("loss of ", step, line, "losses", "loss");
      AddFlushed(step, line);
    } else if (event == "skip") {
      history_.skipped.Add(step, 1);
      AddValue("loss_scaling", step, line, "loss_scaling");
    } else if (event == "scale") {
      AddValue("loss_scaling", step, line, "loss_scaling");
    } else if (event == "eval") {
      AddValue("eval loss", step, line, "loss");
      AddOfEach("eval ", step, line, "metrics", "value");
    }
  }

 private:
  void AddValue(const std::string& name, double step,
                const nlohmann::json& line, const char* key) {
    double value = 0;
    const auto it = line.find(key);
    if (it == line.end() || !ToNumber(*it, &value)) return;
    history_.series[name].Add(step, value);
  }
  // All numbers of an object in the line.
  void AddAll(const std::string& prefix, double step,
              const nlohmann::json& line, const char* key) {
    const auto it = line.find(key);
    if (it == line.end() || !it->is_object()) return;
    for (const auto& item : it->items()) {
      AddValue(prefix + item.key(), step, *it, item.key().c_str());
    }
  }
  // `field` of each object in the line's object `key`.
  void AddOfEach(const std::string& prefix, double step,
                 const nlohmann::json& line, const char* key,
                 const char* field) {
    const auto it = line.find(key);
    if (it == line.end() || !it->is_object()) return;
    for (const auto& item : it->items()) {
      if (!item.value().is_object()) continue;
      AddValue(prefix + item.key(), step, item.value(), field);
    }
  }

  // Of the exponents of gradients; docs/formats.md has their members.
  void AddFlushed(double step, const nlohmann::json& line) {
    const auto fetches = line.find("fetches");
    if (fetches == line.end() || !fetches->is_object()) return;
    RunHistory::Flushed sum;
    for (const auto& item : fetches->items()) {
      const size_t end = item.key().rfind(":exponents");
      if (end == std::string::npos || !item.value().is_object()) continue;
      const std::string name = item.key().substr(0, end);
      if (!absl::EndsWith(name, kGradientSuffix)) continue;
      const RunHistory::Flushed one = FlushedOf(item.value());
      for (RunHistory::Flushed* into : {&history_.flushed[name], &sum}) {
        into->elements += one.elements;
        into->lost += one.lost;
      }
    }
    if (sum.elements > 0) {
      history_.series["gradients flushed"].Add(step, sum.share());
    }
  }
  static RunHistory::Flushed FlushedOf(const nlohmann::json& exponents) {
    const auto number = [&exponents](const char* key) {
      double count = 0;
      const auto it = exponents.find(key);
      return it != exponents.end() && ToNumber(*it, &count) ? count : 0;
    };
    const double zero = number("zero"), flushed = number("flushed");
    const auto dtype = exponents.find("dtype");
    const bool f16 = dtype != exponents.end() && *dtype == "f16";
    RunHistory::Flushed found = {zero + flushed + number("overflowed"),
                                 flushed + (f16 ? zero : 0)};
    const auto bins = exponents.find("bins");
    if (bins == exponents.end() || !bins->is_array()) return found;
    for (const nlohmann::json& bin : *bins) {
      double count = 0;
      if (ToNumber(bin, &count)) found.elements += count;
    }
    return found;
  }

  RunHistory& history_;
};

absl::Status ReadMetrics(const std::string& path, RunHistory* history) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return ModelError(history->directory,
                      ": no run directory: it has no metrics.jsonl, which run "
                      "--out writes; name one that has");
  }
  if (std::filesystem::is_directory(path)) {
    return ModelError(path, ": expected a file, found a directory");
  }
  Reader reader(history);
  std::vector<char> line(kMaxLineBytes);
  for (int64_t number = 1; file.getline(line.data(), line.size()); ++number) {
    if (file.eof()) break;  // without an end: still being written
    HT_ASSIGN_OR_RETURN(
        const nlohmann::json json,
        ParseJson(line.data(), absl::StrCat(path, ":", number)));
    if (!json.is_object()) {
      return ModelError(path, ":", number, ": expected an event, a JSON ",
                        "object, found ", json.type_name(),
                        "; take the line out");
    }
    reader.Add(json);
  }
  if (!file.eof()) {
    return ModelError(path, ": expected lines of at most ", kMaxLineBytes,
                      " bytes, found a longer one");
  }
  return absl::OkStatus();
}

// Null where there is no such file.
absl::StatusOr<nlohmann::json> ReadIfThere(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return nlohmann::json();
  HT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxSummaryBytes));
  return ParseJson(text, path);
}

}  // namespace

double ThinnedSeries::last() const {
  return std::isfinite(last_value_) ? buckets_.back().mean() : last_value_;
}

void ThinnedSeries::Add(double step, double value) {
  last_value_ = value;
  const auto is_full = [this] {
    return buckets_.empty() ||
           buckets_.back().count + buckets_.back().not_finite >= per_bucket_;
  };
  if (is_full() && buckets_.size() == kMost) Halve();
  if (is_full()) {
    buckets_.emplace_back();
    buckets_.back().first_step = step;
  }
  Bucket& bucket = buckets_.back();
  bucket.last_step = step;
  if (!std::isfinite(value)) {
    ++bucket.not_finite;
    return;
  }
  bucket.least = bucket.count == 0 ? value : std::min(bucket.least, value);
  bucket.most = bucket.count == 0 ? value : std::max(bucket.most, value);
  bucket.sum += value;
  ++bucket.count;
}

void ThinnedSeries::Halve() {
  static_assert(kMost % 2 == 0);
  for (size_t i = 0; i < buckets_.size(); i += 2) {
    Bucket merged = buckets_[i];
    const Bucket& next = buckets_[i + 1];
    merged.last_step = next.last_step;
    if (next.count > 0) {
      merged.least =
          merged.count == 0 ? next.least : std::min(merged.least, next.least);
      merged.most =
          merged.count == 0 ? next.most : std::max(merged.most, next.most);
    }
    merged.sum += next.sum;
    merged.count += next.count;
    merged.not_finite += next.not_finite;
    buckets_[i / 2] = merged;
  }
  buckets_.resize(buckets_.size() / 2);
  per_bucket_ *= 2;
}

absl::StatusOr<RunHistory> ReadRunHistory(const std::string& directory) {
  RunHistory history;
  history.directory = directory;
  while (history.directory.size() > 1 && history.directory.back() == '/') {
    history.directory.pop_back();
  }
  const std::string& base = history.directory;
  HT_RETURN_IF_ERROR(ReadMetrics(base + "/metrics.jsonl", &history));
  HT_ASSIGN_OR_RETURN(history.summary, ReadIfThere(base + "/summary.json"));
  const auto schema = history.summary.find("schema");
  if (history.summary.is_object() && schema != history.summary.end() &&
      *schema != 1) {
    return ModelError(base, "/summary.json: schema: expected 1, found ",
                      schema->dump().substr(0, 40),
                      ": another release wrote it; report it with that one");
  }
  HT_ASSIGN_OR_RETURN(history.failure, ReadIfThere(base + "/failure.json"));
  return history;
}

}  // namespace tools
}  // namespace halftone
