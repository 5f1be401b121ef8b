// Several losses with a scaler each: whose cells and results are whose.
#ifndef HALFTONE_GRAPH_IR_SCALER_NAMES_H_
#define HALFTONE_GRAPH_IR_SCALER_NAMES_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace halftone {

// What the names of a scaler's cells end in: "" for part 0, ".1" for part 1.
inline std::string ScalerSuffix(int part) {
  return part == 0 ? "" : absl::StrCat(".", part);
}

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_SCALER_NAMES_H_
