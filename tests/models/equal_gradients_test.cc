// Parameters whose gradients are equal share one reduction, and each has its
// own update: the same bits as when nothing is shared.
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "gtest/gtest.h"
#include "tests/models/model_text.h"
#include "tests/models/training.h"
#include "tests/support/run_steps.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kHead[] = R"(name: "equal"  format: 1
feed { name: "x" dtype: F32 dims: [-1, 6] }
feed { name: "image" dtype: F32 dims: [-1, 2, 5, 5] }
feed { name: "label" dtype: I64 dims: [-1] }
)";

// Multiplies by 1: a value of its own with the same bits, also in its
// gradient, so that what reads it is equal to nothing.
std::string Own(const std::string& x) { return Unary("scale", x, x + ".own"); }

struct Case {
  const char* name;
  std::string params;
  // The second branch reads x$, which is x or x.own.
  std::string ops;
  int gradients, members;  // before and after sharing
};

std::vector<Case> Cases() {
  return {
      {"Products", Param("w1", "6, 4") + Param("w2", "6, 4"),
       Matmul("x", "w1", "", "h1") + Own("x") + Matmul("x$", "w2", "", "h2") +
           Add("h1", "h2", "logits"),
       2, 1},
      {"BiasedProducts",
       Param("w1", "6, 4") + Param("w2", "6, 4") + Param("b1", "4") +
           Param("b2", "4"),
       Matmul("x", "w1", "b1", "h1") + Own("x") +
           Matmul("x$", "w2", "b2", "h2") + Add("h1", "h2", "logits"),
       4, 2},
      {"Scales", Param("w1", "6") + Param("w2", "6"),
       Binary("elementwise_mul", "x", "w1", "h1") + Own("x") +
           Binary("elementwise_mul", "x$", "w2", "h2") +
           Add("h1", "h2", "logits"),
       2, 1},
      {"SumOfParameters",
       Param("w1", "6, 4") + Param("w2", "6, 4") + Param("w3", "6, 4"),
       Own("x") + Add("w1", "w2", "w12") + Add("w12", "w3", "w") +
           Matmul("x", "w", "", "logits"),
       3, 1},
      {"Convolutions",
       Param("w1", "3, 2, 3, 3") + Param("w2", "3, 2, 3, 3") +
           Param("b1", "3") + Param("b2", "3") + Param("w", "75, 4") +
           Param("b", "4"),
       Conv("image", "w1", "b1", "c1") + Own("image") +
           Conv("image$", "w2", "b2", "c2") + Add("c1", "c2", "c") +
           Unary("flatten", "c", "flat") + Matmul("flat", "w", "b", "logits"),
       6, 4},
      // A projection shortcut: other filters, equal bias gradients.
      {"Shortcut",
       Param("w1", "6, 4") + Param("w2", "4, 4") + Param("w3", "6, 4") +
           Param("b1", "4") + Param("b2", "4") + Param("b3", "4"),
       Own("x") + Matmul("x", "w1", "b1", "h1") + Unary("relu", "h1", "r1") +
           Matmul("r1", "w2", "b2", "h2") + Matmul("x", "w3", "b3", "h3") +
           Add("h2", "h3", "logits"),
       6, 5},
      // Two towers whose first weights are tied.
      {"TiedTowers",
       Param("w", "6, 5") + Param("v1", "5, 4") + Param("v2", "5, 4"),
       Matmul("x", "w", "", "t1") + Own("x") + Matmul("x$", "w", "", "t2") +
           Matmul("t1", "v1", "", "h1") + Matmul("t2", "v2", "", "h2") +
           Add("h1", "h2", "logits"),
       3, 2},
      // Two parameters, each used twice: each adds up its two gradients, which
      // are the other's.
      {"TiedTwice", Param("w", "6, 4") + Param("v", "6, 4"),
       Matmul("x", "w", "", "h1") + Matmul("x", "w", "", "h2") + Own("x") +
           Matmul("x$", "v", "", "h3") + Matmul("x$", "v", "", "h4") +
           Add("h1", "h2", "h12") + Add("h3", "h4", "h34") +
           Add("h12", "h34", "logits"),
       2, 1},
      // One of w's two gradients is v's: it is added up and reduced by itself.
      {"TiedAndPart",
       Param("w", "6, 6") + Param("v", "6, 6") + Param("u", "6, 4"),
       Matmul("x", "w", "", "h1") + Own("x") + Matmul("x$", "v", "", "h2") +
           Add("h1", "h2", "s") + Matmul("s", "w", "", "t") +
           Matmul("t", "u", "", "logits"),
       3, 3},
      // All of it at once: w is used twice, w.grad = v.grad + r.grad, and r's
      // and q's are equal.
      {"TiedAndEqual",
       Param("w", "6, 6") + Param("v", "6, 6") + Param("r", "6, 6") +
           Param("q", "6, 6") + Param("u", "6, 4"),
       Matmul("x", "w", "", "h1") + Own("x") + Matmul("x$", "v", "", "h2") +
           Add("h1", "h2", "s") + Matmul("s", "w", "", "t1") +
           Matmul("s", "r", "", "t2") + Own("s") + Matmul("s$", "q", "", "t3") +
           Add("t1", "t2", "t12") + Add("t12", "t3", "t") +
           Matmul("t", "u", "", "logits"),
       5, 4},
  };
}

std::string Model(const Case& c, bool own) {
  return absl::StrCat(kHead, c.params,
                      absl::StrReplaceAll(c.ops, {{"$", own ? ".own" : ""}}),
                      CrossEntropy());
}

struct Setting {
  const char* level;
  const char* dtype;
  const char* optimizer;
  const char* more;  // of the strategy
  int ranks;
};

constexpr Setting kSettings[] = {
    {"O0", "fp16", "sgd { weight_decay: 0.01 }", "", 1},
    {"O0", "fp16", "momentum {}", "dist { fuse_all_reduce_ops: false }", 2},
    {"O1", "fp16", "adam {}", "", 2},
    {"O1", "bf16", "adamw { weight_decay: 0.1 }",
     "dist { fuse_grad_size_in_MB: 0.00001 first_bucket_size_in_MB: 0.00001 }",
     2},
    {"O2", "fp16", "momentum { use_nesterov: true }", "", 1},
    {"O2", "bf16", "sgd {}", "dist { fuse_all_reduce_ops: false }", 1},
    {"O3", "bf16", "momentum {}", "", 2},
};

std::string Strategy(const Setting& s, bool clip) {
  return absl::StrCat(
      "amp { level: \"", s.level, "\" dtype: \"", s.dtype,
      "\" loss_scaling { use_dynamic_loss_scaling: false "
      "init_loss_scaling: 64 } }\noptimizer { ",
      s.optimizer, clip ? " clip { global_norm: 0.05 }" : "", " }\n", s.more,
      "\nlr { base: 0.1 constant: true }\ntrain { batch_size: 6 }\n");
}

int Members(const Program& program) {
  int members = 0;
  const Entry& train = *program.FindEntry(kTrainEntry);
  for (const OpId id : train.block().ops()) {
    const halftone::Op& op = train.block().op(id);
    if (op.schema->name() == "all_reduce" &&
        AttrAs<std::string>(op, "of") == "gradient") {
      members += static_cast<int>(op.inputs.all().size());
    }
  }
  return members;
}

StepsResult MustRun(const CompiledModel& model, int ranks) {
  StepsSpec spec;
  spec.ranks = ranks;
  spec.batch = 6;
  spec.steps = 4;
  spec.data = "synthetic:12";
  spec.learning_rate = 0.1f;
  auto result = RunSteps(*model.program, spec);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : StepsResult();
}

class EqualGradients : public ::testing::TestWithParam<int> {};

TEST_P(EqualGradients, AreReducedOnceAndUpdateEachTheirOwn) {
  const Case c = Cases()[GetParam()];
  for (const Setting& setting : kSettings) {
    for (const bool clip : {false, true}) {
      SCOPED_TRACE(absl::StrCat(setting.level, " ", setting.dtype, " ",
                                setting.optimizer, clip ? " clip" : ""));
      const std::string strategy = Strategy(setting, clip);
      const auto shared = CompileText(Model(c, false), strategy);
      const auto apart = CompileText(Model(c, true), strategy);
      ASSERT_TRUE(shared.ok()) << shared.status();
      ASSERT_TRUE(apart.ok()) << apart.status();
      EXPECT_EQ(Members(*shared->program), c.members);
      const StepsResult a = MustRun(*shared, setting.ranks);
      const StepsResult b = MustRun(*apart, setting.ranks);
      EXPECT_EQ(a.losses, b.losses);
      EXPECT_TRUE(std::isfinite(a.losses.back()));
      EXPECT_LT(a.losses.back(), a.losses.front() + 1);
      for (const auto& [name, bytes] : a.cells[0]) {
        EXPECT_TRUE(bytes == b.cells[0].at(name)) << name;
        EXPECT_TRUE(bytes == a.cells.back().at(name)) << name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EqualGradients, ::testing::Range(0, 10),
                         [](const ::testing::TestParamInfo<int>& info) {
                           return std::string(Cases()[info.param].name);
                         });

// Two metrics that count the same are one member of the totals.
TEST(EqualTotals, AreReducedOnce) {
  const Case c = Cases()[0];
  const std::string model =
      Model(c, false) +
      Op("correct_count", {{"X", "logits"}, {"Label", "label"}}, "Out",
         "correct2") +
      "metric { name: \"again\" var: \"correct2\" over: \"ce\" }\n";
  const auto compiled = CompileText(model, Strategy(kSettings[0], false));
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  TrainConfig config = ConfigOf(*compiled, "synthetic:12", FreshDirectory());
  for (const int ranks : {1, 2}) {
    config.out = absl::StrCat(FreshDirectory(), ranks);
    const Trained trained = TrainOn(*compiled, config, ranks);
    ASSERT_TRUE(trained.status.ok()) << trained.status;
    const Json metrics = Summary(config.out)["metrics"];
    EXPECT_EQ(metrics["top1"], metrics["again"]);
    EXPECT_GT(metrics["top1"]["total"], 0);
  }
}

// ---- Random programs over vectors: they compile and run at any level, and
// buckets change no bit.

class RandomModel {
 public:
  explicit RandomModel(int seed) : random_(seed) {}

  std::string Make() {
    std::string params, ops;
    std::vector<std::string> values = {"x"};
    const int parameters = 2 + Below(4);
    for (int i = 0; i < parameters; ++i) {
      params += Param(absl::StrCat("w", i), "6, 6");
      params += Param(absl::StrCat("b", i), "6");
    }
    const auto any = [&] { return values[Below(values.size())]; };
    const auto name = [&](const char* kind) {
      return absl::StrCat(kind, Below(parameters));
    };
    for (int i = 0; i < 4 + Below(8); ++i) {
      const std::string out = absl::StrCat("v", i);
      switch (Below(6)) {
        case 0:
          ops += Matmul(any(), name("w"), "", out);
          break;
        case 1:
          ops += Matmul(any(), name("w"), name("b"), out);
          break;
        case 2:
          ops += Add(any(), name("b"), out);
          break;
        case 3:
          ops += Add(any(), any(), out);
          break;
        case 4:
          ops += Binary("elementwise_sub", any(), name("b"), out);
          break;
        case 5:
          ops += Unary(Below(2) == 0 ? "tanh" : "relu", any(), out);
          break;
      }
      values.push_back(out);
    }
    // All that was made is used.
    std::string sum = values[1];
    for (size_t i = 2; i < values.size(); ++i) {
      const std::string next = absl::StrCat("s", i);
      ops += Add(sum, values[i], next);
      sum = next;
    }
    ops += Matmul(sum, "w0", "b0", "logits");
    return absl::StrCat(kHead, params, ops, CrossEntropy());
  }

 private:
  int Below(int n) {
    return std::uniform_int_distribution<>(0, n - 1)(random_);
  }
  std::mt19937 random_;
};

TEST(RandomModels, BucketsChangeNoBit) {
  constexpr int kModels = 60;
  int shared = 0;
  for (int seed = 0; seed < kModels; ++seed) {
    const std::string model = RandomModel(seed).Make();
    Setting setting = kSettings[seed % std::size(kSettings)];
    setting.more = "";
    const std::string strategy = Strategy(setting, seed % 2 == 0);
    const auto fused = CompileText(model, strategy);
    const auto single =
        CompileText(model, strategy, {"dist.fuse_all_reduce_ops=false"});
    ASSERT_TRUE(fused.ok()) << seed << ": " << fused.status() << "\n" << model;
    ASSERT_TRUE(single.ok()) << seed << ": " << single.status();
    const StepsResult a = MustRun(*fused, setting.ranks);
    const StepsResult b = MustRun(*single, setting.ranks);
    ASSERT_EQ(a.cells.size(), b.cells.size());
    EXPECT_TRUE(a.cells == b.cells) << seed << "\n" << model;
    int gradients = 0;
    for (const proto::ParamRow& param : fused->report.param()) {
      gradients += param.has_gradient_dtype();
    }
    EXPECT_EQ(Members(*fused->program), Members(*single->program));
    shared += Members(*fused->program) < gradients;
  }
  EXPECT_GT(shared, kModels / 20);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
