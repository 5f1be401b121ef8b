#include "graph/ops/op_testing.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

Call Dropout(std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
  return {"dropout", {{"X", "T[B,4]"}}, attrs};
}

TEST(Dropout, KeepsDims) {
  EXPECT_EQ(Infer(Dropout()), "Out=f32[B,4]");
  EXPECT_EQ(Infer(Dropout({{"p", 0.0}})), "Out=f32[B,4]");
}

TEST(Dropout, Errors) {
  EXPECT_EQ(Infer({"dropout", {{"X", "f32[]"}}}),
            "op (dropout): slot X: expected [N, ...], found f32[]; dim 0 is "
            "the sample axis");
  EXPECT_EQ(Infer(Dropout({{"p", -0.1}})),
            "op (dropout): attribute p: expected a number from 0 to 1, found "
            "-0.1");
  EXPECT_EQ(Infer(Dropout({{"p", 1.0}})),
            "op (dropout): attribute p: expected less than 1, found 1; all "
            "elements would be dropped");
  EXPECT_THAT(Infer(Dropout({{"upscale_in_train", false}})),
              HasSubstr("attribute upscale_in_train: expected true, found "
                        "false"));
}

// The mask is drawn again from the same numbers.
TEST(Dropout, Gradient) {
  EXPECT_EQ(GradientInAllTypes(Dropout({{"p", 0.1}, {"stream", 7}})),
            "dropout_grad(OutGrad=dOut, Seed=@seed, Step=@attempted, "
            "FirstSample=@first_sample) {p=0.1 stream=7} -> X.grad : "
            "f16[B,4]\nX <- X.grad\n");
}

TEST(Dropout, IsTheIdentityAtTestTime) {
  EXPECT_EQ(Ops().Find("dropout")->to_test(), "identity");
  EXPECT_EQ(Ops().Find("dropout_nd")->to_test(), "identity");
}

TEST(DropoutNd, DropsSamplesOrChannels) {
  const auto dropped = [](const std::string& x, std::vector<int64_t> axis) {
    return Call{"dropout_nd", {{"X", x}}, {{"p", 0.1}, {"axis", axis}}};
  };
  EXPECT_EQ(Infer(dropped("T[B,4]", {0})), "Out=f32[B,4]");
  EXPECT_EQ(Infer(dropped("T[B,4,2,2]", {0, 1})), "Out=f32[B,4,2,2]");
  EXPECT_EQ(GradientInAllTypes(dropped("T[B,4]", {0, 1})),
            "dropout_nd_grad(OutGrad=dOut, Seed=@seed, Step=@attempted, "
            "FirstSample=@first_sample) {p=0.1 axis=[0,1]} -> X.grad : "
            "f16[B,4]\nX <- X.grad\n");
  const std::string expected =
      "op (dropout_nd): attribute axis: expected [0] (samples), or [0, 1] "
      "(their channels), found ";
  EXPECT_THAT(Infer(dropped("T[B,4,2,2]", {1})), HasSubstr(expected + "[1]"));
  EXPECT_THAT(Infer(dropped("T[B,4,2,2]", {})), HasSubstr(expected + "[]"));
  EXPECT_THAT(Infer(dropped("T[B,4,2,2]", {0, 1, 2})), HasSubstr(expected));
  EXPECT_THAT(Infer(dropped("T[B]", {0, 1})), HasSubstr(expected));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
