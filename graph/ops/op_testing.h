// For the tests of ops: an op called on types, its inferred outputs and the
// ops of its gradient as text, to be compared with literals.
//
//   EXPECT_EQ(Infer({"matmul", {{"X", "f32[B,784]"}, {"Y", "f32[784,10]"}}}),
//             "Out=f32[B,10]");
#ifndef HALFTONE_GRAPH_OPS_OP_TESTING_H_
#define HALFTONE_GRAPH_OPS_OP_TESTING_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/ir/program.h"
#include "graph/schema/op_builder.h"
#include "gtest/gtest.h"

namespace halftone {
namespace ops {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

struct Call {
  std::string op;
  // Slot and type, "f16[B*128,768]"; members of a list separated by spaces.
  // Symbols are B and S. In Gradient the dtype "T" is replaced.
  std::vector<std::pair<std::string, std::string>> in;
  std::vector<std::pair<std::string, AttrValue>> attrs = {};
  // Values of list outputs.
  std::vector<std::pair<std::string, int>> lists = {};
  // Type variables or outputs with a dtype of their own, as "f32" or "T".
  std::vector<std::pair<std::string, std::string>> bind = {};
  // Gradient: the inputs whose gradient is asked for; empty: all floats.
  std::vector<std::string> wanted = {};
};

// "Out=f32[B,10]; Mask=u8[B,10]", or the error. The op is named "op".
std::string Infer(const Call& call);

// The ops that the Grad adds, one per line, and which value is the gradient
// of which input:
//   relu_grad(Out=op.Out, OutGrad=dOut) -> X.grad : f16[B,4]
//   X <- X.grad
// Inputs are named as their slots ("X", in a list "X.0"), the gradient of
// output Out is "dOut" (of the first output alone). Fails the test unless
// each op's stored types hold and each gradient has its value's type.
std::string Gradient(const Call& call, DType dtype = DType::kF16);

// Gradient in all float types; the text is that of f16.
std::string GradientInAllTypes(const Call& call);

}  // namespace ops
}  // namespace halftone

#endif  // HALFTONE_GRAPH_OPS_OP_TESTING_H_
