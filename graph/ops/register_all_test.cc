// What holds for every op of the registry.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/schema/op_registry.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

TEST(RegistryTest, HasTheExpectedAliases) {
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"cross_entropy_with_softmax", "softmax_with_cross_entropy"},
      {"flatten2", "flatten"},
      {"flatten_contiguous_range", "flatten"},
      {"init_constant", "fill_constant"},
      {"matmul_v2", "matmul"},
      {"maximum", "elementwise_max"},
      {"minimum", "elementwise_min"},
      {"reshape2", "reshape"},
      {"smooth_l1", "huber_loss"},
      {"smooth_l1_loss", "huber_loss"},
      {"squeeze2", "squeeze"},
      {"top_k_v2", "top_k"},
      {"transpose2", "transpose"},
      {"unsqueeze2", "unsqueeze"},
  };
  EXPECT_THAT(Ops().Aliases(), testing::ElementsAreArray(expected));
}

TEST(RegistryTest, EverySchemaPassesItsCheck) {
  for (const OpSchema* schema : Ops().All()) {
    EXPECT_TRUE(schema->Check().ok()) << schema->Check();
  }
}

// (Which ops there are, and which of them models may hold, is held by
// docs/ops.md.)
TEST(RegistryTest, OpsOfPassesHaveNoGradient) {
  for (const OpSchema* schema : Ops().All()) {
    EXPECT_FALSE(schema->has_grad() && schema->internal()) << schema->name();
  }
}

// What pays to be low is what the cost model counts.
TEST(RegistryTest, WhiteOpsCountTheirOperations) {
  for (const OpSchema* schema : Ops().All()) {
    EXPECT_EQ(schema->amp() == AmpClass::kWhite, schema->flops() != nullptr)
        << schema->name();
  }
}

TEST(RegistryTest, EverySlotAndAttributeIsDocumented) {
  for (const OpSchema* schema : Ops().All()) {
    for (const Slot& slot : schema->inputs()) {
      EXPECT_FALSE(slot.doc.empty()) << schema->name() << " " << slot.name;
    }
    for (const Slot& slot : schema->outputs()) {
      EXPECT_FALSE(slot.doc.empty()) << schema->name() << " " << slot.name;
    }
    for (const AttrSpec& attr : schema->attrs()) {
      EXPECT_FALSE(attr.doc.empty()) << schema->name() << " " << attr.name;
    }
  }
}

std::vector<std::string> OpsWith(bool (OpSchema::*trait)() const) {
  std::vector<std::string> names;
  for (const OpSchema* schema : Ops().All()) {
    if ((schema->*trait)()) names.push_back(schema->name());
  }
  return names;
}

TEST(RegistryTest, Traits) {
  EXPECT_THAT(
      OpsWith(&OpSchema::guarded),
      testing::ElementsAre("adadelta", "adagrad", "adam", "adamax", "adamw",
                           "dgc", "ema", "lamb", "lars", "lion", "momentum",
                           "rmsprop", "running_stats", "sgd", "tick_applied"));
  EXPECT_THAT(OpsWith(&OpSchema::split_only),
              testing::ElementsAre("sync_batch_norm", "sync_batch_norm_grad"));
  EXPECT_THAT(
      OpsWith(&OpSchema::no_merge),
      testing::ElementsAre(
          "arange", "dequantize_groups", "dropout", "dropout_grad",
          "dropout_nd", "dropout_nd_grad", "element_count", "fill_constant",
          "init_normal", "init_truncated_normal", "init_uniform",
          "quantize_groups", "rnn", "rnn_grad", "scaled_dot_product_attention",
          "scaled_dot_product_attention_grad", "shape"));
  EXPECT_THAT(OpsWith(&OpSchema::view),
              testing::ElementsAre("assign", "convert_layout", "flatten",
                                   "move_channels", "reshape", "reshape_like",
                                   "share_data", "squeeze", "unsqueeze"));
}

// Outputs of guarded ops take the storage of the old values.
TEST(RegistryTest, MayAlias) {
  const std::vector<std::string> expected = {
      "accumulate.Out<-Sum",
      "adadelta.ParamOut<-Param",
      "adadelta.MeanSquareOut<-MeanSquare",
      "adadelta.MeanDeltaOut<-MeanDelta",
      "adagrad.ParamOut<-Param",
      "adagrad.SquareSumOut<-SquareSum",
      "adam.ParamOut<-Param",
      "adam.Moment1Out<-Moment1",
      "adam.Moment2Out<-Moment2",
      "adamax.ParamOut<-Param",
      "adamax.MomentOut<-Moment",
      "adamax.InfNormOut<-InfNorm",
      "adamw.ParamOut<-Param",
      "adamw.Moment1Out<-Moment1",
      "adamw.Moment2Out<-Moment2",
      "all_reduce.Out<-X",
      "broadcast.Out<-X",
      "dgc.VelocityOut<-Velocity",
      "dgc.ResidualOut<-Residual",
      "ema.AverageOut<-Average",
      "fill_zeros_like.Out<-X",
      "lamb.ParamOut<-Param",
      "lamb.Moment1Out<-Moment1",
      "lamb.Moment2Out<-Moment2",
      "lars.ParamOut<-Param",
      "lars.VelocityOut<-Velocity",
      "lion.ParamOut<-Param",
      "lion.MomentOut<-Moment",
      "momentum.ParamOut<-Param",
      "momentum.VelocityOut<-Velocity",
      "rmsprop.ParamOut<-Param",
      "rmsprop.MeanSquareOut<-MeanSquare",
      "rmsprop.MeanGradOut<-MeanGrad",
      "rmsprop.MomentumOut<-Momentum",
      "running_stats.Mean<-OldMean",
      "running_stats.Variance<-OldVariance",
      "sgd.ParamOut<-Param",
      "tick_applied.Out<-X",
      "tree_accumulate.Out<-Partials",
      "tree_accumulate_stats.Means<-Means",
      "tree_accumulate_stats.Variances<-Variances",
      "tree_accumulate_stats.Counts<-Counts",
      "tree_sum.Out<-X"};
  std::vector<std::string> found;
  for (const OpSchema* schema : Ops().All()) {
    for (const Slot& slot : schema->outputs()) {
      if (slot.may_alias == 0) continue;
      found.push_back(absl::StrCat(schema->name(), ".", slot.name, "<-",
                                   schema->inputs()[slot.may_alias - 1].name));
    }
  }
  EXPECT_THAT(found, testing::ElementsAreArray(expected));
}

TEST(RegistryTest, ToTestNamesAnOpThatTakesTheSameSlots) {
  for (const OpSchema* schema : Ops().All()) {
    if (schema->to_test().empty() || schema->to_test() == "identity") continue;
    const OpSchema* test = Ops().Find(schema->to_test());
    ASSERT_NE(test, nullptr) << schema->name();
    for (const Slot& slot : test->inputs()) {
      EXPECT_GE(schema->FindInput(slot.name), 0) << schema->name();
    }
    for (const Slot& slot : test->outputs()) {
      EXPECT_GE(schema->FindOutput(slot.name), 0) << schema->name();
    }
  }
}

TEST(RegistryTest, NormsKeepTheirParametersInF32) {
  for (const char* op : {"batch_norm", "sync_batch_norm", "scale_bias"}) {
    for (const char* slot : {"Scale", "Bias", "Mean", "Variance"}) {
      const OpSchema& schema = *Ops().Find(op);
      EXPECT_TRUE(schema.inputs()[schema.FindInput(slot)].keep_f32())
          << op << " " << slot;
    }
  }
}

}  // namespace
}  // namespace halftone
