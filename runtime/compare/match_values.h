// Which values of two compiled programs of one model are the same value.
#ifndef HALFTONE_RUNTIME_COMPARE_MATCH_VALUES_H_
#define HALFTONE_RUNTIME_COMPARE_MATCH_VALUES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/layout.h"
#include "graph/ir/program.h"

namespace halftone {
namespace runtime {

// A value of an entry's block or of a fusion's body in it, by id.
using ValueKey = std::pair<const Block*, int>;

// A value of the compared program that an op of forward or backward makes, with
// its counterpart: a float, or bytes that say where maxima were or what is
// kept.
struct MatchedValue {
  std::string name;
  std::string op;      // that makes it; of a fusion the op in its body
  std::string fusion;  // that hides it; empty: none does
  bool backward = false;
  int scaler = -1;  // that has scaled it: @loss_scaling.N; -1: none
  DType dtype{};
  int reference = 0;  // position in ValueMatch::references
  // Those of what its op, or the fusion that it is of, reads.
  std::vector<int> inputs;
};

// What is to be kept of the reference program, in the compared one's layout.
struct ReferenceValue {
  std::string name;
  TensorType type;  // in the compared program
  int scaler = -1;  // in the reference program
};

struct ValueMatch {
  std::vector<MatchedValue> values;  // in program order
  std::vector<ReferenceValue> references;
  // Values of the compared program without a counterpart, in program order.
  std::vector<std::string> unmatched;
  // Which of `values` a value is; a body's arguments and results are the values
  // outside that they stand for.
  absl::flat_hash_map<ValueKey, int> compared;
  // Which of `references` a value of the reference program is.
  absl::flat_hash_map<ValueKey, std::vector<int>> kept;
};

// Whether errors are measured of values of the dtype: of floats. Others are
// only handed from the reference to the ops that read them.
bool IsMeasured(DType dtype);

// A value's name without what passes append to its copies in another dtype or
// layout: "logits" of "logits.cast_fp32", "x.grad" of "x.cast_fp16.grad".
std::string OriginalName(absl::string_view name);

// Values match by the names that they have in the model, and by their
// gradients'. A gradient of one copy of a value, of which there are several
// gradients, is none of the value's; one of several readers' gradients matches
// if the same op makes it. Errors (kDiffer): feeds, parameters or a value's
// dims that are not the same, by name; no value that is.
absl::StatusOr<ValueMatch> MatchValues(const Program& reference,
                                       const Program& compared,
                                       absl::string_view entry);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COMPARE_MATCH_VALUES_H_
