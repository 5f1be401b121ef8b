// What OpBuilder knows of an op while it builds it.
#ifndef HALFTONE_GRAPH_SCHEMA_OP_DRAFT_H_
#define HALFTONE_GRAPH_SCHEMA_OP_DRAFT_H_

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "graph/ir/compact_list.h"
#include "graph/schema/op_builder.h"

namespace halftone {

// Usually two names; an update has one for every parameter and slot.
class NameSet {
 public:
  bool Has(NameId name) const {
    return many_.empty() ? absl::c_linear_search(few_, name)
                         : many_.contains(name);
  }
  void Add(NameId name) {
    if (many_.empty() && few_.size() < kFew) {
      few_.push_back(name);
      return;
    }
    if (many_.empty()) many_.insert(few_.begin(), few_.end());
    many_.insert(name);
  }

 private:
  static constexpr size_t kFew = 16;
  CompactList<NameId, 3> few_;
  absl::flat_hash_set<NameId> many_;
};

struct OpBuilder::Draft {
  NameId op_name;
  SlotValues inputs;
  bool lacks_implicit = false;  // an input that is filled when it is left out
  Attrs attrs;
  Block::Outputs outputs;  // their types come last
  NameSet output_names;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_OP_DRAFT_H_
