// Losses that add means over different counts: the loss and the steps of one
// device, however masks fall on ranks, empty ones and tails.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "graph/io/model_printer.h"
#include "graph/zoo/zoo.h"
#include "gtest/gtest.h"
#include "runtime/data/npz_testing.h"
#include "tests/models/model_text.h"
#include "tests/models/training.h"
#include "tests/support/run_steps.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kStrategy[] = R"(
amp { level: "O0" }
optimizer { momentum { momentum: 0.9 } }
lr { base: 0.2 constant: true }
train { batch_size: 4 epochs: 2 seed: 3 }
)";

std::vector<float> Floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

StepsResult MustRun(const CompiledModel& model, int ranks,
                    const std::string& data, int64_t steps) {
  StepsSpec spec;
  spec.ranks = ranks;
  spec.batch = 4;
  spec.steps = steps;
  spec.data = data;
  spec.learning_rate = 0.2f;
  auto result = RunSteps(*model.program, spec);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : StepsResult();
}

// The tolerance is that of f32 sums in another order.
void ExpectRanksEqualOne(const CompiledModel& model, const std::string& data,
                         int64_t steps) {
  const StepsResult one = MustRun(model, 1, data, steps);
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(absl::StrCat(ranks, " ranks"));
    const StepsResult many = MustRun(model, ranks, data, steps);
    ASSERT_EQ(many.losses.size(), one.losses.size());
    EXPECT_THAT(many.rejected, testing::Each(false));
    for (size_t s = 0; s < one.losses.size(); ++s) {
      EXPECT_TRUE(std::isfinite(one.losses[s])) << s;
      EXPECT_NEAR(many.losses[s], one.losses[s],
                  2e-5 * (1 + std::abs(one.losses[s])))
          << s;
    }
    for (const auto& [name, bytes] : one.cells[0]) {
      if (name[0] == '@') continue;
      const std::vector<float> a = Floats(bytes);
      const std::vector<float> b = Floats(many.cells[0].at(name));
      for (size_t i = 0; i < a.size(); ++i) {
        ASSERT_NEAR(a[i], b[i], 5e-5 * (1 + std::abs(a[i])))
            << name << " " << i;
      }
    }
  }
}

// `keep` is 0 or 1 per sample: of a batch of 4 on 3 ranks, many keep nothing.
constexpr char kModel[] = R"(name: "means"  format: 1
feed { name: "x" dtype: F32 dims: [-1, 6] }
feed { name: "label" dtype: I64 dims: [-1] }
feed { name: "keep" dtype: BOOL dims: [-1] }
param { name: "w" dims: [6, 4] init { uniform { bound: 0.4 } } }
op { type: "cast" in { slot: "X" var: "keep" } out { slot: "Out" var: "mask" } attr { name: "to" s: "f32" } }
op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" } out { slot: "Out" var: "scores" } }
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "scores" }
     in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
op { type: "fill_constant" out { slot: "Out" var: "two" } attr { name: "shape" ints: [1] } attr { name: "value" f: 2 } }
)";

std::string Model(const std::string& ops, const std::string& denominator) {
  return absl::StrCat(
      kModel, Unary("square", "scores", "squares"),
      Unary("mean", "squares", "size"), Unary("reduce_sum", "mask", "n"),
      Binary("elementwise_max", "n", "two", "some"), ops,
      Binary("elementwise_add", "size", "kept", "loss"),
      "loss { var: \"loss\" mean_over: \"squares\" denominator: \"",
      denominator, "\" }\n");
}

std::string Quotient(const std::string& by) {
  return Binary("elementwise_mul", "ce", "mask", "masked") +
         Unary("reduce_sum", "masked", "sum") +
         Binary("elementwise_div", "sum", by, "kept");
}

TEST(Denominators, RanksEqualOne) {
  const std::string weights =
      Binary("elementwise_div", "mask", "n", "weights") +
      Binary("elementwise_mul", "ce", "weights", "masked") +
      Unary("reduce_sum", "masked", "kept");
  for (const std::string& text :
       {Model(Quotient("n"), "n"), Model(weights, "n"),
        Model(Quotient("some"), "some")}) {
    const auto model = CompileText(text, kStrategy);
    ASSERT_TRUE(model.ok()) << model.status();
    ExpectRanksEqualOne(*model, "synthetic:21", 24);
  }
}

TEST(Denominators, NoStepIsSkippedAtAnyLevel) {
  for (const char* level : {"O1", "O2", "O3"}) {
    const auto model = CompileText(Model(Quotient("n"), "n"), kStrategy,
                                   {absl::StrCat("amp.level=", level),
                                    "amp.loss_scaling.init_loss_scaling=128"});
    ASSERT_TRUE(model.ok()) << model.status();
    const StepsResult run = MustRun(*model, 3, "synthetic:21", 12);
    EXPECT_THAT(run.rejected, testing::Each(false)) << level;
    EXPECT_TRUE(run.cells[0] == run.cells[2]) << level;
  }
}

TEST(Denominators, WhatIsNotNamedIsNoted) {
  const auto codes = [](const std::string& text) {
    const auto model = CompileText(text, kStrategy);
    EXPECT_TRUE(model.ok()) << model.status();
    std::vector<std::string> found;
    if (!model.ok()) return found;
    for (const proto::Note& note : model->report.note()) {
      if (note.code() == "P9") found.push_back(note.text());
    }
    return found;
  };
  const std::string good = Model(Quotient("n"), "n");
  EXPECT_THAT(codes(good), testing::IsEmpty());
  EXPECT_THAT(codes(absl::StrReplaceAll(good, {{"denominator: \"n\"", ""}})),
              testing::ElementsAre(testing::HasSubstr(
                  "kept; several ranks give another loss than one; write "
                  "mean_over: \"squares\" denominator: \"n\"")));
  EXPECT_THAT(
      codes(absl::StrReplaceAll(good,
                                {{"denominator: \"n\"", "mask: \"mask\""}})),
      testing::ElementsAre(testing::HasSubstr(
          "size; several ranks give another loss than one; write mean_over: "
          "\"squares\" denominator: \"n\" and no mask")));
}

// 9 samples of 8 tokens, of which 0 to 5 are asked for; whole ranks and a
// whole batch are asked for none.
std::string Sentences() {
  constexpr int kSamples = 9, kTokens = 8, kWords = 30522;
  constexpr int kAsked[kSamples] = {0, 3, 1, 0, 5, 0, 0, 2, 0};
  std::vector<int64_t> ids, types, ones, label, next;
  for (int i = 0; i < kSamples * kTokens; ++i) {
    ids.push_back(i * 7919 % kWords);
    types.push_back(i % kTokens > 3);
    ones.push_back(1);
    label.push_back(i % kTokens < kAsked[i / kTokens] ? i * 104729 % kWords
                                                      : -100);
  }
  for (int i = 0; i < kSamples; ++i) next.push_back(i % 2);
  const auto member = [](const std::string& name, const std::string& shape,
                         const std::vector<int64_t>& values) {
    const NpyFile array = {"<i8", shape, BytesOf(values)};
    return ZipFile::Member{name + ".npy", array.Serialize(), /*deflate=*/true};
  };
  ZipFile file;
  file.members = {
      member("input_ids", "9, 8", ids), member("token_type_ids", "9, 8", types),
      member("attention_mask", "9, 8", ones), member("label", "9, 8", label),
      member("next_sentence_label", "9,", next)};
  const std::string path = FreshDirectory() + ".npz";
  EXPECT_TRUE(WriteFileAtomically(path, file.Serialize()).ok());
  return "npz:" + path;
}

TEST(Denominators, OfBertsPretraining) {
  ZooOptions options;
  options.layers = 1;
  options.width = 8;
  options.sequence = 8;
  options.head = "pretraining";
  const auto zoo = ZooModel("bert_base", options);
  ASSERT_TRUE(zoo.ok()) << zoo.status();
  const auto model = CompileText(PrintModel(*zoo), kStrategy);
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectRanksEqualOne(*model, Sentences(), 6);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
