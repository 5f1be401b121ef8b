// The compiler's options: strategy.proto resolved against the level's bundle,
// presets, flags, every value with its origin.
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
#include "graph/base/dtype.h"
#include "graph/schema/op_schema.h"
#include "proto/strategy.pb.h"

namespace halftone {
namespace passes {

enum class Level : uint8_t { kO0, kO1, kO2, kO3 };
enum class PrecisionRule : uint8_t { kAllLow, kAnyLow };

// Classes of all ops from data (amp.op_lists); empty: the schemas'.
struct OpLists {
  bool given = false;
  std::vector<std::string> white, black, gray, clear;  // op names, aliases
  AmpClass unlisted = AmpClass::kBlack;
  // The file says `unlisted` itself: it then holds at every level.
  bool unlisted_written = false;
};

struct AmpOptions {
  Level level = Level::kO0;
  DType low = DType::kF16;
  PrecisionRule rule = PrecisionRule::kAllLow;
  std::vector<std::string> white_ops, black_ops;      // op types
  std::vector<std::string> black_vars;                // globs over value names
  std::vector<std::string> white_names, black_names;  // globs over op names
  OpLists op_lists;
  bool keep_batchnorm_fp32 = true;
  bool master_weights = true;     // false: parameter cells are low (O3)
  bool strict_f32_slots = false;  // no fusion rounds what a KeepF32 slot reads
};

struct LossScalingOptions {
  bool dynamic = true;
  double init = 32768;
  int64_t incr_every = 1000;
  int64_t decr_every = 2;
  double incr_ratio = 2, decr_ratio = 0.5;
  double floor = 1;           // 0: the smallest normal f32
  double ceiling = 16777216;  // infinity: none
  bool clamp = false;         // a step beyond the ceiling ends there
};

struct Options {
  AmpOptions amp;
  LossScalingOptions scaling;
  bool has_optimizer = false;  // no optimizer: forward and eval only
  proto::Optimizer optimizer;
  proto::LearningRate lr;
  bool sync_batch_norm = false;
  bool fuse_all_reduce = true;
  int64_t bucket_bytes = 32 << 20, first_bucket_bytes = 1 << 20;
  bool scale_gradients_before = true;  // gradient_scale: pre

  // The strategy with every field set, and where each came from.
  proto::Strategy resolved;
  proto::OpLists resolved_op_lists;
  std::map<std::string, std::string> origins;  // "amp.level" -> "--level"
  // Of members of lists, where they have one of their own:
  // "amp.custom_black_list[1]" -> "--black".
  std::map<std::string, std::string> member_origins;
};

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
// again, all else keeps its origin. `origins` are Options::origins.
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
// An error about a field: class kUsage if a flag set it, else kModel.
absl::Status FieldError(const Options& options, absl::string_view path,
                        absl::string_view message, int member = -1);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_OPTIONS_OPTIONS_H_
