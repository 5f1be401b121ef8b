#include "tools/report/ops_report.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/common/model_flags.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A target with two kernels.
passes::KernelSet Kernels() {
  return passes::KernelSet("cpu",
                           {"relu(f32)@row_major", "relu(f16)@row_major"});
}

TEST(OpsReport, OneOp) {
  EXPECT_EQ(*OpText("relu", Kernels()),
            "relu, gray\n"
            "Out = max(X, 0).\n"
            "\n"
            "slot       type  shape and meaning\n"
            "X     in   T     any dims\n"
            "Out   out  T     dims of X\n"
            "\n"
            "kernels (cpu): relu(f16)@row_major relu(f32)@row_major\n");
  EXPECT_THAT(*OpText("matmul_v2", Kernels()),
              HasSubstr("matmul (alias matmul_v2), white\n"));
}

TEST(OpsReport, AllOps) {
  const std::string text = OpsText(Kernels());
  EXPECT_THAT(text, HasSubstr("kernels (cpu)"));
  EXPECT_THAT(text, HasSubstr("\naliases: "));
}

TEST(OpsReport, ClassesUnderOthersLists) {
  const std::string text = OpListsText();
  EXPECT_THAT(text, HasSubstr("\n-: in none of these lists"));
  auto classes = [&text](const std::string& op) {
    const size_t begin = text.find("\n" + op + " ") + 1;
    const std::string line = text.substr(begin, text.find('\n', begin) - begin);
    return std::vector<std::string>(
        absl::StrSplit(line, ' ', absl::SkipWhitespace()));
  };
  EXPECT_THAT(classes("op"),
              ElementsAre("op", "ours", "paddle", "fleetx", "torch", "apex"));
  EXPECT_THAT(classes("square"),
              ElementsAre("square", "black", "black", "black", "black", "-"));
  EXPECT_THAT(classes("prelu"),
              ElementsAre("prelu", "white", "-", "-", "white", "white"));
  const auto json = nlohmann::json::parse(*OpsJson("mean", Kernels()));
  EXPECT_EQ(json["ops"][0]["lists"].dump(),
            R"({"apex":null,"fleetx":"black","paddle":"black","torch":null})");
}

TEST(OpsReport, UnknownOps) {
  for (const auto& result :
       {OpText("rellu", Kernels()), OpsJson("rellu", Kernels())}) {
    EXPECT_EQ(ExitCodeOf(result.status()), ExitCode::kUsage);
    EXPECT_THAT(std::string(result.status().message()),
                HasSubstr("nearest: relu"));
  }
}

TEST(OpsJson, OneOrAll) {
  const auto one = nlohmann::json::parse(*OpsJson("relu", Kernels()));
  EXPECT_EQ(one["ops"].size(), 1u);
  EXPECT_EQ(one["ops"][0]["class"], "gray");
  EXPECT_EQ(one["ops"][0]["gradient"], true);
  EXPECT_EQ(one["ops"][0]["kernels"].size(), 2u);
  EXPECT_EQ(one["ops"][0]["inputs"],
            nlohmann::json::parse(R"([{"name":"X","type":"T","list":false,
                "optional":false,"keep_f32":false,"doc":"any dims"}])"));
  EXPECT_EQ(one["ops"][0]["outputs"][0]["name"], "Out");
  EXPECT_TRUE(one["ops"][0]["attributes"].empty());
  const auto all = nlohmann::json::parse(*OpsJson("", Kernels()));
  EXPECT_GT(all["ops"].size(), 40u);
}

TEST(OpsJson, SlotsAndAttributesOfEveryKind) {
  const auto op = [](const char* name) {
    return nlohmann::json::parse(*OpsJson(name, Kernels()))["ops"][0];
  };
  const auto conv = op("conv2d");
  std::map<std::string, nlohmann::json> attributes;
  for (const auto& attr : conv["attributes"]) attributes[attr["name"]] = attr;
  EXPECT_EQ(attributes["strides"]["kind"], "ints");
  EXPECT_EQ(attributes["strides"]["default"], (std::vector<int>{1, 1}));
  EXPECT_EQ(attributes["groups"]["default"], 1);
  const auto norm = op("batch_norm");
  EXPECT_EQ(norm["inputs"][1]["name"], "Scale");
  EXPECT_EQ(norm["inputs"][1]["keep_f32"], true);
  const auto dropout = op("dropout");
  EXPECT_EQ(dropout["inputs"].back()["filled_from"].is_string(), true);
  EXPECT_EQ(dropout["inputs"].back()["optional"], true);
  EXPECT_EQ(op("cast")["attributes"][0]["required"], true);
  EXPECT_TRUE(op("cast")["attributes"][0]["default"].is_null());
  EXPECT_EQ(op("matmul")["aliases"], (std::vector<std::string>{"matmul_v2"}));
}

TEST(OpsReport, OfModelsWithoutWhatPassesMake) {
  const auto kernels = KernelSetFor("cpu");
  ASSERT_TRUE(kernels.ok());
  EXPECT_THAT(OpsText(*kernels), HasSubstr("\ncheck_finite "));
  const std::string models = OpsText(*kernels, WhichOps::kOfModels);
  EXPECT_THAT(models, HasSubstr("\nconv2d "));
  EXPECT_THAT(models, Not(HasSubstr("\ncheck_finite ")));
  const auto json = OpsJson("", *kernels, WhichOps::kOfModels);
  ASSERT_TRUE(json.ok());
  EXPECT_THAT(*json, Not(HasSubstr("\"check_finite\"")));
}

}  // namespace
}  // namespace tools
}  // namespace halftone
