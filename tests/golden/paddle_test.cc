// Decisions and casts held against those of PaddlePaddle 2.6.2 on its own
// programs, with its op lists: op for op and cast for cast, not by counts.
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/io/model_printer.h"
#include "graph/schema/op_registry.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/testing/kernels.h"
#include "tests/golden/paddle_program.h"

namespace halftone {
namespace {

using nlohmann::json;
using passes::Override;

absl::StatusOr<CompiledModel> CompilePaddle(const ModelFile& source,
                                            const proto::OpLists& lists,
                                            std::vector<Override> overrides) {
  passes::StrategyFile strategy;
  strategy.strategy.mutable_amp()->set_op_lists("recorded");
  strategy.op_lists = lists;
  overrides.push_back({"amp.level", "O1", "--set"});
  overrides.push_back({"optimizer.momentum.momentum", "0.9", "--set"});
  HT_ASSIGN_OR_RETURN(const passes::Options options,
                      passes::ResolveOptions(strategy, overrides));
  return passes::Compile(source, options, passes::AllKernels(),
                         {.verify_each = true});
}

// Ops that a net needs and that we may not have yet.
bool HasOps(const std::vector<std::string>& types) {
  for (const std::string& type : types) {
    if (Ops().Find(type) == nullptr) return false;
  }
  return true;
}
// Of the nets with an embedding.
bool HasOpsOf(const std::string& net) {
  if (net == "tied_embedding") return HasOps({"lookup_table_v2"});
  if (net != "transformer") return true;
  return HasOps({"lookup_table_v2", "layer_norm"}) &&
         Ops().Find("slice")->FindInput("Input") >= 0;
}

// What the report says, in Paddle's words.
PaddleDecisions Reported(const CompiledModel& model) {
  const std::map<std::string, std::string> words = {{"f32", "float32"},
                                                    {"f16", "float16"}};
  PaddleDecisions decisions;
  for (const proto::OpRow& op : model.ops.all()) {
    if (op.role() != "forward") continue;
    decisions.precisions[op.name()] = words.at(op.precision());
  }
  for (const proto::CastRow& cast : model.casts.all()) {
    if (cast.role() != "forward") continue;
    for (const std::string& reader : cast.for_op()) {
      decisions.casts.insert({cast.value(), words.at(cast.to()), reader});
    }
  }
  return decisions;
}

struct Case {
  const char* net;
  const char* rule;
  const char* variant;
  int training_casts = 0;  // as Paddle has them, gradients included
};

class PaddleTest : public testing::TestWithParam<Case> {};

TEST_P(PaddleTest, SameDecisionsAndCasts) {
  const Case& c = GetParam();
  if (!HasOpsOf(c.net)) GTEST_SKIP() << c.net << " has ops that we lack";
  const auto rewritten = ReadPaddle(absl::StrCat(c.net, ".", c.variant));
  ASSERT_TRUE(rewritten.ok()) << rewritten.status();
  const auto source =
      ImportPaddle(absl::StrCat(c.net, ".fwd"), (*rewritten)["loss"]);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto model = CompilePaddle(source->model, PaddleOpLists(*rewritten),
                                   {{"amp.precision_rule", c.rule, "--set"}});
  ASSERT_TRUE(model.ok()) << model.status();
  const PaddleDecisions expected = DecisionsOf(*rewritten);
  const PaddleDecisions found = Reported(*model);
  EXPECT_EQ(found.precisions, expected.precisions);
  EXPECT_EQ(found.casts, expected.casts);
  if (c.training_casts > 0) {
    EXPECT_EQ(model->casts.size(), c.training_casts);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Nets, PaddleTest,
    testing::Values(Case{"mnist_convnet", "all_low", "fwd_o1_fp16", 19},
                    Case{"mnist_convnet", "any_low", "fwd_o1_classic", 19},
                    Case{"mlp", "all_low", "fwd_o1_fp16", 15},
                    Case{"mlp", "any_low", "fwd_o1_classic", 15},
                    Case{"resnet50", "all_low", "fwd_o1_fp16", 117},
                    Case{"resnet50", "any_low", "fwd_o1_classic", 117},
                    Case{"tied_embedding", "all_low", "fwd_o1_fp16"},
                    Case{"tied_embedding", "any_low", "fwd_o1_classic"},
                    Case{"transformer", "any_low", "fwd_o1_classic"}),
    [](const auto& info) {
      return absl::StrCat(info.param.net, "_", info.param.rule);
    });

json JsonOf(const proto::Attribute& attr) {
  if (attr.has_i()) return attr.i();
  if (attr.has_b()) return attr.b();
  if (attr.has_s()) return attr.s();
  if (attr.has_f()) return static_cast<float>(attr.f());
  return std::vector<int64_t>(attr.ints().begin(), attr.ints().end());
}

// What the JSON of a program says, op for op; attributes as far as we keep
// them.
void ExpectSameProgram(const proto::Model& model, const json& paddle) {
  ASSERT_EQ(model.op_size(), static_cast<int>(paddle["ops"].size()));
  for (int i = 0; i < model.op_size(); ++i) {
    const proto::OpNode& node = model.op(i);
    const json& op = paddle["ops"][i];
    SCOPED_TRACE(absl::StrCat("op ", i));
    EXPECT_EQ(node.type(), op["type"]);
    EXPECT_EQ(node.in_size(), static_cast<int>(op["inputs"].size()));
    for (const proto::SlotVars& in : node.in()) {
      const std::vector<std::string> vars(in.var().begin(), in.var().end());
      EXPECT_EQ(json(vars), op["inputs"][in.slot()]);
    }
    for (const proto::SlotVars& out : node.out()) {
      const std::vector<std::string> vars(out.var().begin(), out.var().end());
      EXPECT_EQ(json(vars), op["outputs"][out.slot()]);
    }
    for (const proto::Attribute& attr : node.attr()) {
      if (attr.name() == "infer_flags") continue;  // the JSON leaves it out
      const std::string name =
          attr.name() == "p" ? "dropout_prob" : attr.name();
      const json& value = op["attrs"][name];
      EXPECT_EQ(JsonOf(attr), value) << name;
    }
  }
  for (const auto* all : {&model.param(), &model.stat()}) {
    for (const proto::Parameter& param : *all) {
      const json& var = paddle["vars"][param.name()];
      EXPECT_EQ(var["stop_gradient"], all == &model.stat()) << param.name();
      const std::vector<int64_t> dims(param.dims().begin(), param.dims().end());
      EXPECT_EQ(json(dims), var["shape"]) << param.name();
    }
  }
  std::vector<std::string> feeds;
  for (const proto::Feed& feed : model.feed()) feeds.push_back(feed.name());
  EXPECT_EQ(json(feeds), paddle["feeds"]);
}

class ImportedNetTest : public testing::TestWithParam<const char*> {};

TEST_P(ImportedNetTest, IsWhatTheJsonSays) {
  const std::string net = GetParam();
  if (!HasOpsOf(net)) GTEST_SKIP() << net << " has ops that we lack";
  const auto paddle = ReadPaddle(net + ".fwd_fp32");
  ASSERT_TRUE(paddle.ok()) << paddle.status();
  const auto forward = ImportPaddle(net + ".fwd", (*paddle)["loss"]);
  ASSERT_TRUE(forward.ok()) << forward.status();
  ExpectSameProgram(*forward->model.model, *paddle);
  // The training program, stripped, is the forward one, loss and all.
  const auto train = ImportPaddle(net + ".train", "");
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ(train->loss_from, "op role 256");
  EXPECT_GT(train->left_out.at("backward"), 0);
  EXPECT_EQ(train->left_out.at("optimizer"), train->model.model->param_size());
  proto::Model expected = *forward->model.model;
  expected.set_name(train->model.model->name());
  EXPECT_EQ(PrintModel(*train->model.model), PrintModel(expected));
}

INSTANTIATE_TEST_SUITE_P(Nets, ImportedNetTest,
                         testing::Values("mnist_convnet", "mlp", "resnet50",
                                         "tied_embedding", "transformer"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

TEST(PaddleListsTest, BuiltInOnesAreTheRecorded) {
  const auto recorded = ReadPaddle("mlp.fwd_o1_fp16");
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  const auto options = passes::ResolveOptions(
      passes::StrategyFile{}, {{"amp.op_lists", "paddle", "--set"}});
  ASSERT_TRUE(options.ok()) << options.status();
  const auto sorted = [](const auto& names) {
    return std::set<std::string>(names.begin(), names.end());
  };
  const proto::OpLists lists = PaddleOpLists(*recorded);
  EXPECT_EQ(sorted(options->op_lists.white()), sorted(lists.white()));
  EXPECT_EQ(sorted(options->op_lists.black()), sorted(lists.black()));
  EXPECT_EQ(sorted(options->op_lists.gray()), sorted(lists.gray()));
}

// The published statistics of Paddle's O1 on one convolution and one linear
// layer: 5 casts of f16 values and 6 of f32 ones in the training program;
// conv2d, matmul, relu once and elementwise_add twice in f16, the reshape of
// the bias, softmax and the mean in f32. Its 2.6 differs in that reshape.
constexpr char kOneLayerEach[] = R"(
feed { name: "image" dims: [-1, 1, 28, 28] }
param { name: "conv.w" dims: [6, 1, 3, 3] init { constant: 1 } }
param { name: "conv.b" dims: [6] init { constant: 0 } }
param { name: "linear.w" dims: [26, 10] init { constant: 1 } }
param { name: "linear.b" dims: [10] init { constant: 0 } }
op { type: "conv2d" in { slot: "Input" var: "image" } in { slot: "Filter" var: "conv.w" } out { slot: "Output" var: "conv" } }
op { type: "reshape2" in { slot: "X" var: "conv.b" } out { slot: "Out" var: "row" } attr { name: "shape" ints: [1, 6, 1, 1] } }
op { type: "elementwise_add" in { slot: "X" var: "conv" } in { slot: "Y" var: "row" } out { slot: "Out" var: "add" } }
op { type: "relu" in { slot: "X" var: "add" } out { slot: "Out" var: "relu" } }
op { type: "matmul_v2" in { slot: "X" var: "relu" } in { slot: "Y" var: "linear.w" } out { slot: "Out" var: "linear" } }
op { type: "elementwise_add" in { slot: "X" var: "linear" } in { slot: "Y" var: "linear.b" } out { slot: "Out" var: "logits" } }
op { type: "softmax" in { slot: "X" var: "logits" } out { slot: "Out" var: "softmax" } }
op { type: "reduce_mean" in { slot: "X" var: "softmax" } out { slot: "Out" var: "loss" } attr { name: "reduce_all" b: true } }
loss { var: "loss" mean_over: "softmax" }
)";

void ExpectPublished(const std::string& rule, const std::string& lists,
                     const std::string& bias_reshape) {
  SCOPED_TRACE(absl::StrCat(rule, " ", lists));
  const auto source = ParseModel(kOneLayerEach, "one_layer_each.pbtxt");
  ASSERT_TRUE(source.ok()) << source.status();
  std::vector<Override> overrides = {{"amp.level", "O1", "--set"},
                                     {"amp.precision_rule", rule, "--set"},
                                     {"optimizer.adamw", "", "--set"}};
  if (!lists.empty()) overrides.push_back({"amp.op_lists", lists, "--set"});
  const auto options =
      passes::ResolveOptions(passes::StrategyFile{}, overrides);
  ASSERT_TRUE(options.ok()) << options.status();
  const auto model = passes::Compile(*source, *options, passes::AllKernels(),
                                     {.verify_each = true});
  ASSERT_TRUE(model.ok()) << model.status();
  std::map<std::string, int> casts;
  for (const proto::CastRow& row : model->casts.all()) ++casts[row.from()];
  EXPECT_EQ(casts["f16"], 5);
  EXPECT_EQ(casts["f32"], 6);
  std::map<std::string, std::string> precisions;
  for (const proto::OpRow& row : model->ops.all()) {
    if (row.role() == "forward") precisions[row.name()] = row.precision();
  }
  const std::map<std::string, std::string> expected = {
      {"conv", "f16"},    {"row", bias_reshape}, {"add", "f16"},
      {"relu", "f16"},    {"linear", "f16"},     {"logits", "f16"},
      {"softmax", "f32"}, {"loss", "f32"}};
  EXPECT_EQ(precisions, expected);
}

TEST(PaddleStatisticsTest, OneLayerEach) {
  ExpectPublished("any_low", "paddle", "f32");
  ExpectPublished("all_low", "paddle", "f16");
  ExpectPublished("any_low", "", "f32");
  ExpectPublished("all_low", "", "f16");
}

}  // namespace
}  // namespace halftone
