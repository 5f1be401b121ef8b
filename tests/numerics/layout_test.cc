// What choose-layout does for a GPU changes no bits where sums are exact: the
// same training step with it and without, on the CPU, which has the kernels of
// both layouts.
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/io/model_reader.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"
#include "passes/compile.h"
#include "tests/support/run_steps.h"

namespace halftone {
namespace {

// Linear, with constants and sizes that are powers of two: a step's sums hold
// in f32 whatever their order.
constexpr char kModel[] = R"(name: "linear" format: 1
feed { name: "image" dtype: U8 dims: [-1, 3, 8, 8] }
feed { name: "label" dtype: I64 dims: [-1] }
param { name: "w1" dims: [16, 3, 3, 3] init { constant: 0.125 } }
param { name: "p" dims: [1, 16, 8, 8] init { constant: 0.5 } }
param { name: "w2" dims: [8, 16, 3, 3] init { constant: 0.03125 } }
param { name: "w3" dims: [8, 8, 1, 1] init { constant: 0.125 } }
op { type: "image_normalize" in { slot: "X" var: "image" } out { slot: "Out" var: "x" } attr { name: "std" f: 256 } }
op { type: "conv2d" in { slot: "Input" var: "x" } in { slot: "Filter" var: "w1" } out { slot: "Output" var: "c1" } attr { name: "paddings" ints: [1, 1] } }
op { type: "elementwise_add" in { slot: "X" var: "c1" } in { slot: "Y" var: "p" } out { slot: "Out" var: "s1" } }
op { type: "relu" in { slot: "X" var: "s1" } out { slot: "Out" var: "a1" } }
op { type: "conv2d" in { slot: "Input" var: "a1" } in { slot: "Filter" var: "w2" } out { slot: "Output" var: "c2" } attr { name: "paddings" ints: [1, 1] } }
op { type: "conv2d" in { slot: "Input" var: "c2" } in { slot: "Filter" var: "w3" } out { slot: "Output" var: "c3" } }
op { type: "flatten" in { slot: "X" var: "c3" } out { slot: "Out" var: "flat" } }
op { type: "mean" in { slot: "X" var: "flat" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "c3" }
)";

CompiledModel Compiled(const std::string& target, const std::string& dtype) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/linear.pbtxt");
  EXPECT_TRUE(WriteFileAtomically(path, kModel).ok());
  const auto model = ReadModel(path);
  EXPECT_TRUE(model.ok()) << model.status();
  const auto strategy = passes::ReadStrategy("models/mnist_o2.pbtxt");
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  const auto options =
      passes::ResolveOptions(*strategy, {{"amp.level", "O1", ""},
                                         {"amp.dtype", dtype, ""},
                                         {"train.batch_size", "64", ""}});
  EXPECT_TRUE(options.ok()) << options.status();
  passes::CompileFlags flags;
  flags.verify_each = true;
  auto compiled = passes::Compile(
      *model, *options, passes::KernelSet(target, kernels::Kernels().Keys()),
      flags);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return *std::move(compiled);
}

int Count(const CompiledModel& model, const char* op) {
  const Block& block = model.program->FindEntry("train")->block();
  int count = 0;
  for (OpId id : block.ops()) count += block.op(id).schema->name() == op;
  return count;
}

class LayoutTest : public ::testing::TestWithParam<const char*> {};

TEST_P(LayoutTest, ChangesNoBits) {
  const CompiledModel plain = Compiled("cpu", GetParam());
  const CompiledModel padded = Compiled("sm_90", GetParam());
  EXPECT_EQ(Count(plain, "pad_channels"), 0);
  EXPECT_EQ(Count(padded, "pad_channels"), 2) << "image and filter";
  EXPECT_EQ(Count(padded, "slice"), 1) << "the filter's gradient";
  const Program& program = *padded.program;
  EXPECT_EQ(program.cell(program.FindCell("w2")).type.layout,
            Layout::kChannelsLast);
  EXPECT_EQ(program.cell(program.FindCell("w1")).type.layout, Layout::kRowMajor)
      << "its channels are padded";
  StepsSpec spec;
  spec.data = "synthetic";
  spec.steps = 1;
  const auto a = RunSteps(*plain.program, spec);
  const auto b = RunSteps(*padded.program, spec);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_FALSE(a->rejected[0]);
  EXPECT_EQ(a->losses, b->losses);
  EXPECT_EQ(a->cells, b->cells);
  EXPECT_NE(a->cells[0].at("w1").substr(0, 4), std::string("\0\0\0\x3e", 4))
      << "w1 is still what it was initialised to";
}

INSTANTIATE_TEST_SUITE_P(LowDTypes, LayoutTest,
                         ::testing::Values("fp16", "bf16"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace halftone
