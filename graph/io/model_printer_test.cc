#include "graph/io/model_printer.h"

#include <string>

#include "graph/io/model_reader.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

TEST(ModelPrinterTest, KeepsEveryField) {
  const std::string text = R"(name: "a\"b"
feed { name: "x" dims: [-1] }
param { name: "w" dtype: I64 dims: [3] init { normal { mean: 1 std: 0.1 } } trainable: false }
op { type: "sum" name: "s" in { slot: "X" var: "x" var: "y" } out { slot: "Out" } attr { name: "l" floats: [0.1, inf] }
     attr { name: "m" strings: "a" strings: "b" } attr { name: "e" } }
param { name: "unused" }
loss { mask: "m" denominator: "n" denominator: "o" }
)";
  const auto file = ParseModel(text, "m");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string printed = PrintModel(*file->model);
  const auto again = ParseModel(printed, "m");
  ASSERT_TRUE(again.ok()) << again.status() << printed;
  EXPECT_EQ(again->model->SerializeAsString(),
            file->model->SerializeAsString());
}

}  // namespace
}  // namespace halftone
