#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

// Inputs of mixed dtypes; output types are given.
TEST(Fusion, TakesItsTypesAsGiven) {
  Program program;
  Block& block = program.AddEntry("train").block();
  const TensorType low{DType::kF16, Layout::kRowMajor, {Dim(4)}};
  const TensorType wide{DType::kF32, Layout::kRowMajor, {Dim(2), Dim(2)}};
  const OpId op =
      OpBuilder(&block, "fusion")
          .In("X", {block.AddFeed("a", low), block.AddFeed("b", wide)})
          .Out("Out", program.InternName("c"), program.Intern(wide))
          .Out("Out", program.InternName("d"), program.Intern(low))
          .Attr("pattern", "some_pattern")
          .Build()
          .value();
  EXPECT_EQ(block.type(block.FindValue("c")), wide);
  EXPECT_EQ(block.type(block.FindValue("d")), low);
  EXPECT_TRUE(CheckTypes(block, block.op(op)).ok());
}

TEST(Fusion, NeedsAPattern) {
  EXPECT_THAT(Infer({"fusion", {}}),
              HasSubstr("attribute pattern: expected string, found nothing"));
  EXPECT_THAT(Infer({"fusion", {}, {{"pattern", ""}}}),
              HasSubstr("attribute pattern: expected the name of a fusion "
                        "pattern, found \"\""));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
