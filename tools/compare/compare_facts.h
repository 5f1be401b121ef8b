// Comparisons as `halftone compare` shows them.
#ifndef HALFTONE_TOOLS_COMPARE_COMPARE_FACTS_H_
#define HALFTONE_TOOLS_COMPARE_COMPARE_FACTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/compare/compare_programs.h"
#include "runtime/compare/error_bound.h"
#include "tools/common/run_flags.h"
#include "tools/compare/compared_models.h"

namespace halftone {
namespace tools {

struct CompareFacts {
  runtime::Comparison comparison;
  std::string compared, reference;  // what they are: "mnist_convnet O1 fp16"
  // Of the programs, which are run as they are compiled; empty: of files.
  std::string compared_fingerprint, reference_fingerprint;
  runtime::ErrorBound bound;  // `most`: of --tolerance
  bool has_tolerance = false;
  bool all = false;  // show all values, not the worst alone
  // Positions of the values in the order in which they are shown, and by
  // position what would mend the worst ones.
  std::vector<int> order;
  std::vector<std::string> remedies;

  // The values whose measure is above the tolerance.
  int64_t exceeding() const;
};
inline constexpr int kWorstValues = 10;

// Two programs, on one rank. Fills all but what the flags say.
absl::Status CompareModels(ComparedModelsFlags models, const RankFlags& ranks,
                           bool best, runtime::TrainConfig config,
                           const runtime::CompareOptions& options,
                           CompareFacts* facts);

// Whether the path is a file of arrays; whether both are runs or checkpoints.
bool IsArrays(const std::string& path);
bool AreRuns(const std::string& compared, const std::string& reference);
// What is in them.
absl::Status CompareFiles(const std::string& compared,
                          const std::string& reference, CompareFacts* facts);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMPARE_COMPARE_FACTS_H_
