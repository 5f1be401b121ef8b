#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

Call Matmul(std::string x, std::string y,
            std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
  return {"matmul", {{"X", x}, {"Y", y}}, attrs};
}

TEST(Matmul, OutputDims) {
  EXPECT_EQ(Infer(Matmul("f32[B,784]", "f32[784,10]")), "Out=f32[B,10]");
  EXPECT_EQ(Infer(Matmul("f16[B,S,64]", "f16[64,32]")), "Out=f16[B,S,32]");
  EXPECT_EQ(
      Infer(Matmul("f16[B,12,S,64]", "f16[B,12,S,64]", {{"trans_y", true}})),
      "Out=f16[B,12,S,S]");
  EXPECT_EQ(Infer(Matmul("f32[64,B]", "f32[64,5]", {{"trans_x", true}})),
            "Out=f32[B,5]");
  EXPECT_EQ(Infer(Matmul("f32[0,4]", "f32[4,3]")), "Out=f32[0,3]");
  EXPECT_EQ(Infer(Matmul("f32[B*16,4]", "f32[4,3]")), "Out=f32[B*16,3]");
}

TEST(Matmul, BiasAndOutputType) {
  Call call = Matmul("f16[B,4]", "f16[4,3]");
  call.in.emplace_back("Bias", "f16[3]");
  call.bind = {{"TOut", "f32"}};
  EXPECT_EQ(Infer(call), "Out=f32[B,3]");
  call.in.back().second = "f16[4]";
  EXPECT_EQ(Infer(call),
            "op (matmul): slot Bias: expected dims [3] (N of Y), found f16[4]; "
            "change its dims or those of the slots named");
}

TEST(Matmul, Errors) {
  EXPECT_EQ(Infer(Matmul("f32[B,784]", "f32[256,10]")),
            "op (matmul): slot Y: expected [..., K, N] with K = [784] of X, "
            "f32[B,784], found f32[256,10]; check trans_x and trans_y, or "
            "flatten X");
  EXPECT_EQ(Infer(Matmul("f32[B,4]", "f32[4,10]", {{"trans_y", true}})),
            "op (matmul): slot Y: expected [..., N, K] with K = [4] of X, "
            "f32[B,4], found f32[4,10]; check trans_x and trans_y, or "
            "flatten X");
  EXPECT_EQ(Infer(Matmul("f32[784]", "f32[784,10]")),
            "op (matmul): slot X: expected [..., M, K] (rank at least 2), "
            "found f32[784]; reshape or flatten it first");
  EXPECT_EQ(Infer(Matmul("f32[B,2,4,4]", "f32[3,4,4]")),
            "op (matmul): slot Y: expected rank 2, or the leading dims [B,2] "
            "of X, f32[B,2,4,4], found f32[3,4,4]; leading dims are not "
            "broadcast");
  EXPECT_THAT(Infer(Matmul("f32[4,4]", "f32[B,4,4]")),
              HasSubstr("slot Y: expected rank 2, or the leading dims []"));
  EXPECT_EQ(Infer(Matmul("f32[B,4,S]", "f32[4,3]", {{"trans_x", true}})),
            "op (matmul): attribute trans_x: expected false where X has "
            "leading dims and Y none, found true; transpose X first");
  EXPECT_THAT(Infer(Matmul("f32[B,4]", "f16[4,3]")),
              HasSubstr("slot Y: expected f32"));
}

// All four transposes of matrices: dX and dY have X's and Y's dims.
TEST(Matmul, GradientOfMatrices) {
  EXPECT_EQ(GradientInAllTypes(Matmul("T[B,4]", "T[4,3]")),
            "matmul(X=dOut, Y=Y) {trans_y=true} -> X.grad : f16[B,4]\n"
            "matmul(X=X, Y=dOut) {trans_x=true} -> Y.grad : f16[4,3]\n"
            "X <- X.grad\nY <- Y.grad\n");
  EXPECT_EQ(GradientInAllTypes(Matmul("T[4,B]", "T[4,3]", {{"trans_x", true}})),
            "matmul(X=Y, Y=dOut) {trans_y=true} -> X.grad : f16[4,B]\n"
            "matmul(X=X, Y=dOut) -> Y.grad : f16[4,3]\n"
            "X <- X.grad\nY <- Y.grad\n");
  EXPECT_EQ(GradientInAllTypes(Matmul("T[B,4]", "T[3,4]", {{"trans_y", true}})),
            "matmul(X=dOut, Y=Y) -> X.grad : f16[B,4]\n"
            "matmul(X=dOut, Y=X) {trans_x=true} -> Y.grad : f16[3,4]\n"
            "X <- X.grad\nY <- Y.grad\n");
  EXPECT_EQ(GradientInAllTypes(Matmul("T[4,B]", "T[3,4]",
                                      {{"trans_x", true}, {"trans_y", true}})),
            "matmul(X=Y, Y=dOut) {trans_x=true trans_y=true} -> X.grad : "
            "f16[4,B]\n"
            "matmul(X=dOut, Y=X) {trans_x=true trans_y=true} -> Y.grad : "
            "f16[3,4]\n"
            "X <- X.grad\nY <- Y.grad\n");
}

TEST(Matmul, GradientOfASharedMatrix) {
  Call call = Matmul("T[B,S,4]", "T[4,3]");
  call.in.emplace_back("Bias", "T[3]");
  EXPECT_EQ(
      GradientInAllTypes(call),
      "reduce_sum(X=dOut) {dim=[0,1]} -> Bias.grad : f16[3]\n"
      "matmul(X=dOut, Y=Y) {trans_y=true} -> X.grad : f16[B,S,4]\n"
      "flatten(X=X) {start_axis=0 stop_axis=1} -> op.grad.2.Out : "
      "f16[B*S,4]\n"
      "flatten(X=dOut) {start_axis=0 stop_axis=1} -> op.grad.3.Out : "
      "f16[B*S,3]\n"
      "matmul(X=op.grad.2.Out, Y=op.grad.3.Out) {trans_x=true} -> Y.grad : "
      "f16[4,3]\n"
      "X <- X.grad\nY <- Y.grad\nBias <- Bias.grad\n");
}

TEST(Matmul, GradientOfBatches) {
  EXPECT_EQ(GradientInAllTypes(
                Matmul("T[B,2,S,4]", "T[B,2,S,4]", {{"trans_y", true}})),
            "matmul(X=dOut, Y=Y) -> X.grad : f16[B,2,S,4]\n"
            "matmul(X=dOut, Y=X) {trans_x=true} -> Y.grad : f16[B,2,S,4]\n"
            "X <- X.grad\nY <- Y.grad\n");
}

TEST(Matmul, GradientRunsInTheOperandsType) {
  Call call = Matmul("f16[B,4]", "f16[4,3]");
  call.bind = {{"TOut", "f32"}};
  call.wanted = {"X"};
  EXPECT_EQ(Gradient(call),
            "cast(X=dOut) {to=f16} -> op.grad.Out : f16[B,3]\n"
            "matmul(X=op.grad.Out, Y=Y) {trans_y=true} -> X.grad : f16[B,4]\n"
            "X <- X.grad\n");
}

Call Mul(std::string x, std::string y, int64_t x_dims, int64_t y_dims) {
  return {"mul",
          {{"X", x}, {"Y", y}},
          {{"x_num_col_dims", x_dims}, {"y_num_col_dims", y_dims}}};
}

TEST(Mul, OutputDims) {
  EXPECT_EQ(Infer(Mul("f32[B,3,4]", "f32[12,10]", 1, 1)), "Out=f32[B,10]");
  EXPECT_EQ(Infer(Mul("f32[B,S,4]", "f32[2,2,5,6]", 2, 2)), "Out=f32[B,S,5,6]");
  EXPECT_EQ(Infer(Mul("f32[B,3,4]", "f32[10,12]", 1, 1)),
            "op (mul): slot Y: expected rows of [12] in all, X's columns, X "
            "being f32[B,3,4], found f32[10,12]; check x_num_col_dims and "
            "y_num_col_dims");
  EXPECT_EQ(Infer(Mul("f32[B,3,4]", "f32[12,10]", 3, 1)),
            "op (mul): attribute x_num_col_dims: expected 1 to 2, found 3");
}

TEST(Mul, GradientOfMatrices) {
  EXPECT_EQ(GradientInAllTypes(Mul("T[B,4]", "T[4,3]", 1, 1)),
            "matmul(X=dOut, Y=Y) {trans_y=true} -> X.grad : f16[B,4]\n"
            "matmul(X=X, Y=dOut) {trans_x=true} -> Y.grad : f16[4,3]\n"
            "X <- X.grad\nY <- Y.grad\n");
}

TEST(Mul, GradientOfImages) {
  Call call = Mul("T[B,3,4]", "T[12,10]", 1, 1);
  call.wanted = {"X"};
  EXPECT_EQ(GradientInAllTypes(call),
            "matmul(X=dOut, Y=Y) {trans_y=true} -> op.grad.Out : f16[B,12]\n"
            "reshape_like(X=op.grad.Out, Like=X) -> X.grad : f16[B,3,4]\n"
            "X <- X.grad\n");
  EXPECT_EQ(GradientInAllTypes(Mul("T[B,S,4]", "T[2,2,5,6]", 2, 2)),
            "flatten(X=dOut) {start_axis=2 stop_axis=3} -> op.grad.Out : "
            "f16[B,S,30]\n"
            "flatten(X=op.grad.Out) {start_axis=0 stop_axis=1} -> "
            "op.grad.1.Out : f16[B*S,30]\n"
            "flatten(X=Y) {start_axis=2 stop_axis=3} -> op.grad.2.Out : "
            "f16[2,2,30]\n"
            "flatten(X=op.grad.2.Out) {start_axis=0 stop_axis=1} -> "
            "op.grad.3.Out : f16[4,30]\n"
            "matmul(X=op.grad.1.Out, Y=op.grad.3.Out) {trans_y=true} -> "
            "op.grad.4.Out : f16[B*S,4]\n"
            "reshape_like(X=op.grad.4.Out, Like=X) -> X.grad : f16[B,S,4]\n"
            "flatten(X=X) {start_axis=0 stop_axis=1} -> op.grad.6.Out : "
            "f16[B*S,4]\n"
            "matmul(X=op.grad.6.Out, Y=op.grad.1.Out) {trans_x=true} -> "
            "op.grad.7.Out : f16[4,30]\n"
            "reshape_like(X=op.grad.7.Out, Like=Y) -> Y.grad : "
            "f16[2,2,5,6]\n"
            "X <- X.grad\nY <- Y.grad\n");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
