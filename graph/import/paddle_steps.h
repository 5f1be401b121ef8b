// Which ops of a program are imported, in the order in which they run.
#ifndef HALFTONE_GRAPH_IMPORT_PADDLE_STEPS_H_
#define HALFTONE_GRAPH_IMPORT_PADDLE_STEPS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/import/paddle_program.h"

namespace halftone {

struct PaddleStep {
  const paddle::OpDesc* op = nullptr;
  int block = 0, index = 0;
};

struct PaddleSteps {
  // The ops of both branches of a conditional stand in its place: they are to
  // have no effect but their results.
  std::vector<PaddleStep> forward;
  // Of block 0 and of the branches' blocks; the outer one of two.
  absl::flat_hash_map<std::string, const paddle::VarDesc*> vars;
  // Variables that only a branch's block declares: its number.
  absl::flat_hash_map<std::string, int> locals;
  std::vector<std::string> fetched;  // in their order
  // What conditionals ask, which no op that is imported may read.
  std::vector<std::string> conditions;
  // What the op with role 256 makes, before AMP scales it; empty: there is
  // none.
  std::string loss;
  // By what they are for: how many ops were left out.
  std::map<std::string, int64_t> left_out;
};

PaddleSteps StepsOf(const paddle::ProgramDesc& program);

// A cast that Paddle's AMP has put in: `x` to `x.cast_fp16`.
bool IsAmpCast(const paddle::OpDesc& op);

// The first value in a slot; empty: none.
std::string FirstOf(const paddle::OpDesc& op, absl::string_view slot);

// "block 0 op 3 (relu_0.tmp_0)".
std::string PlaceOf(const PaddleStep& step);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_PADDLE_STEPS_H_
