#include "graph/import/paddle_import.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/import/paddle_import_testing.h"
#include "graph/io/model_printer.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using paddle_testing::Import;
using paddle_testing::Op;
using paddle_testing::Param;
using paddle_testing::ProgramOf;
using paddle_testing::Text;
using paddle_testing::Var;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string& Mlp() {
  static const std::string& text = *new std::string(absl::StrCat(
      Var("x", "-1, 4", "need_check_feed: true"),
      Var("unread", "-1", "need_check_feed: true"), Param("w", "4, 3"),
      Var("h", "-1, 3"), Var("loss", ""),
      Op("matmul_v2", {"X:x", "Y:w"}, {"Out:h"},
         "attrs { name: 'op_callstack' type: STRINGS strings: 'a.py' } "),
      Op("mean", {"X:h"}, {"Out:loss"}, "", 256)));
  return text;
}

TEST(PaddleImportTest, ForwardPartWithLossOfRole256) {
  const auto imported = Import(absl::StrCat(
      Mlp(), Op("fill_constant", {}, {"Out:loss@GRAD"}, "", 257),
      Op("mean_grad", {"Out@GRAD:loss@GRAD"}, {"X@GRAD:h@GRAD"}, "", 1),
      Op("sgd", {"Param:w"}, {"ParamOut:w"}, "", 2),
      Op("increment", {"X:lr"}, {"Out:lr"}, "", 16)));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(PrintModel(*imported->model.model), R"(name: "net"  format: 1
feed { name: "x" dtype: F32 dims: [-1, 4] }
param { name: "w" dims: [4, 3] init { xavier_uniform { } } }
op { type: "matmul_v2" in { slot: "X" var: "x" } in { slot: "Y" var: "w" } out { slot: "Out" var: "h" } }
op { type: "mean" in { slot: "X" var: "h" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "h" }
)");
  EXPECT_THAT(imported->left_out, ElementsAre(std::make_pair("backward", 2),
                                              std::make_pair("lr schedule", 1),
                                              std::make_pair("optimizer", 1)));
  EXPECT_EQ(imported->from, "paddle 2.6.2");
  EXPECT_EQ(imported->loss_from, "op role 256");
  EXPECT_THAT(imported->unread_feeds, ElementsAre("unread"));
}

// A mean over labels that may be ignored is a quotient of two sums.
TEST(PaddleImportTest, LikelihoodsAreReducedByOps) {
  const auto block = [](const std::string& reduction) {
    return absl::StrCat(
        Var("x", "-1, 4"), Var("l", "-1", "", "INT64"), Var("loss", ""),
        Op("nll_loss", {"X:x", "Label:l"}, {"Out:loss", "Total_weight:t"},
           absl::StrCat("attrs { name: 'reduction' type: STRING s: '",
                        reduction, "' } "),
           256));
  };
  const std::string sum = Text(block("sum"));
  EXPECT_THAT(sum, HasSubstr(R"(out { slot: "Out" var: "loss.rows" })"));
  EXPECT_THAT(
      sum,
      HasSubstr(
          R"(type: "reduce_sum" in { slot: "X" var: "loss.rows" } out { slot: "Out" var: "loss" })"));
  const std::string mean = Text(block("mean"));
  EXPECT_THAT(
      mean,
      AllOf(
          HasSubstr(R"(in { slot: "X" var: "loss.minus_one" })"),
          HasSubstr(
              R"(type: "elementwise_div" in { slot: "X" var: "loss.sum" } in { slot: "Y" var: "loss.weight" })"),
          HasSubstr(
              R"(loss { var: "loss" mean_over: "loss.rows" mask: "loss.weights" })")));
}

TEST(PaddleImportTest, VariablesThatAreWrittenAgainGetNames) {
  const std::string text = Text(absl::StrCat(
      Var("x", "-1, 4"), Var("y", "-1, 4"), Op("relu", {"X:x"}, {"Out:x"}),
      Op("relu", {"X:x"}, {"Out:y"}), Op("tanh", {"X:y"}, {"Out:y"}),
      Op("relu", {"X:y"}, {"Out:x"})));
  EXPECT_THAT(
      text,
      HasSubstr(R"(in { slot: "X" var: "x" } out { slot: "Out" var: "x.1" })"));
  EXPECT_THAT(
      text,
      HasSubstr(R"(in { slot: "X" var: "x.1" } out { slot: "Out" var: "y" })"));
  EXPECT_THAT(
      text,
      HasSubstr(R"(in { slot: "X" var: "y" } out { slot: "Out" var: "y.1" })"));
  EXPECT_THAT(
      text,
      HasSubstr(
          R"(in { slot: "X" var: "y.1" } out { slot: "Out" var: "x.2" })"));
  EXPECT_THAT(text, HasSubstr(R"(output: "x.2")"));
}

TEST(PaddleImportTest, FetchedValuesAreTheOutputs) {
  const std::string text = Text(absl::StrCat(
      Var("x", "-1, 4"), Op("feed", {"X:feed"}, {"Out:x"}),
      Op("relu", {"X:x"}, {"Out:a"}), Op("tanh", {"X:x"}, {"Out:b"}),
      Op("sqrt", {"X:x"}, {"Out:dead"}),
      Op("fetch", {"X:b"}, {"Out:fetch"},
         "attrs { name: 'col' type: INT i: 1 }"),
      Op("fetch", {"X:a"}, {"Out:fetch"},
         "attrs { name: 'col' type: INT i: 0 }")));
  EXPECT_THAT(text, HasSubstr("output: \"a\"  output: \"b\"\n"));
  EXPECT_THAT(text, Not(HasSubstr("dead")));
}

// With nothing that is fetched and nothing unread: what a loss has of its two
// sides that parameters made.
TEST(PaddleImportTest, WhatALossComparesIsTheOutput) {
  const auto net = [](const std::string& loss) {
    return Text(absl::StrCat(Var("x", "-1, 4"), Var("l", "-1, 1", "", "INT64"),
                             Var("t", "-1, 3"), Param("w", "4, 3"),
                             Var("h", "-1, 3"), Var("e", "-1, 3"),
                             Var("r", "-1, 1"), Var("loss", ""),
                             Op("matmul_v2", {"X:x", "Y:w"}, {"Out:h"}), loss));
  };
  const std::string output = "output: \"h\"\n";
  EXPECT_THAT(net(Op("softmax_with_cross_entropy", {"Logits:h", "Label:l"},
                     {"Loss:r", "Softmax:s"}) +
                  Op("mean", {"X:r"}, {"Out:loss"}, "", 256)),
              HasSubstr(output));
  for (const auto& [x, y] : {std::pair("h", "t"), std::pair("t", "h")}) {
    EXPECT_THAT(
        net(Op("elementwise_sub",
               {absl::StrCat("X:", x), absl::StrCat("Y:", y)}, {"Out:e"}) +
            Op("square", {"X:e"}, {"Out:r"}) +
            Op("mean", {"X:r"}, {"Out:loss"}, "", 256)),
        HasSubstr(output));
  }
  // Of an op that compares nothing with labels it is not said.
  EXPECT_THAT(net(Op("square", {"X:h"}, {"Out:r"}) +
                  Op("mean", {"X:r"}, {"Out:loss"}, "", 256)),
              AllOf(HasSubstr("loss {"), Not(HasSubstr("output:"))));
}

// Saved in a test's form they use the statistics that were counted before, and
// ours that trains counts anew; fixed in training is what ours does not have.
TEST(PaddleImportTest, NormsOfATestTrain) {
  const auto norm = [](const char* is_test) {
    return Text(absl::StrCat(
        Var("x", "-1, 2, 4, 4"), Var("y", "-1, 2, 4, 4"), Param("s", "2"),
        Param("b", "2"), Var("m", "2", "persistable: true"),
        Var("v", "2", "persistable: true"),
        Op("batch_norm", {"X:x", "Scale:s", "Bias:b", "Mean:m", "Variance:v"},
           {"Y:y", "MeanOut:m", "VarianceOut:v"},
           absl::StrCat(
               "attrs { name: 'use_global_stats' type: BOOLEAN b: true } "
               "attrs { name: 'is_test' type: BOOLEAN b: ",
               is_test, " }"))));
  };
  EXPECT_THAT(norm("true"), HasSubstr(R"(out { slot: "Y" var: "y" } })"));
  EXPECT_THAT(norm("false"),
              HasSubstr("attribute use_global_stats = true is not taken"));
}

TEST(PaddleImportTest, NormsHaveStatistics) {
  const std::string text = Text(absl::StrCat(
      Var("x", "-1, 2, 4, 4"), Param("s", "2"), Param("b", "2"),
      Var("m", "2", "persistable: true is_parameter: true stop_gradient: true"),
      Var("v", "2", "persistable: true is_parameter: true stop_gradient: true"),
      Op("batch_norm", {"X:x", "Scale:s", "Bias:b", "Mean:m", "Variance:v"},
         {"Y:y", "MeanOut:m", "VarianceOut:v", "SavedMean:t",
          "SavedVariance:u"},
         "attrs { name: 'epsilon' type: FLOAT f: 0.001 } "
         "attrs { name: 'is_test' type: BOOLEAN b: true } "
         "attrs { name: 'data_layout' type: STRING s: 'NCHW' }")));
  EXPECT_THAT(
      text,
      AllOf(HasSubstr(R"(param { name: "s" dims: [2] init { constant: 1 } })"),
            HasSubstr(R"(param { name: "b" dims: [2] init { constant: 0 } })"),
            HasSubstr(R"(stat { name: "m" dims: [2] init { constant: 0 } })"),
            HasSubstr(R"(stat { name: "v" dims: [2] init { constant: 1 } })"),
            HasSubstr(R"(attr { name: "epsilon" f: 0.001 } })")));
}

TEST(PaddleImportTest, StartupProgramGivesInitialisers) {
  const paddle::ProgramDesc startup =
      ProgramOf(Op("gaussian_random", {}, {"Out:w"},
                   "attrs { name: 'mean' type: FLOAT f: 0 } "
                   "attrs { name: 'std' type: FLOAT f: 0.1 }"));
  PaddleOptions options;
  options.startup = &startup;
  EXPECT_THAT(Text(Mlp(), options), HasSubstr("normal { mean: 0 std: 0.1 }"));
  options.startup = nullptr;
  EXPECT_THAT(Text(Mlp(), options), HasSubstr("xavier_uniform { }"));
}

// What Paddle has in one op, or in another.
TEST(PaddleImportTest, OpsThatDiffer) {
  const std::string x = Var("x", "-1, 3, 9, 9") + Param("f", "4, 3, 3, 3");
  const std::string string = "type: STRING s: ";
  EXPECT_THAT(
      Text(x + Op("dropout", {"X:x"}, {"Out:y", "Mask:m"},
                  "attrs { name: 'dropout_prob' type: FLOAT f: 0.2 }")),
      AllOf(
          HasSubstr(
              R"(out { slot: "Out" var: "y.upscaled" } attr { name: "p" f: 0.2 } })"),
          HasSubstr(
              R"(type: "scale" in { slot: "X" var: "y.upscaled" } out { slot: "Out" var: "y" })"),
          HasSubstr(R"(attr { name: "scale" f: 0.8 })")));
  EXPECT_THAT(Text(Var("q", "-1, 8, 2, 16") + Var("m", "-1, 1, 8, 8") +
                   Op("flash_attn", {"q:q", "k:q", "v:q", "attn_mask:m"},
                      {"out:y", "softmax:p", "softmax_lse:l", "seed_offset:o"},
                      "attrs { name: 'dropout' type: FLOAT f: 0.5 } "
                      "attrs { name: 'causal' type: BOOLEAN b: true } "
                      "attrs { name: 'return_softmax' type: BOOLEAN b: false } "
                      "attrs { name: 'rng_name' " +
                          string + "'' }")),
              AllOf(HasSubstr(R"(in { slot: "V" var: "q" })"),
                    HasSubstr(R"(in { slot: "Mask" var: "m" })"
                              R"( out { slot: "Out" var: "y" })"),
                    HasSubstr(R"(attr { name: "dropout_prob" f: 0.5 })"),
                    HasSubstr(R"(attr { name: "causal" b: true })")));
  EXPECT_THAT(Text(x + Op("cast", {"X:x"}, {"Out:y"},
                          "attrs { name: 'in_dtype' type: INT i: 5 } "
                          "attrs { name: 'out_dtype' type: INT i: 3 }")),
              HasSubstr(R"(attr { name: "to" s: "i64" })"));
  EXPECT_THAT(Text(x + Op("conv2d", {"Input:x", "Filter:f"}, {"Output:y"},
                          "attrs { name: 'strides' type: INTS ints: [2, 2] } "
                          "attrs { name: 'padding_algorithm' " +
                              string + "'SAME' }")),
              HasSubstr(R"(attr { name: "paddings" ints: [1, 1, 1, 1] })"));
  EXPECT_THAT(Text(x + Op("pool2d", {"X:x"}, {"Out:y"},
                          "attrs { name: 'ksize' type: INTS ints: [3, 3] } "
                          "attrs { name: 'strides' type: INTS ints: [2, 2] } "
                          "attrs { name: 'ceil_mode' type: BOOLEAN b: true }")),
              HasSubstr(R"(attr { name: "ceil_windows" s: "all" })"));
  EXPECT_THAT(
      Text(x + Op("gelu", {"X:x"}, {"Out:y"},
                  "attrs { name: 'approximate' type: BOOLEAN b: true }")),
      HasSubstr(R"(attr { name: "approximate" s: "tanh" })"));
  const std::string scores = Var("s", "-1, 5") + Var("l", "-1, 1", "", "INT64");
  EXPECT_THAT(
      Text(scores +
           Op("softmax_with_cross_entropy", {"Logits:s", "Label:l"},
              {"Loss:e", "Softmax:p"}) +
           Op("top_k_v2", {"X:p"}, {"Out:best", "Indices:i"},
              "attrs { name: 'k' type: INT i: 2 }") +
           Op("accuracy", {"Out:best", "Indices:i", "Label:l"},
              {"Accuracy:acc", "Correct:c", "Total:t"})),
      AllOf(
          HasSubstr(
              R"(type: "softmax" in { slot: "X" var: "s" } out { slot: "Out" var: "p" })"),
          HasSubstr(R"(out { slot: "Loss" var: "e" })"),
          HasSubstr(R"(metric { name: "top2" var: "acc.count" over: "l" })"),
          Not(HasSubstr("top_k"))));
}

// As Paddle 2.6 writes them: what says nothing to us is taken in silence.
TEST(PaddleImportTest, UpsamplingAndPoolingWithIndices) {
  const std::string x = Var("x", "-1, 4, 9, 9") + Param("f", "4, 3, 2, 2");
  const std::string empty =
      "attrs { name: 'output_padding' type: INTS } "
      "attrs { name: 'output_size' type: INTS } ";
  EXPECT_THAT(
      Text(x +
           Op("conv2d_transpose", {"Input:x", "Filter:f"}, {"Output:y"},
              empty + "attrs { name: 'strides' type: INTS ints: [2, 2] } "
                      "attrs { name: 'padding_algorithm' type: STRING s: "
                      "'SAME' } "
                      "attrs { name: 'fuse_relu' type: BOOLEAN b: false }")),
      AllOf(HasSubstr(R"(type: "conv2d_transpose")"),
            HasSubstr(R"(attr { name: "paddings" ints: [0, 1, 0, 1] })")));
  EXPECT_THAT(
      Text(x + Op("bilinear_interp_v2", {"X:x"}, {"Out:y"},
                  "attrs { name: 'interp_method' type: STRING s: 'bilinear' } "
                  "attrs { name: 'data_layout' type: STRING s: 'NCHW' } "
                  "attrs { name: 'align_corners' type: BOOLEAN b: false } "
                  "attrs { name: 'scale' type: FLOATS floats: [2, 2] }")),
      AllOf(HasSubstr(R"(attr { name: "scale" floats: [2, 2] })"),
            HasSubstr(R"(attr { name: "align_corners" b: false })"),
            Not(HasSubstr("interp_method"))));
  EXPECT_THAT(Text(x + Op("max_pool2d_with_index", {"X:x"}, {"Out:y", "Mask:m"},
                          "attrs { name: 'ksize' type: INTS ints: [3, 3] } "
                          "attrs { name: 'adaptive' type: BOOLEAN b: true }")),
              AllOf(HasSubstr(R"(type: "max_pool2d_with_index")"),
                    Not(HasSubstr("Mask"))));
}

TEST(PaddleImportTest, OpsThatAreSeveralOfOurs) {
  const std::string text = Text(absl::StrCat(
      Var("x", "-1, 4", "need_check_feed: true"),
      Var("id", "-1, 4", "need_check_feed: true", "INT64"),
      Var("ones", "-1, 4"), Var("sevens", "-1, 4", "", "INT64"),
      Var("ls", "-1, 4"), Var("below", "-1, 4", "", "BOOL"),
      Var("all", "-1", "", "BOOL"), Var("count", "", "", "INT64"),
      Op("fill_any_like", {"X:x"}, {"Out:ones"},
         "attrs { name: 'value' type: FLOAT f: 1.5 } "
         "attrs { name: 'dtype' type: INT i: 5 } "),
      Op("fill_any_like", {"X:id"}, {"Out:sevens"},
         "attrs { name: 'value' type: FLOAT f: 7 } "
         "attrs { name: 'dtype' type: INT i: -1 } "),
      Op("logsigmoid", {"X:x"}, {"Out:ls"}),
      Op("less_than", {"X:x", "Y:ones"}, {"Out:below"}),
      Op("reduce_all", {"X:below"}, {"Out:all"},
         "attrs { name: 'dim' type: INTS ints: 1 } "),
      Op("assert", {"Cond:all"}, {}), Op("size", {"Input:x"}, {"Out:count"}),
      Op("fetch", {"X:ones"}, {"Out:fetch"}),
      Op("fetch", {"X:sevens"}, {"Out:fetch"}),
      Op("fetch", {"X:ls"}, {"Out:fetch"}),
      Op("fetch", {"X:all"}, {"Out:fetch"}),
      Op("fetch", {"X:count"}, {"Out:fetch"})));
  for (const char* part :
       {"op { type: \"fill_zeros_like\" in { slot: \"X\" var: \"x\" }",
        "out { slot: \"Out\" var: \"ones\" } attr { name: \"bias\" f: 1.5 }",
        "out { slot: \"Out\" var: \"sevens\" } attr { name: \"to\" s: "
        "\"i64\" }",
        "op { type: \"softplus\"", "op { type: \"reduce_min\"",
        "attr { name: \"dim\" ints: [1] }",
        "out { slot: \"Out\" var: \"all\" } attr { name: \"to\" s: \"bool\" }",
        "op { type: \"element_count\" in { slot: \"X\" var: \"x\" }"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(PaddleImportTest, WhatIsInTheWayIsToldAtOnce) {
  const auto imported = Import(absl::StrCat(
      Var("x", "-1, -1, 4"), Op("qqqqqqqqq", {"X:x"}, {"Out:a"}),
      Op("reluu", {"X:a"}, {"Out:b"}), Op("reluu", {"X:b"}, {"Out:c"}),
      Op("while", {"X:c"}, {"Out:d"}),
      Op("relu", {"X:d"}, {"Out:e"},
         "attrs { name: 'extra' type: INT i: 3 }")));
  ASSERT_FALSE(imported.ok());
  EXPECT_EQ(ExitCodeOf(imported.status()), ExitCode::kModel);
  EXPECT_EQ(std::string(imported.status().message()),
            R"(net.pdmodel: cannot be imported, 5 things stand in the way:
  feed x x1: dims [-1, -1, 4]: expected 1 or more, or -1, the batch, first; give them with --dims x=-1,...; first at block 0 op 0 (a)
  qqqqqqqqq x1: no such op; first at block 0 op 0 (a)
  reluu x2: no such op; nearest: relu; first at block 0 op 1 (b)
  while x1: control flow: its body is a block of its own; first at block 0 op 3 (d)
  relu x1: attribute extra = 3 is not taken; first at block 0 op 4 (e))");
}

// The net of Mlp() as mixed_precision.decorate rewrites it.
TEST(PaddleImportTest, WhatAmpHasPutInIsTakenOut) {
  const std::string cast16 =
      "attrs { name: 'in_dtype' type: INT i: 5 } "
      "attrs { name: 'out_dtype' type: INT i: 4 }";
  const auto imported = Import(absl::StrCat(
      Var("x", "-1, 4"), Param("w", "4, 3"),
      Var("loss_scaling_0", "1", "persistable: true"),
      Op("cast", {"X:x"}, {"Out:x.cast_fp16"}, cast16),
      Op("cast", {"X:w"}, {"Out:w.cast_fp16"}, cast16),
      Op("matmul_v2", {"X:x.cast_fp16", "Y:w.cast_fp16"}, {"Out:h"}),
      Op("cast", {"X:h"}, {"Out:h.cast_fp32"}),
      Op("mean", {"X:h.cast_fp32"}, {"Out:loss"}),
      Op("elementwise_mul", {"X:loss", "Y:loss_scaling_0"}, {"Out:scaled"}, "",
         256)));
  ASSERT_TRUE(imported.ok()) << imported.status();
  const std::string text = PrintModel(*imported->model.model);
  EXPECT_EQ(text.substr(text.find("op {")),
            Text(Mlp()).substr(Text(Mlp()).find("op {")));
  EXPECT_THAT(imported->left_out,
              ElementsAre(std::make_pair("casts of AMP", 3),
                          std::make_pair("loss scaling", 1)));
}

// The net of paddle.static.nn.cond(x.mean() > t, relu, tanh); `branch`: more of
// the first branch.
std::string Conditional(const std::string& branch) {
  const std::string block = "attrs { name: 'sub_block' type: BLOCK block_idx: ";
  return absl::StrCat(
      Var("x", "-1, 4"), Var("p", "", "", "BOOL"), Var("a", "-1, 4"),
      Var("b", "-1, 4"), Var("m", "2", "persistable: true"),
      Op("mean", {"X:x"}, {"Out:v"}), Op("square", {"X:v"}, {"Out:t"}),
      Op("greater_than", {"X:v", "Y:t"}, {"Out:p"}),
      Op("conditional_block", {"Cond:p", "Input:x"}, {"Out:a", "Scope:s"},
         block + "1 }"),
      Op("logical_not", {"X:p"}, {"Out:q"}),
      Op("conditional_block", {"Cond:q", "Input:x"}, {"Out:b", "Scope:s"},
         block + "2 }"),
      Op("cast", {"X:p"}, {"Out:c"},
         "attrs { name: 'out_dtype' type: INT i: 2 }"),
      Op("select_input", {"X:b,a", "Mask:c"}, {"Out:y"}),
      "} blocks { idx: 1 parent_idx: 0 ", Var("r", "-1, 4"),
      Op("relu", {"X:x"}, {"Out:r"}), branch, Op("assign", {"X:r"}, {"Out:a"}),
      "} blocks { idx: 2 parent_idx: 0 ", Op("tanh", {"X:x"}, {"Out:b"}));
}

TEST(PaddleImportTest, BothBranchesAndWhere) {
  const std::string text = Text(Conditional(""));
  EXPECT_THAT(
      text,
      AllOf(
          HasSubstr(R"(type: "relu" in { slot: "X" var: "x" })"),
          HasSubstr(R"(type: "tanh" in { slot: "X" var: "x" })"),
          HasSubstr(
              R"(type: "where" in { slot: "Condition" var: "p" } in { slot: "X" var: "a" } in { slot: "Y" var: "b" })"),
          HasSubstr("output: \"y\""), Not(HasSubstr("logical_not"))));
  EXPECT_EQ(Text(Conditional(Op("tanh", {"X:r"}, {"Out:r"}))).find("net.pdm"),
            std::string::npos);
  for (const char* const written : {"v", "m"}) {
    EXPECT_THAT(
        Text(Conditional(Op("relu", {"X:r"}, {absl::StrCat("Out:", written)}))),
        HasSubstr(absl::StrCat("relu x1: a branch writes what is there without "
                               "it: ",
                               written, "; first at block 1 op 1")));
  }
}

// A block that is its own branch, or none.
TEST(PaddleImportTest, HostileBlocks) {
  for (const char* const block : {"1", "0", "-1", "7", "2147483647"}) {
    EXPECT_THAT(Text(Conditional(
                    Op("conditional_block", {"Cond:p"}, {"Out:z"},
                       absl::StrCat("attrs { name: 'sub_block' type: BLOCK ",
                                    "block_idx: ", block, " }")))),
                HasSubstr("conditional_block x1: control flow: its block is "
                          "not there, or in use elsewhere"));
  }
}

TEST(PaddleImportTest, MaskedMeansAndSumsOfLosses) {
  const std::string rows =
      Var("x", "-1, 3") + Var("w", "-1, 3") + Op("square", {"X:x"}, {"Out:s"});
  PaddleOptions options;
  options.loss = "l";
  EXPECT_THAT(Text(rows + Op("elementwise_mul", {"X:s", "Y:w"}, {"Out:m"}) +
                       Op("reduce_sum", {"X:m"}, {"Out:a"}) +
                       Op("reduce_sum", {"X:w"}, {"Out:b"}) +
                       Op("elementwise_div", {"X:a", "Y:b"}, {"Out:l"}),
                   options),
              HasSubstr(R"(loss { var: "l" mean_over: "m" mask: "w" })"));
  EXPECT_THAT(Text(rows + Op("mean", {"X:s"}, {"Out:a"}) +
                       Op("mean", {"X:w"}, {"Out:b"}) +
                       Op("scale", {"X:b"}, {"Out:c"}) +
                       Op("elementwise_add", {"X:c", "Y:a"}, {"Out:l"}),
                   options),
              HasSubstr(R"(loss { var: "l" mean_over: "w" })"));
  // Means over different counts, and over no less than one.
  const std::string one =
      "attrs { name: 'shape' type: LONGS longs: 1 } attrs { name: 'value' "
      "type: FLOAT f: 1 } attrs { name: 'dtype' type: INT i: 5 }";
  const std::string quotient =
      Op("elementwise_mul", {"X:s", "Y:w"}, {"Out:m"}) +
      Op("reduce_sum", {"X:m"}, {"Out:a"}) +
      Op("reduce_sum", {"X:w"}, {"Out:b"}) +
      Op("fill_constant", {}, {"Out:one"}, one) +
      Op("elementwise_max", {"X:b", "Y:one"}, {"Out:c"});
  EXPECT_THAT(
      Text(rows + quotient + Op("elementwise_div", {"X:a", "Y:c"}, {"Out:l"}),
           options),
      HasSubstr(R"(loss { var: "l" mean_over: "m" denominator: "c" })"));
  EXPECT_THAT(
      Text(rows + quotient + Op("mean", {"X:s"}, {"Out:e"}) +
               Op("elementwise_div", {"X:a", "Y:b"}, {"Out:d"}) +
               Op("elementwise_add", {"X:d", "Y:e"}, {"Out:l"}),
           options),
      HasSubstr(R"(loss { var: "l" mean_over: "s" denominator: "b" })"));
  EXPECT_THAT(Text(rows + Op("reduce_sum", {"X:s"}, {"Out:l"}), options),
              HasSubstr(R"(loss { var: "l" mean_over: "l" })"));
}

TEST(PaddleProgramTest, OtherFilesAreNamed) {
  const auto error = [](const std::string& content) {
    return std::string(ParsePaddleProgram(content, "f").status().message());
  };
  const std::string good = ProgramOf(Mlp()).SerializeAsString();
  EXPECT_TRUE(ParsePaddleProgram(good, "f").ok());
  EXPECT_THAT(error(""), HasSubstr("found an empty file"));
  EXPECT_THAT(error("\x1f\x8b\x08"), HasSubstr("gunzip"));
  EXPECT_THAT(error("{\"base_code\":"), HasSubstr("FLAGS_enable_pir_api=0"));
  EXPECT_THAT(error("name: 'x'"), HasSubstr("found text"));
  EXPECT_THAT(error(good.substr(0, good.size() - 3)),
              HasSubstr("cut off or damaged"));
  EXPECT_THAT(error(paddle::ProgramDesc().SerializeAsString() + "\n"),
              HasSubstr("damaged"));
}

// One layer of 2 units, as paddle.nn.LSTM writes it, whose states begin at
// `value`.
std::string Lstm(const std::string& value) {
  const std::string zeros =
      absl::StrCat("attrs { name: 'dtype' type: INT i: 5 } ",
                   "attrs { name: 'value' type: FLOAT f: ", value, " } ");
  return absl::StrCat(
      Var("x", "-1, 7, 5"), Var("t", "7, -1, 5"), Var("s", "3", "", "INT32"),
      Param("wi", "8, 5"), Param("wh", "8, 2"), Param("bi", "8"),
      Param("bh", "8"), Var("h", "1, -1, 2"), Var("c", "1, -1, 2"),
      Var("y", "7, -1, 2"), Op("shape", {"Input:x"}, {"Out:s"}),
      Op("fill_constant", {"ShapeTensor:s"}, {"Out:h"}, zeros),
      Op("fill_constant", {"ShapeTensor:s"}, {"Out:c"}, zeros),
      Op("transpose2", {"X:x"}, {"Out:t"},
         "attrs { name: 'axis' type: INTS ints: [1, 0, 2] } "),
      Op("rnn", {"Input:t", "PreState:h,c", "WeightList:wi,wh,bi,bh"},
         {"Out:y", "State:hn,cn", "Reserve:r", "DropoutState:d"},
         "attrs { name: 'mode' type: STRING s: 'LSTM' } "
         "attrs { name: 'hidden_size' type: INT i: 2 } "
         "attrs { name: 'seed' type: INT i: 0 } "
         "attrs { name: 'is_test' type: BOOLEAN b: false } "));
}

TEST(PaddleImportTest, RecurrentLayersBeginAtZeros) {
  EXPECT_THAT(
      Text(Lstm("0")),
      AllOf(HasSubstr("type: \"rnn\" in { slot: \"Input\" var: \"t\" }"),
            HasSubstr("slot: \"WeightList\""), Not(HasSubstr("PreState")),
            Not(HasSubstr("State")), Not(HasSubstr("fill_constant")),
            Not(HasSubstr("\"shape\""))));
}

// Here they have x's shape.
TEST(PaddleImportTest, StatesThatAreNotZerosAreRead) {
  EXPECT_THAT(Text(Lstm("1")),
              HasSubstr("PreState[0]: expected [1,B,2], found f32[B,7,5]"));
}

TEST(PaddleImportTest, GradientsStopWhereTheVariableSaysSo) {
  const auto net = [](const std::string& flags) {
    return absl::StrCat(Var("x", "-1, 4"), Param("w", "4, 4"), Param("v", "4"),
                        Var("h", "-1, 4", flags), Var("fixed", "-1, 4", flags),
                        Op("matmul_v2", {"X:x", "Y:w"}, {"Out:h"}),
                        Op("tanh", {"X:x"}, {"Out:fixed"}),
                        Op("elementwise_add", {"X:h", "Y:fixed"}, {"Out:s"}),
                        Op("elementwise_mul", {"X:s", "Y:v"}, {"Out:m"}),
                        Op("mean", {"X:m"}, {"Out:y"}));
  };
  PaddleOptions options;
  options.loss = "y";
  // No parameter is behind `fixed`.
  EXPECT_THAT(Text(net("stop_gradient: true"), options),
              AllOf(HasSubstr(R"(type: "share_data" in { slot: "X" var: "h" } )"
                              R"(out { slot: "Out" var: "h.stopped" })"),
                    HasSubstr(R"(in { slot: "X" var: "h.stopped" } )"
                              R"(in { slot: "Y" var: "fixed" })")));
  EXPECT_THAT(Text(net(""), options), Not(HasSubstr("share_data")));
  EXPECT_THAT(Text(net("stop_gradient: true")), Not(HasSubstr("share_data")));
}

std::string Assigned(const std::string& shape, const std::string& values) {
  return Text(absl::StrCat(
      Var("a", "4"),
      Op("assign_value", {}, {"Out:a"},
         absl::StrCat("attrs { name: 'shape' type: INTS ints: [", shape,
                      "] } attrs { name: 'dtype' type: INT i: 5 } attrs { ",
                      values, " } ")),
      Op("square", {"X:a"}, {"Out:y"})));
}

TEST(PaddleImportTest, AssignedValues) {
  EXPECT_THAT(Assigned("4", "name: 'fp32_values' floats: [2.5, 2.5, 2.5, 2.5]"),
              HasSubstr(R"(op { type: "fill_constant" out { slot: "Out" var: )"
                        R"("a" } attr { name: "shape" ints: [4] } )"
                        R"(attr { name: "value" f: 2.5 } })"));
  EXPECT_THAT(Assigned("2, 2", "name: 'int32_values' ints: [7, 5, 3, 1]"),
              AllOf(HasSubstr(R"(attr { name: "start" f: 7 })"),
                    HasSubstr(R"(attr { name: "end" f: -1 })"),
                    HasSubstr(R"(attr { name: "step" f: -2 })"),
                    HasSubstr(R"(attr { name: "shape" ints: [2, 2] })")));
  EXPECT_THAT(
      Assigned("4", "name: 'int64_values' longs: [9007199254740993, 1, 1, 0]"),
      AllOf(HasSubstr(R"(name: "str_value" s: "9007199254740993")"),
            HasSubstr(R"(in { slot: "X" var: "a.part" var: "a.part.1" var: )"
                      R"("a.part.2" } out { slot: "Out" var: "a" })")));
  EXPECT_THAT(Assigned("3", "name: 'bool_values' ints: [1, 0, 1, 1]"),
              HasSubstr("assign_value x1: expected an output and as many "
                        "values as its shape has elements"));
  EXPECT_THAT(Assigned("-1, -4", "name: 'bool_values' ints: [1, 0, 1, 1]"),
              HasSubstr("as many values as its shape"));
  std::string many = "name: 'fp32_values' floats: [0";
  for (int i = 1; i < 65; ++i) absl::StrAppend(&many, ", ", i * i);
  EXPECT_THAT(Assigned("65", many + "]"),
              HasSubstr("too many different values: 65 where 64 are taken"));
}

TEST(PaddleImportTest, SequenceMask) {
  const auto masked = [](const std::string& maxlen) {
    return Text(absl::StrCat(
        Var("n", "-1", "", "INT64"), Var("m", "-1, 5"),
        Op("sequence_mask", {"X:n"}, {"Y:m"},
           absl::StrCat("attrs { name: 'maxlen' type: INT i: ", maxlen,
                        " } attrs { name: 'out_dtype' type: INT i: 5 } "))));
  };
  EXPECT_THAT(
      masked("5"),
      HasSubstr(R"(op { type: "greater_than" in { slot: "X" var: "m.ends" } )"
                R"(in { slot: "Y" var: "m.places" } )"
                R"(out { slot: "Out" var: "m.mask" } })"));
  EXPECT_THAT(masked("-1"), HasSubstr("expected a maxlen that is a number"));
}

}  // namespace
}  // namespace halftone
