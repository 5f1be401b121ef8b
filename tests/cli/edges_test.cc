// Every verb where its surroundings are hostile: streams that are closed or
// full, names that are no text, flags that are mistyped. One table of verbs;
// a new verb is a line of it.
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "graph/base/wrap.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/data/image/image_testing.h"
#include "tests/support/child.h"
#include "tests/support/terminal.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Temp(const std::string& name) {
  static int names = 0;
  return absl::StrCat(::testing::TempDir(), "/", getpid(), "-x", names++, name);
}

std::string Quoted(const std::string& word) {
  return absl::StrCat("'", word, "'");
}

// Through a shell, with redirections behind it.
Result Shell(const std::string& arguments, const std::string& redirections) {
  return RunProgram(
      {"/bin/sh", "-c",
       absl::StrCat("exec tools/halftone ", arguments, " ", redirections)});
}

constexpr char kMlp[] = "models/mnist_convnet.pbtxt";
constexpr char kRun[] =
    " --strategy models/mnist_o1.pbtxt --data idx:models/digits --epochs 1";

// In a directory whose name is no UTF-8: a model and a finished run.
const std::string& Directory() {
  static const std::string& path = *new std::string([] {
    const std::string directory = Temp("-\xff\xc3-dir");
    EXPECT_EQ(RunProgram({"/bin/mkdir", directory}).exit_code(), 0);
    EXPECT_EQ(RunProgram({"/bin/cp", kMlp, directory + "/m.pbtxt"}).exit_code(),
              0);
    EXPECT_TRUE(
        WriteFileAtomically(directory + "/p.png",
                            runtime::EncodePng(runtime::TestImage(4, 4)))
            .ok());
    EXPECT_TRUE(
        WriteFileAtomically(directory + "/pictures.txt", "p.png 0\n").ok());
    EXPECT_TRUE(WriteFileAtomically(directory + "/good.pbtxt",
                                    "amp { level: \"O1\" "
                                    "custom_black_opnames: \"fc\" }\n"
                                    "train { batch_size: 8 }\n")
                    .ok());
    const Result run =
        Shell(absl::StrCat("run ", Quoted(directory + "/m.pbtxt"), kRun,
                           " --out ", Quoted(directory + "/run")),
              "");
    EXPECT_EQ(run.exit_code(), 0) << run.err;
    const Result rejected =
        Shell(absl::StrCat("run ", Quoted(directory + "/m.pbtxt"), kRun,
                           " --loss-scale 1e30 --capsule 1 --out ",
                           Quoted(directory + "/rejected")),
              "");
    EXPECT_EQ(rejected.exit_code(), 0) << rejected.err;
    return directory;
  }());
  return path;
}

struct Verb {
  const char* name;
  std::string arguments;  // a command that succeeds and prints
  bool json = true;
};

std::vector<Verb> Verbs() {
  const std::string model = Quoted(Directory() + "/m.pbtxt");
  const std::string run = Quoted(Directory() + "/run");
  const std::string strategy = " --strategy models/mnist_o1.pbtxt";
  static int outs = 0;
  const std::string out = Quoted(absl::StrCat(Directory(), "/out-", ++outs));
  return {
      {"compile", absl::StrCat(model, strategy, " -o ", out)},
      {"run", absl::StrCat(model, kRun)},
      {"launch",
       absl::StrCat("--ranks 2 --log-dir ", out, ".logs run ", model, kRun),
       false},
      {"eval", absl::StrCat(run, " --data idx:models/digits")},
      {"predict", absl::StrCat(run, " --data idx:models/digits")},
      {"inspect", absl::StrCat(model, strategy)},
      {"explain", absl::StrCat(run, " logits")},
      {"diff", absl::StrCat(run, " ", run)},
      {"lint", absl::StrCat(model, strategy)},
      {"report", run},
      {"compare", absl::StrCat(run,
                               " --against O0 --batch 4 --data "
                               "idx:models/digits")},
      {"replay", Quoted(Directory() + "/rejected/capsules/step-1")},
      {"reduce",
       absl::StrCat(model, " --check '! grep -q softmax {}' -o ", out)},
      {"export", absl::StrCat(run, "/ckpt/step-23 -o ", out, ".st")},
      {"import", absl::StrCat("tests/cli/paddle/small.pdmodel -o ", out)},
      {"plan", absl::StrCat(run, "/ckpt")},
      {"tune", absl::StrCat(model, " --runs 1 --batch 4 -o ", out, ".json")},
      {"search",
       absl::StrCat(model, strategy,
                    " --data idx:models/digits --epochs 1 --tolerance loss:9 "
                    "--within-lists --out ",
                    out, ".search")},
      {"bisect",
       absl::StrCat(
           model, " --level O1 --batch-size 8 --data idx:models/digits",
           " --good ", Quoted(Directory() + "/good.pbtxt"),
           " --tolerance max_abs:0 --values logits --out ", out, ".bisect")},
      {"ckpt ls", run},
      {"ckpt verify", absl::StrCat(run, "/ckpt")},
      {"data verify",
       absl::StrCat("filelist:", Quoted(Directory() + "/pictures.txt"))},
      {"data bench", absl::StrCat("idx:models/digits ", model,
                                  " --batch-size 8 --seconds 0.01")},
      {"ops", "relu"},
      {"opt", absl::StrCat(model, strategy, " --passes all")},
      {"zoo", ""},
      {"doctor", ""},
      {"completion", "bash", false},
      {"version", ""},
  };
}

TEST(EveryVerb, HelpBeginsWithExamples) {
  std::vector<std::string> names = {"", "ckpt", "data"};
  for (const Verb& verb : Verbs()) names.push_back(verb.name);
  for (const std::string& name : names) {
    const Result help = Shell(name + " --help", "");
    EXPECT_EQ(help.exit_code(), 0) << name;
    EXPECT_THAT(help.out, StartsWith("examples:\n  halftone ")) << name;
    EXPECT_EQ(help.err, "");
  }
  // The table is whole: every verb that --help lists is in it.
  const std::string help = Shell("--help", "").out;
  const size_t list = help.find("Subcommands:");
  ASSERT_NE(list, std::string::npos);
  for (absl::string_view line :
       absl::StrSplit(help.substr(list), '\n', absl::SkipEmpty())) {
    if (!absl::StartsWith(line, "  ") || line[2] == ' ') continue;
    const std::string verb(line.substr(2, line.find(' ', 2) - 2));
    EXPECT_THAT(names, ::testing::Contains(verb));
  }
}

TEST(EveryVerb, MistypedFlagsGetTheNearest) {
  for (const Verb& verb : Verbs()) {
    const std::string name = verb.name;
    const auto [flag, nearest] =
        name == "launch"       ? std::make_pair("--rnks", "--ranks")
        : name == "completion" ? std::make_pair("--wrds", "--words")
                               : std::make_pair("--jsn", "--json");
    for (const char* help : {"", " --help"}) {
      if (name == "launch" && *help != '\0') continue;  // the command's
      const Result result =
          Shell(absl::StrCat(name, " ", flag, " ", verb.arguments, help), "");
      EXPECT_EQ(result.exit_code(), 2) << name << help;
      EXPECT_EQ(result.out, "");
      EXPECT_THAT(result.err,
                  HasSubstr(absl::StrCat(flag, "; nearest: ", nearest)))
          << name << help;
    }
  }
}

TEST(EveryVerb, MistypedVerbsAreNoCryForHelp) {
  const std::pair<const char*, const char*> kCases[] = {
      {"inspct --help", "nearest: inspect"},
      {"ckpt lss --help", "nearest: ls"},
      {"--verison", "nearest: --version"},
      {"--hlp", "nearest: --help"},
  };
  for (const auto& [words, nearest] : kCases) {
    const Result result = Shell(words, "");
    EXPECT_EQ(result.exit_code(), 2) << words;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(nearest));
  }
}

// Whatever is lost is an error, also where the verb did all that it was told.
TEST(EveryVerb, OutputThatCannotBeWritten) {
  for (const Verb& verb : Verbs()) {
    const std::string command = absl::StrCat(verb.name, " ", verb.arguments);
    const Result full = Shell(command, "> /dev/full");
    EXPECT_EQ(full.exit_code(), 1) << verb.name;
    EXPECT_THAT(full.err, HasSubstr("error    stdout cannot be written"))
        << verb.name;
  }
  for (const Verb& verb : Verbs()) {
    const Result closed =
        Shell(absl::StrCat(verb.name, " ", verb.arguments), ">&-");
    EXPECT_EQ(closed.exit_code(), 1) << verb.name;
    EXPECT_THAT(closed.err, HasSubstr("error    stdout cannot be written"))
        << verb.name;
  }
  for (const char* words : {"--help", "--version", "inspect --help"}) {
    EXPECT_EQ(Shell(words, "> /dev/full").exit_code(), 1) << words;
  }
}

TEST(EveryVerb, AClosedStderrIsNobodysLoss) {
  for (const Verb& verb : Verbs()) {
    EXPECT_EQ(
        Shell(absl::StrCat(verb.name, " ", verb.arguments), "2>&-").exit_code(),
        0)
        << verb.name;
  }
}

// No file of a run gets the number of a console, and so its lines.
TEST(RunVerb, ClosedStreamsDoNotEndInItsFiles) {
  for (const char* closed : {"2>&-", "0<&- 2>&-", "0<&- >&- 2>&-"}) {
    for (const char* launch : {"", "launch --ranks 2 "}) {
      const std::string out = Temp("-closed");
      Shell(absl::StrCat(launch, "run ", kMlp, kRun, " --out ", out), closed);
      const std::string metrics = ReadAll(out + "/metrics.jsonl");
      int lines = 0;
      for (absl::string_view line :
           absl::StrSplit(metrics, '\n', absl::SkipEmpty())) {
        EXPECT_TRUE(json::accept(line.begin(), line.end())) << line;
        ++lines;
      }
      EXPECT_GE(lines, 3) << launch << closed;
      EXPECT_TRUE(json::accept(ReadAll(out + "/summary.json")));
    }
  }
}

TEST(EveryVerb, PathsThatAreNoUtf8InJson) {
  for (const Verb& verb : Verbs()) {
    if (!verb.json) continue;
    const Result result =
        Shell(absl::StrCat(verb.name, " ", verb.arguments, " --json"), "");
    EXPECT_EQ(result.exit_code(), 0) << verb.name << result.err;
    EXPECT_TRUE(json::accept(result.out)) << verb.name << ": " << result.out;
  }
}

TEST(Terminal, ColoursPrecisionsAndWarningsUnlessTold) {
  const std::string model = Quoted(Directory() + "/run/model.htc");
  const std::string inspect = absl::StrCat("tools/halftone inspect ", model);
  const std::string shown = OnTerminal(inspect, 200);
  EXPECT_THAT(shown, HasSubstr("\033[32mf16\033[0m"));
  EXPECT_THAT(shown, HasSubstr("\033[36mf32\033[0m"));
  EXPECT_THAT(OnTerminal("tools/halftone inspct", 80),
              HasSubstr("\033[1;31merror\033[0m"));
  for (const char* verb : {"compile", "diff", "explain"}) {
    const std::string behind = std::string(verb) == "diff" ? kMlp : "logits";
    EXPECT_THAT(OnTerminal(absl::StrCat("tools/halftone ", verb, " ", model,
                                        " ", verb[0] == 'c' ? "" : behind),
                           80),
                HasSubstr("\033[3"))
        << verb;
  }
  // What programs read is not coloured anywhere.
  for (const char* plain : {"--json", "--dump", "| cat"}) {
    EXPECT_EQ(OnTerminal(absl::StrCat(inspect, " ", plain), 200).find('\033'),
              std::string::npos)
        << plain;
  }
  EXPECT_EQ(OnTerminal("NO_COLOR=1 " + inspect, 200).find('\033'),
            std::string::npos);
}

TEST(RunVerb, SaysThatVirtualShardsOverruleThreads) {
  const std::string run = absl::StrCat(
      "run ", kMlp,
      " --strategy models/mnist_fp32.pbtxt --data synthetic:64 --epochs 1 "
      "--set dist.sync_batch_norm=false --set dist.virtual_shards=2 "
      "--threads ");
  const Result two = Shell(run + "2", "");
  EXPECT_EQ(two.exit_code(), 0);
  EXPECT_THAT(two.err,
              HasSubstr("note     --threads 2: a CPU rank computes with 1"));
  EXPECT_THAT(Shell(run + "1", "").err, Not(HasSubstr("computes with 1")));
}

// A run that goes on without evals does not show those of the run before.
TEST(Resumed, WithoutEvalsShowsNone) {
  const std::string out = Temp("-resumed");
  const std::string run = absl::StrCat(
      "run ", kMlp,
      " --strategy models/mnist_o1.pbtxt --data idx:models/digits --out ", out);
  ASSERT_EQ(Shell(run + " --epochs 1", "").exit_code(), 0);
  json summary = json::parse(ReadAll(out + "/summary.json"));
  EXPECT_TRUE(summary["metrics"].contains("top1"));
  const Result more =
      Shell(run + " --epochs 2 --resume --eval-every never", "");
  ASSERT_EQ(more.exit_code(), 0) << more.err;
  EXPECT_FALSE(absl::StrContains(more.err, "top1")) << more.err;
  summary = json::parse(ReadAll(out + "/summary.json"));
  EXPECT_TRUE(summary["metrics"].empty()) << summary;
  EXPECT_TRUE(summary["eval_loss"].is_null()) << summary;
}

TEST(Terminal, ColoursWhatTheLauncherSays) {
  const std::string failing =
      "tools/halftone launch --ranks 2 -- sh -c 'echo Error: at f16 >&2; exit "
      "5'";
  const std::string shown = OnTerminal(failing, 200);
  EXPECT_THAT(shown, HasSubstr("\033[1;31merror\033[0m    rank "));
  EXPECT_THAT(shown, HasSubstr("[1] Error: at f16\n"));  // its own
  EXPECT_THAT(OnTerminal("tools/halftone launch --ranks 0 -- true", 200),
              HasSubstr("\033[1;31merror\033[0m    --ranks"));
  EXPECT_EQ(OnTerminal("NO_COLOR=1 " + failing, 200).find('\033'),
            std::string::npos);
}

// Whatever they are about; tables keep their columns.
TEST(Terminal, AnswersFitIt) {
  const std::string run = Quoted(Directory() + "/run");
  for (const std::string& command : std::vector<std::string>{
           "ops",
           "ops conv2d",
           "explain",
           "explain P1",
           "explain --list",
           "explain strategy",
           "doctor",
           "version",
           "opt --list",
           absl::StrCat("explain ", run, " logits"),
           absl::StrCat("explain ", run, " conv1.w"),
           absl::StrCat("compile ", run),
           absl::StrCat("inspect ", run),
           absl::StrCat("inspect ", run, " --all"),
           absl::StrCat("lint ", run),
           absl::StrCat("plan ", run),
           absl::StrCat("plan ", run, " --steps"),
           absl::StrCat("diff ", run, " ", kMlp),
           absl::StrCat("ckpt ls ", run),
           absl::StrCat("compare ", run,
                        " --against O0 --batch 4 --data idx:models/digits"),
           absl::StrCat("replay ",
                        Quoted(Directory() + "/rejected/capsules/step-1")),
           absl::StrCat("tune ", run, " --runs 1 --batch 4 -o /dev/null"),
           "data verify idx:models/digits"}) {
    const std::string shown = OnTerminal(
        absl::StrCat("NO_COLOR=1 tools/halftone ", command, " 2>/dev/null"),
        60);
    EXPECT_NE(shown, "") << command;
    for (absl::string_view line : absl::StrSplit(shown, '\n')) {
      // Paths stay whole, so that they can be copied.
      const absl::string_view word = line.substr(line.rfind(' ') + 1);
      if (absl::StrContains(word, '/')) continue;
      EXPECT_LE(WidthOf(line), 60) << command << ": " << line;
    }
  }
  const std::string help = OnTerminal("tools/halftone run --help", 80);
  for (absl::string_view line : absl::StrSplit(help, '\n')) {
    EXPECT_LE(WidthOf(line), 80) << line;
  }
}

TEST(Terminal, TheTablesOfAProfileFitIt) {
  const std::string shown =
      OnTerminal(absl::StrCat("NO_COLOR=1 tools/halftone run ", kMlp, kRun,
                              " --profile 2>/dev/null"),
                 60);
  const size_t at = shown.find("\nclass ");
  ASSERT_NE(at, std::string::npos) << shown;
  for (absl::string_view line : absl::StrSplit(shown.substr(at), '\n')) {
    EXPECT_LE(WidthOf(line), 60) << line;
  }
  // Which ops are the dearest is the machine's to say.
  EXPECT_THAT(shown.substr(at), ContainsRegex("\n(conv|bn|relu|pool)[12]"));
}

// Nothing in `text` that a terminal obeys.
void ExpectHarmless(const std::string& text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    EXPECT_TRUE(byte >= ' ' || c == '\n' || c == '\t') << int{byte};
    EXPECT_NE(byte, 0x7f);
  }
  for (const char* hidden : {"\xc2\x9b", "\xe2\x80\xae", "\xe2\x81\xa6"}) {
    EXPECT_FALSE(absl::StrContains(text, hidden)) << text;
  }
}

// A model whose names all hold `odd`, in the escapes of a text proto.
std::string ModelOf(const std::string& odd) {
  const std::string path = Temp(".pbtxt");
  std::ofstream(path) << absl::StrReplaceAll(
      R"(name: "m@" feed { name: "x@" dtype: F32 dims: [-1, 8] }
         param { name: "w@" dims: [8, 8] init { constant: 1 } }
         op { name: "o@" type: "matmul" in { slot: "X" var: "x@" }
              in { slot: "Y" var: "w@" } out { slot: "Out" var: "y@" } }
         output: "y@")",
      {{"@", odd}});
  return path;
}

TEST(Names, ReachATerminalAsText) {
  // C1's CSI, right-to-left override and isolate; ESC is refused in a name.
  const std::string odd = "\\302\\233-\\342\\200\\256-\\342\\201\\246";
  const std::string file = Temp("\033[2J\xc2\x9b-\x9b.pbtxt");
  ASSERT_EQ(RunProgram({"/bin/cp", ModelOf(odd), file}).exit_code(), 0);
  const std::string model = Quoted(file);
  const std::string compiled = Quoted(Temp("\033[2J.htc"));
  const std::string name = "\"$(printf 'o" + odd + "')";
  const std::string esc = Quoted("\033[31m");
  for (const std::string& command : std::vector<std::string>{
           absl::StrCat("compile ", model, " --level O1 -o ", compiled),
           absl::StrCat("compile ", model, " --json"),
           absl::StrCat("compile ", ModelOf("\\033[31m")),
           absl::StrCat("compile ", ModelOf("\\377")),
           absl::StrCat("inspect ", compiled),
           absl::StrCat("inspect ", compiled, " --dump"),
           absl::StrCat("inspect ", compiled, " --json"),
           absl::StrCat("inspect ", compiled, " --html"),
           absl::StrCat("explain ", compiled, " ", name, "\""),
           absl::StrCat("explain ", compiled, " ", name, "x\""),
           absl::StrCat("diff ", compiled, " ", kMlp),
           absl::StrCat("plan ", compiled, " --steps"),
           absl::StrCat("inspect ", esc),
           absl::StrCat("run ", model, " --data idx:", esc),
           absl::StrCat("launch --ranks 1 run ", model, " --data idx:", esc),
           absl::StrCat("ops ", esc), esc, absl::StrCat("ckpt ls ", esc)}) {
    SCOPED_TRACE(command);
    const Result result = Shell(command, "");
    EXPECT_LT(result.exit_code(), 10);
    ExpectHarmless(result.out);
    ExpectHarmless(result.err);
    EXPECT_NE(result.out + result.err, "");
  }
  EXPECT_THAT(Shell("inspect " + compiled, "").out, HasSubstr("o\\u009b-"));
  // Nor a page that is written to a file, in any browser.
  const std::string page = Temp(".html");
  Shell(absl::StrCat("diff ", compiled, " ", model, " --html ", page), "");
  const std::string drawn = ReadAll(page);
  ExpectHarmless(drawn);
  EXPECT_THAT(drawn, HasSubstr("o\\\\u009b-"));
}

TEST(OutputFiles, LinksPipesAndDevices) {
  const std::string target = Temp("-target"), link = Temp("-link"),
                    pipe = Temp("-pipe");
  ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  ASSERT_EQ(RunProgram({"/usr/bin/mkfifo", pipe}).exit_code(), 0);
  const std::string run = Quoted(Directory() + "/run");
  for (const std::string& command : {
           absl::StrCat("compile ", kMlp, " -o "),
           std::string("zoo mlp -o "),
           absl::StrCat("tune ", kMlp, " --runs 1 --batch 4 -o "),
           absl::StrCat("export ", run, " -o "),
           absl::StrCat("run ", kMlp, kRun, " --profile="),
       }) {
    SCOPED_TRACE(command);
    unlink(target.c_str());
    EXPECT_EQ(Shell(command + link, "").exit_code(), 0);
    EXPECT_EQ(RunProgram({"/usr/bin/test", "-L", link}).exit_code(), 0);
    const std::string written = ReadAll(target);
    EXPECT_GT(written.size(), 50u);
    const Result through = RunProgram(
        {"/bin/sh", "-c",
         absl::StrCat("tools/halftone ", command, pipe,
                      " > /dev/null 2>&1 & cat ", pipe, "; wait $!")});
    EXPECT_EQ(through.exit_code(), 0);
    EXPECT_GT(through.out.size(), 50u);
    EXPECT_EQ(RunProgram({"/usr/bin/test", "-p", pipe}).exit_code(), 0);
    const Result full = Shell(command + "/dev/full", "");
    EXPECT_EQ(full.exit_code(), 1);
    EXPECT_THAT(full.err, HasSubstr("/dev/full: cannot write: No space left"));
  }
}

TEST(Loader, TakesFilesRunsAndCheckpointsAlike) {
  const std::string run = Quoted(Directory() + "/run");
  const std::string whole = Shell(absl::StrCat("inspect ", run), "").out;
  EXPECT_THAT(whole, HasSubstr("conv1"));
  for (const char* below :
       {"/", "/model.htc", "/ckpt", "/ckpt/step-23", "/ckpt/step-23/"}) {
    EXPECT_EQ(Shell(absl::StrCat("inspect ", run, below), "").out, whole)
        << below;
    EXPECT_EQ(Shell(absl::StrCat("diff ", run, " ", run, below), "").out,
              "equal\n")
        << below;
  }
  const Result none = Shell("inspect models", "");
  EXPECT_EQ(none.exit_code(), 1);
  EXPECT_THAT(none.err, HasSubstr("models: a directory without model.htc; "
                                  "expected a model, a compiled model, a run "
                                  "directory"));
}

TEST(EvalVerb, OfACheckpointAndTheBest) {
  const std::string run = Quoted(Directory() + "/run");
  const std::string data = " --data idx:models/digits --json";
  const std::string newest = Shell(absl::StrCat("eval ", run, data), "").out;
  EXPECT_TRUE(json::accept(newest));
  for (const char* which : {" --best", "/ckpt/step-23"}) {
    const Result result = Shell(absl::StrCat("eval ", run, which, data), "");
    EXPECT_EQ(result.out, newest) << which << result.err;
  }
  EXPECT_EQ(Shell(absl::StrCat("eval ", run, "/ckpt/step-23 --best", data), "")
                .exit_code(),
            2);
  EXPECT_THAT(Shell(absl::StrCat("ckpt ls ", run), "").out,
              ::testing::ContainsRegex(
                  "step 23, 1 epoch and 0 samples done, O1, .*: good, "
                  "best\n"));
}

// Wherever one stands, and with the slash that shells add.
TEST(RunDirectory, IsFoundFromInside) {
  const auto in = [](const std::string& directory, const std::string& words) {
    const std::string command =
        absl::StrCat("h=$PWD/tools/halftone; d=$PWD/models/digits; cd ",
                     Quoted(absl::StrCat(Directory(), "/", directory)),
                     " && exec $h ", words);
    return RunProgram({"/bin/sh", "-c", command});
  };
  const std::string tensors = in("run", "export . -o ../e.safetensors").out;
  ASSERT_THAT(tensors, HasSubstr("tensors"));
  using Place = std::pair<const char*, const char*>;
  for (const auto& [from, path] :
       {Place{"run", "ckpt/step-23"}, Place{"run", "./ckpt/step-23/"},
        Place{"run", "ckpt"}, Place{"run/ckpt", "step-23"},
        Place{"run/ckpt", "."}, Place{"run/ckpt/step-23", "."},
        Place{"run/ckpt/step-23", "../.."}}) {
    SCOPED_TRACE(absl::StrCat(from, " ", path));
    EXPECT_EQ(in(from, absl::StrCat("export ", path, " -o ", Temp("-e"))).out,
              tensors);
    EXPECT_EQ(in(from, absl::StrCat("inspect ", path)).exit_code(), 0);
    EXPECT_THAT(in(from, absl::StrCat("ckpt verify ", path)).out,
                HasSubstr("step 23"));
    EXPECT_EQ(
        in(from, absl::StrCat("eval ", path, " --data idx:$d")).exit_code(), 0);
  }
}

TEST(DumpFlags, SayOrWrite) {
  const std::string dir = Temp("-dump");
  const std::string model = Quoted(Directory() + "/run/model.htc");
  EXPECT_EQ(Shell(absl::StrCat("compile ", model, " --dump-dir ", dir), "")
                .exit_code(),
            0);
  EXPECT_THAT(ReadAll(dir + "/000.source.txt"), StartsWith("program "));
  const Result run = Shell(
      absl::StrCat("run ", model, " --data idx:models/digits --dump-dir ", dir),
      "");
  EXPECT_EQ(run.exit_code(), 2);
  EXPECT_THAT(run.err,
              HasSubstr("is compiled, no pass runs: halftone compile"));
  EXPECT_EQ(
      Shell(absl::StrCat("compile ", model, " --dump-after x"), "").exit_code(),
      2);
}

}  // namespace
}  // namespace halftone
