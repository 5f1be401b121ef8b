// A loss of several parts is their weighted sum, each part is reported by its
// name, and with a scaler of its own one part's overflows are its own.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "tests/models/model_text.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

constexpr char kStrategy[] = R"(
amp { level: "O0" loss_scaling { decr_every_n_nan_or_inf: 1 } }
optimizer { momentum { momentum: 0.9 } clip { global_norm: 0.5 } }
lr { base: 0.1 constant: true }
train { batch_size: 8 epochs: 3 seed: 3 }
)";
constexpr char kParts[] =
    "loss { var: \"loss\" mean_over: \"ce\" part { var: \"main\" } "
    "part { var: \"aux\" weight: 0.5 } }\n";

// Two heads on one trunk, which may have a norm.
std::string Heads(bool normed = false) {
  const std::string norm = absl::StrCat(Param("s", "12", "constant: 1"),
                                        Param("c", "12", "constant: 0"),
                                        BatchNorm("h", 12, "s", "c", "n"));
  return absl::StrCat(
      kSixFeatures, Param("w1", "6, 12"), Param("b1", "12"),
      Param("w2", "12, 4"), Param("w3", "12, 2"), Matmul("x", "w1", "b1", "h"),
      normed ? norm : "", Unary("tanh", normed ? "n" : "h", "t"),
      Matmul("t", "w2", "", "logits"),
      Op("softmax_with_cross_entropy",
         {{"Logits", "logits"}, {"Label", "label"}}, "Loss", "ce"),
      Unary("mean", "ce", "main"), Matmul("t", "w3", "", "r"),
      Unary("square", "r", "r2"), Unary("mean", "r2", "aux"));
}

std::string ByHand() {
  return absl::StrCat(Heads(),
                      Op("scale", {{"X", "aux"}}, "Out", "half",
                         "attr { name: \"scale\" f: 0.5 }"),
                      Binary("elementwise_add", "main", "half", "loss"),
                      "loss { var: \"loss\" mean_over: \"ce\" }\n");
}

Outcome Train(const std::string& model,
              const std::vector<std::string>& overrides, int ranks) {
  return TrainText(model, kStrategy, overrides, "synthetic:27", ranks);
}

// `tolerance`: relative to 1 + |value|.
void ExpectSame(const Outcome& a, const Outcome& b, double tolerance) {
  ASSERT_TRUE(a.status.ok()) << a.status;
  ASSERT_TRUE(b.status.ok()) << b.status;
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (size_t i = 0; i < a.steps.size(); ++i) {
    const double x = a.steps[i]["loss"], y = b.steps[i]["loss"];
    EXPECT_NEAR(x, y, tolerance * (1 + std::abs(x))) << "step " << i;
  }
  for (const char* name : {"w1", "b1", "w2", "w3"}) {
    const std::vector<float> x = Values(a.state, name);
    const std::vector<float> y = Values(b.state, name);
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(x[i], y[i], tolerance * (1 + std::abs(x[i])))
          << name << " " << i;
    }
  }
}

class SeveralLosses : public ::testing::TestWithParam<int> {};

TEST_P(SeveralLosses, AreTheirWeightedSum) {
  const Outcome hand = Train(ByHand(), {}, GetParam());
  const Outcome parts = Train(absl::StrCat(Heads(), kParts), {}, GetParam());
  ExpectSame(hand, parts, 0);
  ASSERT_EQ(parts.steps.size(), 12u);
  for (const Json& event : parts.steps) {
    const double main = event["losses"]["main"]["loss"];
    const double aux = event["losses"]["aux"]["loss"];
    const double loss = event["loss"];
    EXPECT_GT(aux, 0);
    EXPECT_NEAR(loss, main + 0.5 * aux, 1e-5);
    EXPECT_FALSE(event["losses"]["aux"].contains("loss_scaling"));
  }
  ASSERT_FALSE(parts.evals.empty());
  const Json& last = parts.evals.back()["losses"];
  EXPECT_NEAR(parts.summary["eval_loss"],
              last["main"]["loss"].get<double>() +
                  0.5 * last["aux"]["loss"].get<double>(),
              1e-5);
  EXPECT_NEAR(parts.summary["eval_losses"]["aux"], last["aux"]["loss"], 1e-6);
  EXPECT_FALSE(hand.steps[0].contains("losses"));
}

TEST_P(SeveralLosses, ScalersOfTheirOwnChangeNoNumber) {
  const std::string model = absl::StrCat(Heads(), kParts);
  const Outcome one = Train(model, {}, 1);
  const std::string per_loss = "amp.loss_scaling.per_loss=true";
  ExpectSame(one, Train(model, {per_loss}, GetParam()), 3e-5);
  ExpectSame(
      one,
      Train(model, {per_loss, "dist.gradient_merge.k_steps=2"}, GetParam()),
      3e-5);
  ExpectSame(one, Train(model, {per_loss, "dist.sharding.stage=1"}, GetParam()),
             3e-5);
  const Outcome low = Train(
      model,
      {per_loss, "amp.level=O1", "amp.loss_scaling.init_loss_scaling=1024"},
      GetParam());
  ExpectSame(one, low, 2e-2);
  EXPECT_EQ(low.summary["steps_skipped"], 0);
}

// Each part has a gradient of the norm, of which none has a kernel.
TEST_P(SeveralLosses, ShareANormOfAllRanks) {
  const std::string model = absl::StrCat(Heads(/*normed=*/true), kParts);
  const std::string sync = "dist.sync_batch_norm=true";
  const std::string per_loss = "amp.loss_scaling.per_loss=true";
  ExpectSame(Train(model, {sync}, 1),
             Train(model, {sync, per_loss}, GetParam()), 3e-5);
}

// The second part's gradients overflow f16 at the first scales: its scale
// shrinks, the other one's does not, and no step is applied meanwhile.
TEST_P(SeveralLosses, OverflowsShrinkTheirOwnScale) {
  std::string model = absl::StrCat(Heads(), kParts);
  model.replace(model.find("weight: 0.5"), 11, "weight: 1000");
  for (const char* merge : {"1", "2"}) {
    const Outcome run =
        Train(model,
              {"amp.loss_scaling.per_loss=true", "amp.level=O1",
               absl::StrCat("dist.gradient_merge.k_steps=", merge)},
              GetParam());
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_EQ(Values(run.state, "@loss_scaling")[0], 32768);
    const double skipped = run.summary["steps_skipped"];
    EXPECT_GT(skipped, 0);
    EXPECT_LT(skipped, 12);
    EXPECT_EQ(Values(run.state, "@loss_scaling.1")[0],
              std::ldexp(32768, -static_cast<int>(skipped)));
    const std::vector<Json> skips = Events(run.out, "skip");
    ASSERT_EQ(skips.size(), skipped);
    for (size_t i = 0; i < skips.size(); ++i) {
      EXPECT_EQ(skips[i]["part"], "aux");
      EXPECT_EQ(skips[i]["scale_before"],
                std::ldexp(32768, -static_cast<int>(i)));
      EXPECT_EQ(run.summary["scale_events"][i]["part"], "aux");
    }
    const Json& last = run.steps.back();
    EXPECT_EQ(last["losses"]["main"]["loss_scaling"], 32768);
    EXPECT_EQ(last["losses"]["aux"]["loss_scaling"], last["loss_scaling"]);
    EXPECT_EQ(last["loss_scaling"], Values(run.state, "@loss_scaling.1")[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, SeveralLosses, ::testing::Values(1, 2));

// Whatever parts are called: what is made for them are names of its own.
TEST(NamesOfParts, DoNotMeetThoseOfTheirScalers) {
  std::string model = absl::StrCat(Heads(), kParts);
  for (size_t at; (at = model.find("\"aux\"")) != std::string::npos;) {
    model.replace(at, 5, "\"next\"");
  }
  for (size_t at; (at = model.find("\"main\"")) != std::string::npos;) {
    model.replace(at, 6, "\"next.next\"");
  }
  const Outcome run = Train(model, {"amp.loss_scaling.per_loss=true"}, 1);
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.steps.back()["losses"]["next"]["loss_scaling"], 1);
  EXPECT_EQ(run.steps.back()["losses"]["next.next"]["loss_scaling"], 1);
}

struct Wrong {
  const char* loss;
  const char* says;
};

TEST(WrongParts, AreRefused) {
  const Wrong kWrong[] = {
      {"part { var: \"aux\" } part { var: \"aux\" }",
       "loss: part aux is given twice"},
      {"part { var: \"main\" } part { var: \"auks\" }",
       "loss: part auks: no value is called \"auks\"; nearest: aux"},
      {"part { var: \"r2\" }", "loss: part r2: expected one element, found"},
      {"part { var: \"aux\" weight: 0 }",
       "loss: part aux: weight: expected a finite number other than 0"},
      {"part { var: \"w1\" }", "loss: part w1"}};
  for (const Wrong& wrong : kWrong) {
    const auto compiled = CompileText(
        absl::StrCat(Heads(), "loss { var: \"loss\" mean_over: \"ce\" ",
                     wrong.loss, " }\n"),
        kStrategy);
    EXPECT_EQ(ExitCodeOf(compiled.status()), ExitCode::kModel);
    EXPECT_THAT(std::string(compiled.status().message()),
                HasSubstr(wrong.says));
  }
  EXPECT_THAT(std::string(CompileText(absl::StrCat(Heads(), kParts), kStrategy,
                                      {"amp.loss_scaling.per_loss=true",
                                       "dist.fp16_allreduce=true"})
                              .status()
                              .message()),
              HasSubstr("amp.loss_scaling.per_loss is set, too"));
  std::string frozen = absl::StrCat(Heads(), kParts);
  for (const std::string name : {"w1", "b1", "w3"}) {
    const std::string declared = absl::StrCat("param { name: \"", name, "\"");
    const size_t at = frozen.find(declared);
    ASSERT_NE(at, std::string::npos) << name;
    frozen.insert(at + declared.size(), " trainable: false");
  }
  EXPECT_TRUE(CompileText(frozen, kStrategy).ok());
  EXPECT_THAT(std::string(CompileText(frozen, kStrategy,
                                      {"amp.loss_scaling.per_loss=true"})
                              .status()
                              .message()),
              HasSubstr("part aux of the loss depends on no trainable"));
  const auto taken =
      CompileText(absl::StrCat(Heads(), "loss { var: \"t\" mean_over: \"ce\" ",
                               "part { var: \"aux\" } }\n"),
                  kStrategy);
  EXPECT_THAT(std::string(taken.status().message()),
              HasSubstr("loss: the sum of its parts"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
