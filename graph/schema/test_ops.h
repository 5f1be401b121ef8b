// A small registry for the tests of this folder: RegisterAllOps with a few
// ops that use every feature of a schema, and a program to put them into.
#ifndef HALFTONE_GRAPH_SCHEMA_TEST_OPS_H_
#define HALFTONE_GRAPH_SCHEMA_TEST_OPS_H_

#include <string>

#include "absl/status/status.h"
#include "graph/base/error.h"
#include "graph/ir/program.h"
#include "gtest/gtest.h"

namespace halftone {

TensorType MakeType(DType dtype, Dims dims, Layout layout = Layout::kRowMajor);

// A program from "m.pbtxt" with symbol B and an empty entry.
class SchemaTest : public ::testing::Test {
 protected:
  SchemaTest() {
    program_.file = "m.pbtxt";
    batch_ = Dim::Symbol(program_.Symbol("B"));
  }
  ValueId Feed(absl::string_view name, DType dtype, Dims dims,
               Layout layout = Layout::kRowMajor) {
    return block_.AddFeed(name, MakeType(dtype, dims, layout));
  }
  const TensorType& TypeOf(absl::string_view value) {
    return block_.type(block_.FindValue(value));
  }
  std::string Text(absl::string_view value) {
    return ToString(TypeOf(value), program_.symbols());
  }

  Program program_;
  Block& block_ = program_.AddEntry("train").block();
  Dim batch_;
};

inline std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_TEST_OPS_H_
