#include "kernels/common/dispatch.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Not;

TEST(DispatchTypeTest, CallsTheOneType) {
  int size = 0;
  DispatchType(AnyTypes(), DType::kF16, [&](auto tag) {
    size += static_cast<int>(sizeof(typename decltype(tag)::type));
  });
  EXPECT_EQ(size, 2);
}

TEST(DispatchTypeDeathTest, RefusesOtherTypes) {
  EXPECT_DEATH(DispatchType(LowTypes(), DType::kF32, [](auto) {}),
               "no such type");
}

TEST(AddForSchemaTest, AllTuplesAndLayouts) {
  KernelRegistry registry;
  AddForSchema(registry, "sum", Candidate());
  // 3 x 3 dtypes in two layouts.
  EXPECT_EQ(registry.Keys().size(), 18u);
  AddForSchema(registry, "check_finite", Candidate(), {"TL"});
  EXPECT_THAT(registry.Keys(), Contains("check_finite(invalid)@row_major"));
}

// What the compiler folds casts into.
TEST(AddForSchemaTest, KernelsThatTakeCastsOver) {
  const std::vector<std::string> keys = Kernels().Keys();
  EXPECT_THAT(keys,
              IsSupersetOf({
                  "image_normalize(u8,f16)@row_major",
                  "mean(f16,f32)@row_major",
                  "reduce_sum(f16,f32)@row_major",
                  "softmax(f16,f32)@row_major",
                  "softmax_with_cross_entropy(f16,i64)@row_major",
                  "softmax_with_cross_entropy_grad(f16,i64,f16)@row_major",
                  "softmax_with_cross_entropy_grad(f32,i64,bf16)@row_major",
                  "sum(f16,f32)@channels_last",
                  "unscale(f16,f32)@row_major",
                  "momentum(f32,f16,invalid)@row_major",
                  "momentum(f32,f16,f16)@channels_last",
                  "adam(bf16,bf16,invalid)@row_major",
              }));
  EXPECT_THAT(keys, Not(Contains("broadcast(f16)@row_major")));
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
