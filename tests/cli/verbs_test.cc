// What each verb prints, on which stream, and what it leaves behind; those that
// run are in run_verbs_test, plan and tune in plan_verbs_test.
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/verbs_testing.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CompileVerb, ReportsOnOneScreen) {
  const Result result =
      Halftone({"compile", "models/mnist_convnet.pbtxt", "--strategy",
                "models/mnist_o1.pbtxt", "-o", Temp(".htc")});
  EXPECT_EQ(result.exit_code(), 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(
      result.out,
      AllOf(StartsWith("precision     O1 fp16, rule all_low: 12 of 15 ops f16; "
                       "f32: ce, loss (black list), x (no float input)\n"
                       "casts         15 inserted = 12 replaced by f16 cells "
                       "beside the FP32 copies + 3 folded into kernels; 0 run "
                       "on their own\n"),
            HasSubstr("\ngradients     10 (29,034 values) in 2 all-reduces: "
                      "f16 57,876 B, f32 384 B; + 1 totals, + 4 for "
                      "sync_batch_norm; any number of ranks\n"),
            HasSubstr("\nupdate        momentum 0.9, lr 0.01 x 64/64 = 0.01 "
                      "constant; no weight decay on bn*\n"),
            HasSubstr("\nnote D8       conv1 (1 channel), fc (10 outputs)")));
}

TEST(CompileVerb, TheSameFilesGiveTheSameBytes) {
  const std::string again = Temp(".htc");
  Halftone({"compile", "models/mnist_convnet.pbtxt", "--strategy",
            "models/mnist_o1.pbtxt", "-o", again});
  EXPECT_EQ(ReadAll(again), ReadAll(Convnet()));
}

// What follows it on the screen would spoil it.
TEST(CompileVerb, WritesToStdoutAlone) {
  const std::string file = Temp(".htc");
  CompileConvnet(file);
  for (const char* out : {"-", "/dev/stdout"}) {
    const Result result =
        Halftone({"compile", "models/mnist_convnet.pbtxt", "--strategy",
                  "models/mnist_o1.pbtxt", "-o", out});
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    EXPECT_TRUE(result.out == ReadAll(file)) << out;
    EXPECT_THAT(result.err, HasSubstr("precision "));
  }
}

TEST(CompileVerb, WithoutAnOptimizerItSaysSo) {
  const Result result = Halftone({"compile", "models/mlp.pbtxt"});
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("forward and eval only"));
}

TEST(CompileVerb, JsonHasTotalsPassesAndNotes) {
  const json object = MustParse(Halftone({"compile", Convnet(), "--json"}));
  EXPECT_EQ(object["totals"]["standalone"], 0);
  EXPECT_EQ(object["notes"][0]["code"], "D8");
  EXPECT_GT(object["passes"].size(), 10u);
  for (const json& pass : object["passes"]) {
    EXPECT_TRUE(pass.contains("name") && pass.contains("ms") &&
                pass.contains("changed"));
  }
}

TEST(InspectVerb, NamesEveryOpAndCast) {
  const Result result = Halftone({"inspect", Convnet()});
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("GRAY_ALL_LOW <- conv1; 4 slots "
                                    "KEEP_F32_SLOT"));
  EXPECT_THAT(result.out, HasSubstr("301,056  folded into x"));
  EXPECT_THAT(result.out, HasSubstr("6 weights + 6 grads"));
  EXPECT_THAT(result.out, HasSubstr("standalone casts: 0"));
  EXPECT_THAT(result.out, HasSubstr("FP32 copies 115,752"));
  EXPECT_LE(std::vector<std::string>(absl::StrSplit(result.out, '\n')).size(),
            30u);
}

TEST(InspectVerb, FoldsRepeatedScopes) {
  const std::string model = Temp(".pbtxt");
  ASSERT_EQ(Halftone({"zoo", "resnet50", "-o", model}).exit_code(), 0);
  const Result folded =
      Halftone({"inspect", model, "--level", "O1", "--batch-size", "8"});
  EXPECT_EQ(folded.exit_code(), 0) << folded.err;
  EXPECT_THAT(folded.out, HasSubstr(" x"));
  EXPECT_LE(std::vector<std::string>(absl::StrSplit(folded.out, '\n')).size(),
            60u);
  const Result all = Halftone(
      {"inspect", model, "--level", "O1", "--batch-size", "8", "--all"});
  EXPECT_GT(all.out.size(), 3 * folded.out.size());
}

TEST(InspectVerb, JsonIsComplete) {
  const json object = MustParse(Halftone({"inspect", Convnet(), "--json"}));
  EXPECT_EQ(object["model"], "mnist_convnet");
  EXPECT_EQ(object["level"], "O1");
  EXPECT_EQ(object["dtype"], "f16");
  EXPECT_EQ(object["totals"]["casts_down"], 8);
  EXPECT_EQ(object["totals"]["casts_up"], 7);
  EXPECT_EQ(object["params"].size(), 10u);
  EXPECT_EQ(object["buckets"].size(), 2u);
  for (const json& op : object["ops"]) EXPECT_NE(op["reason"], "");
  for (const json& cast : object["casts"]) {
    EXPECT_THAT((std::vector<std::string>{"standalone", "folded", "cell"}),
                ::testing::Contains(cast["fate"]));
  }
}

TEST(InspectVerb, HtmlIsOnePage) {
  const Result result = Halftone({"inspect", Convnet(), "--html"});
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_THAT(result.out, AllOf(StartsWith("<!DOCTYPE html>"),
                                HasSubstr("logits.cast_fp32"),
                                ::testing::EndsWith("</html>\n")));
}

// It is taken or refused, never passed over.
TEST(InspectVerb, AScopeIsTakenOrRefused) {
  const json object = MustParse(
      Halftone({"inspect", Convnet(), "--scope", "conv1*", "--json"}));
  EXPECT_EQ(object["ops"][0]["name"], "conv1");
  for (const json& op : object["ops"]) {
    EXPECT_THAT(std::string(op["name"]), StartsWith("conv1"));
  }
  for (const char* form : {"--html", "--dump"}) {
    const Result result =
        Halftone({"inspect", Convnet(), "--scope", "conv1*", form});
    EXPECT_EQ(result.exit_code(), 2) << form;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(HasSubstr("--scope"), HasSubstr(form)));
  }
}

TEST(DiffVerb, TellsEqualFromDifferent) {
  EXPECT_EQ(Halftone({"diff", Convnet(), Convnet()}).exit_code(), 0);
  const std::string other = Temp(".htc");
  ASSERT_EQ(Halftone({"compile", Convnet(), "--black", "matmul", "-o", other})
                .exit_code(),
            0);
  const Result result = Halftone({"diff", Convnet(), other});
  EXPECT_EQ(result.exit_code(), 3);
  EXPECT_THAT(result.out,
              AllOf(StartsWith("precision  fc f16->f32 USER_BLACK, logits "
                               "f16->f32 GRAY_F32_INPUT <- fc, "),
                    HasSubstr("15 -> 11 inserted; - logits.cast_fp32 "
                              "logits.grad; + flat.cast_fp32 flat.grad"),
                    HasSubstr("all-reduce f16 57,876 -> 26,496 B, f32 384 -> "
                              "63,144 B")));
}

TEST(ExplainVerb, KnowsNamesAndCodes) {
  const Result op = Halftone({"explain", Convnet(), "logits"});
  EXPECT_THAT(op.out,
              AllOf(HasSubstr("GRAY_ALL_LOW <- fc"),
                    HasSubstr("models/mnist_convnet.pbtxt:31"),
                    HasSubstr("WHITE_LIST"), HasSubstr("--black-op logits")));
  EXPECT_THAT(Halftone({"explain", Convnet(), "logits.cast_fp32"}).out,
              HasSubstr("folded into ce"));
  // The op that defines the loss stays f32: no flag is offered.
  EXPECT_EQ(Halftone({"explain", Convnet(), "loss"}).out.find("change"),
            std::string::npos);
  for (const char* code : {"D8", "GRAY_ALL_LOW", "E7", "143"}) {
    EXPECT_EQ(Halftone({"explain", code}).exit_code(), 0) << code;
    EXPECT_TRUE(
        MustParse(Halftone({"explain", code, "--json"}))["text"].is_string());
  }
  for (const char* name : {"image", "conv1.w", "bn1.mean", "@lr", "loss"}) {
    EXPECT_EQ(
        MustParse(Halftone({"explain", Convnet(), name, "--json"}))["name"],
        name);
  }
  const Result unknown = Halftone({"explain", Convnet(), "logit"});
  EXPECT_EQ(unknown.exit_code(), 2);
  EXPECT_THAT(unknown.err, HasSubstr("nearest: logits"));
}

TEST(ExplainVerb, KnowsTheStrategy) {
  const Result all = Halftone({"explain", "strategy"});
  EXPECT_EQ(all.exit_code(), 0) << all.err;
  EXPECT_THAT(all.out, ContainsRegex("\namp.level +O0 +O0, O1, O2 or O3 +"
                                     "--level\n"));
  EXPECT_THAT(all.out, ContainsRegex("\ntrain.batch_size +unset: batch_size_"
                                     "per_rank says it +a whole number above "
                                     "0 +--batch-size\n"));
  const json list = MustParse(Halftone({"explain", "strategy", "--json"}));
  EXPECT_GT(list["fields"].size(), 40u);

  // One field: what of it depends on the level, and what a run may change.
  const Result scale =
      Halftone({"explain", "strategy", "amp.loss_scaling.init_loss_scaling"});
  EXPECT_THAT(scale.out,
              AllOf(StartsWith("field      amp.loss_scaling.init_loss_scaling\n"
                               "means      The scale of the first step.\n"
                               "takes      a number from 1.17549435e-38 to "
                               "3.40282347e+38\n"
                               "default    by level\n"),
                    HasSubstr("O1 fp16 32768, O1 bf16 1, "),
                    HasSubstr("paddle 32768, apex 65536, torch 65536"),
                    HasSubstr("--loss-scale, --set amp.loss_scaling."),
                    HasSubstr("compile again")));
  const json epochs =
      MustParse(Halftone({"explain", "strategy", "train.epochs", "--json"}));
  EXPECT_EQ(epochs["flag"], "--epochs");
  EXPECT_EQ(epochs["default"], "1");
  EXPECT_EQ(epochs["leaves_graph_alone"], true);
  EXPECT_EQ(epochs["agrees_on_all_ranks"], true);

  const Result part = Halftone({"explain", "strategy", "optimizer.adamw"});
  EXPECT_THAT(part.out,
              AllOf(StartsWith("optimizer.adamw: Adam with decoupled"),
                    HasSubstr("optimizer.adamw.beta2")));
  const Result unknown = Halftone({"explain", "strategy", "amp.levl"});
  EXPECT_EQ(unknown.exit_code(), 2);
  EXPECT_THAT(unknown.err, HasSubstr("\"amp.levl\"; nearest: amp.level"));
}

// The flag and the field are one: whatever the one takes, the other does.
TEST(StrategyFlags, SetTheFieldThatNamesThem) {
  const json list = MustParse(Halftone({"explain", "strategy", "--json"}));
  const std::string help = Halftone({"compile", "--help"}).out;
  int flags = 0;
  for (const json& field : list["fields"]) {
    if (field["flag"].is_null()) continue;
    ++flags;
    const std::string flag = std::string(field["flag"]);
    EXPECT_THAT(help, HasSubstr("  " + flag.substr(0, flag.find(' ')))) << flag;
  }
  EXPECT_EQ(flags, 15);
  const auto compiled = [](std::vector<std::string> more) {
    const std::string path = Temp(".htc");
    more.insert(more.begin(), {"compile", "models/mlp.pbtxt", "-o", path});
    EXPECT_EQ(Halftone(more).exit_code(), 0);
    return path;
  };
  const Result equal = Halftone(
      {"diff",
       compiled({"--level", "O1", "--loss-scale", "dynamic", "--epochs", "3",
                 "--strict-f32-slots", "--black", "relu"}),
       compiled({"--set", "amp.level=O1", "--set",
                 "amp.loss_scaling.use_dynamic_loss_scaling=true", "--set",
                 "train.epochs=3", "--set", "amp.strict_f32_slots=true",
                 "--set", "amp.custom_black_list=relu"})});
  EXPECT_EQ(equal.exit_code(), 0) << equal.out << equal.err;
}

TEST(VersionVerb, SaysWhatItIsAndRunsOn) {
  const Result result = Halftone({"version"});
  EXPECT_EQ(result.exit_code(), 0);
  EXPECT_THAT(result.out,
              AllOf(StartsWith("halftone "), HasSubstr("compiled models of "),
                    HasSubstr(" cores, ")));
  const json object = MustParse(Halftone({"version", "--json"}));
  EXPECT_EQ(object["compiled_model_format"], 3);
  EXPECT_THAT(object["targets"], ::testing::Contains("cpu"));
  for (const char* key : {"version", "device"}) {
    const std::string value = object[key];
    EXPECT_THAT(result.out, HasSubstr(value));
  }
}

TEST(OpsVerb, ListsAndDescribes) {
  EXPECT_THAT(Halftone({"ops"}).out, HasSubstr("softmax_with_cross_entropy"));
  EXPECT_THAT(Halftone({"ops", "matmul_v2"}).out, StartsWith("matmul (alias"));
  EXPECT_GT(MustParse(Halftone({"ops", "--json"}))["ops"].size(), 40u);
  EXPECT_EQ(MustParse(Halftone({"ops", "relu", "--json"}))["ops"].size(), 1u);
  EXPECT_EQ(Halftone({"ops", "rellu", "--json"}).exit_code(), 2);
}

TEST(ZooVerb, WritesModelsThatCompile) {
  const Result names = Halftone({"zoo"});
  const std::vector<std::string> list =
      absl::StrSplit(names.out, '\n', absl::SkipEmpty());
  EXPECT_GE(list.size(), 5u);
  for (const std::string& name : list) {
    const std::string path = Temp(".pbtxt");
    ASSERT_EQ(Halftone({"zoo", name, "-o", path}).exit_code(), 0) << name;
    for (const char* level : {"O0", "O1", "O2", "O3"}) {
      const Result compiled =
          Halftone({"compile", path, "--level", level, "--target", "cpu",
                    "--set", "optimizer.momentum.momentum=0.9"});
      EXPECT_EQ(compiled.exit_code(), 0) << name << " " << compiled.err;
      EXPECT_THAT(compiled.out, HasSubstr("\ngradients     "));
    }
  }
}

TEST(ZooVerb, JsonHasSizes) {
  const json list = MustParse(Halftone({"zoo", "--json"}));
  EXPECT_EQ(list["models"][0]["name"], "mnist_convnet");
  const std::string path = Temp(".pbtxt");
  const json vgg = MustParse(Halftone({"zoo", "vgg16", "-o", path, "--json"}));
  EXPECT_EQ(vgg["parameters"], 138357544);
  EXPECT_EQ(vgg["tensors"], 32);
  EXPECT_EQ(vgg["path"], path);
  EXPECT_EQ(ReadAll(path), Halftone({"zoo", "vgg16"}).out);
  const json small = MustParse(
      Halftone({"zoo", "resnet18", "--classes", "10", "-o", path, "--json"}));
  EXPECT_EQ(small["parameters"], 11689512 - 990 * 513);
  EXPECT_EQ(small["options"], json::array({"image-size", "classes", "width"}));
}

// The other direction has the same eyes.
TEST(ExportVerb, WritesTheRewrittenProgram) {
  const std::string program = Temp(".pdmodel");
  const json facts = MustParse(Halftone(
      {"export", Convnet(), "--format", "pdmodel", "-o", program, "--json"}));
  EXPECT_GT(facts["ops"], 60);
  EXPECT_GT(facts["casts"], 4);
  const Result read = Halftone({"import", program, "-o", Temp(".pbtxt")});
  EXPECT_THAT(read.out + read.err, HasSubstr("Paddle 2.6.2")) << read.err;
  const std::vector<std::vector<std::string>> wrong = {
      {"--format", "pdmodl"}, {"--format", "pdmodel", "--dtype", "f16"}};
  for (std::vector<std::string> flags : wrong) {
    flags.insert(flags.begin(), {"export", Convnet(), "-o", program});
    EXPECT_EQ(Halftone(flags).exit_code(), 2);
  }
}

}  // namespace
}  // namespace halftone
