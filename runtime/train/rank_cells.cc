#include "runtime/train/rank_cells.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "runtime/checkpoint/cell_tensor.h"
#include "runtime/log/words.h"

namespace halftone {
namespace runtime {
namespace {

std::vector<CellId> OwnCells(const Program& program) {
  std::vector<CellId> cells;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.IsSaved() && cell.spread == Spread::kPerRank) {
      cells.push_back(cell.id);
    }
  }
  return cells;
}

// The rank's tensor of the cell; null if it is not there or of another size.
const Tensor* Find(const std::map<std::string, const Tensor*>& tensors,
                   const std::string& cell, int rank, size_t bytes) {
  const auto found = tensors.find(NameOfRank(cell, rank));
  if (found == tensors.end() || found->second->bytes.size() != bytes) {
    return nullptr;
  }
  return found->second;
}

// Adds the elements of an f32 tensor.
void AddTo(const Tensor& tensor, std::vector<double>* sums) {
  sums->resize(tensor.bytes.size() / sizeof(float));
  for (size_t i = 0; i < sums->size(); ++i) {
    float value = 0;
    std::memcpy(&value, &tensor.bytes[i * sizeof(float)], sizeof(float));
    (*sums)[i] += value;
  }
}

}  // namespace

bool HasCellsOfRanks(const Program& program) {
  return !OwnCells(program).empty();
}

absl::Status GatherCellsOfRanks(Executor& executor,
                                std::vector<Tensor>* tensors) {
  const Program& program = executor.program();
  if (executor.communicator().world_size() == 1) return absl::OkStatus();
  std::string mine;
  for (const CellId id : OwnCells(program)) {
    HT_RETURN_IF_ERROR(executor.ReadCell(id, &mine));
    HT_ASSIGN_OR_RETURN(std::vector<std::string> all,
                        executor.communicator().AllGather(mine));
    if (tensors == nullptr) continue;
    const Cell& cell = program.cell(id);
    for (int rank = 1; rank < static_cast<int>(all.size()); ++rank) {
      tensors->push_back(
          TensorOf(cell, NameOfRank(cell.name, rank), std::move(all[rank])));
    }
  }
  return absl::OkStatus();
}

int CellsOfRanks(const std::vector<Tensor>& tensors) {
  int ranks = 1;
  for (const Tensor& tensor : tensors) {
    ranks = std::max(ranks, ParseNameOfRank(tensor.name).rank + 1);
  }
  return ranks;
}

absl::Status SpreadCellsOfRanks(const std::vector<Tensor>& tensors,
                                Executor& executor) {
  const Program& program = executor.program();
  Communicator& communicator = executor.communicator();
  std::map<std::string, const Tensor*> by_name;
  for (const Tensor& tensor : tensors) by_name[tensor.name] = &tensor;
  std::string bytes;
  for (const CellId id : OwnCells(program)) {
    HT_RETURN_IF_ERROR(executor.ReadCell(id, &bytes));
    std::string all;
    for (int rank = 0; rank < communicator.world_size(); ++rank) {
      const Tensor* const tensor =
          Find(by_name, program.cell(id).name, rank, bytes.size());
      if (tensor != nullptr) all += tensor->bytes;
    }
    HT_ASSIGN_OR_RETURN(const std::vector<std::string> given,
                        communicator.AllGather(all));
    if (given[0].size() != bytes.size() * communicator.world_size()) continue;
    HT_RETURN_IF_ERROR(executor.WriteCell(
        id, absl::string_view(given[0]).substr(
                communicator.rank() * bytes.size(), bytes.size())));
  }
  return absl::OkStatus();
}

void AverageCellsOfRanks(std::vector<Tensor>* tensors,
                         std::vector<std::string>* said) {
  std::map<std::string, std::vector<double>> sums;
  for (const Tensor& tensor : *tensors) {
    const OfRank of = ParseNameOfRank(tensor.name);
    if (of.rank == 0 || tensor.dtype != DType::kF32) continue;
    AddTo(tensor, &sums[of.cell]);
  }
  if (sums.empty()) return;
  const int ranks = CellsOfRanks(*tensors);
  for (Tensor& tensor : *tensors) {
    const auto found = sums.find(tensor.name);
    if (found == sums.end() || tensor.dtype != DType::kF32 ||
        found->second.size() * sizeof(float) != tensor.bytes.size()) {
      continue;
    }
    AddTo(tensor, &found->second);
    for (size_t i = 0; i < found->second.size(); ++i) {
      const auto mean = static_cast<float>(found->second[i] / ranks);
      std::memcpy(&tensor.bytes[i * sizeof(float)], &mean, sizeof(float));
    }
  }
  said->push_back(absl::StrCat(Count(sums.size(), "tensor"),
                               " that each rank had for itself: their means "
                               "over the ",
                               ranks, " ranks"));
}

}  // namespace runtime
}  // namespace halftone
