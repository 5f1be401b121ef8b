#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ops/op_testing.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace ops {
namespace {

using ::testing::HasSubstr;

// One layer of 3 units, of 5 channels, 7 steps.
Call Lstm(std::string weights = "T[12,5] T[12,3] T[12] T[12]") {
  return {"rnn",
          {{"Input", "T[7,B,5]"}, {"WeightList", std::move(weights)}},
          {{"mode", std::string("LSTM")}, {"hidden_size", int64_t{3}}},
          {{"State", 2}}};
}

Call InF32(Call call) {
  for (auto& [slot, types] : call.in) {
    for (size_t at; (at = types.find("T[")) != std::string::npos;) {
      types.replace(at, 1, "f32");
    }
  }
  return call;
}

TEST(Rnn, Infer) {
  EXPECT_EQ(Infer(InF32(Lstm())),
            "Out=f32[7,B,3]; State=f32[1,B,3] f32[1,B,3]; "
            "Gates=f32[1,7,B,12]; Carried=f32[2,8,B,3]");
}

TEST(Rnn, InferLayersAndDirections) {
  Call call = {"rnn",
               {{"Input", "f16[7,B,5]"},
                {"PreState", "f32[4,B,3]"},
                {"WeightList",
                 "f16[9,5] f16[9,3] f16[9,5] f16[9,3] f16[9,6] f16[9,3] "
                 "f16[9,6] f16[9,3]"},
                {"SequenceLength", "i32[B]"}},
               {{"mode", std::string("GRU")},
                {"hidden_size", int64_t{3}},
                {"num_layers", int64_t{2}},
                {"is_bidirec", true}},
               {{"State", 1}}};
  EXPECT_EQ(Infer(call),
            "Out=f16[7,B,6]; State=f32[4,B,3]; Gates=f32[4,7,B,12]; "
            "Carried=f32[4,8,B,3]");
}

TEST(Rnn, Errors) {
  Call call = InF32(Lstm());
  call.in[0].second = "f32[B,7,5]";
  EXPECT_THAT(Infer(call), HasSubstr("with a constant T, 1 or more, found "
                                     "f32[B,7,5]; steps come first"));
  EXPECT_THAT(Infer(InF32(Lstm("T[12,5] T[12,3] T[12]"))),
              HasSubstr("slot WeightList: expected 4 values (weight_ih and "
                        "weight_hh of 1 layers and directions, then bias_ih "
                        "and bias_hh), or 2 without biases, found 3"));
  EXPECT_THAT(
      Infer(InF32(Lstm("T[12,5] T[3,12]"))),
      HasSubstr("slot WeightList[1]: expected [12,3], found f32[3,12]"));
  call = InF32(Lstm());
  call.lists = {{"State", 1}};
  EXPECT_THAT(Infer(call), HasSubstr("slot State: expected no value or 2"));
  call = InF32(Lstm());
  call.attrs[0].second = std::string("lstm");
  EXPECT_THAT(Infer(call), HasSubstr("attribute mode: expected"));
  call = InF32(Lstm());
  call.in.emplace_back("SequenceLength", "i64[7]");
  EXPECT_THAT(Infer(call), HasSubstr("slot SequenceLength: expected dims [B]"));
  call = InF32(Lstm());
  call.in.emplace_back("PreState", "f32[1,B,3]");
  EXPECT_THAT(Infer(call), HasSubstr("slot PreState: expected no value or 2"));
}

TEST(Rnn, Gradient) {
  EXPECT_EQ(
      GradientInAllTypes(Lstm("T[12,5] T[12,3]")),
      "rnn_grad(Input=Input, WeightList=WeightList.0 WeightList.1, "
      "Seed=@seed, Step=@attempted, FirstSample=@first_sample, Gates=op.Gates, "
      "Carried=op.Carried, OutGrad=dOut) {mode=LSTM hidden_size=3} -> "
      "Input.grad : f16[7,B,5], WeightList.0.grad : f16[12,5], "
      "WeightList.1.grad : f16[12,3]\nInput <- Input.grad\n"
      "WeightList.0 <- WeightList.0.grad\nWeightList.1 <- WeightList.1.grad\n");
}

TEST(Rnn, KeepsStatesInF32) {
  const OpSchema& rnn = *Ops().Find("rnn");
  EXPECT_TRUE(rnn.inputs()[rnn.FindInput("PreState")].keep_f32());
  EXPECT_EQ(rnn.amp(), AmpClass::kWhite);
  EXPECT_EQ(rnn.to_test(), "rnn_eval");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
