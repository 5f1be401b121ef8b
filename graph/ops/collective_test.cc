#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

Call AllReduce(int outputs,
               std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
  Call call = {
      "all_reduce", {{"X", "f16[8,3,3,3]@channels_last f16[8]"}}, attrs};
  call.lists = {{"Out", outputs}};
  return call;
}

TEST(AllReduce, MembersKeepDimsAndLayout) {
  EXPECT_EQ(Infer(AllReduce(2, {{"of", "totals"}, {"bucket", 3}})),
            "Out=f16[8,3,3,3] @channels_last f16[8]");
  Call broadcast = {"broadcast", {{"X", "i64[] i64[4]"}}};
  broadcast.lists = {{"Out", 2}};
  EXPECT_EQ(Infer(broadcast), "Out=i64[] i64[4]");
}

TEST(AllReduce, Errors) {
  EXPECT_EQ(Infer(AllReduce(1)),
            "op (all_reduce): slot Out: expected 2 values, one per member of "
            "X, found 1; name each output");
  EXPECT_THAT(
      Infer(AllReduce(2, {{"of", "gradients"}})),
      HasSubstr("attribute of: expected one of \"gradient\", "
                "\"totals\", \"statistics\", \"counts\", \"parameters\", found "
                "\"gradients\"; "
                "nearest: gradient"));
  EXPECT_THAT(Infer(AllReduce(2, {{"gradient_scale", "post"}})),
              HasSubstr("attribute gradient_scale: expected one of \"none\", "
                        "\"pre\""));
  EXPECT_THAT(Infer(AllReduce(2, {{"bucket", -1}})),
              HasSubstr("attribute bucket: expected 0 or more, found -1"));
  EXPECT_THAT(Infer(AllReduce(2, {{"group_size", int64_t{2}},
                                  {"order", std::string("ranks")}})),
              HasSubstr("attribute group_size: expected 0 but for "
                        "of=statistics, order=ranks, found 2"));
  Call broadcast = {"broadcast", {{"X", "f32[4]"}}, {{"root", -1}}};
  broadcast.lists = {{"Out", 1}};
  EXPECT_THAT(Infer(broadcast),
              HasSubstr("attribute root: expected a rank, 0 or more"));
}

Call OfMembers(const char* op, const char* x, int outputs) {
  Call call = {op, {{"X", x}}};
  call.lists = {{"Out", outputs}};
  return call;
}

TEST(Shards, HaveTheDimsOfTheWhole) {
  EXPECT_EQ(Infer(OfMembers("reduce_scatter",
                            "f16[8,3,3,3]@channels_last f16[8]", 2)),
            "Out=f16[8,3,3,3] @channels_last @shard f16[8] @shard");
  EXPECT_EQ(Infer(OfMembers("take_shard", "f32[8,3] f32[]", 2)),
            "Out=f32[8,3] @shard f32[] @shard");
  EXPECT_EQ(
      Infer(OfMembers("all_gather",
                      "f16[8,3,3,3]@channels_last@shard f16[8]@shard", 2)),
      "Out=f16[8,3,3,3] @channels_last f16[8]");
}

TEST(Shards, Errors) {
  EXPECT_EQ(Infer(OfMembers("all_gather", "f32[8]", 1)),
            "op (all_gather): slot X: expected shards, found f32[8]");
  EXPECT_EQ(Infer(OfMembers("take_shard", "f32[8]@shard", 1)),
            "op (take_shard): slot X: expected whole tensors, found f32[8] "
            "@shard");
  EXPECT_THAT(Infer(OfMembers("reduce_scatter", "f32[8] f32[4]", 1)),
              HasSubstr("slot Out: expected 2 values"));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
