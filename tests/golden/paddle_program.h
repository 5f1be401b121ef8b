// Programs that PaddlePaddle 2.6.2 wrote out as JSON, before and after its own
// AMP rewriting: paddle/<net>.<variant>.json.gz.
#ifndef HALFTONE_TESTS_GOLDEN_PADDLE_PROGRAM_H_
#define HALFTONE_TESTS_GOLDEN_PADDLE_PROGRAM_H_

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "graph/import/paddle_import.h"
#include "nlohmann/json.hpp"
#include "proto/strategy.pb.h"

namespace halftone {

// Reads tests/golden/paddle/<name>.json.gz.
absl::StatusOr<nlohmann::json> ReadPaddle(const std::string& name);

// Imports tests/golden/paddle/<name>.pdmodel.gz.
absl::StatusOr<PaddleModel> ImportPaddle(const std::string& name,
                                         const std::string& loss);

// The op lists that were in force.
proto::OpLists PaddleOpLists(const nlohmann::json& paddle);

// What a rewriting decided.
struct PaddleDecisions {
  // By an op's first output that we have: "float16", or "float32", also where
  // the op was left alone.
  std::map<std::string, std::string> precisions;
  // (value, dtype, first output of the op that reads the cast).
  std::set<std::tuple<std::string, std::string, std::string>> casts;
};
PaddleDecisions DecisionsOf(const nlohmann::json& paddle);

}  // namespace halftone

#endif  // HALFTONE_TESTS_GOLDEN_PADDLE_PROGRAM_H_
