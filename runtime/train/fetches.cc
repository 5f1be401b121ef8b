#include "runtime/train/fetches.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/disk/directory.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/half.h"
#include "graph/base/text.h"
#include "runtime/data/npz.h"
#include "runtime/exec/host_tensor.h"

namespace halftone {
namespace runtime {
namespace {

template <typename T>
void Widen(const std::string& bytes, std::vector<float>* values) {
  const size_t n = bytes.size() / sizeof(T);
  values->resize(n);
  for (size_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, &bytes[i * sizeof(T)], sizeof(T));
    (*values)[i] = static_cast<float>(value);
  }
}

std::vector<float> Histogram(const std::vector<float>& values) {
  float low = 0, high = 0;
  int64_t finite = 0;
  for (const float v : values) {
    if (!std::isfinite(v)) continue;
    low = finite == 0 ? v : std::min(low, v);
    high = finite == 0 ? v : std::max(high, v);
    ++finite;
  }
  std::vector<float> hist(3 + kBins);
  hist[0] = low;
  hist[1] = high;
  hist[2] = static_cast<float>(values.size() - finite);
  for (const float v : values) {
    if (!std::isfinite(v)) continue;
    const double at =
        high > low ? (static_cast<double>(v) - low) / (high - low) : 0;
    ++hist[3 + std::min(static_cast<int>(at * kBins), kBins - 1)];
  }
  return hist;
}

float Norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * v;
  return static_cast<float>(std::sqrt(sum));
}

template <typename Word>
absl::Span<const Word> WordsOf(const StepView::Item& item) {
  return {static_cast<const Word*>(item.data),
          item.desc->bytes() / sizeof(Word)};
}

// Of a dtype that kExponents takes.
ExponentCounts CountsOf(const StepView::Item& item) {
  ExponentCounts counts;
  if (item.desc->dtype == DType::kF32) counts.AddF32(WordsOf<uint32_t>(item));
  if (item.desc->dtype == DType::kF16) counts.AddF16(WordsOf<uint16_t>(item));
  if (item.desc->dtype == DType::kBF16) counts.AddBF16(WordsOf<uint16_t>(item));
  return counts;
}

ExponentFacts FactsOf(const ExponentCounts& counts, std::string held_in,
                      std::optional<float> scale) {
  ExponentFacts facts;
  facts.histogram = counts.Histogram();
  facts.held_in = std::move(held_in);
  facts.loss_scaling = scale;
  if (scale.has_value()) facts.scales = counts.Scales(*scale);
  return facts;
}

absl::Status WriteArrays(const std::string& directory, int64_t step,
                         const std::vector<NpzArray>& arrays) {
  std::string name;
  HT_ASSIGN_OR_RETURN(const Directory run,
                      Directory::OpenParent(directory, &name));
  HT_ASSIGN_OR_RETURN(const Directory fetches, run.MakeChild(name));
  return fetches.Write(absl::StrCat("step-", step, ".npz"),
                       SerializeNpz(arrays));
}

}  // namespace

absl::StatusOr<std::vector<Fetch>> ParseFetches(
    const std::vector<std::string>& texts) {
  const std::vector<std::string> kinds = {"norm", "hist", "npz", "exponents"};
  std::vector<Fetch> fetches;
  for (const std::string& text : texts) {
    Fetch fetch;
    fetch.text = fetch.value = text;
    const size_t colon = text.rfind(':');
    // Two of them are of a name, as PyTorch gives it: onnx::MatMul_8.
    const bool in_name =
        colon != std::string::npos && colon > 0 && text[colon - 1] == ':';
    if (colon != std::string::npos && !in_name) {
      const std::string kind = text.substr(colon + 1);
      const auto known = std::find(kinds.begin(), kinds.end(), kind);
      if (known == kinds.end()) {
        return UsageError("--fetch ", text, ": \"", kind,
                          "\" is none of norm, hist, npz, exponents",
                          NearestHint(kind, kinds));
      }
      fetch.value = text.substr(0, colon);
      fetch.kind = static_cast<Fetch::Kind>(known - kinds.begin() + 1);
    }
    fetch.kept = fetch.value;
    if (fetch.value.empty()) {
      return UsageError("--fetch ", text,
                        ": expected VALUE[:norm|hist|npz|exponents]");
    }
    fetches.push_back(std::move(fetch));
  }
  return fetches;
}

bool Takes(Fetch::Kind kind, DType dtype) {
  return kind != Fetch::Kind::kExponents || dtype == DType::kF32 ||
         IsLow(dtype);
}

std::vector<float> Floats(const StepView::Item& item) {
  const absl::string_view physical(static_cast<const char*>(item.data),
                                   item.desc->bytes());
  const std::string bytes = ToRowMajor(*item.desc, physical);
  std::vector<float> values;
  switch (item.desc->dtype) {
    case DType::kF32:
      Widen<float>(bytes, &values);
      break;
    case DType::kF16:
      Widen<half>(bytes, &values);
      break;
    case DType::kBF16:
      Widen<bfloat16>(bytes, &values);
      break;
    case DType::kF64:
      Widen<double>(bytes, &values);
      break;
    case DType::kI32:
      Widen<int32_t>(bytes, &values);
      break;
    case DType::kI64:
      Widen<int64_t>(bytes, &values);
      break;
    case DType::kU8:
    case DType::kBool:
      Widen<uint8_t>(bytes, &values);
      break;
    case DType::kInvalid:
      break;
  }
  return values;
}

std::vector<float> Summarize(const Fetch& fetch,
                             const std::vector<float>& values) {
  if (fetch.kind == Fetch::Kind::kHist) return Histogram(values);
  if (fetch.kind == Fetch::Kind::kValue &&
      static_cast<int64_t>(values.size()) <= kMostElements) {
    return values;
  }
  return {Norm(values)};
}

absl::Status TakeFetches(
    const std::vector<Fetch>& fetches, const StepView& view, float scale,
    absl::FunctionRef<absl::StatusOr<std::string>()> directory,
    StepEvent* event) {
  absl::flat_hash_map<absl::string_view, const StepView::Item*> items;
  for (const StepView::Item& item : view.items()) {
    items.try_emplace(item.name, &item);
  }
  ExponentCounts together;
  int scaled = 0;
  std::vector<NpzArray> arrays;
  for (const Fetch& fetch : fetches) {
    const auto found = items.find(fetch.kept);
    if (found == items.end()) continue;
    const StepView::Item& item = *found->second;
    FetchedValue& taken = event->fetches.emplace_back();
    taken.name = fetch.text;
    if (fetch.kind == Fetch::Kind::kExponents) {
      const ExponentCounts counts = CountsOf(item);
      taken.exponents =
          FactsOf(counts, std::string(Name(item.desc->dtype)),
                  fetch.scaled ? std::optional<float>(scale) : std::nullopt);
      if (fetch.scaled) together.Add(counts);
      scaled += fetch.scaled;
      continue;
    }
    std::vector<float> values = Floats(item);
    if (fetch.unscale) {
      const float inv_scale = static_cast<float>(view.Scalar(kInvScale));
      for (float& value : values) value *= inv_scale;
    }
    taken.values = Summarize(fetch, values);
    taken.histogram = fetch.kind == Fetch::Kind::kHist;
    if (fetch.kind == Fetch::Kind::kNpz) {
      arrays.push_back(
          FloatArray(fetch.value,
                     {item.desc->dims.begin(), item.desc->dims.end()}, values));
    }
  }
  if (scaled > 1) event->exponents = FactsOf(together, "", scale);
  if (arrays.empty()) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const std::string to, directory());
  return WriteArrays(to, event->step, arrays);
}

}  // namespace runtime
}  // namespace halftone
