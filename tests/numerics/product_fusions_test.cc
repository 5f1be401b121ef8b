// Models whose products are fused with what follows them: planned op by op they
// give the bits of the model that was never fused; with the GPU's own code, in
// cuBLASLt's place plain loops on the host, nearly so.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "kernels/cuda/emulation/products.h"
#include "kernels/register_all.h"
#include "passes/compile.h"
#include "tests/support/compile_model.h"
#include "tests/support/feed_forward.h"
#include "tests/support/run_steps.h"

namespace halftone {
namespace {

using Counts = std::map<std::string, int>;

constexpr const char* kPatterns[] = {"matmul_gelu", "matmul_gelu_grad",
                                     "matmul_relu_grad", "matmul_bias_grad"};

constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

CompiledModel Compiled(const std::string& model, const std::string& strategy,
                       bool fused) {
  std::vector<std::string> keys = kernels::Kernels().Keys();
  if (fused) {
    for (const char* pattern : kPatterns) {
      for (DType dtype : kDTypes) {
        keys.push_back(passes::KernelSet::Key(absl::StrCat("pattern:", pattern),
                                              {dtype}, Layout::kRowMajor));
      }
    }
  }
  const auto file = ReadModel(model);
  EXPECT_TRUE(file.ok()) << file.status();
  const auto options =
      passes::ResolveOptions(*passes::ReadStrategy(strategy), {});
  EXPECT_TRUE(options.ok()) << options.status();
  passes::CompileFlags flags;
  flags.verify_each = true;
  auto compiled =
      passes::Compile(*file, *options, passes::KernelSet("cpu", keys), flags);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return *std::move(compiled);
}

// How often `train` has each of the patterns.
Counts CountFusions(const CompiledModel& model) {
  Counts counts;
  const Block& block = model.program->FindEntry("train")->block();
  for (OpId id : block.ops()) {
    if (block.op(id).body == nullptr) continue;
    const std::string pattern = AttrAs<std::string>(block.op(id), "pattern");
    for (const char* ours : kPatterns) counts[pattern] += pattern == ours;
  }
  for (auto it = counts.begin(); it != counts.end();) {
    it = it->second == 0 ? counts.erase(it) : std::next(it);
  }
  return counts;
}

// The CPU's kernels and, of the patterns, the GPU's candidates of this name;
// counts those that are prepared.
kernels::KernelRegistry WithEmulated(const std::string& name, int* prepared) {
  kernels::KernelRegistry cuda, all = kernels::Kernels();
  kernels::cuda::RegisterEmulatedProducts(cuda);
  for (const auto& [key, candidate] : cuda.All()) {
    if (candidate->name != name) continue;
    for (const char* pattern : kPatterns) {
      const std::string prefix = absl::StrCat("pattern:", pattern, "(");
      // Each dtype's is the same.
      if (!absl::StartsWith(key, prefix + "f32")) continue;
      kernels::Candidate counted = *candidate;
      counted.prepare = [prepare = candidate->prepare, prepared](
                            const kernels::BoundOp& op,
                            runtime::Device& device) {
        ++*prepared;
        return prepare(op, device);
      };
      all.AddPattern(pattern, kDTypes, {Layout::kRowMajor}, std::move(counted));
    }
  }
  return all;
}

StepsResult MustRun(const CompiledModel& model,
                    const kernels::KernelRegistry& registry) {
  StepsSpec spec;
  spec.kernels = {&registry};
  auto result = RunSteps(*model.program, spec);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : StepsResult();
}

void Check(const std::string& model, const Counts& fusions) {
  for (const char* strategy :
       {"models/mnist_o2.pbtxt", "models/mnist_o2_bf16.pbtxt"}) {
    SCOPED_TRACE(strategy);
    const CompiledModel plain = Compiled(model, strategy, false);
    const CompiledModel fused = Compiled(model, strategy, true);
    EXPECT_EQ(CountFusions(plain), Counts());
    EXPECT_EQ(CountFusions(fused), fusions);
    const StepsResult expected = MustRun(plain, kernels::Kernels());
    const StepsResult bodies = MustRun(fused, kernels::Kernels());
    EXPECT_EQ(bodies.losses, expected.losses);
    EXPECT_EQ(bodies.cells, expected.cells);
    ASSERT_EQ(expected.losses.size(), 10u);
    EXPECT_LT(expected.losses[9], expected.losses[0]);
    for (const char* candidate : {"loops", "loops_split"}) {
      int prepared = 0;
      const StepsResult found =
          MustRun(fused, WithEmulated(candidate, &prepared));
      EXPECT_GT(prepared, 0);
      ASSERT_EQ(found.losses.size(), expected.losses.size());
      // A few roundings of activations and gradients to f16 or bf16.
      const double near = absl::StrContains(strategy, "bf16") ? 1e-2 : 2e-3;
      for (size_t s = 0; s < found.losses.size(); ++s) {
        EXPECT_NEAR(found.losses[s], expected.losses[s],
                    near * expected.losses[0])
            << candidate << " step " << s;
      }
    }
  }
}

TEST(ProductFusionsTest, FeedForwardBlock) {
  const std::string model = absl::StrCat(::testing::TempDir(), "/ffn.pbtxt");
  ASSERT_TRUE(WriteFileAtomically(model, kFeedForward).ok());
  // The gradients of down's and head's bias stand beside those of the matrices;
  // up's comes with the gradient of gelu.
  Check(model,
        {{"matmul_gelu", 1}, {"matmul_gelu_grad", 1}, {"matmul_bias_grad", 2}});
}

TEST(ProductFusionsTest, Perceptron) {
  Check("models/mlp.pbtxt", {{"matmul_relu_grad", 1}, {"matmul_bias_grad", 1}});
}

}  // namespace
}  // namespace halftone
