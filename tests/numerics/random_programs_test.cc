// Random programs at every level, dtype and precision rule, fused and not, on
// one and two ranks: none is refused or fails within, O0 has the bits that the
// contract promises, all else is near O0.
//
// HT_TRIALS=100000 makes so many; HT_SEED=N begins with the N-th. What fails is
// left as random-N.pbtxt, with its strategy, in TEST_UNDECLARED_OUTPUTS_DIR or
// the test's directory: so is a program under which the process dies.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "graph/base/dtype.h"
#include "graph/base/file.h"
#include "graph/io/model_reader.h"
#include "gtest/gtest.h"
#include "kernels/cpu/convert.h"
#include "tests/numerics/random_model.h"
#include "tests/support/compile_model.h"
#include "tests/support/run_steps.h"
#include "tests/support/trials.h"

namespace halftone {
namespace {

using passes::Override;
using Settings = std::vector<std::pair<std::string, std::string>>;

std::string Folder() {
  const char* const kept = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  return kept == nullptr ? ::testing::TempDir() : kept;
}

// Values of a state, as numbers.
struct State {
  std::vector<double> losses;
  std::map<std::string, std::string> bytes;           // of rank 0
  std::map<std::string, std::vector<float>> trained;  // its parameters
};

std::vector<float> Floats(DType dtype, const std::string& bytes) {
  std::vector<float> values(bytes.size() / SizeOf(dtype));
  kernels::ToFloat(dtype, bytes.data(), values.data(),
                   static_cast<int64_t>(values.size()));
  return values;
}

// How far parameters are from those of `to`, and how far those have come since
// `from`, as norms over all of them.
struct Distance {
  double apart = 0, moved = 0, size = 0;
  double along = 0;  // how far `a` has come, in that direction
};
Distance Between(const State& a, const State& to, const State& from) {
  Distance distance;
  for (const auto& [name, values] : to.trained) {
    const auto other = a.trained.find(name);
    if (other == a.trained.end()) continue;  // that is said elsewhere
    const std::vector<float>& before = from.trained.at(name);
    for (size_t i = 0; i < values.size(); ++i) {
      distance.apart += std::pow(other->second[i] - values[i], 2.0);
      distance.along += static_cast<double>(other->second[i] - before[i]) *
                        (values[i] - before[i]);
      distance.moved += std::pow(values[i] - before[i], 2.0);
      distance.size += std::pow(values[i], 2.0);
    }
  }
  const double moved = std::sqrt(distance.moved);
  return {std::sqrt(distance.apart), moved, std::sqrt(distance.size),
          moved > 0 ? distance.along / moved : 0};
}

// What a run may differ by from f32's on one rank: of what its parameters have
// moved, of their own size, and of the loss. Roundings of relative size e move
// a gradient by some e for each op on its way, more where maxima and signs turn
// over: bounds are about ten times the largest seen in 3,000 programs.
struct Bound {
  double moved, size, loss;
};
constexpr Bound kOtherOrder = {2e-4, 1e-6, 1e-5};
constexpr Bound kF16 = {0.05, 1e-6, 0.01};
constexpr Bound kBF16 = {0.4, 1e-6, 0.1};
// Parameters that are 16 bits are rounded at first and in each step.
constexpr double kF16Rounding = 1.0 / 1024, kBF16Rounding = 1.0 / 128;
// Of parameters that hardly move all is rounding.
constexpr double kLittle = 0.0025;
// What they move beyond this part of their own size is no rounding even where
// they are bf16.
constexpr double kMuch = 0.03;

// One program, under its number.
class Trial {
 public:
  Trial(uint64_t seed, const RandomModel& model) : seed_(seed), model_(model) {
    Leave("", model.text);
  }
  ~Trial() {
    if (broken_) return;
    for (const std::string& file : left_) std::filesystem::remove(file);
  }

  State Run(const Settings& settings, StepsSpec spec, bool fused = true) {
    std::string said;
    for (const auto& [path, value] : settings) {
      absl::StrAppend(&said, "--set ", path, "=", value, " ");
    }
    const CompiledModel* const compiled = Compiled(settings, said);
    absl::StrAppend(&said, "ranks ", spec.ranks, fused ? "" : ", not fused");
    Leave(".settings", said);
    if (!fused) spec.kernels.assign(spec.ranks, &KernelsWithoutPatterns());
    State state;
    if (compiled == nullptr) return state;
    const auto result = RunSteps(*compiled->program, spec);
    if (!result.ok()) {
      Fail(said, result.status().ToString());
      return state;
    }
    for (int rank = 1; rank < spec.ranks; ++rank) {
      if (result->cells[rank] != result->cells[0]) Fail(said, "ranks differ");
    }
    if (std::count(result->rejected.begin(), result->rejected.end(), true) >
        0) {
      Fail(said, "a step is rejected");
    }
    Take(*compiled->program, *result, &state);
    return state;
  }

  void Fail(const std::string& said, const std::string& what) {
    broken_ = true;
    ADD_FAILURE() << "HT_SEED=" << seed_ << " HT_TRIALS=1: " << said << ": "
                  << what << "\nleft: " << left_[0] << "\n"
                  << model_.text;
  }
  bool broken() const { return broken_; }

  // Both of losses and parameters that two steps from `start` have moved.
  void ExpectNear(const State& a, const State& whole, const State& start,
                  const Bound& bound, const std::string& what) {
    if (broken_) return;
    const double loss = whole.losses.back();
    const double apart = std::abs(a.losses.back() - loss);
    // Written so that a NaN fails.
    if (!(apart <= bound.loss * std::max(1.0, std::abs(loss)))) {
      Fail(what, absl::StrCat("loss ", a.losses.back(), " beside ", loss));
    }
    const Distance distance = Between(a, whole, start);
    if (!(distance.apart <= bound.moved * (distance.moved + kLittle) +
                                bound.size * distance.size)) {
      Fail(what, absl::StrCat("parameters ", distance.apart, " apart, moved ",
                              distance.moved, ", of norm ", distance.size));
    }
    // Wide bounds would else take parameters that stand still.
    if (distance.moved > kMuch * distance.size &&
        !(distance.along >= distance.moved / 4)) {
      Fail(what, absl::StrCat("parameters moved ", distance.along, " of ",
                              distance.moved));
    }
  }

  // All but what scales and counts.
  void ExpectSameBits(const State& a, const State& b, const std::string& what) {
    if (broken_) return;
    if (a.losses != b.losses) {
      Fail(what, absl::StrCat("loss ", a.losses[0], " and ", b.losses[0]));
    }
    for (const auto& [name, bytes] : a.bytes) {
      if (name[0] == '@' || broken_) continue;
      const auto other = b.bytes.find(name);
      if (other == b.bytes.end() || other->second != bytes) {
        Fail(what, name + " has other bits");
      }
    }
  }

 private:
  void Leave(const std::string& kind, const std::string& text) {
    const std::string path =
        absl::StrCat(Folder(), "/random-", seed_, kind, ".pbtxt");
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    if (std::count(left_.begin(), left_.end(), path) == 0) {
      left_.push_back(path);
    }
  }

  // Null where that has failed.
  const CompiledModel* Compiled(const Settings& settings,
                                const std::string& said) {
    const auto known = compiled_.find(settings);
    if (known != compiled_.end()) return &known->second;
    std::vector<Override> overrides;
    for (const auto& [path, value] : settings) {
      overrides.push_back({path, value, "--set"});
    }
    Leave(".settings", said);
    const auto file = ParseModel(model_.text, "random.pbtxt");
    auto compiled =
        file.ok() ? CompileModel(*file, {}, overrides) : file.status();
    if (!compiled.ok()) {
      Fail(said, compiled.status().ToString());
      return nullptr;
    }
    return &compiled_.emplace(settings, *std::move(compiled)).first->second;
  }

  static void Take(const Program& program, const StepsResult& result,
                   State* state) {
    state->losses = result.losses;
    state->bytes = result.cells[0];
    for (int i = 0; i < program.num_cells(); ++i) {
      const Cell& cell = program.cell(CellId(i));
      if (!cell.trainable || !cell.IsSaved()) continue;
      const std::string name(cell.name);
      state->trained[name] = Floats(cell.type.dtype, state->bytes.at(name));
    }
  }

  const uint64_t seed_;
  const RandomModel& model_;
  std::map<Settings, CompiledModel> compiled_;
  std::vector<std::string> left_;
  bool broken_ = false;
};

StepsSpec Spec(int64_t batch, int64_t steps, const std::string& data) {
  StepsSpec spec;
  spec.batch = batch;
  spec.steps = steps;
  spec.data = data;
  spec.learning_rate = 0.125f;
  return spec;
}

StepsSpec On(int ranks, StepsSpec spec) {
  spec.ranks = ranks;
  return spec;
}

// A loss scale at which no gradient is out of f16's range where the parameters
// have moved from `start` to `whole`: most of 65504 is left for what is summed
// on the way to theirs.
double ScaleFor(const State& whole, const State& start, double rate) {
  double most = 0;
  for (const auto& [name, values] : whole.trained) {
    const std::vector<float>& before = start.trained.at(name);
    for (size_t i = 0; i < values.size(); ++i) {
      most = std::max(most, std::abs(double{values[i]} - before[i]) / rate);
    }
  }
  double scale = 64;
  while (scale * most > 4096 && scale > 1) scale /= 2;
  return scale;
}

// The strategy of a trial at a level above O0, and what holds of its numbers.
struct LowSettings {
  std::string name;
  Settings settings;
  Bound bound;
};
LowSettings DrawSettings(double scale, Draws* draws) {
  const std::string level = absl::StrCat("O", 1 + draws->Below(3));
  const bool f16 = draws->OneOf(2);
  LowSettings low = {
      level + (f16 ? " fp16" : " bf16"),
      {{"amp.level", level},
       {"amp.dtype", f16 ? "fp16" : "bf16"},
       {"amp.precision_rule",
        draws->Any<std::string>({"all_low", "any_low", "min_cost"})}},
      f16 ? kF16 : kBF16};
  if (level == "O3") {
    low.bound.size = f16 ? kF16Rounding : kBF16Rounding;
    low.bound.moved *= 3;  // norms and rates are of 16 bits, too
  } else {
    low.settings.push_back(
        {"amp.loss_scaling.init_loss_scaling", absl::StrCat(scale)});
  }
  const auto maybe = [&](const std::string& path, const std::string& value) {
    if (draws->OneOf(4)) low.settings.push_back({path, value});
  };
  if (level == "O1") {
    maybe("amp.op_lists",
          draws->Any<std::string>({"paddle", "fleetx", "torch", "apex"}));
  }
  maybe("dist.gradient_scale", "post");
  maybe("dist.fuse_all_reduce_ops", "false");
  maybe("amp.strict_f32_slots", "true");
  return low;
}

// Every order of sums gives the bits of any other.
void RunExact(int seed, Draws* draws) {
  const RandomModel model = MakeExactModel(draws);
  Trial trial(seed, model);
  const Settings settings = {{"optimizer.sgd", ""}};
  const StepsSpec spec = Spec(8, 1, "synthetic:8");
  const State one = trial.Run(settings, spec);
  trial.ExpectSameBits(one, trial.Run(settings, spec, false), "not fused");
  trial.ExpectSameBits(one, trial.Run(settings, On(2, spec)), "two ranks");
  trial.ExpectSameBits(one, trial.Run(settings, On(2, spec), false),
                       "two ranks, not fused");
}

void RunRounded(int seed, Draws* draws) {
  const RandomModel model = MakeRandomModel(draws);
  Trial trial(seed, model);
  const StepsSpec spec = Spec(draws->OneOf(2) ? 8 : 7, 2, "synthetic:12");
  StepsSpec still = spec;
  still.learning_rate = 0;
  Settings plain = {{"optimizer.sgd", ""}};
  if (model.batch_norms) plain.push_back({"dist.sync_batch_norm", "true"});
  const State start = trial.Run(plain, still), whole = trial.Run(plain, spec);
  trial.ExpectSameBits(whole, trial.Run(plain, spec, false), "not fused");
  trial.ExpectNear(trial.Run(plain, On(2, spec)), whole, start, kOtherOrder,
                   "two ranks");
  Settings black = plain;
  black.push_back({"amp.level", "O1"});
  black.push_back({"amp.custom_black_opnames", "*"});
  trial.ExpectSameBits(whole, trial.Run(black, spec), "all black-listed");

  LowSettings low =
      DrawSettings(ScaleFor(whole, start, spec.learning_rate), draws);
  // One sample's part of a gradient, of seven: its size is all that is left,
  // and of the loss behind it no more than its order.
  if (model.kinks) {
    low.bound.moved = std::max(low.bound.moved, 1.0);
    low.bound.loss = std::max(low.bound.loss, 0.1);
  }
  Settings settings = plain;
  settings.insert(settings.end(), low.settings.begin(), low.settings.end());
  const int ranks = 1 + draws->Below(2);
  const bool fused = draws->OneOf(2);
  trial.ExpectNear(
      trial.Run(settings, On(ranks, spec), fused), whole, start, low.bound,
      absl::StrCat(low.name, " on ", ranks, fused ? "" : ", not fused"));
}

TEST(RandomPrograms, KeepWhatThePrecisionsPromise) {
  const int trials = Trials(120), first = FirstSeed();
  const absl::Time began = absl::Now();
  for (int seed = first; seed < first + trials; ++seed) {
    Draws draws(seed);
    seed % 4 == 0 ? RunExact(seed, &draws) : RunRounded(seed, &draws);
  }
  std::printf("%d programs in %s\n", trials,
              absl::FormatDuration(absl::Now() - began).c_str());
}

}  // namespace
}  // namespace halftone
