// What a run says of numbers that are not finite: the op of the model in which
// they began, and remedies that the compiler takes.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Op(const std::string& type, const std::string& ins,
               const std::string& out, const std::string& slot = "Out") {
  std::string text = absl::StrCat("op { type: \"", type, "\" ");
  size_t at = 0;
  while (at < ins.size()) {
    const size_t colon = ins.find(':', at), end = ins.find(' ', colon);
    absl::StrAppend(&text, "in { slot: \"", ins.substr(at, colon - at),
                    "\" var: \"", ins.substr(colon + 1, end - colon - 1),
                    "\" } ");
    at = end == std::string::npos ? ins.size() : end + 1;
  }
  return absl::StrCat(text, "out { slot: \"", slot, "\" var: \"", out,
                      "\" } }\n");
}

std::string Param(const std::string& name, const std::string& value) {
  return absl::StrCat("param { name: \"", name,
                      "\" dims: [10] init { constant: ", value, " } }\n");
}

// h0 = x, h1 = a1 * h0 + 1 (relu), h2 ...: four layers, of which kernels do
// each in one piece, and logits that stay small: h4 * 0 + x.
constexpr int kLayers = 4;
std::string Chain(const std::vector<std::string>& scales) {
  std::string text =
      "name: \"chain\" format: 1\n"
      "feed { name: \"x\" dtype: F32 dims: [-1, 10] }\n"
      "feed { name: \"label\" dtype: I64 dims: [-1] }\n";
  std::string before = "x";
  for (int i = 1; i <= kLayers; ++i) {
    const std::string n = absl::StrCat(i);
    text += Param("a" + n, scales[i - 1]) + Param("b" + n, "1");
    text += Op("elementwise_mul", "X:" + before + " Y:a" + n, "m" + n);
    text += Op("elementwise_add", "X:m" + n + " Y:b" + n, "s" + n);
    text += Op("relu", "X:s" + n, "h" + n);
    before = "h" + n;
  }
  return absl::StrCat(
      text,
      Op("softmax_with_cross_entropy", "Logits:" + before + " Label:label",
         "ce", "Loss"),
      Op("mean", "X:ce", "loss"),
      "loss { var: \"loss\" mean_over: \"ce\" }\noutput: \"s2\"\n");
}

constexpr char kStrategy[] =
    "optimizer { sgd { } }\n"
    "lr { base: 0.001 constant: true }\n"
    "train { batch_size: 16 epochs: 6 seed: 1\n"
    "        stop_rule { skipped_in_a_row: 6 skipped_at_floor: 4 } }\n";

// A test runs many models.
std::string NewOut() {
  static int runs = 0;
  return absl::StrCat(FreshDirectory(), ".", runs++);
}

struct Case {
  const char* level;
  const char* dtype;
  int ranks;
};

class NonFinite : public ::testing::TestWithParam<Case> {
 protected:
  std::vector<std::string> Settings() const {
    std::vector<std::string> settings = {
        absl::StrCat("amp.level=", GetParam().level),
        absl::StrCat("amp.dtype=", GetParam().dtype),
        // Gray ops low from the first one on.
        "amp.loss_scaling.use_dynamic_loss_scaling=false",
        "amp.loss_scaling.init_loss_scaling=1"};
    if (low()) settings.push_back("amp.custom_white_list=elementwise_mul");
    return settings;
  }
  bool low() const { return std::string(GetParam().level) != "O0"; }
  bool fp16() const { return low() && std::string(GetParam().dtype) == "fp16"; }
  // A factor that the lowest precision in use can hold, but not its square.
  std::string Large() const { return fp16() ? "2000" : "1e25"; }

  std::string Message(const std::string& text, CompiledModel* model) {
    auto compiled = CompileText(text, kStrategy, Settings());
    EXPECT_TRUE(compiled.ok()) << compiled.status() << text;
    if (!compiled.ok()) return "";
    *model = *std::move(compiled);
    const TrainConfig config = ConfigOf(*model, "synthetic:64", NewOut());
    const Trained trained = TrainOn(*model, config, GetParam().ranks);
    EXPECT_EQ(ExitCodeOf(trained.status), ExitCode::kDiverged)
        << trained.status;
    return std::string(trained.status.message());
  }
  // A remedy that is said is one that the compiler takes.
  void ExpectTaken(const std::string& text, const std::string& message) {
    const std::string flag = "--black-op ";
    const size_t at = message.find(flag);
    if (at == std::string::npos) return;
    const std::string op = message.substr(
        at + flag.size(),
        message.find_first_of(",; ", at + flag.size()) - at - flag.size());
    std::vector<std::string> settings = Settings();
    settings.push_back("amp.custom_black_opnames=" + op);
    const auto again = CompileText(text, kStrategy, settings);
    EXPECT_TRUE(again.ok()) << message << again.status();
  }
};

TEST_P(NonFinite, ForwardNamesTheOp) {
  for (int bad = 2; bad <= kLayers; ++bad) {
    std::vector<std::string> scales(kLayers, "1");
    scales[bad - 2] = scales[bad - 1] = Large();
    CompiledModel model;
    const std::string text = Chain(scales);
    const std::string message = Message(text, &model);
    EXPECT_THAT(message, ContainsRegex(absl::StrCat("; first non-finite op: m",
                                                    bad, "[; ]")));
    EXPECT_THAT(message, Not(HasSubstr(".fused")));
    if (low()) {
      EXPECT_THAT(message, HasSubstr(absl::StrCat("--black-op m", bad)));
    } else {
      EXPECT_THAT(message, Not(HasSubstr("--black-op")));
    }
    ExpectTaken(text, message);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Levels, NonFinite,
    ::testing::Values(Case{"O0", "fp16", 1}, Case{"O0", "fp16", 2},
                      Case{"O1", "fp16", 1}, Case{"O1", "fp16", 2},
                      Case{"O1", "bf16", 1}, Case{"O2", "fp16", 1},
                      Case{"O2", "bf16", 2}, Case{"O3", "fp16", 2},
                      Case{"O3", "bf16", 1}),
    [](const auto& info) {
      return absl::StrCat(info.param.level, info.param.dtype, info.param.ranks);
    });

// The gradients are finite, but not their norm.
TEST(NonFiniteGradients, AreNamed) {
  {
    const std::string text = Chain({"1", "1e-30", "1e25", "1e5"});
    const auto model = CompileText(text, kStrategy, {"amp.level=O0"});
    ASSERT_TRUE(model.ok()) << model.status();
    const TrainConfig config = ConfigOf(*model, "synthetic:64", NewOut());
    for (const int ranks : {1, 2}) {
      TrainConfig own = config;
      own.out += absl::StrCat("/", ranks);
      const Trained trained = TrainOn(*model, own, ranks);
      const std::string message(trained.status.message());
      EXPECT_EQ(ExitCodeOf(trained.status), ExitCode::kDiverged) << message;
      EXPECT_THAT(message, Not(HasSubstr("@found_inf")));
      EXPECT_THAT(message,
                  ContainsRegex("first bad gradient: [ab][1-4].grad;"
                                "|first non-finite op: .*backward of"));
    }
  }
}

// The loss is inf, and no gradient is: that of a sum is 1, however large it is.
TEST(LossNotFinite, OfStepsThatAreAppliedIsNoticed) {
  std::string text =
      "name: \"l\" format: 1\n"
      "feed { name: \"x\" dtype: F32 dims: [-1, 10] }\n"
      "feed { name: \"label\" dtype: I64 dims: [-1] }\n";
  text += Param("w", "1") + Param("huge", "3e38");
  text += Op("elementwise_mul", "X:x Y:w", "y");
  text += Op("elementwise_add", "X:y Y:huge", "z");
  text +=
      "op { type: \"reduce_sum\" in { slot: \"X\" var: \"z\" } "
      "out { slot: \"Out\" var: \"rows\" } "
      "attr { name: \"dim\" ints: [1] } }\n";
  text += Op("mean", "X:rows", "loss");
  text += "loss { var: \"loss\" mean_over: \"rows\" }\n";
  for (const int ranks : {1, 2}) {
    auto model = CompileText(text, kStrategy, {"amp.level=O0"});
    ASSERT_TRUE(model.ok()) << model.status();
    TrainConfig config = ConfigOf(*model, "synthetic:256",
                                  absl::StrCat(FreshDirectory(), "/", ranks));
    const Trained trained = TrainOn(*model, config, ranks);
    EXPECT_EQ(ExitCodeOf(trained.status), ExitCode::kDiverged)
        << trained.status;
    EXPECT_THAT(std::string(trained.status.message()),
                AllOf(HasSubstr("the loss is not finite in 3 steps in a row, "
                                "though the gradients are"),
                      HasSubstr("first non-finite op: rows")));
    const std::vector<Json> lines = Events(config.out, "not_finite");
    ASSERT_GE(lines.size(), 3u);
    EXPECT_EQ(lines[0]["step"], 1);
    EXPECT_EQ(lines[0]["loss"], "inf");
    EXPECT_EQ(lines[2]["in_a_row"], 3);
    EXPECT_GE(Summary(config.out)["steps_applied"], 3);
    // Whoever wants it so.
    config.stop_rule.loss_not_finite = 0;
    config.out += "/off";
    EXPECT_TRUE(TrainOn(*model, config, ranks).status.ok());
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
