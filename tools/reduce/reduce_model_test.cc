#include "tools/reduce/reduce_model.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/io/model_printer.h"
#include "gtest/gtest.h"
#include "tools/reduce/failures.h"

namespace halftone {
namespace tools {
namespace {

ModelFile Read(const std::string& name) {
  auto model = ReadModel(absl::StrCat("models/", name, ".pbtxt"));
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TEST(ReduceModel, FindsThePairThatFailsTogether) {
  const auto both = [](const ModelFile& model) -> absl::StatusOr<bool> {
    const std::string text = PrintModel(*model.model);
    return text.find("softmax_with") != std::string::npos &&
           text.find("image_normalize") != std::string::npos;
  };
  const auto reduced = ReduceModel(Read("small_resnet"), both);
  ASSERT_TRUE(reduced.ok()) << reduced.status();
  EXPECT_EQ(reduced->model.model->op_size(), 2);
  EXPECT_LT(reduced->asked, 60);
  const auto never = [](const ModelFile&) -> absl::StatusOr<bool> {
    return false;
  };
  EXPECT_EQ(ExitCodeOf(ReduceModel(Read("mlp"), never).status()),
            ExitCode::kUsage);
}

TEST(MessageClass, LeavesNamesAndNumbersOut) {
  EXPECT_EQ(MessageClass("v50 (broken): gradient of slot X: expected the dims "
                         "of f32[B,8], found f32[] (pass append-backward)"),
            MessageClass("v7 (broken): gradient of slot X: expected the dims "
                         "of f16[B,3], found f16[] (pass append-backward)"));
  EXPECT_NE(MessageClass("a.b has no gradient"),
            MessageClass("a.b has two readers"));
}

}  // namespace
}  // namespace tools
}  // namespace halftone
