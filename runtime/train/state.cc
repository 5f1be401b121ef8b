#include "runtime/train/state.h"

#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/scaler_names.h"
#include "graph/ir/well_known.h"
#include "runtime/checkpoint/cell_tensor.h"
#include "runtime/log/words.h"

namespace halftone {
namespace runtime {
namespace {

std::string Shape(const std::vector<int64_t>& dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

// The first of them.
std::string Few(const std::vector<std::string>& all,
                absl::string_view separator) {
  constexpr size_t kFew = 5;
  return JoinFew(all, kFew, separator);
}

bool Wanted(const Cell& cell, const LoadOptions& options) {
  switch (cell.kind) {
    case CellKind::kParameter:
    case CellKind::kStatistic:
    case CellKind::kAverage:
      return true;
    case CellKind::kScaler:
      return !options.parameters_only && options.take_scaler;
    case CellKind::kSlot:
    case CellKind::kClock:
      return !options.parameters_only;
    case CellKind::kDerived:
    case CellKind::kAccumulator:
      return false;
  }
  return false;
}

class Loader {
 public:
  Loader(const std::vector<Tensor>& tensors, const LoadOptions& options,
         Executor& executor)
      : options_(options), executor_(executor) {
    for (const Tensor& tensor : tensors) by_name_[tensor.name] = &tensor;
  }

  absl::Status Run(std::vector<std::string>* said) {
    const Program& program = executor_.program();
    for (int i = 0; i < program.num_cells(); ++i) {
      HT_RETURN_IF_ERROR(LoadCell(program.cell(CellId(i))));
    }
    if (!options_.parameters_only) CheckSurplus(program);
    if (options_.partial) CheckPart(program, said);
    if (!problems_.empty()) {
      return CheckpointError(
          options_.source, options_.source.empty() ? "" : ": ",
          "the state does not fit this model: ", Few(problems_, "; "), "; ",
          Advice());
    }
    for (const auto& [what, count] : conversions_) {
      said->push_back(absl::StrCat(Count(count, "tensor"), " ", what));
    }
    SayFreshScalers(program, said);
    return absl::OkStatus();
  }

 private:
  std::string Advice() const {
    if (!options_.parameters_only) {
      return "go on with the model that the run began with, or take its "
             "parameters alone: --init in place of --resume, with another "
             "--out";
    }
    if (mismatched_ && options_.partial) {
      return "to begin without what has another shape: --ignore-mismatched";
    }
    if (options_.partial) return "name a file that has tensors of the model's";
    return absl::StrCat(
        "name parameters of this model, all of them; halftone "
        "run --init begins a training with those that fit",
        mismatched_ ? " (--ignore-mismatched)" : "");
  }

  void SayFreshScalers(const Program& program,
                       std::vector<std::string>* said) const {
    std::vector<std::string> parts;
    const bool each =
        program.FindCell(absl::StrCat(kLossScaling, ScalerSuffix(1))).valid();
    for (size_t i = 0; each && i < program.loss.parts.size(); ++i) {
      const std::string scale =
          absl::StrCat(kLossScaling, ScalerSuffix(static_cast<int>(i)));
      if (fresh_scalers_.contains(scale)) {
        parts.push_back(program.loss.parts[i].name);
      }
    }
    // Where some parts go on, those that do not are told.
    if (parts.empty() || parts.size() == program.loss.parts.size()) {
      if (!fresh_scalers_.empty()) said->push_back("loss scale starts fresh");
      return;
    }
    said->push_back(absl::StrCat("loss scale of ", absl::StrJoin(parts, ", "),
                                 " starts fresh"));
  }

  // An average begins as its parameter where it does not go on; a program
  // without averages evaluates those of a training that has them.
  std::string SourceOf(const Cell& cell) const {
    const Program& program = executor_.program();
    if (cell.kind == CellKind::kAverage) {
      const bool goes_on = options_.averages || !options_.parameters_only;
      return goes_on && by_name_.count(cell.name) > 0
                 ? cell.name
                 : program.cell(cell.of).name;
    }
    const std::string average = absl::StrCat(cell.name, kAverageSuffix);
    const bool takes_average =
        options_.averages && cell.kind == CellKind::kParameter &&
        !program.FindCell(average).valid() && by_name_.count(average) > 0;
    return takes_average ? average : cell.name;
  }

  absl::Status LoadCell(const Cell& cell) {
    const auto found = by_name_.find(SourceOf(cell));
    if (!Wanted(cell, options_)) {
      if (cell.kind == CellKind::kScaler && !options_.parameters_only) {
        fresh_scalers_.insert(cell.name);
      }
      return absl::OkStatus();
    }
    if (found == by_name_.end()) {
      if (cell.kind == CellKind::kScaler) {
        fresh_scalers_.insert(cell.name);
      } else if (options_.partial) {
        initial_.push_back(cell.name);
      } else {
        problems_.push_back(absl::StrCat(cell.name, " is missing"));
      }
      return absl::OkStatus();
    }
    const Tensor& tensor = *found->second;
    if (tensor.dims != DimsOf(cell)) {
      const std::string found =
          absl::StrCat(Shape(DimsOf(cell)), ", found ", Shape(tensor.dims));
      if (options_.ignore_mismatched) {
        initial_.push_back(absl::StrCat(cell.name, " (is ", found, ")"));
      } else {
        problems_.push_back(absl::StrCat(cell.name, ": expected ", found));
        mismatched_ = true;
      }
      return absl::OkStatus();
    }
    const DType to = cell.type.dtype;
    if (tensor.dtype != to && !(IsFloat(tensor.dtype) && IsFloat(to))) {
      problems_.push_back(absl::StrCat(
          cell.name, ": expected ", IsFloat(to) ? "floats" : Name(to),
          ", found ", Name(tensor.dtype), " (write it as ", Name(to), ")"));
      return absl::OkStatus();
    }
    ++taken_;
    HT_ASSIGN_OR_RETURN(const Tensor converted, ConvertTensor(tensor, to));
    if (tensor.dtype != to) {
      ++conversions_[absl::StrCat(Name(tensor.dtype), " -> ", Name(to))];
    }
    return executor_.WriteCell(cell.id, converted.bytes);
  }

  // Says what was taken of a part, and what was not.
  void CheckPart(const Program& program, std::vector<std::string>* said) {
    std::vector<std::string> unknown;
    for (const auto& [name, tensor] : by_name_) {
      if (!program.FindCell(name).valid()) unknown.push_back(name);
    }
    if (taken_ == 0 && problems_.empty()) {
      problems_.push_back(absl::StrCat(
          "none of its ", Count(by_name_.size(), "tensor"),
          " is the model's; the model has ", Few(initial_, " "),
          unknown.empty() ? "" : ", the file " + Few(unknown, " ")));
      return;
    }
    if (initial_.empty() && unknown.empty()) return;
    said->push_back(Count(taken_, "tensor") + " taken");
    if (!initial_.empty()) {
      said->push_back(absl::StrCat(
          initial_.size(), " left as initialised: ", Few(initial_, " ")));
    }
    if (!unknown.empty()) {
      said->push_back(absl::StrCat(unknown.size(),
                                   " not of this model: ", Few(unknown, " ")));
    }
  }

  // What the state has and the model lacks; a scaler may be dropped.
  void CheckSurplus(const Program& program) {
    for (const auto& [name, tensor] : by_name_) {
      if (program.FindCell(name).valid() || name[0] == '@') continue;
      problems_.push_back(
          absl::StrCat(name, Shape(tensor->dims), " is not in the model"));
    }
  }

  LoadOptions options_;
  Executor& executor_;
  std::map<std::string, const Tensor*> by_name_;
  std::vector<std::string> problems_;
  bool mismatched_ = false;
  size_t taken_ = 0;
  std::vector<std::string> initial_;  // what was not there, or does not fit
  std::map<std::string, int> conversions_;
  absl::flat_hash_set<std::string> fresh_scalers_;  // cells
};

}  // namespace

absl::StatusOr<std::vector<Tensor>> ReadState(Executor& executor) {
  const Program& program = executor.program();
  std::vector<Tensor> tensors;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (!cell.IsSaved()) continue;
    std::string bytes;
    HT_RETURN_IF_ERROR(executor.ReadCell(cell.id, &bytes));
    tensors.push_back(TensorOf(cell, cell.name, std::move(bytes)));
  }
  return tensors;
}

absl::Status GiveShards(Executor& executor) {
  const Program& program = executor.program();
  std::string bytes;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (!cell.IsSaved() || !cell.type.sharded) continue;
    HT_RETURN_IF_ERROR(executor.ReadCell(cell.id, &bytes));
  }
  return absl::OkStatus();
}

std::vector<Tensor> Averages(const Program& program,
                             std::vector<Tensor> tensors) {
  std::map<std::string, Tensor*> by_name;
  for (Tensor& tensor : tensors) by_name[tensor.name] = &tensor;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind != CellKind::kAverage) continue;
    const auto from = by_name.find(cell.name);
    const auto to = by_name.find(program.cell(cell.of).name);
    if (from == by_name.end() || to == by_name.end()) continue;
    to->second->dtype = from->second->dtype;
    to->second->bytes = from->second->bytes;
  }
  return tensors;
}

std::vector<Tensor> Parameters(const Program& program,
                               const std::vector<Tensor>& tensors) {
  std::vector<Tensor> parameters;
  for (const Tensor& tensor : tensors) {
    const CellId id = program.FindCell(tensor.name);
    if (!id.valid()) continue;
    const CellKind kind = program.cell(id).kind;
    if (kind != CellKind::kParameter && kind != CellKind::kStatistic) continue;
    parameters.push_back(tensor);
  }
  return parameters;
}

absl::Status WriteState(const std::vector<Tensor>& tensors,
                        const LoadOptions& options, Executor& executor,
                        std::vector<std::string>* said) {
  return Loader(tensors, options, executor).Run(said);
}

}  // namespace runtime
}  // namespace halftone
