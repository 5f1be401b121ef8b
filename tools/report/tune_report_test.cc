#include "tools/report/tune_report.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/report/testing/test_models.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TuneReport, BindsWhatEachRankGets) {
  const auto even = TuneBindings(Convnet(), 0, 4);
  ASSERT_TRUE(even.ok()) << even.status();
  ASSERT_EQ(even->size(), 2u);
  EXPECT_EQ((*even)[0].entry, "train");
  EXPECT_EQ((*even)[0].symbols[0], 16);
  EXPECT_EQ((*even)[1].entry, "eval");
  const auto odd = TuneBindings(Convnet(), 31, 2);
  ASSERT_EQ(odd->size(), 4u);
  EXPECT_EQ((*odd)[0].symbols[0], 16);
  EXPECT_EQ((*odd)[1].symbols[0], 15);
  EXPECT_EQ(TuneBindings(Convnet(), 1, 2)->size(), 2u);  // one has none
}

// What runs are micro-batches then.
TEST(TuneReport, BindsMicroBatches) {
  const auto bound = [](const char* path, const char* value, int64_t batch) {
    std::vector<std::string> found;
    const auto bindings = TuneBindings(
        CompileConvnet({{path, value, "--set"},
                        {"dist.sync_batch_norm", "false", "--set"}}),
        batch, 2);
    EXPECT_TRUE(bindings.ok()) << bindings.status();
    for (const runtime::TuneBinding& binding : *bindings) {
      found.push_back(absl::StrCat(binding.entry, " ", binding.symbols[0]));
    }
    return found;
  };
  EXPECT_THAT(bound("dist.virtual_shards", "8", 64),
              ElementsAre("train 8", "accumulate 8", "eval 32"));
  EXPECT_THAT(
      bound("dist.gradient_merge.k_steps", "2", 30),
      ElementsAre("train 7", "accumulate 8", "accumulate 7", "eval 15"));
}

runtime::Tuned Example() {
  runtime::Tuned tuned;
  tuned.table.device_description = "a device";
  tuned.table.Set("conv2d|x", {"fast", 0, true});
  tuned.table.rates = {20'000'000'000, 0, 400'000'000'000};
  runtime::TunedOp op;
  op.key = "conv2d|x";
  op.first = "conv1";
  op.type = "conv2d";
  op.uses = 3;
  op.candidates = {{"slow", 812.4, ""}, {"fast", 50.25, ""}, {"none", 0, "no"}};
  op.chosen = 1;
  tuned.ops = {op};
  return tuned;
}

TEST(TuneReport, SaysWhatWasTimedAndChosen) {
  const std::string text = TuneText(Example(), 7, "m.tuning.json");
  EXPECT_THAT(text,
              HasSubstr("conv1  conv2d  3     slow 812, fast 50.2, none -"));
  EXPECT_THAT(text,
              HasSubstr("chosen   1 other than the default; all uses "
                        "2437 -> 151 us\nreached  20 GB/s, 400 GFLOP/s in "
                        "f32; plan --roofline predicts by it\n"
                        "m.tuning.json  "));
  EXPECT_THAT(text, HasSubstr("timed    1 shape of ops with several kernels, "
                              "median of 7 runs, caches flushed"));
  EXPECT_THAT(TuneText(Example(), 1, "p"), HasSubstr("median of 1 run, "));
  EXPECT_THAT(TuneText(runtime::Tuned(), 7, "p"), Not(HasSubstr("candidates")));
}

TEST(TuneReport, AsJson) {
  const auto json =
      nlohmann::json::parse(TuneJson(Example(), 7, "m.tuning.json"));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["table"], "m.tuning.json");
  EXPECT_EQ(json["rates"]["memory"], 20e9);
  EXPECT_EQ(json["ops"][0]["chosen"], "fast");
  EXPECT_EQ(json["ops"][0]["candidates"][2]["failure"], "no");
}

}  // namespace
}  // namespace tools
}  // namespace halftone
