// What `halftone diff` says.
#ifndef HALFTONE_TOOLS_REPORT_DIFF_REPORT_H_
#define HALFTONE_TOOLS_REPORT_DIFF_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"

namespace halftone {
namespace tools {

struct Difference {
  bool equal = true;  // programs without their lines, settings and target
  // "fc f16->f32 USER_BLACK", "+ op", "- op", in the order of the models.
  std::vector<std::string> precision;
  // Ops whose precision stays, but not why: "conv1 fc: f16 WHITE_LIST -> f16
  // USER_WHITE (train, eval)".
  std::vector<std::string> reasons;
  // "15 -> 11 inserted", "- logits.cast_fp32 ...", "standalone 0 -> 2 ...".
  std::vector<std::string> casts;
  std::vector<std::string> all_reduce;  // "f16 57,876 -> 26,496 B"
  // Fields of the resolved strategies, and the target: "lr.base: 0.01 -> 0.1".
  std::vector<std::string> strategy;
  // The statements that differ (see diff_lines.h) of the programs as they were
  // written, whatever else differs. Where those are one, and precision, casts
  // and reductions say nothing: of the compiled ones.
  std::vector<std::string> program;
};
// What the models compute and how they are trained; not where in which file
// they were written, by which passes, or when.
absl::StatusOr<Difference> DifferenceOf(const CompiledModel& before,
                                        const CompiledModel& after);
std::string DiffText(const Difference& difference);
std::string DiffJson(const Difference& difference);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_DIFF_REPORT_H_
