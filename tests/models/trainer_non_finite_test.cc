// What a run says of numbers that are not finite: the op of the model in which
// they began, and remedies that the compiler takes.
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

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// h0 = x, h1 = relu(a1 * h0 + b1), h2 ...: four layers, of which kernels do
// each in one piece; h4 are the logits.
constexpr int kLayers = 4;
std::string Chain(const std::vector<std::string>& scales,
                  const std::vector<std::string>& biases = {"1", "1", "1",
                                                            "1"}) {
  std::string text =
      "name: \"chain\" format: 1\n"
      "feed { name: \"x\" dtype: F32 dims: [-1, 10] }\n"
      "feed { name: \"label\" dtype: I64 dims: [-1] }\n";
  std::string before = "x";
  for (int i = 1; i <= kLayers; ++i) {
    const std::string n = absl::StrCat(i);
    text += Param("a" + n, "10", "constant: " + scales[i - 1]) +
            Param("b" + n, "10", "constant: " + biases[i - 1]);
    text += Binary("elementwise_mul", before, "a" + n, "m" + n);
    text += Add("m" + n, "b" + n, "s" + n);
    text += Unary("relu", "s" + n, "h" + n);
    before = "h" + n;
  }
  return absl::StrCat(
      text,
      Op("softmax_with_cross_entropy", {{"Logits", before}, {"Label", "label"}},
         "Loss", "ce"),
      Unary("mean", "ce", "loss"),
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

  std::string Message(const std::string& text, CompiledModel* model,
                      const std::string& setting = "") {
    std::vector<std::string> settings = Settings();
    if (!setting.empty()) settings.push_back(setting);
    auto compiled = CompileText(text, kStrategy, settings);
    EXPECT_TRUE(compiled.ok()) << compiled.status() << text;
    if (!compiled.ok()) return "";
    *model = *std::move(compiled);
    out_ = NewOut();
    const TrainConfig config = ConfigOf(*model, "synthetic:64", out_);
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

  std::string out_;  // of the last run
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

// Forward all is of the order of 1 or Large(): h2 is small where the factors
// behind it are large. Backward they come together: dh2 = dh4 * a4 * a3.
TEST_P(NonFinite, BackwardNamesTheGradient) {
  const std::string small = fp16() ? "0.0005" : "1e-25";
  CompiledModel model;
  const std::string text =
      Chain({"1", small, Large(), Large()}, {"1", "0", "0", "0"});
  const std::string message = Message(text, &model);
  EXPECT_THAT(
      message,
      ContainsRegex("; first non-finite op: [^;]*backward of m3\\)[; ]"));
  EXPECT_THAT(message, Not(HasSubstr(".fused")));
  EXPECT_THAT(message, Not(HasSubstr("@")));
  if (low()) {
    EXPECT_THAT(message, HasSubstr("--black-op m3"));
  }
  ExpectTaken(text, message);
  const std::vector<Json> skips = Events(out_, "skip");
  ASSERT_FALSE(skips.empty());
  for (const Json& skip : skips) {
    EXPECT_THAT(skip["first_bad"].get<std::string>(),
                ContainsRegex("^[ab][12].grad has (inf|nan)$"));
  }
}

// The scale alone makes it overflow, one layer before.
TEST_P(NonFinite, TheScaledGradientIsNamed) {
  if (!fp16()) GTEST_SKIP() << "no scale of f32 takes it out of range";
  std::vector<std::string> settings = Settings();
  CompiledModel model;
  const std::string text =
      Chain({"1", "0.0005", "2000", "2000"}, {"1", "0", "0", "0"});
  const std::string message =
      Message(text, &model, "amp.loss_scaling.init_loss_scaling=4096");
  EXPECT_THAT(
      message,
      ContainsRegex("; first non-finite op: [^;]*backward of m4\\)[; ]"));
  EXPECT_THAT(message, HasSubstr("loss scale 4096"));
  ExpectTaken(text, message);
}

// No op made it so: the parameter does not fit into its low cell.
TEST_P(NonFinite, AParameterThatDoesNotFitIsNamed) {
  if (!fp16()) GTEST_SKIP() << "any parameter of f32 fits";
  CompiledModel model;
  const std::string text = Chain({"1", "1e6", "1", "1"});
  const std::string message = Message(text, &model);
  EXPECT_THAT(message,
              ContainsRegex("; first non-finite op: m2 \\(its input a2[^ ]* is "
                            "not finite\\)( in step [0-9]+)?; "));
  EXPECT_THAT(message, HasSubstr("--black-op m2"));
  ExpectTaken(text, message);
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

// The gradients are finite, but not their norm; then they are not either. The
// gradient is that of h2, over a3 and a4.
TEST(NonFiniteGradients, AreNamed) {
  for (const bool finite : {true, false}) {
    const std::string text =
        Chain({"1", finite ? "1e-25" : "1e-30", finite ? "1e15" : "1e20",
               finite ? "1e10" : "1e20"},
              {"1", "0", "0", "0"});
    for (const int ranks : {1, 2}) {
      const auto model = CompileText(text, kStrategy, {"amp.level=O0"});
      ASSERT_TRUE(model.ok()) << model.status();
      const TrainConfig config = ConfigOf(*model, "synthetic:64", NewOut());
      const Trained trained = TrainOn(*model, config, ranks);
      const std::string message(trained.status.message());
      EXPECT_EQ(ExitCodeOf(trained.status), ExitCode::kDiverged) << message;
      EXPECT_THAT(message, Not(HasSubstr("@found_inf")));
      const std::vector<Json> skips = Events(config.out, "skip");
      ASSERT_FALSE(skips.empty());
      const std::string first_bad = skips[0]["first_bad"];
      if (finite) {
        const char* const says =
            "the gradients' norm overflows f32, for the most part by [ab][12]"
            ".grad";
        EXPECT_THAT(message, ContainsRegex(absl::StrCat("; ", says, "; ")));
        EXPECT_THAT(first_bad, ContainsRegex(absl::StrCat("^", says, "$")));
        EXPECT_THAT(message, Not(HasSubstr("first bad")));
        EXPECT_THAT(message, Not(HasSubstr("first non-finite")));
      } else {
        EXPECT_THAT(message, ContainsRegex("; first non-finite op: [^;]*"
                                           "\\(backward of m3\\)"
                                           "( in step [0-9]+)?; "));
        EXPECT_THAT(first_bad, ContainsRegex("^[ab][12].grad has (inf|nan)$"));
      }
    }
  }
}

// The loss is inf, and no gradient is: that of a sum is 1, however large it is.
TEST(LossNotFinite, OfStepsThatAreAppliedIsNoticed) {
  std::string text =
      "name: \"l\" format: 1\n"
      "feed { name: \"x\" dtype: F32 dims: [-1, 10] }\n"
      "feed { name: \"label\" dtype: I64 dims: [-1] }\n";
  text +=
      Param("w", "10", "constant: 1") + Param("huge", "10", "constant: 3e38");
  text += Binary("elementwise_mul", "x", "w", "y");
  text += Add("y", "huge", "z");
  text += Op("reduce_sum", {{"X", "z"}}, "Out", "rows",
             "attr { name: \"dim\" ints: [1] }");
  text += Unary("mean", "rows", "loss");
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
    // A run of two steps ends no better.
    TrainConfig brief = config;
    brief.data = "synthetic:32";
    brief.strategy.mutable_train()->set_epochs(1);
    brief.out += "/brief";
    const Trained two = TrainOn(*model, brief, ranks);
    EXPECT_EQ(ExitCodeOf(two.status), ExitCode::kDiverged) << two.status;
    EXPECT_THAT(std::string(two.status.message()),
                AllOf(HasSubstr("the run ended, and the loss was not finite in "
                                "any of 2 steps; loss inf"),
                      HasSubstr("first non-finite op: rows")));
    EXPECT_EQ(Summary(brief.out)["exit"], 5);
    EXPECT_EQ(Summary(brief.out)["steps_applied"], 2);
    // Whoever wants it so.
    config.strategy.mutable_train()->mutable_stop_rule()->set_loss_not_finite(
        0);
    config.out += "/off";
    EXPECT_TRUE(TrainOn(*model, config, ranks).status.ok());
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
