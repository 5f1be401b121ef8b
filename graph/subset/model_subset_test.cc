#include "graph/subset/model_subset.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/io/model_printer.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ModelFile Read(const std::string& name) {
  auto model = ReadModel(absl::StrCat("models/", name, ".pbtxt"));
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// Whatever ops are taken, what is left is a model.
TEST(WithOps, IsAlwaysAModel) {
  for (const char* name : {"mlp", "mnist_convnet", "small_resnet"}) {
    const ModelFile whole = Read(name);
    std::mt19937 random(3);
    for (int trial = 0; trial < 200; ++trial) {
      std::vector<int> ops;
      const unsigned one_in = 2 + trial % 5;
      for (int i = 0; i < whole.model->op_size(); ++i) {
        if (random() % one_in != 0) ops.push_back(i);
      }
      const ModelFile left = WithOps(whole, ops);
      if (left.model->op_size() == 0) continue;
      EXPECT_LE(left.model->op_size(), static_cast<int>(ops.size()));
      const auto program = BuildProgram(left);
      EXPECT_TRUE(program.ok()) << name << " " << program.status() << "\n"
                                << PrintModel(*left.model);
    }
  }
}

TEST(WithOps, OfAllIsTheSame) {
  const ModelFile whole = Read("mnist_convnet");
  std::vector<int> all(whole.model->op_size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  EXPECT_EQ(PrintModel(*WithOps(whole, all).model), PrintModel(*whole.model));
}

// A relu goes, and its reader reads what it read; a convolution's input of
// another type becomes a feed.
TEST(WithOps, ReadersReadAnInputOrAFeed) {
  const ModelFile whole = Read("mlp");
  std::vector<int> ops;
  for (int i = 0; i < whole.model->op_size(); ++i) {
    const std::string& type = whole.model->op(i).type();
    if (type != "relu" && type != "flatten") ops.push_back(i);
  }
  const std::string text = PrintModel(*WithOps(whole, ops).model);
  EXPECT_THAT(text, HasSubstr("{ slot: \"X\" var: \"fc1\" }"));
  EXPECT_THAT(text, HasSubstr("feed { name: \"flat\" dims: [-1, 784] }"));
  EXPECT_THAT(text, Not(HasSubstr("relu1")));
}

TEST(WithLossBehind, TakesNothingBehindTheOp) {
  const ModelFile whole = Read("mlp");
  for (int last = 0; last < whole.model->op_size(); ++last) {
    const ModelFile cut = WithLossBehind(whole, last);
    EXPECT_LE(cut.model->op_size(), last + 2);
    const std::string text = PrintModel(*cut.model);
    EXPECT_THAT(text, HasSubstr(".mean"));
    EXPECT_THAT(text, Not(HasSubstr("metric")));
  }
}

}  // namespace
}  // namespace halftone
