// What kernels reach of the rates that a device has on paper: for times that
// are predicted. Apart from target.h, which kernels are compiled with.
#ifndef HALFTONE_GRAPH_TARGETS_REACH_H_
#define HALFTONE_GRAPH_TARGETS_REACH_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/base/dtype.h"
#include "graph/targets/target.h"

namespace halftone {

// Shares of DeviceRates. What is no library's is multiplied in f32.
struct Reach {
  // Whose kernels' names (kernels::Candidate) begin so, "cudnn", or that use
  // the same instructions.
  std::vector<std::string> libraries;
  double flops = 1;           // of everybody's products
  double library_memory = 1;  // of what libraries move
  double own_memory = 1;      // of what all others move
  double launch = 0;          // seconds from one kernel to the next
  // 16-bit dtypes that some devices of the target have instructions to multiply
  // in; others are computed in f32.
  std::vector<DType> fast_products;
  bool OfLibrary(absl::string_view kernel) const;
};

// `target` is one of Targets().
const Reach& ReachOn(const Target& target);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_TARGETS_REACH_H_
