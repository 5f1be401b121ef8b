#include <cmath>

#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;
using Attrs = std::vector<std::pair<std::string, AttrValue>>;

std::string Normalize(std::string x, Attrs attrs = {}) {
  return Infer({"image_normalize", {{"X", x}}, attrs});
}

TEST(ImageNormalize, GivesF32) {
  EXPECT_EQ(Normalize("u8[B,1,28,28]", {{"std", 255.0}}), "Out=f32[B,1,28,28]");
  EXPECT_EQ(Normalize("i32[B,3,S,S]", {{"mean", Floats{1, 2, 3}}}),
            "Out=f32[B,3,S,S]");
  Call call = {"image_normalize", {{"X", "u8[B,1,28,28]"}}};
  call.bind = {{"Out", "bf16"}};
  EXPECT_EQ(Infer(call), "Out=bf16[B,1,28,28]");
}

TEST(ImageNormalize, Errors) {
  EXPECT_EQ(Normalize("u8[B,3,8,8]", {{"mean", Floats{1, 2}}}),
            "op (image_normalize): attribute mean: expected 1 or [3] (C of X) "
            "finite numbers, found [1, 2]");
  EXPECT_EQ(Normalize("u8[B,3,8,8]", {{"std", 0.0}}),
            "op (image_normalize): attribute std: expected 1 or [3] (C of X) "
            "finite numbers other than 0, found [0]");
  EXPECT_THAT(Normalize("u8[B,3,8,8]", {{"mean", std::nan("")}}),
              HasSubstr("found [nan]"));
  EXPECT_THAT(Normalize("u8[B,784]"), HasSubstr("slot X: expected [N, C"));
  EXPECT_THAT(Normalize("f16[B,3,8,8]"), HasSubstr("slot X: expected u8"));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
