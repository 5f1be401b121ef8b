#include <cmath>

#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;
using Attrs = std::vector<std::pair<std::string, AttrValue>>;

std::string Rate(Attrs attrs) {
  return Infer({"learning_rate", {{"Applied", "i64[]"}}, attrs});
}

TEST(LearningRate, IsAScalar) {
  for (const char* policy :
       {"constant", "cosine", "linear", "poly", "exponential"}) {
    EXPECT_EQ(Rate({{"policy", policy}}), "Out=f32[]") << policy;
  }
  EXPECT_EQ(Rate({{"policy", "piecewise"},
                  {"boundaries", Floats{0.3, 0.6}},
                  {"values", Floats{1, 0.1, 0.01}}}),
            "Out=f32[]");
}

TEST(LearningRate, PoliciesThatDivide) {
  EXPECT_THAT(Rate({{"policy", "step"}}),
              HasSubstr("attribute length: expected"));
  EXPECT_EQ(Rate({{"policy", "step"}, {"length", 3.0}}), "Out=f32[]");
  EXPECT_THAT(Rate({{"policy", "cyclic"}, {"length", 3.0}}),
              HasSubstr("attribute length_down: expected"));
  EXPECT_THAT(Rate({{"policy", "multi_step"}, {"boundaries", Floats{5, 2}}}),
              HasSubstr("attribute boundaries: expected numbers from 0 up"));
  EXPECT_THAT(Rate({{"growth", 0.5}}), HasSubstr("attribute growth"));
}

TEST(LearningRate, EpochsNeedTheirLength) {
  EXPECT_EQ(Rate({{"every", "epochs"}}),
            "op (learning_rate): slot StepsPerEpoch: expected "
            "@steps_per_epoch where every is epochs, found nothing");
  EXPECT_EQ(Infer({"learning_rate",
                   {{"Applied", "i64[]"}, {"StepsPerEpoch", "f32[]"}},
                   {{"every", "epochs"}}}),
            "Out=f32[]");
}

TEST(LearningRate, Errors) {
  EXPECT_THAT(Rate({{"policy", "cosin"}}),
              HasSubstr("found \"cosin\"; nearest: cosine"));
  EXPECT_EQ(Rate({{"policy", "piecewise"}, {"boundaries", Floats{0.5}}}),
            "op (learning_rate): attribute values: expected 2 numbers, one "
            "more than boundaries, found []");
  EXPECT_EQ(Rate({{"policy", "piecewise"}, {"boundaries", Floats{0.5, 0.2}}}),
            "op (learning_rate): attribute boundaries: expected numbers from "
            "0 up, ascending, found [0.5, 0.2]");
  EXPECT_THAT(Rate({{"min_ratio", 2.0}}),
              HasSubstr("attribute min_ratio: expected a number from 0 to 1"));
  EXPECT_THAT(
      Infer({"learning_rate", {{"Applied", "i64[]"}, {"Schedule", "f32[2]"}}}),
      HasSubstr("slot Schedule: expected dims [3] (base, total steps, "
                "warm-up steps), found f32[2]"));
}

// Updates of two parameters.
Call Update(std::string op, std::vector<std::string> state,
            std::string param = "f32[4,4] f32[4]",
            std::string grad = "f16[4,4] f16[4]") {
  Call call = {op, {{"Param", param}, {"Grad", grad}}};
  call.lists = {{"ParamOut", 2}};
  for (const std::string& slot : state) {
    call.in.emplace_back(slot, "f32[4,4] f32[4]");
    call.lists.emplace_back(slot + "Out", 2);
  }
  call.in.emplace_back("LearningRate", "f32[]");
  call.in.emplace_back("FoundInf", "bool[]");
  return call;
}

TEST(Update, EveryMethod) {
  EXPECT_EQ(Infer(Update("sgd", {})), "ParamOut=f32[4,4] f32[4]");
  EXPECT_EQ(Infer(Update("momentum", {"Velocity"})),
            "ParamOut=f32[4,4] f32[4]; VelocityOut=f32[4,4] f32[4]");
  for (const char* op : {"adam", "adamw"}) {
    Call call = Update(op, {"Moment1", "Moment2"});
    call.in.emplace_back("Applied", "i64[]");
    call.in.emplace_back("InvScale", "f32[]");
    call.in.emplace_back("ClipFactor", "f32[]");
    EXPECT_EQ(Infer(call),
              "ParamOut=f32[4,4] f32[4]; Moment1Out=f32[4,4] f32[4]; "
              "Moment2Out=f32[4,4] f32[4]");
  }
}

TEST(Update, StatesThatMayBeLeftOut) {
  EXPECT_EQ(Infer(Update("rmsprop", {"MeanSquare"})),
            "ParamOut=f32[4,4] f32[4]; MeanSquareOut=f32[4,4] f32[4]");
  EXPECT_EQ(Infer(Update("rmsprop", {"MeanSquare", "Momentum"})),
            "ParamOut=f32[4,4] f32[4]; MeanSquareOut=f32[4,4] f32[4]; "
            "MomentumOut=f32[4,4] f32[4]");
  Call only_out = Update("rmsprop", {"MeanSquare"});
  only_out.lists.emplace_back("MeanGradOut", 2);
  EXPECT_EQ(Infer(only_out),
            "op (rmsprop): slot MeanGradOut: expected 0 values, as the state "
            "is left out, found 2; name each output");
  Call half = Update("rmsprop", {"MeanSquare", "MeanGrad"});
  half.in[3].second = "f32[4,4]";
  EXPECT_THAT(Infer(half), HasSubstr("slot MeanGrad: expected 2 values"));
}

TEST(Update, LowCopies) {
  Call call = Update("momentum", {"Velocity"});
  call.lists.emplace_back("LowOut", 2);
  call.bind = {{"L", "f16"}};
  EXPECT_EQ(Infer(call),
            "ParamOut=f32[4,4] f32[4]; VelocityOut=f32[4,4] f32[4]; "
            "LowOut=f16[4,4] f16[4]");
  call.lists.back().second = 1;
  EXPECT_EQ(Infer(call),
            "op (momentum): slot LowOut: expected 2 values, one per member of "
            "Param, or none, found 1; name each output");
}

TEST(Update, MembersKeepTheirLayout) {
  Call call = Update("sgd", {}, "f16[4,4,1,1]@channels_last f16[4]",
                     "f32[4,4,1,1]@channels_last f32[4]");
  call.lists.emplace_back("LowOut", 2);
  call.bind = {{"L", "bf16"}};
  EXPECT_EQ(Infer(call),
            "ParamOut=f16[4,4,1,1] @channels_last f16[4]; "
            "LowOut=bf16[4,4,1,1] @channels_last bf16[4]");
}

TEST(Update, Errors) {
  EXPECT_EQ(Infer(Update("sgd", {}, "f32[4,4] f32[4]", "f16[4,4]")),
            "op (sgd): slot Grad: expected 2 values, one per member of Param, "
            "found 1; list them in the order of Param");
  EXPECT_EQ(Infer(Update("sgd", {}, "f32[4,4] f32[4]", "f16[4] f16[4,4]")),
            "op (sgd): slot Grad[0]: expected the dims of Param[0], f32[4,4], "
            "found f16[4]; list them in the order of Param");
  Call few = Update("sgd", {});
  few.lists = {{"ParamOut", 1}};
  EXPECT_EQ(Infer(few),
            "op (sgd): slot ParamOut: expected 2 values, one per member of "
            "Param, found 1; name each output");
  Call rate = Update("sgd", {});
  rate.in[2].second = "f32[1]";
  EXPECT_THAT(Infer(rate), HasSubstr("slot LearningRate: expected a scalar"));
}

TEST(Update, AttributeErrors) {
  const auto with = [](std::string name, double value) {
    Call call = Update("adam", {"Moment1", "Moment2"});
    call.in.emplace_back("Applied", "i64[]");
    call.attrs = {{name, value}};
    return Infer(call);
  };
  EXPECT_THAT(with("beta1", 1.0), HasSubstr("attribute beta1: expected a "
                                            "number from 0 to 0.9999999"));
  EXPECT_THAT(with("weight_decay", -1.0), HasSubstr("attribute weight_decay"));
  EXPECT_THAT(with("epsilon", std::nan("")), HasSubstr("found nan"));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
