// A fusion pattern: which ops, by role, one kernel does together. It is
// declared once (conv.cc, elementwise.cc ...); the compiler finds groups by it,
// the verifier proves that a fusion's body is one, kernels ask for the op of a
// role, `halftone explain` prints it.
#ifndef HALFTONE_GRAPH_FUSIONS_FUSION_PATTERN_H_
#define HALFTONE_GRAPH_FUSIONS_FUSION_PATTERN_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/ir/block.h"
#include "graph/schema/op_schema.h"

namespace halftone {

class FusionPattern;

// Whether something that is no op holds a value: a commit, a result.
using IsHeld = absl::FunctionRef<bool(ValueId)>;

// The ops of a group by role.
class FusionGroup {
 public:
  explicit FusionGroup(const FusionPattern& pattern) : pattern_(&pattern) {}

  // The op of a role that the pattern has; invalid: an optional one is absent.
  OpId Of(absl::string_view role) const;
  bool Has(absl::string_view role) const { return Of(role).valid(); }
  // All ops, those without a role, too; the one that stands last is first.
  absl::Span<const OpId> ops() const { return ops_; }
  bool Contains(OpId op) const;
  // Adds an op without a role.
  void Add(OpId op) { ops_.push_back(op); }

 private:
  friend class FusionPattern;

  const FusionPattern* pattern_;
  absl::InlinedVector<OpId, 8> by_role_;
  absl::InlinedVector<OpId, 8> ops_;
};

class FusionPattern {
 public:
  // An op that might take a role, and those of the roles before.
  struct Context {
    const Block& block;
    const Op& op;
    const FusionGroup& group;
    IsHeld held;
    // The op of a role before.
    const Op& Of(absl::string_view role) const {
      return block.op(group.Of(role));
    }
    // The value in a slot of `op` that holds one; invalid: it is absent.
    ValueId In(absl::string_view slot) const;
    const TensorType& InType(absl::string_view slot) const {
      return block.type(In(slot));
    }
  };
  using Condition = std::function<bool(const Context&)>;
  // Adds to the one op of a group what belongs to it.
  using Collect = std::function<void(const Block&, IsHeld, FusionGroup*)>;

  // `formula`: what it computes, for people: "relu(conv2d(Input, Filter))".
  FusionPattern(std::string name, std::string formula);

  // Roles, from the last op up: the first one that fits takes the op that
  // stands last. `values` are "role.Slot", or "role.Slot[1]" of a list, of
  // roles before; of several the first of which an op fits.
  // - Last: takes the op that stands last and no other.
  FusionPattern& Last(std::string role, std::string op_type);
  // - LastOf: the same, of a type of which `types` is true.
  using Types = std::function<bool(const OpSchema&)>;
  FusionPattern& LastOf(std::string role, Types types);
  // - Producer: makes the value, which others may read, too.
  FusionPattern& Producer(std::string role, std::string op_type,
                          const std::vector<std::string>& values);
  // - Hidden: a producer of one value that nothing but the role reads, for the
  //   same part of the step (forward, backward).
  FusionPattern& Hidden(std::string role, std::string op_type,
                        const std::vector<std::string>& values);
  // - Reader: reads the value, too.
  FusionPattern& Reader(std::string role, std::string op_type,
                        const std::vector<std::string>& values);
  // Of the role before: it may be absent; what has to hold beside its type.
  FusionPattern& Optional();
  FusionPattern& If(Condition condition);
  // A group of any number of ops beside the last.
  FusionPattern& And(Collect collect);

  // The value whose dtype and layout stand in kernels' keys; "role.": the first
  // that the op makes.
  FusionPattern& KeyedBy(absl::string_view value);
  // How kernels round the value of a KeepF32 slot.
  FusionPattern& Rounds(std::string what);

  const std::string& name() const { return name_; }
  const std::string& formula() const { return formula_; }
  // Empty: nothing.
  const std::string& rounds() const { return rounds_; }
  // The types of the block's ops that could stand last; none if it lacks what
  // every group has.
  std::vector<const OpSchema*> EndsIn(const Block& block) const;

  // Whether the op alone could take the role.
  bool CanTake(absl::string_view role, const Block& block, OpId op,
               IsHeld held) const;
  // The group of two ops or more of which `last` stands last; empty: there is
  // none.
  FusionGroup Match(const Block& block, OpId last, IsHeld held) const;
  // All ops of a fusion's body by role; empty: the body is another one's.
  FusionGroup MatchBody(const Block& body) const;
  // The type that stands in kernels' keys.
  const TensorType& KeyType(const Block& block, const FusionGroup& group) const;

 private:
  friend class FusionGroup;
  enum class Kind { kLast, kProducer, kHidden, kReader };
  struct Place {
    int role = 0;
    std::string slot;
    int index = 0;  // of a list
  };
  struct Role {
    std::string name;
    Kind kind = Kind::kLast;
    const OpSchema* type = nullptr;
    Types types;  // in its place
    std::vector<Place> values;
    bool optional = false;
    Condition condition;
  };

  FusionPattern& AddRole(std::string role, Kind kind,
                         const std::string& op_type,
                         const std::vector<std::string>& values);
  FusionPattern& AddRole(Role role);
  static bool HasType(const Role& role, const OpSchema& type);
  int FindRole(absl::string_view name) const;
  Place ParsePlace(absl::string_view text) const;
  ValueId ValueAt(const Block& block, const FusionGroup& group,
                  const Place& place) const;
  bool Fits(const Block& block, const Role& role, OpId op,
            const FusionGroup& group, IsHeld held) const;
  OpId Find(const Block& block, const Role& role, const FusionGroup& group,
            IsHeld held) const;

  std::string name_, formula_, rounds_;
  std::vector<Role> roles_;
  Place key_;
  Collect collect_;
};

// All patterns, in the order in which they are tried on a whole block.
const std::vector<FusionPattern>& FusionPatterns();
// Null: there is none of that name.
const FusionPattern* FindFusionPattern(absl::string_view name);

// The op that makes `value` if nothing but `reader` reads it: it can be hidden
// in a fusion with `reader`. Invalid otherwise.
OpId OnlyFor(const Block& block, OpId reader, ValueId value, IsHeld held);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_FUSIONS_FUSION_PATTERN_H_
