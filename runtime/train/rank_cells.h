// Cells that each rank has for itself (spread per_rank), in checkpoints: rank
// 0's under the cell's name, rank r's as "@rank.<r>/<name>".
#ifndef HALFTONE_RUNTIME_TRAIN_RANK_CELLS_H_
#define HALFTONE_RUNTIME_TRAIN_RANK_CELLS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/exec/executor.h"

namespace halftone {
namespace runtime {

// Whether the program has any that a checkpoint holds.
bool HasCellsOfRanks(const Program& program);

// A collective. Rank 0, whose own are in `tensors` already, appends those of
// the others; null on all other ranks.
absl::Status GatherCellsOfRanks(Executor& executor,
                                std::vector<Tensor>* tensors);

// Of how many ranks they are; 1: of none but rank 0.
int CellsOfRanks(const std::vector<Tensor>& tensors);

// A collective, after BroadcastState: gives each rank its own, out of rank 0's
// `tensors`, which are of as many ranks. Cells that are not there stay.
absl::Status SpreadCellsOfRanks(const std::vector<Tensor>& tensors,
                                Executor& executor);

// For another number of ranks, or a program in which ranks are equal: in place
// of rank 0's the means over all ranks, made in f64. What depends on their sum
// over the ranks alone goes on as it was. Says so, if there are any.
void AverageCellsOfRanks(std::vector<Tensor>* tensors,
                         std::vector<std::string>* said);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_RANK_CELLS_H_
