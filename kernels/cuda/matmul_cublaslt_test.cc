// Products as cuBLASLt's own objects, read back; no device is needed for that.
#include "kernels/cuda/matmul_cublaslt.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/ir/program.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// A block with one op, `line`, on the feeds "name : type, ...".
class OneOp {
 public:
  OneOp(const std::string& feeds, const std::string& line) {
    auto program =
        Parse(absl::StrCat("program \"p\"\nentry e {\n  feed ",
                           absl::StrReplaceAll(feeds, {{"; ", "\n  feed "}}),
                           "\n  ", line, "\n}\n"),
              "test");
    EXPECT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
  }
  BoundOp op() const {
    const Block& block = program_->entries()[0]->block();
    return BoundOp(block, block.op(block.first()), SymbolValues(),
                   BindContext());
  }

 private:
  std::unique_ptr<Program> program_;
};

// The same, a fusion whose body is `lines`; it makes its values `names`, which
// are `results` with their types.
OneOp Fusion(const std::string& pattern, const std::string& feeds,
             const std::string& lines, const std::string& names,
             const std::string& results) {
  std::string list;
  for (absl::string_view feed : absl::StrSplit(feeds, "; ")) {
    absl::StrAppend(&list, list.empty() ? "" : ", ",
                    feed.substr(0, feed.find(' ')));
  }
  return OneOp(
      feeds,
      absl::StrCat("f: fusion(X=[", list, "]) -> (Out=[", results,
                   "]) {pattern=\"", pattern, "\"}   forward body {\n    feed ",
                   absl::StrReplaceAll(feeds, {{"; ", "\n    feed "}}),
                   "\n    ", absl::StrReplaceAll(lines, {{"; ", "\n    "}}),
                   "\n    return ", names, "\n  }"));
}

// ---- What the library says that it was told.

template <typename T>
T Get(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute) {
  T value = {};
  size_t written = 0;
  EXPECT_EQ(cublasLtMatmulDescGetAttribute(desc, attribute, &value,
                                           sizeof(value), &written),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(written, sizeof(value));
  return value;
}
template <typename T>
T Get(cublasLtMatrixLayout_t layout,
      cublasLtMatrixLayoutAttribute_t attribute) {
  T value = {};
  size_t written = 0;
  EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(layout, attribute, &value,
                                             sizeof(value), &written),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(written, sizeof(value));
  return value;
}

// "f16 8x7 ld 8", "2 of f32 8x7 ld 8 every 56".
std::string Text(cublasLtMatrixLayout_t m) {
  const auto type = Get<uint32_t>(m, CUBLASLT_MATRIX_LAYOUT_TYPE);
  const auto batch = Get<int32_t>(m, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  EXPECT_EQ(Get<int32_t>(m, CUBLASLT_MATRIX_LAYOUT_ORDER), CUBLASLT_ORDER_COL);
  std::string text = absl::StrCat(
      type == CUDA_R_32F ? "f32" : (type == CUDA_R_16F ? "f16" : "bf16"), " ",
      Get<uint64_t>(m, CUBLASLT_MATRIX_LAYOUT_ROWS), "x",
      Get<uint64_t>(m, CUBLASLT_MATRIX_LAYOUT_COLS), " ld ",
      Get<int64_t>(m, CUBLASLT_MATRIX_LAYOUT_LD));
  if (batch == 1) return text;
  return absl::StrCat(
      batch, " of ", text, " every ",
      Get<int64_t>(m, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));
}

struct Told {
  std::string a, b, d;
  int epilogue;
  int64_t aux_pitch, aux_stride;
};

Told Tell(const BoundProduct& bound) {
  auto product = CublasLtProduct::Create(bound, "test");
  EXPECT_TRUE(product.ok()) << product.status();
  const cublasLtMatmulDesc_t desc = product->desc();
  const auto operation = [&](cublasLtMatmulDescAttributes_t attribute) {
    return Get<int32_t>(desc, attribute) == CUBLAS_OP_T ? "T " : "N ";
  };
  EXPECT_EQ(Get<int32_t>(desc, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE),
            CUBLAS_COMPUTE_32F);
  // One bias for all products of a batch.
  EXPECT_EQ(Get<int64_t>(desc, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE), 0);
  return {operation(CUBLASLT_MATMUL_DESC_TRANSA) + Text(product->a()),
          operation(CUBLASLT_MATMUL_DESC_TRANSB) + Text(product->b()),
          Text(product->d()),
          Get<int32_t>(desc, CUBLASLT_MATMUL_DESC_EPILOGUE),
          Get<int64_t>(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD),
          Get<int64_t>(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE)};
}

TEST(CublasLtProductTest, PlainProducts) {
  const OneOp biased("x : f16[5,7]; y : f16[7,3]; b : f16[3]",
                     "m: matmul(X=x, Y=y, Bias=b) -> (Out=m : f16[5,3])   "
                     "forward");
  const Told told = Tell(BindMatmul(biased.op()));
  EXPECT_EQ(told.a, "N f16 3x7 ld 3");
  EXPECT_EQ(told.b, "N f16 7x5 ld 7");
  EXPECT_EQ(told.d, "f16 3x5 ld 3");
  EXPECT_EQ(told.epilogue, CUBLASLT_EPILOGUE_BIAS);
  const OneOp batched("x : bf16[2,7,5]; y : bf16[2,3,7]",
                      "m: matmul(X=x, Y=y) -> (Out=m : f32[2,5,3]) "
                      "{trans_x=true, trans_y=true}   forward");
  const Told transposed = Tell(BindMatmul(batched.op()));
  EXPECT_EQ(transposed.a, "T 2 of bf16 7x3 ld 7 every 21");
  EXPECT_EQ(transposed.b, "T 2 of bf16 5x7 ld 5 every 35");
  EXPECT_EQ(transposed.d, "2 of f32 3x5 ld 3 every 15");
  EXPECT_EQ(transposed.epilogue, CUBLASLT_EPILOGUE_DEFAULT);
  const OneOp mul("x : f32[4,5,6]; y : f32[30,2]",
                  "m: mul(X=x, Y=y) -> (Out=m : f32[4,2])   forward");
  EXPECT_EQ(Tell(BindMul(mul.op())).b, "N f32 30x4 ld 30");
}

TEST(CublasLtProductTest, Gelu) {
  const char kFeeds[] = "x : f16[2,5,7]; w : f16[24,7]; b : f16[24]";
  const char kBody[] =
      "m: matmul(X=x, Y=w, Bias=b) -> (Out=m : f16[2,5,24]) {trans_y=true}   "
      "forward; y: gelu(X=m) -> (Out=y : f16[2,5,24]) {approximate=\"tanh\"}   "
      "forward";
  const OneOp kept = Fusion("matmul_gelu", kFeeds, kBody, "m, y",
                            "m : f16[2,5,24], y : f16[2,5,24]");
  const BoundProduct bound = BindMatmulFusion(kept.op());
  EXPECT_EQ(bound.refused, "");
  EXPECT_EQ(bound.aux_at.position, 0);
  EXPECT_EQ(bound.d_at.position, 1);
  EXPECT_EQ(bound.bias_at.position, 2);
  const Told told = Tell(bound);
  EXPECT_EQ(told.epilogue, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  EXPECT_EQ(told.a, "T f16 7x24 ld 7");
  EXPECT_EQ(told.b, "N f16 7x10 ld 7");  // leading dims are rows
  EXPECT_EQ(told.d, "f16 24x10 ld 24");
  EXPECT_EQ(told.aux_pitch, 24);
  const OneOp eval =
      Fusion("matmul_gelu", kFeeds, kBody, "y", "y : f16[2,5,24]");
  EXPECT_EQ(Tell(BindMatmulFusion(eval.op())).epilogue,
            CUBLASLT_EPILOGUE_GELU_BIAS);
}

TEST(CublasLtProductTest, GeluOfABatch) {
  const OneOp fusion = Fusion(
      "matmul_gelu", "x : f32[3,5,7]; w : f32[3,7,8]",
      "m: matmul(X=x, Y=w) -> (Out=m : f32[3,5,8])   forward; "
      "y: gelu(X=m) -> (Out=y : f32[3,5,8]) {approximate=\"tanh\"}   forward",
      "y, m", "y : f32[3,5,8], m : f32[3,5,8]");
  const Told told = Tell(BindMatmulFusion(fusion.op()));
  EXPECT_EQ(told.epilogue, CUBLASLT_EPILOGUE_GELU_AUX);
  EXPECT_EQ(told.d, "3 of f32 8x5 ld 8 every 40");
  EXPECT_EQ(told.aux_pitch, 8);
  EXPECT_EQ(told.aux_stride, 40);
}

// The gradient of `activation` ("gelu", "relu") through a product to [5, n];
// with the sum of its rows, or without.
OneOp Gradient(const std::string& activation, int n, bool sums, int depth = 7) {
  const std::string type = absl::StrCat("f16[5,", n, "]");
  const std::string gradient =
      activation == "gelu"
          ? absl::StrCat("y: gelu_grad(X=h, OutGrad=p) -> (XGrad=y : ", type,
                         ") {approximate=\"tanh\"}   backward")
          : absl::StrCat("y: relu_grad(Out=h, OutGrad=p) -> (XGrad=y : ", type,
                         ")   backward");
  const std::string sum = absl::StrCat("; s: reduce_sum(X=y) -> (Out=s : f16[",
                                       n, "]) {dim=[0]}   backward");
  return Fusion(
      absl::StrCat("matmul_", activation, "_grad"),
      absl::StrCat("g : f16[5,", depth, "]; w : f16[", n, ",", depth,
                   "]; h : ", type),
      absl::StrCat("p: matmul(X=g, Y=w) -> (Out=p : ", type,
                   ") {trans_y=true}   backward; ", gradient, sums ? sum : ""),
      sums ? "y, s" : "y",
      absl::StrCat("y : ", type,
                   sums ? absl::StrCat(", s : f16[", n, "]") : ""));
}

TEST(CublasLtProductTest, Gradients) {
  const OneOp gelu = Gradient("gelu", 16, true);
  const BoundProduct bound = BindMatmulFusion(gelu.op());
  EXPECT_EQ(bound.refused, "");
  EXPECT_EQ(bound.aux_at.position, 2);
  EXPECT_FALSE(bound.aux_at.output);
  EXPECT_EQ(bound.sums_at.position, 1);
  EXPECT_EQ(Tell(bound).epilogue, CUBLASLT_EPILOGUE_DGELU_BGRAD);
  EXPECT_EQ(Tell(bound).aux_pitch, 16);
  EXPECT_EQ(Tell(BindMatmulFusion(Gradient("gelu", 16, false).op())).epilogue,
            CUBLASLT_EPILOGUE_DGELU);
  EXPECT_EQ(Tell(BindMatmulFusion(Gradient("relu", 16, true).op())).epilogue,
            CUBLASLT_EPILOGUE_DRELU_BGRAD);
  EXPECT_EQ(Tell(BindMatmulFusion(Gradient("relu", 16, false).op())).epilogue,
            CUBLASLT_EPILOGUE_DRELU);
}

// Columns of a mask begin at multiples of 128 bits.
TEST(CublasLtProductTest, Masks) {
  const std::vector<std::pair<int, int>> kPitches = {
      {5, 128}, {128, 128}, {129, 256}};
  for (const auto& [rows, pitch] : kPitches) {
    const BoundProduct bound =
        BindMatmulFusion(Gradient("relu", rows, true).op());
    EXPECT_EQ(bound.refused, "");
    EXPECT_EQ(Tell(bound).aux_pitch, pitch);
    EXPECT_EQ(bound.mask_bytes(), pitch / 8 * 5);
  }
}

TEST(CublasLtProductTest, SumsOfAnOperand) {
  const char kSum[] =
      "; s: reduce_sum(X=g) -> (Out=s : f16[3]) {dim=[0]}   backward";
  const OneOp a = Fusion(
      "matmul_bias_grad", "x : f16[5,7]; g : f16[5,3]",
      absl::StrCat("w: matmul(X=x, Y=g) -> (Out=w : f16[7,3]) {trans_x=true}   "
                   "backward",
                   kSum),
      "w, s", "w : f16[7,3], s : f16[3]");
  const Told of_a = Tell(BindMatmulFusion(a.op()));
  EXPECT_EQ(of_a.epilogue, CUBLASLT_EPILOGUE_BGRADA);
  EXPECT_EQ(of_a.a, "N f16 3x5 ld 3");
  EXPECT_EQ(of_a.b, "T f16 7x5 ld 7");
  EXPECT_EQ(of_a.d, "f16 3x7 ld 3");
  const OneOp b = Fusion(
      "matmul_bias_grad", "x : f16[5,7]; g : f16[5,3]",
      absl::StrCat("w: matmul(X=g, Y=x) -> (Out=w : f16[3,7]) {trans_x=true}   "
                   "backward",
                   kSum),
      "w, s", "w : f16[3,7], s : f16[3]");
  const Told of_b = Tell(BindMatmulFusion(b.op()));
  EXPECT_EQ(of_b.epilogue, CUBLASLT_EPILOGUE_BGRADB);
  EXPECT_EQ(of_b.b, "T f16 3x5 ld 3");
  EXPECT_EQ(of_b.d, "f16 7x3 ld 7");
}

TEST(CublasLtProductTest, Pointers) {
  auto product = CublasLtProduct::Create(
      BindMatmulFusion(Gradient("gelu", 16, true).op()), "test");
  ASSERT_TRUE(product.ok()) << product.status();
  const auto vector = [&] {
    return Get<const void*>(product->desc(), CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  };
  const auto aux = [&] {
    return Get<const void*>(product->desc(),
                            CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
  };
  // For the heuristic, which looks at nothing but their alignment.
  EXPECT_EQ(reinterpret_cast<uintptr_t>(vector()), 16u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(aux()), 16u);
  const int at[2] = {};
  ASSERT_TRUE(product->SetPointers(&at[0], &at[1], "test").ok());
  EXPECT_EQ(vector(), &at[0]);
  EXPECT_EQ(aux(), &at[1]);
  auto plain = CublasLtProduct::Create(
      BindMatmul(OneOp("x : f16[5,7]; y : f16[7,3]",
                       "m: matmul(X=x, Y=y) -> (Out=m : f16[5,3])   forward")
                     .op()),
      "test");
  ASSERT_TRUE(plain.ok() && plain->SetPointers(&at[0], &at[1], "test").ok());
  EXPECT_EQ(Get<const void*>(plain->desc(), CUBLASLT_MATMUL_DESC_BIAS_POINTER),
            nullptr);
}

// ---- What is refused is inlined.

std::string Refused(const OneOp& fusion) {
  return BindMatmulFusion(fusion.op()).refused;
}

TEST(MatmulFusionTest, SaysWhyItIsRefused) {
  EXPECT_EQ(Refused(Gradient("gelu", 12, true)),
            "cuBLASLt wants what gelu read in rows of a multiple of 8 "
            "elements, found 12");
  EXPECT_EQ(Refused(Gradient("relu", 12, true)), "");
  EXPECT_EQ(Refused(Gradient("relu", 12, true, /*depth=*/1)),
            "cuBLASLt takes no gradient of a product of depth 1");
  const OneOp of_column = Fusion(
      "matmul_bias_grad", "x : f16[5,7]; g : f16[5,1]",
      "w: matmul(X=x, Y=g) -> (Out=w : f16[7,1]) {trans_x=true}   backward; "
      "s: reduce_sum(X=g) -> (Out=s : f16[1]) {dim=[0]}   backward",
      "w, s", "w : f16[7,1], s : f16[1]");
  EXPECT_EQ(Refused(of_column),
            "cuBLASLt does not sum an operand of one column");
}

TEST(MatmulFusionTest, WhatIsRefusedHasNoKernel) {
  KernelRegistry registry;
  RegisterCudaMatmul(registry);
  const auto kernels_of = [&](const OneOp& fusion) {
    const auto found = registry.Find(fusion.op());
    EXPECT_TRUE(found.ok()) << found.status();
    return found->size();
  };
  EXPECT_EQ(kernels_of(Gradient("gelu", 16, true)), 2u);
  EXPECT_EQ(kernels_of(Gradient("gelu", 12, true)), 0u);
}

}  // namespace
}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
