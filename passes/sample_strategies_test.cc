// The strategies in models/ with every model beside them: what models/README.md
// promises.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/io/model_reader.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/testing/kernels.h"

namespace halftone {
namespace passes {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<CompiledModel> CompileFiles(const std::string& model,
                                           const std::string& strategy) {
  HT_ASSIGN_OR_RETURN(const ModelFile file,
                      ReadModel(absl::StrCat("models/", model, ".pbtxt")));
  HT_ASSIGN_OR_RETURN(
      const StrategyFile read,
      ReadStrategy(absl::StrCat("models/", strategy, ".pbtxt")));
  HT_ASSIGN_OR_RETURN(const Options options, ResolveOptions(read, {}));
  return Compile(file, options, AllKernels(), {});
}

TEST(SampleStrategies, FitEveryModelThatTheyAreMeantFor) {
  for (const std::string strategy : {"mnist_fp32", "mnist_o1", "mnist_o1_bf16",
                                     "mnist_o2", "mnist_o2_bf16", "mnist_o3"}) {
    for (const std::string model : {"mlp", "mnist_convnet", "small_resnet"}) {
      SCOPED_TRACE(absl::StrCat(model, " ", strategy));
      const auto compiled = CompileFiles(model, strategy);
      if (strategy != "mnist_o1" || model != "mlp") {
        ASSERT_TRUE(compiled.ok()) << compiled.status();
        EXPECT_NE(compiled->program->FindEntry("train"), nullptr);
        continue;
      }
      // It names batch norms, which a perceptron lacks: said with the place.
      EXPECT_EQ(ExitCodeOf(compiled.status()), ExitCode::kModel);
      EXPECT_THAT(std::string(compiled.status().message()),
                  HasSubstr("models/mnist_o1.pbtxt:4: optimizer.group: no "
                            "parameter matches \"bn*\""));
    }
  }
}

}  // namespace
}  // namespace passes
}  // namespace halftone
