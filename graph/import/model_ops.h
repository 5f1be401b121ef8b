// The ops of a model by what they make, for what joins several into one.
#ifndef HALFTONE_GRAPH_IMPORT_MODEL_OPS_H_
#define HALFTONE_GRAPH_IMPORT_MODEL_OPS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "graph/io/model_reader.h"

namespace halftone {

// The one value of an input slot; empty: there is none.
std::string InputOf(const proto::OpNode& op, absl::string_view slot);
// Null: it is left to its default.
const proto::Attribute* AttrOf(const proto::OpNode& op, absl::string_view name);
double RealOf(const proto::OpNode& op, absl::string_view name,
              double otherwise);
bool BoolOf(const proto::OpNode& op, absl::string_view name);
// Whether the attribute is this list.
bool IsList(const proto::OpNode& op, absl::string_view name,
            const std::vector<int64_t>& list);

// `op` makes what it made as an op of this type, of x alone.
void BecomeOp(absl::string_view type, const std::string& x, proto::OpNode* op);
// `op` makes what it made as `maker` does, with one input more.
void BecomeWith(const proto::OpNode& maker, absl::string_view slot,
                const std::string& value, proto::OpNode* op);

class ModelOps {
 public:
  // `model` outlives it. Ops may be replaced where they are, as long as they
  // make what they made; none may be added or taken away.
  explicit ModelOps(proto::Model* model);

  // Null: no op makes it.
  const proto::OpNode* Maker(const std::string& name) const;
  // Null, too, if it is of another type.
  const proto::OpNode* Maker(const std::string& name,
                             absl::string_view type) const;
  // Null, too, if its result has other readers than so many slots, or is
  // wanted.
  const proto::OpNode* Inner(const std::string& name, absl::string_view type,
                             int readers = 1) const;
  // The one op that reads it; null: there are more, or it is wanted.
  proto::OpNode* Reader(const std::string& name) const;
  // What an elementwise op without attributes reads, in both orders; none: it
  // is of another type.
  static std::vector<std::pair<std::string, std::string>> Operands(
      const proto::OpNode& op, absl::string_view type);

 private:
  const absl::flat_hash_set<std::string> wanted_;
  absl::flat_hash_map<std::string, proto::OpNode*> makers_, last_readers_;
  absl::flat_hash_map<std::string, int> readers_;  // slots, at first
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_MODEL_OPS_H_
