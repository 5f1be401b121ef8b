// Op lists from data: other libraries', and files that hold `op_lists`.
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/io/model_reader.h"
#include "passes/options/named_op_lists.h"
#include "passes/options/resolver.h"

namespace halftone {
namespace passes {
namespace {

constexpr int64_t kMaxFileBytes = 1 << 20;

// A name in a strategy is relative to the strategy's folder, one from a flag
// to where the command runs.
std::string PathOf(const std::string& name, const std::string& origin,
                   const std::string& strategy_file) {
  const size_t slash = strategy_file.rfind('/');
  if (absl::StartsWith(name, "/") || absl::StartsWith(origin, "--") ||
      slash == std::string::npos) {
    return name;
  }
  return absl::StrCat(strategy_file.substr(0, slash + 1), name);
}

absl::StatusOr<proto::OpLists> Load(const Resolver& resolver) {
  const std::string& name = resolver.strategy().amp().op_lists();
  if (const auto named = FindOpLists(name)) return *named;
  const std::string path =
      PathOf(name, resolver.Origin("amp.op_lists"), resolver.file().file);
  const absl::StatusOr<std::string> content = ReadFile(path, kMaxFileBytes);
  if (!content.ok()) {
    return resolver.Error(
        "amp.op_lists",
        absl::StrCat("expected ", absl::StrJoin(OpListNames(), ", "),
                     " or a file that can be read, found ",
                     content.status().message()));
  }
  HT_RETURN_IF_ERROR(ExpectTextOf(*proto::OpListsFile::descriptor(),
                                  "op lists (op_lists { ... })", *content,
                                  path));
  proto::OpListsFile file;
  HT_RETURN_IF_ERROR(ParseTextProto(*content, path, &file));
  if (!file.has_op_lists()) {
    return ModelError(path, ": expected op_lists { ... }, found none");
  }
  return file.op_lists();
}

std::optional<AmpClass> ClassFromName(absl::string_view word) {
  if (absl::EqualsIgnoreCase(word, "black")) return AmpClass::kBlack;
  if (absl::EqualsIgnoreCase(word, "gray")) return AmpClass::kGray;
  if (absl::EqualsIgnoreCase(word, "clear")) return AmpClass::kClear;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<proto::OpLists> LoadOpLists(const Resolver& resolver) {
  proto::OpLists lists;
  const std::string& name = resolver.strategy().amp().op_lists();
  if (name.empty()) return lists;
  // Lists that were kept stand for the name that they were kept under.
  const StrategyFile& file = resolver.file();
  if (file.op_lists.has_value() && name == file.strategy.amp().op_lists()) {
    lists = *file.op_lists;
  } else {
    HT_ASSIGN_OR_RETURN(lists, Load(resolver));
  }
  if (!lists.has_unlisted() || ClassFromName(lists.unlisted()).has_value()) {
    return lists;
  }
  return resolver.Error(
      "amp.op_lists",
      absl::StrCat("unlisted: expected BLACK, GRAY or CLEAR, found \"",
                   lists.unlisted(), "\""));
}

AmpClass UnlistedOf(const Options& options) {
  if (options.op_lists.has_unlisted()) {
    return *ClassFromName(options.op_lists.unlisted());
  }
  const Level level = LevelOf(options.strategy.amp());
  return level == Level::kO2 || level == Level::kO3 ? AmpClass::kGray
                                                    : AmpClass::kBlack;
}

}  // namespace passes
}  // namespace halftone
