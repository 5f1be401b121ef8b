// The graphs of attention, as far as the library looks at them without a
// driver: which engine takes them it says only where there is one.
#include "kernels/cuda/attention_cudnn.h"

#include <string>
#include <utility>
#include <vector>

#include "graph/ir/program.h"
#include "graph/schema/op_builder.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cudnn_library.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using Dims4 = std::vector<int64_t>;
using Attrs = std::vector<std::pair<std::string, AttrValue>>;

// An op of 2 samples, 8 heads and 128 rows.
struct Case {
  Program program;
  Block* block = &program.AddEntry("test").block();
  OpId op;

  ValueId Feed(const std::string& name, DType dtype, const Dims4& dims) {
    TensorType type;
    type.dtype = dtype;
    for (int64_t d : dims) type.dims.push_back(Dim(d));
    return block->AddFeed(name, type);
  }
  Case(bool gradient, DType dtype, const Attrs& attrs, bool mask = false) {
    OpBuilder builder(block, gradient ? "scaled_dot_product_attention_grad"
                                      : "scaled_dot_product_attention");
    const ValueId q = Feed("q", dtype, {2, 128, 8, 64});
    const ValueId k = Feed("k", dtype, {2, 96, 4, 64});
    builder.Name("op").In("Q", q).In("K", k).In("V", k);
    if (mask) builder.In("Mask", Feed("mask", DType::kBool, {1, 1, 1, 96}));
    if (gradient) {
      builder.In("Out", q)
          .In("OutGrad", q)
          .In("LogSumExp", Feed("sums", DType::kF32, {2, 8, 128}));
    }
    for (const auto& [name, value] : attrs) builder.Attr(name, value);
    auto built = builder.Build();
    EXPECT_TRUE(built.ok()) << built.status();
    if (built.ok()) op = *built;
  }
  BoundOp Bind() const {
    return BoundOp(*block, block->op(op), SymbolValues(), BindContext());
  }
};

TEST(AttentionCudnnTest, IsTakenByTheLibrary) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    for (const bool gradient : {false, true}) {
      for (const bool causal : {false, true}) {
        const Case c(gradient, dtype, {{"causal", causal}});
        EXPECT_TRUE(CudnnTakesAttention(c.Bind()));
        const absl::Status status =
            ValidateCudnnGraph(AttentionGraph(c.Bind()).graph);
        EXPECT_TRUE(status.ok()) << status;
      }
    }
  }
}

// [B, T, H, D] is described with its heads first, and stays where it is.
TEST(AttentionCudnnTest, HeadsComeFirst) {
  const Case c(/*gradient=*/true, DType::kF16, {{"scale", 0.5}});
  const BoundGraph bound = AttentionGraph(c.Bind());
  const std::vector<CudnnTensor>& tensors = bound.graph.tensors;
  ASSERT_EQ(tensors.size(), 9u);
  EXPECT_EQ(tensors[0].dims, (Dims4{2, 8, 128, 64}));
  EXPECT_EQ(tensors[0].strides, (Dims4{65536, 64, 512, 1}));
  EXPECT_EQ(tensors[5].dims, (Dims4{2, 8, 128, 1}));
  EXPECT_EQ(tensors[5].strides, (Dims4{1024, 128, 1, 1}));
  EXPECT_EQ(bound.sources[5].position, c.Bind().InputIndex("LogSumExp"));
  EXPECT_EQ(bound.sources[4].position, c.Bind().InputIndex("OutGrad"));
  EXPECT_EQ(tensors[8].dims, (Dims4{2, 4, 96, 64}));
  EXPECT_EQ(bound.sources[8].position, 2);
  EXPECT_TRUE(bound.sources[8].output);
  EXPECT_EQ(bound.graph.nodes[0].scale, 0.5f);
}

TEST(AttentionCudnnTest, LeavesTheRestToOurs) {
  EXPECT_FALSE(CudnnTakesAttention(Case(false, DType::kF32, {}).Bind()));
  EXPECT_FALSE(CudnnTakesAttention(Case(false, DType::kF16, {}, true).Bind()));
  EXPECT_FALSE(CudnnTakesAttention(
      Case(true, DType::kF16, {{"dropout_prob", 0.1}}).Bind()));
}

}  // namespace
}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
