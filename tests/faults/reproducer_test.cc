// A bug of the compiler, met through the real verbs: an op whose gradient has
// other dims than its input, which append-backward refuses with exit code 4, or
// whose gradient does not get past a check.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/schema/grad_context.h"
#include "graph/schema/infer_context.h"
#include "graph/schema/op_library.h"
#include "graph/schema/op_schema.h"
#include "gtest/gtest.h"
#include "kernels/common/dispatch.h"
#include "kernels/kernel_registry.h"
#include "nlohmann/json.hpp"
#include "tools/command.h"

namespace halftone {
namespace kernels {

KernelRegistry& GrowingKernels();  // of kernels/register_all.cc

}  // namespace kernels

namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

enum class Bug { kOtherDims, kFailedCheck, kFixed };
Bug bug = Bug::kOtherDims;

OpSchema Broken() {
  return OpSchema("broken")
      .Doc("Out = X, with a wrong gradient.")
      .TypeVar("T", kFloatTypes)
      .In("X", "T", "[...]")
      .Out("Out", "T", "as X")
      .Infer([](InferContext& c) {
        c.SetOutput("Out", c.Input("X").dims);
        return absl::OkStatus();
      })
      .Grad([](GradContext& g) -> absl::Status {
        HT_CHECK(bug != Bug::kFailedCheck, "no slot has a gradient");
        if (bug == Bug::kOtherDims) {
          return g.SetGrad("X", g.Emit("mean").In("X", g.OutGrad("Out")));
        }
        g.SetGrad("X", g.OutGrad("Out"));
        return absl::OkStatus();
      })
      .Amp(AmpClass::kGray);
}

auto DoNothing(const kernels::BoundOp&) {
  return [](const kernels::Buffers&, runtime::Stream&) {};
}

// A hundred ops in a chain, the one in the middle broken.
std::string Model() {
  std::string text =
      "name: 'chain' format: 1\n"
      "feed { name: 'x' dims: [-1, 8] }\n"
      "param { name: 'w' dims: [8, 8] init { normal { std: 0.1 } } }\n"
      "op { type: 'matmul' in { slot: 'X' var: 'x' } in { slot: 'Y' var: 'w' } "
      "out { slot: 'Out' var: 'v0' } }\n";
  for (int i = 1; i <= 98; ++i) {
    const char* const type = i == 50 ? "broken" : i % 2 == 0 ? "relu" : "tanh";
    absl::StrAppend(&text, "op { type: '", type, "' in { slot: 'X' var: 'v",
                    i - 1, "' } out { slot: 'Out' var: 'v", i, "' } }\n");
  }
  return text +
         "op { type: 'mean' in { slot: 'X' var: 'v98' } "
         "out { slot: 'Out' var: 'loss' } }\n"
         "loss { var: 'loss' mean_over: 'v98' }\n";
}

std::string Scratch() {
  static int made = 0;
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/bugs-", getpid(), "-", made++);
  fs::create_directories(path);
  return path;
}
void WriteTo(const std::string& path, const std::string& content) {
  ASSERT_TRUE(WriteFileAtomically(path, content).ok()) << path;
}
std::string Content(const std::string& path) {
  return ReadFile(path).value_or("");
}

struct Ended {
  int code;
  std::string out, err;
};

Ended Halftone(const std::vector<std::string>& words) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = RunCommand(words);
  const std::string out = ::testing::internal::GetCapturedStdout();
  return {code, out, ::testing::internal::GetCapturedStderr()};
}

class ReproducerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(AddOpLibrary({"test", "1", "test.so", "0"}, {Broken()}).ok());
    kernels::AddForSchema(kernels::GrowingKernels(), "broken",
                          kernels::MakeCandidate("nothing", DoNothing));
  }
  ReproducerTest() : home_(fs::current_path()), here_(Scratch()) {
    bug = Bug::kOtherDims;
    WriteTo(here_ + "/chain.pbtxt", Model());
    WriteTo(here_ + "/s.pbtxt",
            "amp { level: 'O1' op_lists: 'lists.pbtxt' }\n"
            "optimizer { sgd {} } lr { base: 0.1 constant: true }\n");
    WriteTo(here_ + "/lists.pbtxt",
            "op_lists { white: 'matmul' gray: 'broken' unlisted: 'GRAY' }\n");
    fs::current_path(here_);
  }
  ~ReproducerTest() override { fs::current_path(home_); }

  // The one folder that is there.
  static std::string Folder() {
    std::string found;
    for (const auto& entry : fs::directory_iterator(".")) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("halftone-bug-", 0) != 0) continue;
      EXPECT_EQ(found, "");
      found = name;
    }
    return found;
  }
  static Ended Compile() {
    return Halftone({"compile", "chain.pbtxt", "--strategy", "s.pbtxt"});
  }

  const fs::path home_;
  const std::string here_;
};

TEST_F(ReproducerTest, IsWrittenAndRunsAgain) {
  const Ended compiled = Compile();
  EXPECT_EQ(compiled.code, 4) << compiled.err;
  const std::string folder = Folder();
  ASSERT_NE(folder, "");
  EXPECT_THAT(compiled.err,
              AllOf(StartsWith("error    v50 (broken): gradient of slot X"),
                    HasSubstr("(pass append-backward)"),
                    EndsWith("again: halftone replay " + folder + "\n")));
  // Of the strategy nothing is needed but the folder.
  fs::remove("s.pbtxt");
  fs::remove("lists.pbtxt");
  fs::remove("chain.pbtxt");
  const Ended again = Halftone({"replay", folder});
  EXPECT_EQ(again.code, 4);
  // The same message, but for the folder's name; no further folder.
  EXPECT_EQ(again.err,
            compiled.err.substr(0, compiled.err.find("; please")) + "\n");
  EXPECT_EQ(Folder(), folder);
  const auto manifest = nlohmann::json::parse(
      Content(folder + "/reproducer.json")
          .substr(0, Content(folder + "/reproducer.json").find('\n')));
  EXPECT_EQ(manifest["pass"], "append-backward");
  EXPECT_THAT(manifest["version"].get<std::string>(), StartsWith("halftone "));
  EXPECT_EQ(manifest["op_libraries"][0]["name"], "test");

  bug = Bug::kFixed;
  const Ended gone = Halftone({"replay", folder});
  EXPECT_EQ(gone.code, 0) << gone.err;
  EXPECT_THAT(gone.out, StartsWith("fixed    the model compiles"));
  EXPECT_EQ(nlohmann::json::parse(
                Halftone({"replay", folder, "--json"}).out)["fixed"],
            true);
}

// The same bug has one folder, wherever passes run.
TEST_F(ReproducerTest, OtherVerbsWriteItToo) {
  Compile();
  const std::string folder = Folder();
  for (const char* verb : {"plan", "inspect"}) {
    const Ended ended =
        Halftone({verb, "chain.pbtxt", "--strategy", "s.pbtxt"});
    EXPECT_EQ(ended.code, 4) << verb;
    EXPECT_THAT(ended.err, HasSubstr(folder)) << verb;
  }
  EXPECT_EQ(Halftone({"run", "chain.pbtxt", "--strategy", "s.pbtxt", "--data",
                      "synthetic:16"})
                .code,
            4);
}

TEST_F(ReproducerTest, OfAWrongModelThereIsNone) {
  WriteTo("chain.pbtxt", "name: 'x' op { type: 'nothing' }");
  EXPECT_EQ(Compile().code, 1);
  EXPECT_EQ(Folder(), "");
}

TEST_F(ReproducerTest, DamagesAreNamed) {
  Compile();
  const std::string folder = Folder();
  ASSERT_NE(folder, "");
  for (const char* name :
       {"reproducer.json", "model.pbtxt", "strategy.pbtxt", "op_lists.pbtxt"}) {
    const std::string path = absl::StrCat(folder, "/", name);
    const std::string good = Content(path);
    std::string flipped = good;
    flipped[good.size() / 2] ^= 1;
    for (const std::string& damaged :
         {std::string(), good.substr(0, good.size() / 2), flipped}) {
      WriteTo(path, damaged);
      const Ended ended = Halftone({"replay", folder});
      EXPECT_EQ(ended.code, 8) << name << ended.err;
      EXPECT_THAT(ended.err, HasSubstr(path));
    }
    fs::remove(path);
    const Ended ended = Halftone({"replay", folder});
    EXPECT_EQ(ended.code, 8) << name << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(name));
    WriteTo(path, good);
  }
  EXPECT_EQ(Halftone({"replay", folder}).code, 4);
  EXPECT_EQ(Halftone({"replay", folder + "/nothing"}).code, 8);
}

TEST_F(ReproducerTest, AHundredOpsBecomeThree) {
  Compile();
  const std::string folder = Folder();
  const Ended reduced = Halftone({"reduce", folder, "-o", "small"});
  EXPECT_EQ(reduced.code, 0) << reduced.err;
  EXPECT_THAT(reduced.out, StartsWith("reduced  100 ops to 3, by "));
  const std::string model = Content("small/model.pbtxt");
  EXPECT_THAT(model, AllOf(HasSubstr("broken"), HasSubstr("mean"),
                           Not(HasSubstr("relu")), Not(HasSubstr("tanh"))));
  const Ended replayed = Halftone({"replay", "small"});
  EXPECT_EQ(replayed.code, 4);
  EXPECT_THAT(replayed.err, HasSubstr("(pass append-backward)"));
  bug = Bug::kFixed;
  EXPECT_EQ(Halftone({"reduce", folder, "-o", "none"}).code, 2);
}

// A check that fails ends the process: the same folder, code and message as of
// any bug; who runs it again lives on.
TEST_F(ReproducerTest, AFailedCheckLeavesOneToo) {
  bug = Bug::kFailedCheck;
  const char kMessage[] =
      "error    a check failed: .*reproducer_test.cc:[0-9]+: .*: no slot has a "
      "gradient \\(pass append-backward\\); .* halftone replay halftone-bug-";
  EXPECT_EXIT(RunCommand({"compile", "chain.pbtxt", "--strategy", "s.pbtxt"}),
              ::testing::ExitedWithCode(4), kMessage);
  const std::string folder = Folder();
  ASSERT_NE(folder, "");
  const Ended again = Halftone({"replay", folder});
  EXPECT_EQ(again.code, 4);
  EXPECT_THAT(again.err, AllOf(StartsWith("error    a check failed: "),
                               EndsWith("(pass append-backward)\n")));
  EXPECT_EQ(Folder(), folder);
  const Ended reduced = Halftone({"reduce", folder, "-o", "small"});
  EXPECT_EQ(reduced.code, 0) << reduced.err;
  EXPECT_THAT(reduced.out, StartsWith("reduced  100 ops to 3, by "));
  EXPECT_EQ(Halftone({"replay", "small"}).code, 4);
  bug = Bug::kFixed;
  EXPECT_EQ(Halftone({"replay", folder}).code, 0);
}

TEST_F(ReproducerTest, SoDoesOneOfOpt) {
  const std::vector<std::string> opt = {
      "opt",     "chain.pbtxt", "--strategy",
      "s.pbtxt", "--passes",    "precision,scale-loss,append-backward"};
  const Ended ended = Halftone(opt);
  EXPECT_EQ(ended.code, 4) << ended.err;
  const std::string folder = Folder();
  ASSERT_NE(folder, "");
  EXPECT_THAT(ended.err, AllOf(HasSubstr("(pass append-backward)"),
                               EndsWith("halftone replay " + folder + "\n")));
  EXPECT_EQ(Halftone({"replay", folder}).err,
            ended.err.substr(0, ended.err.find("; please")) + "\n");
  // Of a program in text form, too: what precision leaves.
  bug = Bug::kFixed;
  EXPECT_EQ(Halftone({"replay", folder}).code, 0);
  EXPECT_EQ(Halftone({"reduce", folder}).code, 2);
  ASSERT_EQ(Halftone({"opt", "chain.pbtxt", "--strategy", "s.pbtxt", "--passes",
                      "precision,scale-loss", "-o", "low.ht"})
                .code,
            0);
  fs::remove_all(folder);
  bug = Bug::kFailedCheck;
  EXPECT_EXIT(RunCommand({"opt", "low.ht", "--strategy", "s.pbtxt", "--passes",
                          "append-backward"}),
              ::testing::ExitedWithCode(4), "halftone replay halftone-bug-");
  EXPECT_EQ(Halftone({"replay", Folder()}).code, 4);
  bug = Bug::kFixed;
  EXPECT_EQ(Halftone({"replay", Folder()}).code, 0);
}

// Any command that fails will do.
TEST_F(ReproducerTest, ModelsAreReducedByACommand) {
  const Ended reduced = Halftone({"reduce", "chain.pbtxt", "-o", "small.pbtxt",
                                  "--check", "! grep -q broken {}"});
  EXPECT_EQ(reduced.code, 0) << reduced.err;
  EXPECT_THAT(reduced.out, StartsWith("reduced  100 ops to 1, by "));
  EXPECT_THAT(Content("small.pbtxt"), HasSubstr("broken"));
  EXPECT_EQ(Halftone({"reduce", "chain.pbtxt", "--check", "true {}"}).code, 2);
  EXPECT_EQ(Halftone({"reduce", "chain.pbtxt", "--check", "false"}).code, 2);
}

}  // namespace
}  // namespace halftone
