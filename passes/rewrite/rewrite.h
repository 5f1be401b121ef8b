// What passes that rewrite finished parts of a program share: constant-time
// replacement of readers, names handed on, decisions of made ops.
#ifndef HALFTONE_PASSES_REWRITE_REWRITE_H_
#define HALFTONE_PASSES_REWRITE_REWRITE_H_

#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/ir/program.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/parameter_updates.h"

namespace halftone {
namespace passes {

// The values that an entry holds besides its ops: gradients, commits and
// results.
class HeldValues {
 public:
  explicit HeldValues(const Entry& entry);
  bool Has(ValueId value) const {
    return static_cast<size_t>(value.index()) < held_.size() &&
           held_[value.index()];
  }
  // Has, for whom knows no entries.
  auto function() const {
    return [this](ValueId value) { return Has(value); };
  }
  // What held `from` holds `to`.
  void Replace(ValueId from, ValueId to) {
    if (!Has(from)) return;
    held_[from.index()] = false;
    Hold(to);
  }

 private:
  void Hold(ValueId value) {
    const size_t index = value.index();
    if (index >= held_.size()) held_.resize(index + 1);
    held_[index] = true;
  }

  std::vector<bool> held_;  // by value id
};

// Everything that reads `from` reads `to`: Block::ReplaceUses, but O(readers)
// where commits and results do not hold `from`. Keeps `held` up to date.
void ReplaceValue(Block& block, ValueId from, ValueId to, HeldValues& held);

// Whether no op, commit or result needs any output of the op.
bool IsDead(const Block& block, const Op& op, const HeldValues& held);

// `to` stands for `from` from now on: it gets its name and origins.
void InheritOrigins(const Op& from, Op& to);
// The same for many ops; each name is kept once, in order. O(names).
void AddOrigins(Op& op, absl::Span<const NameId> names);
// The op's name and origins.
void AppendNames(const Op& op, std::vector<NameId>* names);

// The decision of ops whose precision the schema or their input fixes.
Decision FixedBySchema(DType precision);

// A builder for an op of a role other than forward and backward: reason
// SCHEMA, computed in f32, names made unique.
OpBuilder MakeOp(Block& block, absl::string_view op_type, Role role);

// The op's only output value once it is built.
absl::StatusOr<ValueId> BuildValue(Block& block, OpBuilder& builder);

// Sets one attribute of the op, the others stay.
void SetAttrOf(Block& block, OpId op, absl::string_view name, AttrValue value);

// Whether the op is valid and of the type.
bool IsOp(const Block& block, OpId op, absl::string_view op_type);
// The value in a slot that holds one at most; invalid if it is absent.
ValueId InputOf(const Op& op, absl::string_view slot);

// The op that defines the value if it is of that type, else null.
const Op* DefinedBy(const Block& block, ValueId value,
                    absl::string_view op_type);
const Op* DefinedBy(const Block& block, ValueId value, const OpSchema* schema);

// The entry's ops of one type, in order.
std::vector<OpId> OpsOfType(const Block& block, absl::string_view op_type);
// How many there are.
int CountOfType(const Block& block, absl::string_view op_type);

// The casts of a cell's value to a low dtype, in no order.
absl::InlinedVector<OpId, 2> LowCastsOf(const Block& block, CellId cell);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_REWRITE_REWRITE_H_
