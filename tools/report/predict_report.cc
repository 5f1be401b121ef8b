#include "tools/report/predict_report.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/display.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "runtime/data/npz.h"
#include "runtime/log/words.h"
#include "tools/common/json_text.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;
using runtime::PredictedValue;

constexpr int64_t kMostValues = 16;   // of a sample, that are shown
constexpr char kSample[] = "sample";  // in a line, its number

std::string TypeText(const PredictedValue& value) {
  return absl::StrCat(PrintableName(value.name), " ", Name(value.dtype), "[",
                      absl::StrJoin(value.dims, ","), "]");
}

template <typename T>
T Load(const PredictedValue& value, int64_t i) {
  T element;
  std::memcpy(&element, &value.bytes[i * sizeof(T)], sizeof(T));
  return element;
}

double Number(const PredictedValue& value, int64_t i) {
  return value.dtype == DType::kF64 ? Load<double>(value, i)
                                    : Load<float>(value, i);
}

// An element in JSON, in digits that read back to the same bits.
std::string ElementText(const PredictedValue& value, int64_t i) {
  switch (value.dtype) {
    case DType::kF32:
    case DType::kF64: {
      const double number = Number(value, i);
      const std::string text = value.dtype == DType::kF64
                                   ? ExactDouble(number)
                                   : ExactFloat(static_cast<float>(number));
      return std::isfinite(number) ? text : absl::StrCat("\"", text, "\"");
    }
    case DType::kI32:
      return absl::StrCat(Load<int32_t>(value, i));
    case DType::kI64:
      return absl::StrCat(Load<int64_t>(value, i));
    case DType::kBool:
      return Load<uint8_t>(value, i) != 0 ? "true" : "false";
    default:
      return absl::StrCat(static_cast<int>(Load<uint8_t>(value, i)));
  }
}

// Elements as nested JSON arrays.
class Elements {
 public:
  explicit Elements(const PredictedValue& value)
      : value_(value), strides_(value.dims.size()) {
    int64_t stride = 1;
    for (size_t d = value.dims.size(); d-- > 0;) {
      strides_[d] = stride;
      stride *= value.dims[d];
    }
  }
  // Of a sample; -1: all.
  void Append(int64_t sample, std::string* to) const {
    AppendFrom(0, 0, sample, to);
  }

 private:
  void AppendFrom(int d, int64_t offset, int64_t sample,
                  std::string* to) const {
    if (d == static_cast<int>(strides_.size())) {
      *to += ElementText(value_, offset);
      return;
    }
    const bool cut = sample >= 0 && d == value_.axis;
    const int64_t n = cut ? value_.per_sample : value_.dims[d];
    if (cut) offset += sample * n * strides_[d];
    if (cut && n == 1) return AppendFrom(d + 1, offset, sample, to);
    *to += '[';
    for (int64_t i = 0; i < n; ++i) {
      if (i > 0) *to += ',';
      AppendFrom(d + 1, offset + i * strides_[d], sample, to);
    }
    *to += ']';
  }

  const PredictedValue& value_;
  std::vector<int64_t> strides_;
};

// A row of numbers for each sample, or in a program without any.
bool IsClasses(const PredictedValue& value) {
  return (value.dtype == DType::kF32 || value.dtype == DType::kF64) &&
         value.dims.size() == 2 && value.dims[1] > 1 &&
         (value.axis == -1 || (value.axis == 0 && value.per_sample == 1));
}

// Whether it is a line for each sample, and a short one.
bool IsShort(const PredictedValue& value) {
  if (value.axis < 0) return true;
  int64_t elements = value.per_sample;
  for (size_t d = 0; d < value.dims.size(); ++d) {
    if (static_cast<int>(d) != value.axis) elements *= value.dims[d];
  }
  return elements <= kMostValues;
}

struct Class {
  int64_t index;
  double score;
};

std::vector<Class> Best(const PredictedValue& value, int64_t row,
                        ScoreKind kind, int64_t top) {
  const int64_t n = value.dims[1];
  std::vector<Class> classes(n);
  for (int64_t c = 0; c < n; ++c) classes[c] = {c, Number(value, row * n + c)};
  const auto better = [](const Class& a, const Class& b) {
    if (std::isnan(a.score) != std::isnan(b.score)) return std::isnan(b.score);
    if (a.score != b.score && !std::isnan(a.score)) return a.score > b.score;
    return a.index < b.index;
  };
  const int64_t kept = std::min(top, n);
  std::partial_sort(classes.begin(), classes.begin() + kept, classes.end(),
                    better);
  if (kind == ScoreKind::kLogits) {
    double sum = 0;
    const double most = classes[0].score;
    for (Class& one : classes) sum += one.score = std::exp(one.score - most);
    for (Class& one : classes) one.score /= sum;
  }
  classes.resize(kept);
  return classes;
}

ScoreKind KindOf(const PredictedValue& value, const PredictQuestion& question) {
  const auto found = question.kinds.find(value.name);
  return found == question.kinds.end() ? ScoreKind::kScores : found->second;
}

const char* ScoreName(ScoreKind kind) {
  return kind == ScoreKind::kScores ? "score" : "probability";
}

// As many names as a row has columns; else none belong to it.
const std::vector<std::string>* NamesFor(
    const PredictedValue& value, const runtime::Predictions& predictions) {
  const std::vector<std::string>& names = predictions.classes;
  return static_cast<int64_t>(names.size()) == value.dims[1] ? &names : nullptr;
}

void AppendClasses(const PredictedValue& value,
                   const std::vector<std::string>* names,
                   const PredictQuestion& question, std::string* text) {
  const ScoreKind kind = KindOf(value, question);
  absl::StrAppend(text, TypeText(value), ": class and ", ScoreName(kind), ", ",
                  "the best ", std::min(question.top, value.dims[1]), "\n");
  const int width = static_cast<int>(absl::StrCat(value.dims[0] - 1).size());
  for (int64_t row = 0; row < value.dims[0]; ++row) {
    absl::StrAppendFormat(text, "%*d ", width, row);
    for (const Class& one : Best(value, row, kind, question.top)) {
      const std::string label = names != nullptr
                                    ? PrintableName((*names)[one.index])
                                    : absl::StrCat(one.index);
      absl::StrAppend(text, " ", label, " ", runtime::ThreeDigits(one.score),
                      " ");
    }
    text->pop_back();
    *text += '\n';
  }
}

void AppendValues(const PredictedValue& value, std::string* text) {
  const bool is_short =
      IsShort(value) &&
      (value.axis >= 0 ||
       std::accumulate(value.dims.begin(), value.dims.end(), int64_t{1},
                       std::multiplies<>()) <= kMostValues);
  absl::StrAppend(text, TypeText(value),
                  is_short ? "\n"
                           : ": more than is shown; -o FILE.npz or "
                             "FILE.jsonl writes it\n");
  if (!is_short) return;
  const Elements elements(value);
  if (value.axis < 0) {
    elements.Append(-1, text);
    *text += '\n';
    return;
  }
  const int64_t samples = value.dims[value.axis] / value.per_sample;
  for (int64_t s = 0; s < samples; ++s) {
    absl::StrAppend(text, s, "  ");
    elements.Append(s, text);
    *text += '\n';
  }
}

Json BestJson(const PredictedValue& value,
              const std::vector<std::string>* names,
              const PredictQuestion& question) {
  const ScoreKind kind = KindOf(value, question);
  Json rows = Json::array();
  for (int64_t row = 0; row < value.dims[0]; ++row) {
    Json one = {{"classes", Json::array()},
                {kind == ScoreKind::kScores ? "scores" : "probabilities",
                 Json::array()}};
    Json named = Json::array();
    for (const Class& best : Best(value, row, kind, question.top)) {
      one.front().push_back(best.index);
      if (names != nullptr) named.push_back((*names)[best.index]);
      one.back().push_back(std::isfinite(best.score)
                               ? Json(best.score)
                               : Json(ExactDouble(best.score)));
    }
    if (names != nullptr) one["names"] = std::move(named);
    rows.push_back(std::move(one));
  }
  return rows;
}

std::string QuotedJson(const std::string& name) {
  std::string text = JsonText(Json(name), -1);
  text.pop_back();
  return text;
}

std::string JsonLines(const runtime::Predictions& predictions) {
  std::string text, whole;
  for (const PredictedValue& value : predictions.values) {
    if (value.axis >= 0) continue;
    absl::StrAppend(&whole, whole.empty() ? "{" : ",", QuotedJson(value.name),
                    ":");
    Elements(value).Append(-1, &whole);
  }
  if (!whole.empty()) absl::StrAppend(&text, whole, "}\n");
  std::vector<std::pair<std::string, Elements>> of_samples;
  for (const PredictedValue& value : predictions.values) {
    if (value.axis < 0) continue;
    of_samples.emplace_back(QuotedJson(value.name), Elements(value));
  }
  if (of_samples.empty()) return text;
  for (int64_t s = 0; s < predictions.samples; ++s) {
    absl::StrAppend(&text, "{\"", kSample, "\":", s);
    for (const auto& [name, elements] : of_samples) {
      absl::StrAppend(&text, ",", name, ":");
      elements.Append(s, &text);
    }
    text += "}\n";
  }
  return text;
}

}  // namespace

std::map<std::string, ScoreKind> ScoreKindsOf(const Program& source) {
  std::map<std::string, ScoreKind> kinds;
  const Entry* const train = source.FindEntry(kTrainEntry);
  if (train == nullptr) return kinds;
  const Block& block = train->block();
  for (const OpId id : block.ops()) {
    const Op& op = block.op(id);
    const absl::string_view type = op.schema->name();
    if (type == "softmax") {
      kinds[std::string(block.name(op.out(0)))] = ScoreKind::kProbabilities;
    } else if (type == "softmax_with_cross_entropy") {
      const ValueId logits = op.in(op.schema->FindInput("Logits"));
      kinds.try_emplace(std::string(block.name(logits)), ScoreKind::kLogits);
    }
  }
  return kinds;
}

std::string PredictText(const runtime::Predictions& predictions,
                        const PredictQuestion& question) {
  std::string text;
  if (!question.out.empty()) {
    std::vector<std::string> types;
    for (const PredictedValue& value : predictions.values) {
      types.push_back(TypeText(value));
    }
    return absl::StrCat(runtime::Count(predictions.samples, "sample"), ": ",
                        absl::StrJoin(types, ", "), " -> ",
                        PrintableName(question.out), "\n");
  }
  for (const PredictedValue& value : predictions.values) {
    if (IsClasses(value)) {
      AppendClasses(value, NamesFor(value, predictions), question, &text);
    } else {
      AppendValues(value, &text);
    }
  }
  return text;
}

std::string PredictJson(const runtime::Predictions& predictions,
                        const PredictQuestion& question) {
  Json json = {{"schema", 1},
               {"samples", predictions.samples},
               {"outputs", Json::array()}};
  if (!question.out.empty()) json["path"] = question.out;
  for (const PredictedValue& value : predictions.values) {
    Json output = {{"name", value.name},
                   {"dtype", std::string(Name(value.dtype))},
                   {"shape", value.dims}};
    if (question.out.empty() && IsClasses(value)) {
      output["best"] = BestJson(value, NamesFor(value, predictions), question);
    }
    json["outputs"].push_back(std::move(output));
  }
  return JsonText(json, -1);
}

absl::StatusOr<bool> WantsNpz(const std::string& path) {
  if (absl::EndsWith(path, ".npz")) return true;
  if (absl::EndsWith(path, ".jsonl")) return false;
  return UsageError("-o ", path, ": expected FILE.npz (arrays for NumPy) or ",
                    "FILE.jsonl (a line for each sample)");
}

absl::Status CheckPredictFile(const std::string& path,
                              absl::Span<const std::string> outputs) {
  HT_ASSIGN_OR_RETURN(const bool npz, WantsNpz(path));
  const bool taken =
      std::find(outputs.begin(), outputs.end(), kSample) != outputs.end();
  if (npz || !taken) return absl::OkStatus();
  return UsageError(
      "-o ", path, ": an output is called ", kSample,
      ", as the number of a line's sample is; write FILE.npz, or ",
      "rename it in the model");
}

absl::StatusOr<std::string> PredictFile(runtime::Predictions predictions,
                                        const std::string& path) {
  HT_ASSIGN_OR_RETURN(const bool npz, WantsNpz(path));
  if (!npz) return JsonLines(predictions);
  std::vector<runtime::NpzArray> arrays;
  int64_t bytes = 0;
  for (PredictedValue& value : predictions.values) {
    bytes += static_cast<int64_t>(value.bytes.size());
    arrays.push_back({std::move(value.name), value.dtype, std::move(value.dims),
                      std::move(value.bytes)});
  }
  if (bytes > runtime::kMostNpzBytes) {
    return ModelError(path, ": ", HumanBytes(bytes), " of values, more than ",
                      HumanBytes(runtime::kMostNpzBytes), ", which such a ",
                      "file holds; name fewer with --fetch, or write .jsonl");
  }
  return runtime::SerializeNpz(arrays);
}

}  // namespace tools
}  // namespace halftone
