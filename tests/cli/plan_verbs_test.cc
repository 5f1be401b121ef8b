// halftone plan and tune: what is known of a step before it runs.
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/verbs_testing.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PlanVerb, AnswersForAnySplit) {
  const json one = MustParse(Halftone({"plan", Convnet(), "--json"}));
  const json four =
      MustParse(Halftone({"plan", Convnet(), "--ranks", "4", "--json"}));
  EXPECT_EQ(four["samples_of_rank_0"], 16);
  EXPECT_EQ(four["buckets"].size(), 2u);
  EXPECT_THAT(Halftone({"plan", Convnet(), "--ranks", "128"}).out,
              HasSubstr("64 of 128 ranks have no sample"));
  EXPECT_LT(four["peak_bytes"], one["peak_bytes"]);
  const json most = MustParse(Halftone(
      {"plan", Convnet(), "--max-batch", "--memory", "64MiB", "--json"}));
  EXPECT_LE(most["peak_bytes"], 64 << 20);
  EXPECT_GT(most["max_batch"], 64);
  EXPECT_EQ(Halftone({"plan", Convnet(), "--max-batch", "--memory", "1KiB"})
                .exit_code(),
            6);
}

// As many threads as a run would have.
TEST(PlanVerb, CountsTheThreadsOfARun) {
  std::map<std::string, std::string> three = OwnVariables();
  three["OMP_NUM_THREADS"] = "3";
  const auto plan = [&three](std::vector<std::string> more) {
    more.insert(more.begin(), {"tools/halftone", "plan", Convnet()});
    return Wait(Start("plan", more, three)).out;
  };
  EXPECT_THAT(plan({}), HasSubstr(" on rank 0 with 3 threads = "));
  EXPECT_THAT(plan({"--threads", "2"}),
              HasSubstr(" on rank 0 with 2 threads = "));
  EXPECT_THAT(plan({"--max-batch", "--memory", "64MiB"}),
              HasSubstr(" of 64.0 MiB per rank with 3 threads\n"));
}

// By what `tune` measured, which is not known before.
TEST(PlanVerb, PredictsTheStep) {
  const std::string name = Temp("-roofline");
  const std::string model = name + ".htc";
  CompileConvnet(model);
  const Result unknown = Halftone({"plan", model, "--roofline"});
  EXPECT_EQ(unknown.exit_code(), 2);
  EXPECT_THAT(unknown.err, HasSubstr("halftone tune MODEL"));
  std::ofstream(name + ".tuning.json")
      << R"({"schema":1,"device":"a CPU","rates":{"f32":400000000000,)"
      << R"("low":0,"memory":20000000000},"entries":[]})";
  const Result shown = Halftone({"plan", model, "--roofline"});
  EXPECT_THAT(
      shown.out,
      AllOf(HasSubstr("\nrates        a CPU, measured: 20 GB/s, 400 "
                      "GFLOP/s in f32\n"),
            HasSubstr("\n share "), HasSubstr(" conv2: conv2d winograd"),
            HasSubstr("\npredicted    "), HasSubstr(" img/s\n")));
  const json object =
      MustParse(Halftone({"plan", model, "--roofline", "--json"}));
  EXPECT_EQ(object["batch"], 64);
  EXPECT_GT(object["samples_per_second"], 0);
  for (const char* key :
       {"name", "kernel", "library", "shape", "class", "flops", "bytes", "sent",
        "workspace_bytes", "bound", "ms"}) {
    EXPECT_TRUE(object["steps"][0].contains(key)) << key;
  }
}

// From a trace of one rank, of the buckets of four.
TEST(PlanVerb, SimulatesTheStep) {
  const std::string name = Temp("-timeline");
  const std::string model = name + ".htc";
  CompileConvnet(model);
  ASSERT_EQ(Halftone({"run", model, "--data", "synthetic:640", "--epochs", "1",
                      "--threads", "1", "--profile=" + name + ".json"})
                .exit_code(),
            0);
  std::ofstream(name + ".link.json")
      << R"({"schema":1,"name":"wire","bandwidth":1000000,)"
      << R"("start_ns":1000000,"latency_ns":0})";
  const std::vector<std::string> plan = {"plan",
                                         model,
                                         "--timeline",
                                         "--ranks",
                                         "4",
                                         "--profile",
                                         name + ".json",
                                         "--link",
                                         name + ".link.json",
                                         "--cores-per-rank",
                                         "0.5"};
  std::vector<std::string> as_json = plan;
  as_json.insert(as_json.end(),
                 {"--json", "--best-buckets", "--trace", name + ".trace.json"});
  const json object = MustParse(Halftone(as_json));
  EXPECT_EQ(object["link"]["name"], "wire");
  EXPECT_EQ(object["slower"], 2);
  // Seven collectives that begin with a millisecond each, and one and a half
  // times the 58,880 bytes of a bucket at a kilobyte a millisecond.
  EXPECT_GT(object["exposed_ms"], 95);
  EXPECT_GT(object["compute_ms"], 0);
  EXPECT_LE(object["best_buckets"]["step_ms"], object["step_ms"]);
  std::ifstream trace(name + ".trace.json");
  EXPECT_GT(json::parse(trace)["traceEvents"].size(), 60u);
  const Result shown = Halftone(plan);
  EXPECT_THAT(shown.out,
              AllOf(HasSubstr("\ngradients.f16.1 "), HasSubstr("times 2"),
                    HasSubstr("\nlimit        communication, "),
                    HasSubstr("bandwidth of wire")));
  // A trace of another model.
  const Result other = Halftone({"plan", "models/mlp.pbtxt", "--batch", "8",
                                 "--timeline", "--profile", name + ".json"});
  EXPECT_EQ(other.exit_code(), 1);
  EXPECT_THAT(other.err, HasSubstr("expected a trace of this model"));
}

TEST(TuneVerb, WritesATableThatRunsTake) {
  const std::string name = Temp("-tuned");
  CompileConvnet(name + ".htc");
  const json report = MustParse(Halftone(
      {"tune", name + ".htc", "--runs", "1", "--batch", "16", "--json"}));
  EXPECT_EQ(report["table"], name + ".tuning.json");
  ASSERT_FALSE(report["ops"].empty());
  for (const json& op : report["ops"]) {
    EXPECT_GE(op["candidates"].size(), 2u) << op;
  }
  for (const char* rate : {"memory", "low", "f32"}) {
    EXPECT_GT(report["rates"][rate], 0) << rate;
  }
  const std::string out = Temp("run");
  const Result run =
      Halftone({"run", name + ".htc", "--data", "idx:models/digits",
                "--batch-size", "16", "--epochs", "1", "--out", out});
  EXPECT_EQ(run.exit_code(), 0) << run.err;
  const auto read = [](const std::string& path) {
    const Result cat = RunProgram({"/bin/cat", path});
    EXPECT_EQ(cat.exit_code(), 0) << cat.err;
    return cat.out;
  };
  EXPECT_EQ(read(out + "/tuning.json"), read(name + ".tuning.json"));
  EXPECT_THAT(Halftone({"tune", name + ".htc", "--ranks", "2"}).out,
              AllOf(HasSubstr("other than the default"), HasSubstr(name)));
  // A run has as many threads as this says, and so has what it is tuned for.
  std::map<std::string, std::string> three = OwnVariables();
  three["OMP_NUM_THREADS"] = "3";
  Wait(Start("tune", {"tools/halftone", "tune", name + ".htc", "--runs", "1"},
             three));
  EXPECT_THAT(read(name + ".tuning.json"),
              AllOf(HasSubstr("|threads 3"), Not(HasSubstr("|threads 1"))));
}

}  // namespace
}  // namespace halftone
