// The compiler's options: a strategy resolved against the level's bundle,
// presets and flags, every value with its origin. The strategy itself is what
// passes read: no field of it is copied.
#ifndef HALFTONE_PASSES_OPTIONS_OPTIONS_H_
#define HALFTONE_PASSES_OPTIONS_OPTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/dtype_fwd.h"
#include "graph/schema/op_schema.h"
#include "proto/strategy.pb.h"

namespace halftone {
namespace passes {

enum class Level : uint8_t { kO0, kO1, kO2, kO3 };
enum class PrecisionRule : uint8_t { kAllLow, kAnyLow, kMinCost };

struct Options {
  // Resolved: all that has a default is set. Passes read it as it is; below
  // are the types of its words.
  proto::Strategy strategy;
  // The content of what amp.op_lists names.
  proto::OpLists op_lists;
  std::map<std::string, std::string> origins;  // "amp.level" -> "--level"
  // Of members of lists, where they have one of their own:
  // "amp.custom_black_list[1]" -> "--black".
  std::map<std::string, std::string> member_origins;
};

// ---- Words of a resolved strategy as what they stand for.

Level LevelOf(const proto::Amp& amp);
DType LowOf(const proto::Amp& amp);
PrecisionRule RuleOf(const proto::Amp& amp);
// gradient_scale: pre.
bool ScalesBefore(const proto::Dist& dist);
// gradient_mean: ranks.
bool MeansOverRanks(const proto::Dist& dist);
// Micro-batches of a step; 1: it has none.
int64_t MergedSteps(const proto::Dist& dist);
// Whether a step's sums are those of virtual shards.
bool HasVirtualShards(const proto::Dist& dist);
// Of a rank, as memory is counted: batch_size is all on one rank.
int64_t SamplesOfRank(const proto::Train& train);
// Of them those that are in memory at once: the largest micro-batch's.
int64_t SamplesAtOnce(const proto::Strategy& strategy);
// Whether ranks share the optimizer's state among them.
bool ShardsOptimizer(const proto::Dist& dist);
// Whether ranks exchange the largest elements of gradients alone.
bool CompressesGradients(const proto::Dist& dist);
// Whether ranks update by their own gradients, and average parameters.
bool AveragesParameters(const proto::Dist& dist);
// A user's list as names of ours (it may have aliases).
std::vector<std::string> OpTypesOf(
    const google::protobuf::RepeatedPtrField<std::string>& names);
// The class of ops in none of amp.op_lists, where that is set.
AmpClass UnlistedOf(const Options& options);

// `--set path=value` and its aliases, in order.
struct Override {
  std::string path;  // "amp.level"; list fields take one more member
  std::string value;
  std::string origin;  // "--level"
};

// A strategy file's content with the lines of its fields.
struct StrategyFile {
  proto::Strategy strategy;
  std::string file;
  // "amp.custom_black_list" -> 2, its second member under
  // "amp.custom_black_list[1]".
  std::map<std::string, int> lines;
  // Instead of lines where the strategy was restored from a compiled model.
  std::map<std::string, std::string> origins;
  // What amp.op_lists names, if it was read already; else the file is read.
  std::optional<proto::OpLists> op_lists;
};
// Errors (kModel): "file:line: ..." with the nearest field name.
absl::StatusOr<StrategyFile> ReadStrategy(const std::string& path);
absl::StatusOr<StrategyFile> ParseStrategy(absl::string_view content,
                                           absl::string_view file);

// The strategy that a compiled model was made from, so that it can be compiled
// again with overrides: what came from a default, a level or a preset is unset
// again, all else keeps its origin. The arguments are members of Options.
StrategyFile RestoreStrategy(const proto::Strategy& resolved,
                             const std::map<std::string, std::string>& origins,
                             const proto::OpLists& op_lists);

// Applies overrides (a wrong path or value is class kUsage) and the level's
// bundle, checks ranges, loads op_lists, checks names of ops against Ops()
// ("no op is called "sofmax"; nearest: softmax (all: halftone ops)"), refuses
// an op in both user lists. Globs are checked against the program by
// assign-precision.
absl::StatusOr<Options> ResolveOptions(const StrategyFile& strategy,
                                       absl::Span<const Override> overrides);

// Whether a field, or all of a part, leaves the graph alone, so that
// `run X.htc --set` may change it. A path of no field does: who sets it finds
// that out.
bool LeavesGraphAlone(absl::string_view path);
// Sets one field of a strategy by path; errors (kUsage) name the nearest
// field, the expected kind and the value found.
absl::Status SetStrategyField(proto::Strategy* strategy,
                              const Override& override_);

// For SetStrategyField and origins: every leaf path, sorted.
std::vector<std::string> StrategyPaths();

// "s.pbtxt:2: amp.custom_black_list": the head of an error found later; of the
// member of a list if one is given.
std::string OriginOf(const Options& options, absl::string_view path,
                     int member = -1);
// What a level cannot be combined with: Apex's rules, for the properties that
// this compiler has. Any other property of a bundle may be set alone.
struct LevelRule {
  absl::string_view level;  // "O1"
  absl::string_view path;   // of a field that is true or false
  bool refused;
  absl::string_view why;
};
absl::Span<const LevelRule> LevelRules();

// An error about a field: class kUsage if a flag set it, else kModel.
absl::Status FieldError(const Options& options, absl::string_view path,
                        absl::string_view message, int member = -1);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_OPTIONS_OPTIONS_H_
