// WellKnownValue of op_builder.h: the feeds and cells by which compiler and
// runtime know each other.
#include "graph/ir/well_known.h"

#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/shard_feed.h"
#include "graph/ir/train_entries.h"
#include "graph/schema/op_builder.h"

namespace halftone {
namespace {

struct WellKnownFeed {
  const char* name;
  DType dtype;
  int elements;  // 0: a scalar
};
constexpr WellKnownFeed kFeeds[] = {
    {kLargestCount, DType::kF32, 0}, {kFirstSample, DType::kI64, 0},
    {kStop, DType::kF32, 0},         {kSeed, DType::kI64, 0},
    {kSchedule, DType::kF32, 3},     {kStepsPerEpoch, DType::kF32, 0},
    {kShard, DType::kI64, 0},
};

struct WellKnownCell {
  const char* name;
  DType dtype;
  CellKind kind;
  Commit commit;
};
constexpr WellKnownCell kCells[] = {
    {kLossScaling, DType::kF32, CellKind::kScaler, Commit::kAlways},
    {kGoodSteps, DType::kI32, CellKind::kScaler, Commit::kAlways},
    {kBadSteps, DType::kI32, CellKind::kScaler, Commit::kAlways},
    {kAttempted, DType::kI64, CellKind::kClock, Commit::kAlways},
    {kApplied, DType::kI64, CellKind::kClock, Commit::kApplied},
    {kLocalSteps, DType::kI64, CellKind::kClock, Commit::kAlways},
    {kAveragedAt, DType::kI64, CellKind::kClock, Commit::kAlways},
    {kFirstLoss, DType::kF32, CellKind::kClock, Commit::kAlways},
    {kFirstRate, DType::kF32, CellKind::kClock, Commit::kAlways},
};

TensorType TypeOf(DType dtype, int elements) {
  TensorType type;
  type.dtype = dtype;
  if (elements > 0) type.dims.push_back(elements);
  return type;
}

absl::Status Taken(const Block& block, absl::string_view name,
                   const TensorType& expected, const TensorType& found) {
  const auto& symbols = block.program().symbols();
  return ModelError(name, ": the name is Halftone's own: expected ",
                    ToString(expected, symbols), ", found ",
                    ToString(found, symbols),
                    "; names that begin with @ are not for models");
}

absl::StatusOr<ValueId> FeedValue(Block& block, const WellKnownFeed& feed) {
  const TensorType type = TypeOf(feed.dtype, feed.elements);
  const ValueId known = block.FindValue(feed.name);
  if (!known.valid()) return block.AddFeed(feed.name, type);
  if (block.type(known) != type ||
      block.value(known).definition != Definition::kFeed) {
    return Taken(block, feed.name, type, block.type(known));
  }
  return known;
}

absl::StatusOr<ValueId> CellValue(Block& block, const WellKnownCell& known,
                                  const std::string& name) {
  Program& program = block.program();
  const TensorType type = TypeOf(known.dtype, 0);
  CellId id = program.FindCell(name);
  if (!id.valid()) {
    Cell cell;
    cell.name = name;
    cell.type = type;
    cell.kind = known.kind;
    cell.commit = known.commit;
    id = program.AddCell(std::move(cell)).id;
  }
  if (program.cell(id).type != type) {
    return Taken(block, name, type, program.cell(id).type);
  }
  const ValueId value = block.FindValue(name);
  if (value.valid() && block.value(value).cell() != id) {
    return Taken(block, name, type, block.type(value));
  }
  return block.CellValue(id);
}

}  // namespace

absl::StatusOr<ValueId> WellKnownValue(Block* block, absl::string_view name) {
  for (const WellKnownFeed& feed : kFeeds) {
    if (feed.name == name) return FeedValue(*block, feed);
  }
  for (const WellKnownCell& cell : kCells) {
    if (cell.name == name) return CellValue(*block, cell, std::string(name));
    if (cell.kind == CellKind::kScaler &&
        absl::StartsWith(name, absl::StrCat(cell.name, "."))) {
      return CellValue(*block, cell, std::string(name));
    }
  }
  return CompilerBug(name, " is not a well-known feed or cell");
}

}  // namespace halftone
