// A target without one of an op's kernels: the op is named, and it is no bug
// of the compiler's.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/io/model_reader.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_registry.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/testing/kernels.h"

namespace halftone {
namespace passes {
namespace {

using ::testing::HasSubstr;

absl::Status CompileFor(const TestTarget& target, const std::string& level) {
  HT_ASSIGN_OR_RETURN(const ModelFile file,
                      ReadModel("models/mnist_convnet.pbtxt"));
  HT_ASSIGN_OR_RETURN(const StrategyFile strategy,
                      ReadStrategy("models/mnist_o1.pbtxt"));
  HT_ASSIGN_OR_RETURN(const Options options,
                      ResolveOptions(strategy, {{"amp.level", level, ""}}));
  return Compile(file, options, AllKernels(target), {}).status();
}

// Without any kernel of each op in turn: the model compiles without it or not
// at all.
TEST(MissingKernelTest, IsAnErrorOfTheModel) {
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    int refused = 0;
    for (const OpSchema* schema : Ops().All()) {
      TestTarget target;
      target.name = "sm_90";
      target.without = {absl::StrCat(schema->name(), "(")};
      const absl::Status status = CompileFor(target, level);
      if (status.ok()) continue;
      ++refused;
      EXPECT_EQ(ExitCodeOf(status), ExitCode::kModel)
          << level << " without " << schema->name() << ": " << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(schema->name()));
    }
    EXPECT_GE(refused, 20) << level;
  }
}

}  // namespace
}  // namespace passes
}  // namespace halftone
