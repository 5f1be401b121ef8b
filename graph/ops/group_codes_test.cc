#include "graph/ops/op_testing.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;
using Attrs = std::vector<std::pair<std::string, AttrValue>>;

Call Quantize(const std::string& x, Attrs attrs = {}) {
  return {"quantize_groups", {{"X", x}}, attrs};
}

TEST(QuantizeGroups, CountsBytesAndGroups) {
  EXPECT_EQ(Infer(Quantize("T[B,4,8,8]")),
            "Codes=u8[B,256]; Scales=f32[B,1,2]");
  EXPECT_EQ(Infer(Quantize("T[B,300]", {{"bits", int64_t{2}}})),
            "Codes=u8[B,75]; Scales=f32[B,2,2]");
  EXPECT_EQ(Infer(Quantize("T[B,5]", {{"bits", int64_t{4}}})),
            "Codes=u8[B,3]; Scales=f32[B,1,2]");
  EXPECT_EQ(Infer(Quantize("T[12,32]", {{"rows", int64_t{6}},
                                        {"group_size", int64_t{64}}})),
            "Codes=u8[2,192]; Scales=f32[2,3,2]");
}

TEST(QuantizeGroups, Errors) {
  EXPECT_THAT(Infer(Quantize("T[B,4]", {{"bits", int64_t{3}}})),
              HasSubstr("attribute bits: expected 8, 4 or 2, found 3"));
  for (const int64_t size : {0, 48, 2048}) {
    EXPECT_THAT(Infer(Quantize("T[B,4]", {{"group_size", size}})),
                HasSubstr("attribute group_size: expected a multiple of 32 "
                          "from 32 to 1024"));
  }
  EXPECT_THAT(Infer(Quantize("T[5,4]", {{"rows", int64_t{2}}})),
              HasSubstr("slot X: expected [rows * N, ...], found"));
  EXPECT_THAT(Infer(Quantize("T[4,B]")), HasSubstr("slot X: expected constant "
                                                   "dims but for the first"));
}

TEST(DequantizeGroups, HasTheDimsOfItsOriginal) {
  const auto call = [](const std::string& codes, const std::string& scales) {
    return Call{"dequantize_groups",
                {{"Like", "T[B,4,8,8]"}, {"Codes", codes}, {"Scales", scales}},
                {{"bits", int64_t{2}}}};
  };
  EXPECT_EQ(Infer(call("u8[B,64]", "f32[B,1,2]")), "Out=f32[B,4,8,8]");
  EXPECT_THAT(Infer(call("u8[B,65]", "f32[B,1,2]")), HasSubstr("slot Codes"));
  EXPECT_THAT(Infer(call("u8[B,64]", "f32[B,2,2]")), HasSubstr("slot Scales"));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
