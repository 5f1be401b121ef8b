// The AMP class of an op that is in force: its schema's, or what op lists from
// data say.
#ifndef HALFTONE_PASSES_PRECISION_OP_CLASSES_H_
#define HALFTONE_PASSES_PRECISION_OP_CLASSES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/ir/op.h"
#include "graph/schema/op_schema.h"
#include "passes/options/options.h"

namespace halftone {
namespace passes {

class OpClasses {
 public:
  // Lists (amp.op_lists) may name ops that we do not have; black is asked
  // first, then white, gray, clear.
  explicit OpClasses(const Options& options);
  // Lists alone.
  explicit OpClasses(const proto::OpLists& lists);

  AmpClass Of(const Op& op) const;
  // What the lists say of an op under its own name; none: nothing.
  std::optional<AmpClass> Listed(const OpSchema& schema) const;
  // Whether the op is in none of the lists; false where the schemas' classes
  // are in force.
  bool Unlisted(const Op& op) const;

 private:
  void AddAll(const proto::OpLists& lists);
  void Add(const google::protobuf::RepeatedPtrField<std::string>& names,
           AmpClass amp_class);

  bool given_;
  AmpClass unlisted_;
  absl::flat_hash_map<std::string, AmpClass> listed_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PRECISION_OP_CLASSES_H_
