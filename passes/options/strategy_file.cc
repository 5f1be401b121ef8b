#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/io/model_reader.h"
#include "graph/io/text_proto.h"
#include "graph/strategy/fields.h"
#include "passes/options/options.h"
#include "passes/options/strategy_fields.h"

namespace halftone {
namespace passes {
namespace {

constexpr int64_t kMaxStrategyBytes = 1 << 20;

}  // namespace

absl::StatusOr<StrategyFile> ReadStrategy(const std::string& path) {
  HT_ASSIGN_OR_RETURN(const std::string content,
                      ReadFile(path, kMaxStrategyBytes));
  HT_RETURN_IF_ERROR(ExpectTextOf(*proto::Strategy::descriptor(),
                                  "a strategy (.pbtxt)", content, path));
  return ParseStrategy(content, path);
}

absl::StatusOr<StrategyFile> ParseStrategy(absl::string_view content,
                                           absl::string_view file) {
  StrategyFile result;
  result.file = std::string(file);
  google::protobuf::TextFormat::ParseInfoTree places;
  HT_RETURN_IF_ERROR(ParseTextProto(content, file, &result.strategy, &places));
  CollectLines(result.strategy, places, "", &result.lines);
  return result;
}

StrategyFile RestoreStrategy(const proto::Strategy& resolved,
                             const std::map<std::string, std::string>& origins,
                             const proto::OpLists& op_lists) {
  StrategyFile result;
  result.strategy = resolved;
  for (const auto& [path, origin] : origins) {
    if (IsDerivedOrigin(origin)) {
      ClearField(&result.strategy, path);
    } else {
      result.origins[path] = origin;
    }
  }
  if (!resolved.amp().op_lists().empty()) result.op_lists = op_lists;
  return result;
}

bool LeavesGraphAlone(absl::string_view path) {
  const std::string below = absl::StrCat(path, ".");
  for (const StrategyField& field : StrategyFields()) {
    if ((field.path == path || absl::StartsWith(field.path, below)) &&
        field.kind != StrategyField::Kind::kPart && !field.leaves_graph_alone) {
      return false;
    }
  }
  return true;
}

proto::Strategy GraphFieldsOf(proto::Strategy strategy) {
  for (const StrategyField& field : StrategyFields()) {
    if (LeavesGraphAlone(field.path)) ClearField(&strategy, field.path);
  }
  AsSets(&strategy);
  return strategy;
}

}  // namespace passes
}  // namespace halftone
