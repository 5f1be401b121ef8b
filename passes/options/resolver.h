// A strategy on its way to Options: its fields with their origins.
#ifndef HALFTONE_PASSES_OPTIONS_RESOLVER_H_
#define HALFTONE_PASSES_OPTIONS_RESOLVER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/dtype.h"
#include "graph/base/error_list.h"
#include "passes/options/options.h"

namespace halftone {
namespace passes {

class Resolver {
 public:
  // `file` is borrowed.
  explicit Resolver(const StrategyFile& file);

  void ApplyOverrides(absl::Span<const Override> overrides, ErrorList* errors);
  // Sets a scalar that nothing has set so far.
  void SetIfUnset(absl::string_view path, absl::string_view value,
                  absl::string_view origin);
  // The defaults under `bundles` ("level O1", "scaler apex"; the first that
  // says something wins) of what is not set: of one field, of all.
  void FillDefault(absl::string_view path,
                   absl::Span<const std::string> bundles);
  void FillDefaults(absl::Span<const std::string> bundles);

  const StrategyFile& file() const { return file_; }
  const proto::Strategy& strategy() const { return strategy_; }
  proto::Strategy& strategy() { return strategy_; }
  const std::map<std::string, std::string>& origins() const { return origins_; }
  std::map<std::string, std::string>& origins() { return origins_; }
  bool IsSet(absl::string_view path) const;
  // "s.pbtxt:2" or "--level"; of the i-th member of a repeated field where it
  // is given.
  std::string Origin(absl::string_view path, int member = -1) const;
  // Of a field of such a member, whose own path is "optimizer.group[0].beta1".
  std::string OriginIn(absl::string_view list, int member,
                       const std::string& path) const;

  // "s.pbtxt:2: amp.level: <message>": kUsage where a flag is the origin.
  absl::Status Error(absl::string_view path, absl::string_view message,
                     int member = -1) const;

 private:
  // Errors (kUsage): another override chose another member of a oneof.
  absl::Status Choose(const Override& override_);

  const StrategyFile& file_;
  proto::Strategy strategy_;
  std::map<std::string, std::string> origins_;
  // For repeated fields: how many members the file gave, and the origins of
  // those that overrides added.
  std::map<std::string, std::vector<std::string>> added_;
  // The member of a oneof that an override chose: "optimizer.method" ->
  // "optimizer.adam".
  std::map<std::string, std::string> chosen_;
};

// "s.pbtxt:2: amp.level: <message>" with the class that the origin decides.
absl::Status OriginError(absl::string_view origin, absl::string_view path,
                         absl::string_view message);

// ---- The steps of ResolveOptions, in their order.

// All defaults, under what the level, dtype and scaler preset stand for
// (bundles.cc). A wrong word is taken for the default, so that the other fields
// can be judged.
void ApplyDefaults(Resolver& resolver, ErrorList* errors);
// Ranges and words of all fields, and what goes together (check_strategy.cc).
void CheckStrategy(const Resolver& resolver, ErrorList* errors);
// The content of amp.op_lists; empty where it is not set (op_lists.cc).
absl::StatusOr<proto::OpLists> LoadOpLists(const Resolver& resolver);

// ---- Words, shared by bundles, checks and conversion.

// "O1", also "o1" and "01".
std::optional<Level> LevelFromName(absl::string_view name);
absl::string_view Name(Level level);
// "fp16" and "bf16", also "f16", "float16", "bfloat16".
std::optional<DType> LowDTypeFromName(absl::string_view name);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_OPTIONS_RESOLVER_H_
