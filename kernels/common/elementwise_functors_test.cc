#include "kernels/common/elementwise_functors.h"

#include <set>
#include <string>

#include "graph/fusions/families.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "gtest/gtest.h"

namespace halftone {
namespace kernels {
namespace {

std::set<std::string> Listed() {
  std::set<std::string> ops;
  ForEachElementwise(
      [&](const auto& functor) { ops.insert(std::string(functor.op)); });
  return ops;
}

// An op that is left out would take every chain with it to pieces.
TEST(ElementwiseFunctors, AreThereForAllElementwiseOps) {
  const std::set<std::string> listed = Listed();
  for (const OpSchema* schema : Ops().All()) {
    if (!fusions::JoinsChains(*schema) || schema->name() == "sum") continue;
    EXPECT_EQ(listed.count(schema->name()), 1u) << schema->name();
  }
}

TEST(ElementwiseFunctors, AreOfElementwiseOps) {
  for (const std::string& op : Listed()) {
    const OpSchema* schema = Ops().Find(op);
    ASSERT_NE(schema, nullptr) << op;
    EXPECT_TRUE(schema->element_wise()) << op;
  }
}

TEST(FunctorSettings, ThereAndBack) {
  const auto scale = FunctorSettings::Of(functors::ScaleOp{2, 3, true})
                         .As<functors::ScaleOp>();
  EXPECT_EQ(scale(5), 13);
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
