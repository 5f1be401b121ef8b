// Who updates each parameter, and from which gradient: what `gradient`
// statements say until append-optimizer has run is in the slots of the updates
// from then on, in a compiled model, too.
#ifndef HALFTONE_GRAPH_SCHEMA_PARAMETER_UPDATES_H_
#define HALFTONE_GRAPH_SCHEMA_PARAMETER_UPDATES_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "graph/ir/program.h"

namespace halftone {

// Whether the op is an all_reduce with that `of` ("gradient", "totals"), or a
// reduce_scatter.
bool IsReduction(const Op& op, absl::string_view of);
// Those of a block, in its order.
std::vector<OpId> ReductionsOf(const Block& block, absl::string_view of);

// What the value is the whole or the shard of: itself, or what all_gather and
// take_shard made it of.
ValueId WholeOrShard(const Block& block, ValueId value);

// The ops whose schema is Guarded, which all updates are, in program order.
// They stand at the end: found without a walk over the program.
std::vector<OpId> GuardedOps(const Block& block);

// Where a gradient comes from that ops handed on under another dtype, scale or
// shape.
struct GradientOrigin {
  int reductions = 0;  // reductions of=gradient on the way
  // The last of them on the way back and its member and result; invalid
  // without one.
  OpId reduction;
  ValueId local, reduced;
};
GradientOrigin OriginOf(const Block& block, ValueId gradient);

struct ParameterUpdate {
  CellId parameter;
  OpId op;           // guarded, with slots Param and Grad
  ValueId gradient;  // what it reads
  bool unscales;     // it multiplies that by InvScale
  GradientOrigin origin;
};
// In the order of the updates and their members.
std::vector<ParameterUpdate> ParameterUpdates(const Block& block);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_PARAMETER_UPDATES_H_
