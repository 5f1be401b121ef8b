// Ranks that cannot meet, or that are not of the same run.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/rendezvous/socket.h"
#include "tests/faults/faults.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using Parts = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

// Each port is used once, so nothing of another test answers there.
int FreePort() { return runtime::Listen("127.0.0.1", 0)->local().port; }

Variables RankOf(int rank, int ranks, int port) {
  Variables env = OwnVariables();
  env["RANK"] = env["LOCAL_RANK"] = absl::StrCat(rank);
  env["WORLD_SIZE"] = env["LOCAL_WORLD_SIZE"] = absl::StrCat(ranks);
  env["MASTER_ADDR"] = "127.0.0.1";
  env["MASTER_PORT"] = absl::StrCat(port);
  return env;
}

Child StartRank(const std::string& model, const Variables& env,
                const std::string& out, const Parts& flags) {
  static int started = 0;
  Parts command = {"tools/halftone", "run", model,      "--data", kDigits,
                   "--out",          out,   "--epochs", "1"};
  command.insert(command.end(), flags.begin(), flags.end());
  return Start(absl::StrCat("rank-fault-", started++), command, env);
}

void ExpectApart(const Result& result, const Parts& says) {
  EXPECT_EQ(result.exit_code(), 7) << result.err;
  EXPECT_EQ(result.out, "");
  for (const std::string& part : says) {
    EXPECT_THAT(result.err, HasSubstr(part));
  }
}

TEST(Meeting, RanksThatNeverArriveAreNamedAfterTheTimeAllowed) {
  struct Case {
    int rank, ranks;
    Parts says;
  };
  for (const Case& c : {
           Case{0,
                2,
                {"rank 1 of 2 did not arrive at 127.0.0.1:", "within 1s",
                 "--connect-timeout SECONDS"}},
           Case{0, 4, {"ranks 1 to 3 of 4 did not arrive"}},
           // What it says is how long it waited.
           Case{1,
                2,
                {"rank 1 of 2 did not find rank 0 on this machine within 1s",
                 "is rank 0 running?", "HALFTONE_TOKEN"}},
       }) {
    const std::string out = Scratch() + "/run";
    const Result alone =
        Wait(StartRank(Convnet(), RankOf(c.rank, c.ranks, FreePort()), out,
                       {"--connect-timeout", "1"}));
    ExpectApart(alone, c.says);
    EXPECT_FALSE(std::filesystem::exists(out));
  }
}

TEST(Meeting, APortInUseIsNamed) {
  const auto taken = runtime::Listen("127.0.0.1", 0);
  const int port = taken->local().port;
  const std::string in_use = absl::StrCat(
      "port ", port,
      " is in use by another run or program; end it, or choose another port ");
  const Parts says = {in_use + "with --master HOST:PORT"};
  const std::string out = Scratch() + "/run";
  // What is said is what can be done: run has no such flag.
  ExpectApart(Wait(StartRank(Convnet(), RankOf(0, 2, port), out, {})),
              {in_use + "(torchrun gives it: MASTER_PORT)"});
  ExpectApart(Halftone({"launch", "--ranks", "2", "--master",
                        absl::StrCat("127.0.0.1:", port), "run", Convnet(),
                        "--data", kDigits, "--out", out}),
              says);
  EXPECT_FALSE(std::filesystem::exists(out + "/model.htc"));
}

// Both ranks say the same, in which they differ, before the first step.
class NotOneRun : public ::testing::Test {
 protected:
  void Expect(const std::string& model, const Parts& flags, const Parts& says) {
    const int port = FreePort();
    const std::string out = Scratch() + "/run";
    const Parts usual = {"--connect-timeout", "60", "--timeout", "60"};
    Parts other = usual;
    other.insert(other.end(), flags.begin(), flags.end());
    const Child first = StartRank(Convnet(), RankOf(0, 2, port), out, usual);
    const Child second = StartRank(model, RankOf(1, 2, port), out, other);
    ExpectApart(Wait(first), says);
    ExpectApart(Wait(second), says);
    EXPECT_FALSE(std::filesystem::exists(out));
  }
};

TEST_F(NotOneRun, WithDifferentModels) {
  const std::string model = Scratch() + "/o2.htc";
  ASSERT_EQ(Halftone({"compile", Convnet(), "--level", "O2", "-o", model})
                .exit_code(),
            0);
  Expect(model, {},
         {"ranks have different compiled models: rank 0: ", "; but rank 1: ",
          "give all ranks the same files"});
}

// Undetected, they would train another model on each rank, or wait in vain.
TEST_F(NotOneRun, WithDifferentSettings) {
  Expect(Convnet(), {"--lr", "0.5", "--set", "train.seed=9"},
         {"rank 1 was started with other settings than rank 0: lr.base 0.5 "
          "instead of 0.01, train.seed 9 instead of 1; give all ranks the same "
          "command and data"});
  Expect(Convnet(), {"--batch-size", "32"},
         {"train.batch_size 32 instead of 64"});
  Expect(Convnet(), {"--eval-every", "10m", "--no-shuffle"},
         {"--no-shuffle true instead of false, --eval-every 10m instead of "
          "1e"});
}

}  // namespace
}  // namespace halftone
