#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/string_view.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "runtime/capsule/capsule.h"
#include "runtime/checkpoint/cell_tensor.h"

namespace halftone {
namespace runtime {
namespace {

// NumPy has no bf16: its bytes.
NpzArray ArrayOf(StepInputs::Feed feed) {
  NpzArray array;
  array.name = std::move(feed.name);
  array.dtype = feed.desc.dtype;
  array.dims.assign(feed.desc.dims.begin(), feed.desc.dims.end());
  array.bytes = std::move(feed.bytes);
  if (array.dtype == DType::kBF16) {
    array.dtype = DType::kU8;
    array.dims = {static_cast<int64_t>(array.bytes.size())};
  }
  return array;
}

NpzArray SymbolsArray(const SymbolValues& symbols) {
  return {kSymbols,
          DType::kI64,
          {kMaxSymbols},
          std::string(reinterpret_cast<const char*>(symbols.data()),
                      kMaxSymbols * sizeof(int64_t))};
}

// Whether ranks may differ in it: they do between two averages.
bool DiffersByRank(const Program& program, const Cell& cell) {
  return !cell.type.sharded && (cell.spread == Spread::kPerRank ||
                                program.FindEntry(kAverageEntry) != nullptr);
}

// On rank 0: its own under the cell's name, of the others' those that differ.
absl::Status AddCell(const Cell& cell, std::string mine, Executor& executor,
                     std::vector<Tensor>* tensors) {
  Communicator& communicator = executor.communicator();
  std::vector<std::string> all = {std::move(mine)};
  if (communicator.world_size() > 1 &&
      DiffersByRank(executor.program(), cell)) {
    HT_ASSIGN_OR_RETURN(all, communicator.AllGather(all[0]));
  }
  if (communicator.rank() != 0) return absl::OkStatus();
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (rank > 0 && all[rank] == all[0]) continue;
    tensors->push_back(TensorOf(
        cell, NameOfRank(cell.name, static_cast<int>(rank)), all[rank]));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<CellId> CellsToReplay(const Program& program) {
  std::vector<bool> read(program.num_cells());
  for (const auto& entry : program.entries()) {
    if (!IsTrainEntry(entry->name()) && entry->name() != kAccumulateEntry) {
      continue;
    }
    const Block& block = entry->block();
    for (OpId id = block.first(); id.valid(); id = block.next(id)) {
      const Op& op = block.op(id);
      if (op.role == Role::kOptimize) continue;
      for (const ValueId input : op.inputs.all()) {
        CellId cell = block.value(input).cell();
        while (cell.valid() && program.cell(cell).IsMadeAgain()) {
          cell = program.cell(cell).of;
        }
        if (cell.valid()) read[cell.index()] = true;
      }
    }
  }
  std::vector<CellId> cells;
  for (int i = 0; i < program.num_cells(); ++i) {
    if (read[i] && !IsSum(program.cell(CellId(i)))) cells.push_back(CellId(i));
  }
  return cells;
}

absl::StatusOr<Capsule> TakeCapsule(Executor& executor) {
  const Program& program = executor.program();
  Communicator& communicator = executor.communicator();
  Capsule capsule;
  const std::vector<CellId> cells = CellsToReplay(program);
  HT_ASSIGN_OR_RETURN(StepInputs inputs, executor.LastInputs(cells));
  capsule.ranks.resize(communicator.world_size());
  // All ranks have as many micro-batches.
  for (StepInputs::MicroBatch& batch : inputs.micro_batches) {
    Capsule::Fed mine = {SymbolsArray(batch.symbols)};
    for (StepInputs::Feed& feed : batch.feeds) {
      mine.push_back(ArrayOf(std::move(feed)));
    }
    HT_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                        communicator.AllGather(SerializeNpz(mine)));
    for (size_t r = 0; r < all.size(); ++r) {
      HT_ASSIGN_OR_RETURN(Capsule::Fed fed,
                          ParseNpz(all[r], "what a rank was fed"));
      // An archive spells names of its own; all ranks have the same feeds.
      for (size_t i = 0; i < fed.size() && i < mine.size(); ++i) {
        fed[i].name = mine[i].name;
      }
      capsule.ranks[r].push_back(std::move(fed));
    }
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    HT_RETURN_IF_ERROR(AddCell(program.cell(cells[i]),
                               std::move(inputs.cells[i]), executor,
                               &capsule.cells));
  }
  if (communicator.rank() != 0) return Capsule();
  capsule.facts.entry = inputs.micro_batches.back().entry;
  capsule.facts.world_size = communicator.world_size();
  if (!executor.tuning().empty()) {
    capsule.tuning = executor.tuning().Serialize();
  }
  return capsule;
}

std::vector<FeedData> FeedsOf(const Entry& entry, const Capsule::Fed& fed) {
  std::vector<FeedData> feeds;
  const Block& block = entry.block();
  for (const ValueId feed : block.Feeds()) {
    const std::string name(block.name(feed));
    for (const NpzArray& array : fed) {
      if (array.name != MemberName(name)) continue;
      feeds.push_back(
          {name, absl::MakeConstSpan(
                     reinterpret_cast<const uint8_t*>(array.bytes.data()),
                     array.bytes.size())});
    }
  }
  return feeds;
}

SymbolValues SymbolsOf(const Capsule::Fed& fed) {
  SymbolValues symbols{};
  for (const NpzArray& array : fed) {
    if (array.name != kSymbols) continue;
    std::memcpy(
        symbols.data(), array.bytes.data(),
        std::min(array.bytes.size(), symbols.size() * sizeof(symbols[0])));
  }
  return symbols;
}

}  // namespace runtime
}  // namespace halftone
