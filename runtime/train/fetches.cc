#include "runtime/train/fetches.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/base/disk/directory.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/half.h"
#include "graph/base/text.h"
#include "graph/ir/gradient_names.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/parameter_updates.h"
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

void ResolveFetches(const Program& program, std::vector<Fetch>* fetches) {
  for (Fetch& fetch : *fetches) fetch.kept = fetch.value;
  const Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr || fetches->empty()) return;
  const Block& block = train->block();
  for (const ParameterUpdate& update : ParameterUpdates(block)) {
    if (!update.parameter.valid()) continue;
    const std::string name = GradientName(program.cell(update.parameter).name);
    for (Fetch& fetch : *fetches) {
      if (fetch.value != name) continue;
      fetch.kept = std::string(block.name(update.gradient));
      fetch.unscale = update.unscales;
    }
  }
}

absl::StatusOr<std::vector<Fetch>> ParseFetches(
    const std::vector<std::string>& texts) {
  const std::vector<std::string> kinds = {"norm", "hist", "npz"};
  std::vector<Fetch> fetches;
  for (const std::string& text : texts) {
    Fetch fetch;
    fetch.text = fetch.value = text;
    const size_t colon = text.rfind(':');
    if (colon != std::string::npos) {
      const std::string kind = text.substr(colon + 1);
      const auto known = std::find(kinds.begin(), kinds.end(), kind);
      if (known == kinds.end()) {
        return UsageError("--fetch ", text, ": \"", kind,
                          "\" is none of norm, hist, npz",
                          NearestHint(kind, kinds));
      }
      fetch.value = text.substr(0, colon);
      fetch.kind = static_cast<Fetch::Kind>(known - kinds.begin() + 1);
    }
    fetch.kept = fetch.value;
    if (fetch.value.empty()) {
      return UsageError("--fetch ", text, ": expected VALUE[:norm|hist|npz]");
    }
    fetches.push_back(std::move(fetch));
  }
  return fetches;
}

absl::StatusOr<std::vector<std::string>> FetchedValues(
    const Program& program, const std::vector<std::string>& texts) {
  HT_ASSIGN_OR_RETURN(std::vector<Fetch> fetches, ParseFetches(texts));
  ResolveFetches(program, &fetches);
  const Entry* train = program.FindEntry(kTrainEntry);
  std::vector<std::string> values;
  const auto add = [&values, train](const std::string& value) {
    // What is a result is there anyway.
    if (train != nullptr && train->FindResult(value).valid()) return;
    if (std::find(values.begin(), values.end(), value) == values.end()) {
      values.push_back(value);
    }
  };
  for (const Fetch& fetch : fetches) {
    add(fetch.kept);
    if (fetch.unscale) add(kInvScale);
  }
  if (train != nullptr && train->block().FindValue(kSquaredNorm).valid()) {
    add(kSquaredNorm);
  }
  return values;
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

std::vector<FetchedValue> TakeFetches(const std::vector<Fetch>& fetches,
                                      const StepView& view, int64_t step,
                                      const std::string& directory,
                                      absl::Status* written) {
  std::vector<FetchedValue> taken;
  std::vector<NpzArray> arrays;
  for (const Fetch& fetch : fetches) {
    for (const StepView::Item& item : view.items()) {
      if (item.name != fetch.kept) continue;
      std::vector<float> values = Floats(item);
      if (fetch.unscale) {
        const float inv_scale = static_cast<float>(view.Scalar(kInvScale));
        for (float& value : values) value *= inv_scale;
      }
      taken.push_back({fetch.text, Summarize(fetch, values),
                       fetch.kind == Fetch::Kind::kHist});
      if (fetch.kind == Fetch::Kind::kNpz) {
        arrays.push_back(FloatArray(
            fetch.value, {item.desc->dims.begin(), item.desc->dims.end()},
            values));
      }
      break;
    }
  }
  *written = absl::OkStatus();
  if (!arrays.empty()) {
    *written = WriteArrays(directory, step, arrays);
  }
  return taken;
}

}  // namespace runtime
}  // namespace halftone
