// Bodies that kernels of fusions do not compute, though the passes make no
// such: what a kernel supports is for it to say.
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/ir/program.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {
namespace {

// Whether the GPU's kernel takes the fusion of the program's one entry.
bool Supported(const std::string& pattern, const std::string& feeds,
               const std::string& outs, const std::string& ops) {
  KernelRegistry registry;
  RegisterOwnCudaKernels(registry);
  std::string names, lines;
  for (size_t i = 0; i < feeds.size();) {
    const size_t end = feeds.find('\n', i);
    const std::string feed = feeds.substr(i, end - i);
    absl::StrAppend(&names, names.empty() ? "" : ", ",
                    feed.substr(0, feed.find(' ')));
    absl::StrAppend(&lines, "feed ", feed, "\n");
    i = end + 1;
  }
  const auto program = Parse(
      absl::StrCat("program \"p\"\nentry e {\n", lines, "f.fused: fusion(X=[",
                   names, "]) -> (Out=[", outs, "]) {pattern=\"", pattern,
                   "\"}   backward body {\n", lines, ops, "}\n}\n"),
      "p");
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return false;
  const Block& block = (*program)->entries()[0]->block();
  const BoundOp op(block, block.op(*block.ops().begin()), SymbolValues(),
                   BindContext());
  for (const auto& [key, candidate] : registry.All("cuda")) {
    if (key == "pattern:" + pattern) return candidate->supports(op);
  }
  ADD_FAILURE() << "no kernel for " << pattern;
  return false;
}

TEST(FusionSupportTest, NormElementwiseBroadcastsNothing) {
  const auto supported = [](const std::string& other) {
    return Supported(
        "norm_elementwise",
        absl::StrCat("x : f32[2,3,4,5]\ns : f32[3]\nb : f32[3]\nm : f32[3]\n"
                     "v : f32[3]\nz : ",
                     other, "\n"),
        "y : f32[2,3,4,5]",
        "n: scale_bias(X=x, Scale=s, Bias=b, Mean=m, Variance=v) -> (Y=n : "
        "f32[2,3,4,5])   backward\n"
        "y: elementwise_add(X=n, Y=z) -> (Out=y : f32[2,3,4,5])   backward\n"
        "return y\n");
  };
  EXPECT_TRUE(supported("f32[2,3,4,5]"));
  EXPECT_FALSE(supported("f32[5]"));
}

TEST(FusionSupportTest, ReluGradBiasSumsOverAllButChannels) {
  const auto supported = [](const std::string& axes) {
    const std::string image = "f32[2,3,3,3] @channels_last";
    return Supported(
        "relu_grad_bias", absl::StrCat("r : ", image, "\na : ", image, "\n"),
        "s : f32[3]",
        absl::StrCat("g: relu_grad(Out=r, OutGrad=a) -> (XGrad=g : ", image,
                     ")   backward\ns: reduce_sum(X=g) -> (Out=s : f32[3]) "
                     "{dim=",
                     axes, "}   backward\nreturn s\n"));
  };
  EXPECT_TRUE(supported("[0, 2, 3]"));
  EXPECT_FALSE(supported("[0, 1, 3]"));
}

TEST(FusionSupportTest, ReluGradBiasAddsTwoGradients) {
  const auto supported = [](const std::string& more, const std::string& parts) {
    const std::string image = "f32[2,3,3,3] @channels_last";
    std::string feeds;
    for (const char* feed : {"r", "a", "b"}) {
      absl::StrAppend(&feeds, feed, " : ", image, "\n");
    }
    if (!more.empty()) absl::StrAppend(&feeds, more, " : ", image, "\n");
    return Supported(
        "relu_grad_bias", feeds, "s : f32[3]",
        absl::StrCat("t: sum(X=[", parts, "]) -> (Out=t : ", image,
                     ")   backward\ng: relu_grad(Out=r, OutGrad=t) -> (XGrad=g "
                     ": ",
                     image,
                     ")   backward\ns: reduce_sum(X=g) -> (Out=s : f32[3]) "
                     "{dim=[0, 2, 3]}   backward\nreturn s\n"));
  };
  EXPECT_TRUE(supported("", "a, b"));
  EXPECT_FALSE(supported("c", "a, b, c"));
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
