#include "runtime/train/compare_ranks.h"

#include <algorithm>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/text.h"

namespace halftone {
namespace runtime {
namespace {

std::vector<CellId> ReplicatedCells(const Program& program) {
  std::vector<CellId> cells;
  for (int i = 0; i < program.num_cells(); ++i) {
    if (program.cell(CellId(i)).spread == Spread::kReplicated) {
      cells.push_back(CellId(i));
    }
  }
  return cells;
}

// The value of most ranks.
std::optional<uint64_t> OfMost(const std::vector<std::vector<uint64_t>>& hashes,
                               int cell) {
  std::map<uint64_t, size_t> counts;
  for (const auto& of_rank : hashes) ++counts[of_rank[cell]];
  for (const auto& [value, count] : counts) {
    if (2 * count > hashes.size()) return value;
  }
  return std::nullopt;
}

// "9f3c 01aa ...": 16 digits each.
absl::StatusOr<std::vector<uint64_t>> ParseHashes(const std::string& text) {
  std::vector<uint64_t> hashes;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    uint64_t hash = 0;
    if (!absl::SimpleHexAtoi(word, &hash)) {
      return CommunicationError("a rank sent \"", word, "\" as a hash");
    }
    hashes.push_back(hash);
  }
  return hashes;
}

}  // namespace

std::optional<DifferingCell> FirstDifference(
    const std::vector<std::vector<uint64_t>>& hashes) {
  const int cells = static_cast<int>(hashes[0].size());
  std::vector<uint64_t> common;
  for (int cell = 0; cell < cells; ++cell) {
    common.push_back(OfMost(hashes, cell).value_or(hashes[0][cell]));
  }
  for (size_t rank = 0; rank < hashes.size(); ++rank) {
    if (hashes[rank] == common) continue;
    DifferingCell found;
    found.rank = static_cast<int>(rank);
    found.cell = -1;
    for (int cell = 0; cell < cells; ++cell) {
      if (hashes[rank][cell] == common[cell]) continue;
      if (found.cell < 0) found.cell = cell;
      ++found.cells;
    }
    found.outvoted = OfMost(hashes, found.cell).has_value();
    return found;
  }
  return std::nullopt;
}

absl::Status CompareRanks(Executor& executor, Communicator& communicator,
                          const std::string& when) {
  const Program& program = executor.program();
  const std::vector<CellId> cells = ReplicatedCells(program);
  std::string mine, bytes;
  for (const CellId cell : cells) {
    HT_RETURN_IF_ERROR(executor.ReadCell(cell, &bytes));
    absl::StrAppend(&mine, Hex64(StableHash(bytes)), " ");
  }
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> sums,
                      communicator.AllGather(Hex64(StableHash(mine))));
  if (std::count(sums.begin(), sums.end(), sums[0]) ==
      static_cast<int64_t>(sums.size())) {
    return absl::OkStatus();
  }
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      communicator.AllGather(mine));
  std::vector<std::vector<uint64_t>> hashes;
  for (const std::string& text : all) {
    HT_ASSIGN_OR_RETURN(hashes.emplace_back(), ParseHashes(text));
    if (hashes.back().size() != cells.size()) {
      return CommunicationError("rank ", hashes.size() - 1, " has ",
                                hashes.back().size(), " cells, rank 0 has ",
                                cells.size());
    }
  }
  const std::optional<DifferingCell> found = FirstDifference(hashes);
  if (!found.has_value()) return CompilerBug("equal cells with unequal hashes");
  return MakeError(
      ExitCode::kDiffer,
      absl::StrCat(
          "rank ", found->rank, " has another ",
          program.cell(cells[found->cell]).name,
          found->outvoted ? " than the other ranks " : " than rank 0 ", when,
          " (",
          found->cells == 1 ? "nothing else differs"
                            : absl::StrCat(found->cells, " of ", cells.size(),
                                           " cells differ"),
          found->outvoted ? "" : "; either may be the one that is wrong",
          "): a bug of ours, or memory that is not sound; go on from "
          "an earlier checkpoint with --resume, and if it comes again "
          "on another machine report it"));
}

}  // namespace runtime
}  // namespace halftone
