#include "runtime/compare/compare_tensors.h"

#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/display.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/json/json_reader.h"
#include "kernels/cpu/convert.h"
#include "runtime/data/npz.h"
#include "runtime/log/words.h"
#include "runtime/train/run_directory.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kMostBytes = std::numeric_limits<int64_t>::max();

std::string TypeText(const Tensor& tensor) {
  return absl::StrCat(Name(tensor.dtype), "[", absl::StrJoin(tensor.dims, ","),
                      "]");
}

// "x y z and 4 more".
std::string NamesText(const std::vector<Tensor>& tensors) {
  std::vector<std::string> names;
  for (const Tensor& tensor : tensors) {
    names.push_back(PrintableName(tensor.name));
  }
  return names.empty() ? "none" : JoinFew(names, 5);
}

std::vector<float> Floats(const Tensor& tensor) {
  std::vector<float> floats(tensor.bytes.size() / SizeOf(tensor.dtype));
  kernels::ToFloat(tensor.dtype, tensor.bytes.data(), floats.data(),
                   static_cast<int64_t>(floats.size()));
  return floats;
}

ValueErrors ErrorsBetween(const Tensor& reference, const Tensor& compared) {
  const std::vector<float> expected = Floats(reference);
  const auto elements = static_cast<int64_t>(expected.size());
  if (IsLow(compared.dtype)) {  // whose ulps are those of its dtype
    return ErrorsOf(compared.dtype, compared.bytes.data(), expected.data(), 1,
                    elements, /*threads=*/1);
  }
  return ErrorsOf(DType::kF32, Floats(compared).data(), expected.data(), 1,
                  elements, /*threads=*/1);
}

// By metric: its values by step.
using Series = std::map<std::string, std::map<int64_t, float>>;

void AddNumber(const nlohmann::json& number, int64_t step,
               const std::string& name, Series* series) {
  if (number.is_number()) {
    (*series)[absl::StrCat("metrics/", name)][step] = number.get<float>();
  }
}

absl::StatusOr<Series> ReadMetrics(const std::string& path) {
  Series series;
  const absl::StatusOr<std::string> text = ReadFile(path, kMostBytes);
  if (!text.ok()) return series;  // a checkpoint, or a run without them
  for (const absl::string_view line :
       absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    HT_ASSIGN_OR_RETURN(const nlohmann::json event, ParseJson(line, path));
    if (!event.is_object() || !event.contains("event") ||
        !event.contains("step") || !event["step"].is_number_integer()) {
      continue;
    }
    const nlohmann::json& kind = event["event"];
    if (kind != "step" && kind != "eval") continue;
    const auto step = event["step"].get<int64_t>();
    const std::string prefix = kind == "eval" ? "eval/" : "";
    for (const char* name : {"loss", "lr", "loss_scaling", "grad_norm"}) {
      if (event.contains(name)) {
        AddNumber(event[name], step, prefix + name, &series);
      }
    }
    if (!event.contains("metrics")) continue;
    for (const auto& [name, metric] : event["metrics"].items()) {
      if (metric.contains("value")) {
        AddNumber(metric["value"], step, prefix + name, &series);
      }
    }
  }
  return series;
}

// At the steps that both have.
void AddCommonSteps(const Series& reference, const Series& compared,
                    RunTensors* runs) {
  for (const auto& [name, values] : compared) {
    const auto other = reference.find(name);
    if (other == reference.end()) continue;
    std::vector<float> one, two;
    for (const auto& [step, value] : values) {
      const auto there = other->second.find(step);
      if (there == other->second.end()) continue;
      one.push_back(there->second);
      two.push_back(value);
    }
    if (one.empty()) continue;
    const auto tensor = [&name](const std::vector<float>& from) {
      return Tensor{name,
                    DType::kF32,
                    {static_cast<int64_t>(from.size())},
                    std::string(reinterpret_cast<const char*>(from.data()),
                                from.size() * sizeof(float))};
    };
    runs->reference.push_back(tensor(one));
    runs->compared.push_back(tensor(two));
  }
}

}  // namespace

absl::StatusOr<Comparison> CompareTensors(const std::vector<Tensor>& reference,
                                          const std::vector<Tensor>& compared) {
  std::map<std::string, const Tensor*> left;
  for (const Tensor& tensor : reference) left[tensor.name] = &tensor;
  Comparison comparison;
  for (const Tensor& tensor : compared) {
    const auto found = left.find(tensor.name);
    if (found == left.end()) {
      comparison.unmatched.push_back(tensor.name);
      continue;
    }
    if (found->second->dims != tensor.dims) {
      return MakeError(
          ExitCode::kDiffer,
          absl::StrCat(PrintableName(tensor.name), ": ", TypeText(tensor),
                       " against ", TypeText(*found->second),
                       ": not of one shape"));
    }
    ComparedValue value;
    value.value.name = tensor.name;
    value.value.dtype = tensor.dtype;
    value.chained = ErrorsBetween(*found->second, tensor);
    comparison.values.push_back(std::move(value));
    left.erase(found);
  }
  if (comparison.values.empty()) {
    return ModelError("no name is in both: ", NamesText(compared), " against ",
                      NamesText(reference), "; nothing to compare");
  }
  for (const auto& [name, tensor] : left) comparison.unmatched.push_back(name);
  return comparison;
}

absl::StatusOr<std::vector<Tensor>> ReadNpz(const std::string& path) {
  HT_ASSIGN_OR_RETURN(const std::string content, ReadFile(path, kMostBytes));
  HT_ASSIGN_OR_RETURN(std::vector<NpzArray> arrays, ParseNpz(content, path));
  std::vector<Tensor> tensors;
  for (NpzArray& array : arrays) {
    tensors.push_back({std::move(array.name), array.dtype,
                       std::move(array.dims), std::move(array.bytes)});
  }
  return tensors;
}

absl::StatusOr<RunTensors> ReadRuns(const std::string& reference,
                                    const std::string& compared,
                                    std::vector<std::string>* said) {
  RunTensors runs;
  HT_ASSIGN_OR_RETURN(Checkpoint one, ReadAnyState(reference, said));
  HT_ASSIGN_OR_RETURN(Checkpoint two, ReadAnyState(compared, said));
  runs.reference = std::move(one.tensors);
  runs.compared = std::move(two.tensors);
  HT_ASSIGN_OR_RETURN(const Series before,
                      ReadMetrics(RunDirectory(reference).metrics()));
  HT_ASSIGN_OR_RETURN(const Series after,
                      ReadMetrics(RunDirectory(compared).metrics()));
  AddCommonSteps(before, after, &runs);
  return runs;
}

}  // namespace runtime
}  // namespace halftone
