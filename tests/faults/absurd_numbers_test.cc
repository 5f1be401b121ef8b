// Every number that a flag or a strategy takes, at its ends and beyond: a
// refusal, a run that ends, or no memory, but never a signal, a bug of ours or
// a wait without end.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "proto/strategy.pb.h"
#include "tests/faults/faults.h"

namespace halftone {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Parts = std::vector<std::string>;

const Parts& Absurd() {
  static const auto* const values = new Parts{"0",
                                              "-1",
                                              "-9223372036854775808",
                                              "9223372036854775807",
                                              "4294967296",
                                              "2147483648",
                                              "1e300",
                                              "-1e300",
                                              "1e-300",
                                              "nan",
                                              "inf",
                                              "-inf"};
  return *values;
}

// Models of which a step takes a moment.
Parts Small() { return {"run", Convnet(), "--data", "synthetic:8"}; }

// How a command may end that is given an absurd number. Whoever asks for 2^63
// epochs gets them: those runs are ended from outside.
void ExpectEnds(const Parts& arguments) {
  Parts command = {"/usr/bin/timeout", "--signal=TERM", "--kill-after=20", "8",
                   "tools/halftone"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Result result = RunProgram(command);
  const std::string words = absl::StrJoin(arguments, " ");
  const std::set<int> allowed = {0, 1, 2, 5, 6, 124};
  EXPECT_TRUE(allowed.count(result.exit_code()) > 0)
      << words << ": exit code " << result.exit_code() << "\n"
      << result.err;
  if (result.exit_code() == 124) {
    EXPECT_TRUE(absl::StrContains(words, "epochs") ||
                absl::StrContains(words, "max-batch"))
        << words << " does not end\n"
        << result.err;
  }
}

// The flags of a verb that take a number, by its help.
Parts NumberFlags(const Parts& verb) {
  const std::set<std::string> aliases = {"--batch-size", "--epochs", "--lr",
                                         "--loss-scale"};
  Parts command = verb;
  command.push_back("--help");
  const Result help = Halftone(command);
  Parts flags;
  for (absl::string_view line : absl::StrSplit(help.out, '\n')) {
    const Parts words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    for (size_t i = 0; i + 1 < words.size(); ++i) {
      // Aliases of fields of the strategy take text, which that reads.
      const bool number = aliases.count(words[i]) > 0 ||
                          absl::StartsWith(words[i + 1], "INT") ||
                          absl::StartsWith(words[i + 1], "UINT") ||
                          absl::StartsWith(words[i + 1], "FLOAT");
      if (!absl::StartsWith(words[i], "--") || !number) continue;
      const std::string flag = words[i].substr(0, words[i].find(','));
      flags.push_back(flag);
    }
  }
  return flags;
}

void SweepFlags(const Parts& verb, const Parts& arguments) {
  const Parts flags = NumberFlags(verb);
  EXPECT_FALSE(flags.empty()) << absl::StrJoin(verb, " ");
  for (const std::string& flag : flags) {
    for (const std::string& value : Absurd()) {
      Parts command = arguments;
      command.push_back(absl::StrCat(flag, "=", value));
      if (flag != "--epochs" && arguments[0] == "run") {
        command.insert(command.end(), {"--set", "train.epochs=1"});
      }
      ExpectEnds(command);
    }
  }
}

// The paths of all numbers in a message.
void CollectNumbers(const Descriptor& type, const std::string& prefix,
                    int depth, Parts* paths) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = absl::StrCat(prefix, field.name());
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth < 4) {
          CollectNumbers(*field.message_type(), path + ".", depth + 1, paths);
        }
        break;
      case FieldDescriptor::CPPTYPE_STRING:
      case FieldDescriptor::CPPTYPE_BOOL:
      case FieldDescriptor::CPPTYPE_ENUM:
        break;
      default:
        paths->push_back(path);
    }
  }
}

TEST(AbsurdNumbers, FlagsOfRun) { SweepFlags({"run"}, Small()); }

TEST(AbsurdNumbers, FlagsOfCompile) {
  SweepFlags({"compile"}, {"compile", kConvnet, "--strategy", kO1, "-o",
                           Scratch() + "/x.htc"});
}

TEST(AbsurdNumbers, FlagsOfPlan) { SweepFlags({"plan"}, {"plan", Convnet()}); }

TEST(AbsurdNumbers, FlagsOfEval) {
  const std::string out = Scratch() + "/run";
  Parts train = Small();
  train.insert(train.end(),
               {"--batch-size", "8", "--epochs", "1", "--out", out});
  const Result trained = Halftone(train);
  ASSERT_EQ(trained.exit_code(), 0) << trained.err;
  SweepFlags({"eval"}, {"eval", out, "--data", "synthetic:8"});
}

TEST(AbsurdNumbers, FlagsOfTune) {
  SweepFlags({"tune"},
             {"tune", Convnet(), "-o", Scratch() + "/x.tune", "--runs", "1"});
}

TEST(AbsurdNumbers, FieldsOfTheStrategy) {
  Parts paths;
  CollectNumbers(*proto::Strategy::descriptor(), "", 0, &paths);
  ASSERT_GT(paths.size(), 20u);
  for (const std::string& path : paths) {
    for (const std::string& value : Absurd()) {
      ExpectEnds({"compile", kConvnet, "--strategy", kO1, "-o",
                  Scratch() + "/x.htc", "--set",
                  absl::StrCat(path, "=", value)});
    }
  }
}

// What leaves the graph alone is taken by a run, which has more to compute of
// it.
TEST(AbsurdNumbers, FieldsThatARunTakes) {
  for (const char* path :
       {"lr.base", "lr.base_batch", "lr.warmup_epochs", "lr.warmup_steps",
        "train.batch_size", "train.batch_size_per_rank", "train.epochs",
        "train.seed"}) {
    for (const std::string& value : Absurd()) {
      for (const char* ranks : {"1", "3"}) {
        Parts command = Small();
        command.insert(command.end(), {"--ranks", ranks, "--set",
                                       absl::StrCat(path, "=", value)});
        if (std::string(path) != "train.epochs") {
          command.insert(command.end(), {"--set", "train.epochs=1"});
        }
        if (!absl::StartsWith(path, "train.batch")) {
          command.insert(command.end(), {"--set", "train.batch_size=8"});
        }
        ExpectEnds(command);
      }
    }
  }
}

TEST(AbsurdNumbers, SizesOfData) {
  for (const std::string& value : Absurd()) {
    ExpectEnds({"run", Convnet(), "--data", "synthetic:" + value, "--set",
                "train.epochs=1"});
  }
}

}  // namespace
}  // namespace halftone
