// What gradients are called, for people: the one place that spells it. Which
// value is whose gradient is a fact of the program: Entry::gradients() until
// there are updates, then their slots (graph/schema/parameter_updates.h).
#ifndef HALFTONE_GRAPH_IR_GRADIENT_NAMES_H_
#define HALFTONE_GRAPH_IR_GRADIENT_NAMES_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/ir/name_table.h"

namespace halftone {

inline constexpr char kGradientSuffix[] = ".grad";

// "conv1.w.grad" of a value or parameter; of an op, the first that computes
// gradients of its inputs.
inline std::string GradientName(absl::string_view of) {
  return absl::StrCat(of, kGradientSuffix);
}
inline NameId GradientName(NameTable& names, NameId of) {
  return names.Append(of, kGradientSuffix);
}

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_GRADIENT_NAMES_H_
