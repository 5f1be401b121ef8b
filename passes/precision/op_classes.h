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

// What lists say. They may name ops that we do not have; black is asked first,
// then white, gray, clear.
class ListedClasses {
 public:
  explicit ListedClasses(const proto::OpLists& lists);

  // Under the name that lists have for the op; none: they do not have it.
  std::optional<AmpClass> Of(const Op& op) const;
  // Of an op under its own name.
  std::optional<AmpClass> Of(const OpSchema& schema) const;

 private:
  void Add(const google::protobuf::RepeatedPtrField<std::string>& names,
           AmpClass amp_class);
  std::optional<AmpClass> Find(const std::string& name) const;

  absl::flat_hash_map<std::string, AmpClass> listed_;
};

class OpClasses {
 public:
  explicit OpClasses(const Options& options);

  AmpClass Of(const Op& op) const;
  // Whether the op is in none of the lists; false where the schemas' classes
  // are in force.
  bool Unlisted(const Op& op) const;

 private:
  bool given_;
  AmpClass unlisted_;
  ListedClasses listed_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PRECISION_OP_CLASSES_H_
