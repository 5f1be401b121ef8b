// precision_rule min_cost beside all placements that there are: programs small
// enough to try them, compiled with each, by what their inserted casts move.
#include "passes/precision/place_by_cost.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/io/model_reader.h"
#include "graph/ir/well_known.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/precision/assign_precision.h"
#include "passes/report.h"
#include "passes/testing/kernels.h"

namespace halftone {
namespace passes {
namespace {

// Ops of all classes on values of several widths, with a loss that reads
// whatever nothing else does.
class RandomModel {
 public:
  explicit RandomModel(int seed) : random_(seed) {
    text_ = "name: 'random' feed { name: 'v0' dims: [-1, 4] }\n";
    values_ = {{"v0", 4, 0}};
    AddProduct(values_[0]);
    const int ops = 4 + Below(5);
    for (int i = 0; i < ops; ++i) AddOp();
    Close();
  }
  const std::string& text() const { return text_; }

 private:
  struct Value {
    std::string name;
    int width;
    int readers;
  };

  int Below(int n) { return static_cast<int>(random_() % n); }
  Value& Pick() { return values_[Below(static_cast<int>(values_.size()))]; }

  void Add(const std::string& type, const std::vector<std::string>& inputs,
           int width, const std::string& attrs = "") {
    const std::string name = absl::StrCat("v", values_.size());
    absl::StrAppend(&text_, "op { type: '", type, "' ");
    for (const std::string& input : inputs) {
      absl::StrAppend(&text_, "in { ", input, " } ");
    }
    absl::StrAppend(&text_, "out { slot: 'Out' var: '", name, "' } ", attrs,
                    " }\n");
    values_.push_back({name, width, 0});
  }

  std::string Read(const std::string& slot, Value& value) {
    ++value.readers;
    return absl::StrCat("slot: '", slot, "' var: '", value.name, "'");
  }

  void AddProduct(Value& x) {
    const std::string weight = absl::StrCat("w", values_.size());
    absl::StrAppend(&text_, "param { name: '", weight, "' dims: [", x.width,
                    ", 4] init { constant: 1 } }\n");
    Add("matmul", {Read("X", x), absl::StrCat("slot: 'Y' var: '", weight, "'")},
        4);
  }

  void AddOp() {
    Value& x = Pick();
    const int width = x.width;
    switch (Below(6)) {
      case 0:
        AddProduct(x);
        break;
      case 1:
        Add("exp", {Read("X", x)}, width);
        break;
      case 2:
      case 3: {
        Value& y = Pick();
        if (y.width == width) {
          Add("elementwise_add", {Read("X", x), Read("Y", y)}, width);
        } else {
          Add("concat", {absl::StrCat(Read("X", x), " var: '", y.name, "'")},
              width + y.width, "attr { name: 'axis' i: 1 }");
          ++y.readers;
        }
        break;
      }
      default:
        Add("tanh", {Read("X", x)}, width);
    }
  }

  void Close() {
    std::string all = "slot: 'X'";
    int width = 0;
    for (const Value& value : values_) {
      if (value.readers > 0) continue;
      absl::StrAppend(&all, " var: '", value.name, "'");
      width += value.width;
    }
    Add("concat", {all}, width, "attr { name: 'axis' i: 1 }");
    Value& joined = values_.back();
    const std::string loss = absl::StrCat("v", values_.size());
    const std::string over = joined.name;
    Add("mean", {Read("X", joined)}, 1);
    absl::StrAppend(&text_, "loss { var: '", loss, "' mean_over: '", over,
                    "' }\n");
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<Value> values_;
};

Options With(const std::string& rule, const std::vector<std::string>& low = {},
             const std::vector<std::string>& f32 = {}) {
  StrategyFile file;
  proto::Amp& amp = *file.strategy.mutable_amp();
  amp.set_level("O1");
  amp.set_precision_rule(rule);
  for (const std::string& op : low) amp.add_custom_white_opnames(op);
  for (const std::string& op : f32) amp.add_custom_black_opnames(op);
  file.strategy.mutable_optimizer()->mutable_sgd();
  auto options = ResolveOptions(file, {});
  EXPECT_TRUE(options.ok()) << options.status();
  return *std::move(options);
}

// What the casts that a compiled program had at insertion move, cells' apart.
int64_t InsertedBytes(const ModelFile& model, const Options& options) {
  const auto compiled = Compile(model, options, AllKernels(), {});
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return -1;
  int64_t bytes = 0;
  compiled->casts.ForEach([&bytes](const proto::CastRow& cast) {
    if (cast.fate() != "cell") bytes += BytesPerStep(cast, 1);
  });
  return bytes;
}

TEST(PlaceByCostTest, IsTheBestOfAllPlacements) {
  int better_than_all_low = 0;
  for (int seed = 1; seed <= 30; ++seed) {
    const RandomModel random(seed);
    const auto model = ParseModel(random.text(), "random.pbtxt");
    ASSERT_TRUE(model.ok()) << model.status() << random.text();
    const auto program = BuildProgram(*model);
    ASSERT_TRUE(program.ok()) << program.status() << random.text();
    const auto decisions =
        AssignPrecision(With("min_cost"), AllKernels()).Decide(**program);
    ASSERT_TRUE(decisions.ok()) << decisions.status();
    const Block& block = (*program)->FindEntry(kTrainEntry)->block();
    std::vector<std::string> open;
    std::vector<bool> by_cut;
    for (OpId op : block.ops()) {
      const Decision& decision = (*decisions)[op.index()];
      if (decision.reason != Reason::kMinCut) continue;
      open.emplace_back(block.name(block.op(op)));
      by_cut.push_back(decision.precision == DType::kF16);
    }
    if (open.size() > 5) continue;
    auto bytes_of = [&](const std::vector<bool>& is_low) {
      std::vector<std::string> low, f32;
      for (size_t i = 0; i < open.size(); ++i) {
        (is_low[i] ? low : f32).push_back(open[i]);
      }
      return InsertedBytes(*model, With("all_low", low, f32));
    };
    const int64_t cut = bytes_of(by_cut);
    for (int bits = 0; bits < 1 << open.size(); ++bits) {
      std::vector<bool> is_low(open.size());
      for (size_t i = 0; i < open.size(); ++i) is_low[i] = (bits >> i) & 1;
      EXPECT_LE(cut, bytes_of(is_low)) << "seed " << seed << random.text();
    }
    better_than_all_low += cut < InsertedBytes(*model, With("all_low"));
  }
  EXPECT_GT(better_than_all_low, 0);
}

}  // namespace
}  // namespace passes
}  // namespace halftone
