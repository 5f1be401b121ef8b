// One bit of one parameter that is flipped on one rank behind the update of one
// step: the ranks' comparison names rank, parameter and step within its period.
// HT_TRIALS=1000 flips so many, from HT_SEED on.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/ir/block.h"
#include "graph/ir/well_known.h"
#include "gtest/gtest.h"
#include "kernels/kernel_registry.h"
#include "tests/models/model_text.h"
#include "tests/models/training.h"
#include "tests/support/trials.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

struct Flip {
  int rank = 0;
  int64_t step = 1;  // behind its update
  std::string parameter;
  uint64_t element = 0;  // modulo the parameter's
  int bit = 0;
};

// An update that flips the bit of its new parameter.
class FlippingUpdate : public kernels::KernelInstance {
 public:
  FlippingUpdate(std::unique_ptr<kernels::KernelInstance> update,
                 const Flip& flip, int output, int64_t elements, int64_t* step)
      : update_(std::move(update)),
        flip_(flip),
        output_(output),
        elements_(elements),
        step_(step) {}

  absl::Status Enqueue(const kernels::Buffers& buffers,
                       Stream& stream) override {
    HT_RETURN_IF_ERROR(update_->Enqueue(buffers, stream));
    if (++*step_ != flip_.step) return absl::OkStatus();
    auto* const bytes = static_cast<unsigned char*>(buffers.outputs[output_]) +
                        sizeof(float) * (flip_.element % elements_);
    bytes[flip_.bit / 8] ^= 1 << flip_.bit % 8;
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<kernels::KernelInstance> update_;
  const Flip flip_;
  const int output_;
  const int64_t elements_;
  int64_t* const step_;
};

// Where among the op's outputs the parameter's new value is; -1: nowhere.
int OutputOf(const kernels::BoundOp& op, const std::string& parameter) {
  const auto& outputs = op.op().outputs.all();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (op.block().name(outputs[i]) == absl::StrCat(parameter, kNextSuffix)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

// `step` counts the updates of the rank at fault.
kernels::KernelRegistry WithFlip(const Flip& flip, int64_t* step) {
  kernels::KernelRegistry kernels = kernels::Kernels();
  kernels.ForEach([&](absl::string_view key, kernels::Candidate& candidate) {
    if (!absl::StartsWith(key, "sgd(") && !absl::StartsWith(key, "adam(") &&
        !absl::StartsWith(key, "momentum(")) {
      return;
    }
    candidate.prepare = [flip, step, prepare = candidate.prepare](
                            const kernels::BoundOp& op, Device& device)
        -> absl::StatusOr<std::unique_ptr<kernels::KernelInstance>> {
      HT_ASSIGN_OR_RETURN(auto update, prepare(op, device));
      const int output = OutputOf(op, flip.parameter);
      if (device.ordinal() != flip.rank || output < 0) return update;
      return {std::make_unique<FlippingUpdate>(std::move(update), flip, output,
                                               op.outputs()[output].elements(),
                                               step)};
    };
  });
  return kernels;
}

constexpr int64_t kSteps = 12;

absl::StatusOr<CompiledModel> Compiled(const std::string& method,
                                       const std::string& level) {
  return CompileText(
      Perceptron(),
      absl::StrCat("optimizer { ", method, " } lr { base: 0.001 }\n",
                   "train { batch_size: 12 epochs: 3 seed: 3 }\n"),
      {absl::StrCat("amp.level=", level)});
}

// What a run of four steps an epoch ends with.
absl::Status RunWith(const Flip& flip, int ranks, int64_t every,
                     const CompiledModel& model) {
  TrainConfig config = ConfigOf(model, "synthetic:48", "");
  config.compare_every = {Cadence::Unit::kSteps, every};
  config.checkpoint_every = config.eval_every = {Cadence::Unit::kNever, 0};
  int64_t step = 0;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const Trained trained =
      TrainOn(model, config, ranks, nullptr, nullptr, WithFlip(flip, &step));
  ::testing::internal::GetCapturedStdout();
  ::testing::internal::GetCapturedStderr();
  return trained.status;
}

// A flip on one of these ranks in a run that compares them so often.
struct Draw {
  int ranks = 2;
  int64_t every = 1;
  Flip flip;
  std::string method, level;
};

Draw DrawFlip(int seed) {
  Draws draws(seed);
  Draw draw;
  draw.ranks = draws.OneOf(2) ? 2 : 4;
  draw.every = 1 + draws.Below(5);
  draw.flip.rank = draws.Below(draw.ranks);
  draw.flip.step = 1 + draws.Below(kSteps);
  draw.flip.parameter = draws.Any<std::string>({"w1", "b1", "w2", "b2"});
  draw.flip.element = draws.Next();
  draw.flip.bit = draws.Below(32);
  draw.method = draws.Any<std::string>({"sgd {}", "momentum {}", "adam {}"});
  draw.level = draws.Any<std::string>({"O0", "O1", "O2"});
  return draw;
}

void ExpectNamed(const Draw& draw, const absl::Status& status) {
  const Flip& flip = draw.flip;
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kDiffer) << status;
  const std::string message(status.message());
  // Who of two is right nobody knows: it is told of the other than rank 0.
  const bool two = draw.ranks == 2;
  EXPECT_THAT(
      message,
      HasSubstr(absl::StrCat(
          "rank ", two ? 1 : flip.rank, " has another ", flip.parameter,
          " than ", two ? "rank 0" : "the other ranks", " after step ")));
  EXPECT_EQ(absl::StrContains(message, "either may be the one that is wrong"),
            two);
  const std::string before = "after step ";
  const size_t at = message.find(before);
  ASSERT_NE(at, std::string::npos);
  const int64_t step = std::stoll(message.substr(at + before.size()));
  // Sooner than is due where the bit makes the training diverge.
  EXPECT_GE(step, flip.step);
  const int64_t periods = (flip.step + draw.every - 1) / draw.every;
  EXPECT_LE(step, std::min(periods * draw.every, kSteps));
}

TEST(DivergingRanks, AreNamedWithinThePeriod) {
  const int trials = Trials(60), first = FirstSeed();
  for (int seed = first; seed < first + trials && !HasFailure(); ++seed) {
    Draw draw = DrawFlip(seed);
    const Flip& flip = draw.flip;
    SCOPED_TRACE(absl::StrCat("HT_SEED=", seed, ": bit ", flip.bit, " of ",
                              flip.parameter, " on rank ", flip.rank, " of ",
                              draw.ranks, " in step ", flip.step, ", every ",
                              draw.every));
    const auto model = Compiled(draw.method, draw.level);
    ASSERT_TRUE(model.ok()) << model.status();
    absl::Status status = RunWith(flip, draw.ranks, draw.every, *model);
    if (status.ok()) {  // a later step has rounded it away: it was there
      draw.every = 1;
      status = RunWith(flip, draw.ranks, draw.every, *model);
    }
    ExpectNamed(draw, status);
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
