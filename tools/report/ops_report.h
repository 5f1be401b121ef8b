// What `halftone ops` says, derived from the schemas and the kernel set.
#ifndef HALFTONE_TOOLS_REPORT_OPS_REPORT_H_
#define HALFTONE_TOOLS_REPORT_OPS_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "passes/kernel_set.h"

namespace halftone {
namespace tools {

// Of all ops, or without those that passes alone make, which no model may hold.
enum class WhichOps { kAll, kOfModels };

// A line per op: class, dtypes with kernels, the first sentence of its doc.
std::string OpsText(const passes::KernelSet& kernels,
                    WhichOps which = WhichOps::kAll);
// A line per op: its class under each of the lists that amp.op_lists may name.
std::string OpListsText();
// Classes, slots, attributes and kernels; `name`: of that op alone, empty: of
// all. Unknown: kUsage, nearest named.
absl::StatusOr<std::string> OpsJson(const std::string& name,
                                    const passes::KernelSet& kernels,
                                    WhichOps which = WhichOps::kAll);
// One op: doc, slots, attributes, kernels. Unknown: kUsage, nearest named.
absl::StatusOr<std::string> OpText(const std::string& name,
                                   const passes::KernelSet& kernels);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_OPS_REPORT_H_
