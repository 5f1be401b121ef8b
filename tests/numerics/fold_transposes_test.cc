// A model that turns its matrices before products, as ONNX states linear
// layers: it trains as where every transpose is carried out, and, to the bit,
// as the model that states how factors lie.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/file.h"
#include "graph/io/model_reader.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"
#include "passes/compile.h"
#include "passes/pipelines.h"
#include "passes/testing/kernels.h"
#include "tests/support/run_steps.h"

namespace halftone {
namespace {

// Attention over the rows of a digit, then a head. $y$ is where the product y
// goes.
constexpr char kModel[] = R"(
name: "turned"  format: 1
feed { name: "image" dtype: U8 dims: [-1, 1, 8, 8] }
feed { name: "label" dtype: I64 dims: [-1] }
op { type: "image_normalize" in { slot: "X" var: "image" }
     out { slot: "Out" var: "pixels" } attr { name: "std" f: 255 } }
op { type: "reshape" in { slot: "X" var: "pixels" }
     out { slot: "Out" var: "x" } attr { name: "shape" ints: [0, 8, 8] } }
param { name: "wq" dims: [16, 8] init { kaiming_uniform { a: 2.236068 } } }
param { name: "wk" dims: [16, 8] init { kaiming_uniform { a: 2.236068 } } }
param { name: "wv" dims: [12, 8] init { kaiming_uniform { a: 2.236068 } } }
param { name: "bv" dims: [12] init { uniform { bound: 0.125 } } }
$q$ $k$ $v$ $s$
op { type: "softmax" in { slot: "X" var: "s" } out { slot: "Out" var: "p" } }
op { type: "matmul" in { slot: "X" var: "p" } in { slot: "Y" var: "v" }
     out { slot: "Out" var: "o" } }
op { type: "relu" in { slot: "X" var: "o" } out { slot: "Out" var: "a" } }
$g$
op { type: "flatten" in { slot: "X" var: "g" } out { slot: "Out" var: "rows" }
     attr { name: "start_axis" i: 1 } }
param { name: "head.w" dims: [10, 64] init { kaiming_uniform { a: 2.236068 } } }
$logits$
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "logits" }
     in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "ce" }
output: "logits"
)";

std::string Op(const std::string& type, const std::string& in,
               const std::string& out, const std::string& attr) {
  return absl::StrCat("op { type: '", type, "' in { slot: 'X' var: '", in,
                      "' } out { slot: 'Out' var: '", out, "' } attr { ", attr,
                      " } }\n");
}

// out = x * transpose(y) in so many dims: a transpose beside the product, or
// the product's own flag.
std::string Product(bool by_flag, const std::string& out, const std::string& x,
                    const std::string& y, const std::string& axes,
                    const std::string& bias = "") {
  const std::string factor = by_flag ? y : absl::StrCat(out, ".t");
  return absl::StrCat(
      by_flag ? ""
              : Op("transpose", y, factor,
                   absl::StrCat("name: 'axis' ints: [", axes, "]")),
      "op { type: 'matmul' in { slot: 'X' var: '", x,
      "' } in { slot: 'Y' var: '", factor, "' }",
      bias.empty() ? "" : absl::StrCat("in { slot: 'Bias' var: '", bias, "' }"),
      " out { slot: 'Out' var: '", out, "' }",
      by_flag ? "attr { name: 'trans_y' b: true }" : "", " }\n");
}

// The same with half of y, halved behind the transpose, as ONNX has attention.
std::string Halved(bool by_flag, const std::string& out, const std::string& x,
                   const std::string& y) {
  const std::string half = "name: 'scale' f: 0.5";
  if (by_flag) {
    return Op("scale", y, "half", half) + Product(true, out, x, "half", "");
  }
  return absl::StrCat(
      Op("transpose", y, "turned", "name: 'axis' ints: [0, 2, 1]"),
      Op("scale", "turned", "half", half),
      "op { type: 'matmul' in { slot: 'X' var: '", x,
      "' } in { slot: 'Y' var: 'half' } out { slot: 'Out' var: '", out,
      "' } }\n");
}

std::unique_ptr<Program> Source(bool by_flag) {
  const std::string text = absl::StrReplaceAll(
      kModel,
      {{"$q$", Product(by_flag, "q", "x", "wq", "1, 0")},
       {"$k$", Product(by_flag, "k", "x", "wk", "1, 0")},
       {"$v$", Product(by_flag, "v", "x", "wv", "1, 0", "bv")},
       {"$s$", Halved(by_flag, "s", "q", "k")},
       {"$g$", Product(by_flag, "g", "a", "a", "0, 2, 1")},
       {"$logits$", Product(by_flag, "logits", "rows", "head.w", "1, 0")}});
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/turned", by_flag, ".pbtxt");
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  const auto file = ReadModel(path);
  EXPECT_TRUE(file.ok()) << file.status();
  auto program = BuildProgram(*file);
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

passes::KernelSet Cpu() { return {"cpu", kernels::Kernels().Keys()}; }

// What a compile makes of it, or makes of it without the pass.
std::unique_ptr<Program> Compiled(bool by_flag, const std::string& strategy,
                                  bool folded = true,
                                  const passes::KernelSet& kernels = Cpu()) {
  std::unique_ptr<Program> program = Source(by_flag);
  const auto options =
      passes::ResolveOptions(*passes::ReadStrategy(strategy), {});
  EXPECT_TRUE(options.ok()) << options.status();
  passes::PassPipeline pipeline({.verify_each = true});
  for (const passes::PassPhase& phase : passes::AllPhases()) {
    passes::AddPhase(phase.phase, {*options, kernels}, phase.phase, &pipeline,
                     [folded](const passes::PassStep& step) {
                       return folded || step.name != "fold-transposes";
                     });
  }
  const absl::Status status = pipeline.Run(*program);
  EXPECT_TRUE(status.ok()) << status;
  return program;
}

int Transposes(const Program& program) {
  return program.FindEntry("train")->block().CountOf(Ops().Find("transpose"));
}

StepsResult MustRun(const Program& program, int ranks = 1) {
  StepsSpec spec;
  spec.ranks = ranks;
  auto result = RunSteps(program, spec);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : StepsResult();
}

// `near`: of the first loss.
void Check(const std::string& strategy, double near) {
  const auto plain = Compiled(false, strategy, false);
  const auto folded = Compiled(false, strategy);
  const auto by_flag = Compiled(true, strategy);
  EXPECT_EQ(Transposes(*plain), 12) << "forward and backward";
  EXPECT_EQ(Transposes(*folded), 0);
  const StepsResult expected = MustRun(*plain);
  const StepsResult found = MustRun(*folded);
  const StepsResult stated = MustRun(*by_flag);
  ASSERT_EQ(expected.losses.size(), 10u);
  ASSERT_EQ(found.losses.size(), 10u);
  EXPECT_LT(expected.losses[9], expected.losses[0]);
  for (size_t s = 0; s < found.losses.size(); ++s) {
    EXPECT_NEAR(found.losses[s], expected.losses[s], near * expected.losses[0])
        << "step " << s;
  }
  EXPECT_EQ(found.losses, stated.losses);
  EXPECT_EQ(found.cells, stated.cells);
  EXPECT_EQ(MustRun(*folded, 2).losses.size(), 10u);
}

// Sums of a library in another order, over ten steps.
TEST(FoldTransposesTest, TrainsInF32) {
  Check("models/mnist_fp32.pbtxt", 1e-5);
}

// A few roundings of activations and gradients.
TEST(FoldTransposesTest, TrainsInF16) { Check("models/mnist_o2.pbtxt", 2e-3); }
TEST(FoldTransposesTest, TrainsInBF16) {
  Check("models/mnist_o2_bf16.pbtxt", 1e-2);
}

// What fuse makes of products: their patterns, in order.
std::vector<std::string> Fusions(const Program& program) {
  std::vector<std::string> patterns;
  const Block& block = program.FindEntry("train")->block();
  for (const OpId id : block.ops()) {
    if (block.op(id).body == nullptr) continue;
    patterns.push_back(AttrAs<std::string>(block.op(id), "pattern"));
  }
  return patterns;
}

TEST(FoldTransposesTest, FusesWhatIsStated) {
  passes::TestTarget target;
  target.patterns = {"matmul_relu_grad", "matmul_bias_grad"};
  const passes::KernelSet kernels = passes::AllKernels(target);
  const std::string strategy = "models/mnist_o2.pbtxt";
  const auto folded = Compiled(false, strategy, true, kernels);
  const std::vector<std::string> fusions = Fusions(*folded);
  EXPECT_EQ(fusions, Fusions(*Compiled(true, strategy, true, kernels)));
  EXPECT_EQ(std::count(fusions.begin(), fusions.end(), "matmul_bias_grad"), 1)
      << "of v";
  EXPECT_EQ(Transposes(*folded), 0) << "v's gradient's, too";
}

}  // namespace
}  // namespace halftone
