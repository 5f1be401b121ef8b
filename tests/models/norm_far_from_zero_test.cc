// Batch norm where |mean| is far above the deviation and the running mean is
// far off: against f64, on one rank and on several with uneven shares, by the
// CPU's kernels and by the GPU's own ones for what has no samples, run here.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/half.h"
#include "graph/ir/well_known.h"
#include "gtest/gtest.h"
#include "kernels/cuda/register_all.h"
#include "kernels/register_all.h"
#include "runtime/exec/executor.h"
#include "runtime/train/feeds.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kChannels = 5, kPixels = 12;

// p, all zero, is there so that x has a gradient.
constexpr char kModel[] = R"(name: "far"  format: 1
feed  { name: "x" dtype: F32 dims: [-1, 5, 3, 4] }
feed  { name: "t" dtype: F32 dims: [-1, 5, 3, 4] }
param { name: "p" dims: [1, 5, 1, 1] init { constant: 0 } }
param { name: "s" dims: [5] init { constant: 1.5 } }
param { name: "b" dims: [5] init { constant: 0.5 } }
stat  { name: "m" dims: [5] init { constant: 0 } }
stat  { name: "v" dims: [5] init { constant: 1 } }
op { type: "elementwise_add" in { slot: "X" var: "x" } in { slot: "Y" var: "p" }
     out { slot: "Out" var: "h" } }
op { type: "batch_norm" in { slot: "X" var: "h" } in { slot: "Scale" var: "s" } in { slot: "Bias" var: "b" }
     in { slot: "Mean" var: "m" } in { slot: "Variance" var: "v" } out { slot: "Y" var: "y" } }
op { type: "elementwise_mul" in { slot: "X" var: "y" } in { slot: "Y" var: "t" }
     out { slot: "Out" var: "product" } }
op { type: "mean" in { slot: "X" var: "product" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "product" }
)";
constexpr char kStrategy[] = R"(
amp { level: "O0" }
optimizer { sgd {} }
lr { base: 1 constant: true }
train { batch_size: 16 epochs: 1 seed: 1 }
)";

using Doubles = std::vector<double>;

// What training on all samples at once does, in f64.
struct Exact {
  Exact(const std::vector<float>& x, const std::vector<float>& t) {
    const size_t count = x.size() / kChannels;
    mean = variance = scale = bias = Doubles(kChannels);
    const auto channel = [](size_t i) { return i / kPixels % kChannels; };
    const auto at = [&](size_t i) { return static_cast<double>(x[i]); };
    const double n = static_cast<double>(count);
    for (size_t i = 0; i < x.size(); ++i) mean[channel(i)] += at(i) / n;
    for (size_t i = 0; i < x.size(); ++i) {
      variance[channel(i)] += std::pow(at(i) - mean[channel(i)], 2) / n;
    }
    Doubles hat(x.size()), g(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = channel(i);
      hat[i] = (at(i) - mean[c]) / std::sqrt(variance[c] + 1e-5);
      g[i] = static_cast<double>(t[i]) / static_cast<double>(x.size());
      scale[c] += g[i] * hat[i];
      bias[c] += g[i];
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = channel(i);
      gradient.push_back(1.5 / std::sqrt(variance[c] + 1e-5) *
                         (g[i] - bias[c] / n - hat[i] * scale[c] / n));
    }
  }
  Doubles mean, variance, scale, bias, gradient;
};

// What a step leaves behind.
struct Step {
  absl::Status status;
  std::map<std::string, std::vector<float>> cells;
  std::vector<float> gradient;  // of this rank's samples, unscaled
};

std::vector<uint8_t> BytesOf(const float* values, int64_t n) {
  std::vector<uint8_t> bytes(n * sizeof(float));
  if (n > 0) std::memcpy(bytes.data(), values, bytes.size());
  return bytes;
}

// The CPU's kernels; or, of the ops on statistics alone, among them the one
// that combines what was gathered from the ranks, the GPU's sources on the
// host.
const kernels::KernelRegistry& KernelsOf(bool emulated) {
  if (!emulated) return kernels::Kernels();
  static const auto* const registry = [] {
    kernels::KernelRegistry cuda;
    kernels::RegisterOwnCudaKernels(cuda);
    auto* const all = new kernels::KernelRegistry(kernels::Kernels());
    int taken = 0;
    all->ForEach([&](absl::string_view key, kernels::Candidate& to) {
      for (const char* op : {"combine_stats", "running_stats",
                             "bn_grad_coefficients", "all_reduce(f32)"}) {
        if (!absl::StartsWith(key, op)) continue;
        for (const auto& [other, from] : cuda.All()) {
          if (other != key) continue;
          to = *from;
          ++taken;
        }
      }
    });
    EXPECT_EQ(taken, 5);  // sums of values in either layout
    return all;
  }();
  return *registry;
}

absl::Status RunRank(const Program& program, Communicator* communicator,
                     const kernels::KernelRegistry& kernels, int64_t samples,
                     int64_t most, const float* x, const float* t,
                     Step* result) {
  const auto device = MakeCpuDevice(communicator->rank(), 1);
  ExecutorOptions options;
  options.fetches = {"h.grad"};
  HT_ASSIGN_OR_RETURN(const auto executor,
                      Executor::Create(&program, &kernels, device.get(),
                                       communicator, TuningTable(), options));
  SymbolValues symbols{};
  symbols[0] = samples;
  HT_ASSIGN_OR_RETURN(const int binding,
                      executor->Prepare(kTrainEntry, symbols));
  HT_RETURN_IF_ERROR(executor->Initialize(1));
  const Entry& entry = *program.FindEntry(kTrainEntry);
  const auto specs = FeedSpecsOf(program);
  ImplicitFeeds implicit;
  implicit.largest_count = static_cast<float>(LossElements(entry, most));
  implicit.schedule[0] = implicit.schedule[1] = 1;
  Batch batch;
  for (const FeedSpec& spec : specs) {
    batch.feeds.push_back(
        BytesOf(spec.name == "x" ? x : t, samples * kChannels * kPixels));
  }
  FeedList feeds(entry, specs, &implicit);
  HT_ASSIGN_OR_RETURN(const int64_t ticket,
                      executor->Execute(binding, feeds.Point(batch)));
  HT_ASSIGN_OR_RETURN(const StepView view, executor->Read(ticket));
  for (const StepView::Item& item : view.items()) {
    if (item.name != "h.grad" || item.desc->dtype != DType::kF32) continue;
    const float* data = static_cast<const float*>(item.data);
    result->gradient.assign(data, data + item.desc->elements());
  }
  for (int i = 0; i < program.num_cells(); ++i) {
    const std::string name(program.cell(CellId(i)).name);
    if (name[0] == '@' || name.size() > 1) continue;
    std::string bytes;
    HT_RETURN_IF_ERROR(executor->ReadCell(CellId(i), &bytes));
    std::vector<float>& values = result->cells[name];
    values.resize(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
  }
  return absl::OkStatus();
}

using Shares = std::vector<int64_t>;  // samples by rank

std::vector<Step> RunStep(const Program& program, bool emulated,
                          const Shares& shares, const std::vector<float>& x,
                          const std::vector<float>& t) {
  const int world = static_cast<int>(shares.size());
  auto communicators = MakeInProcessCommunicators(world, absl::Minutes(2));
  std::vector<Step> steps(world);
  std::vector<std::thread> threads;
  int64_t begin = 0;
  const int64_t most = *std::max_element(shares.begin(), shares.end());
  for (int r = 0; r < world; ++r) {
    threads.emplace_back([&, r, at = begin * kChannels * kPixels] {
      steps[r].status =
          RunRank(program, communicators[r].get(), KernelsOf(emulated),
                  shares[r], most, x.data() + at, t.data() + at, &steps[r]);
      if (!steps[r].status.ok()) communicators[r]->Abort(steps[r].status);
    });
    begin += shares[r];
  }
  for (std::thread& thread : threads) thread.join();
  return steps;
}

class NormFarFromZero
    : public ::testing::TestWithParam<std::tuple<double, Shares, bool, bool>> {
};

// Errors: the mean is rounded to f32, u = mean * 6e-8, on each rank and at the
// end, and all that follows is about it. A rank's mean being off moves the
// variance by twice that times the distance of the ranks' means (below 1, the
// deviation), and the gradients by u in deviations.
TEST_P(NormFarFromZero, IsWhatF64Makes) {
  const auto& [mean, shares, sync, emulated] = GetParam();
  const auto model = CompileText(
      kModel, kStrategy,
      {absl::StrCat("dist.sync_batch_norm=", sync ? "true" : "false")});
  ASSERT_TRUE(model.ok()) << model.status();
  int64_t samples = 0;
  for (int64_t share : shares) samples += share;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(samples * kChannels * kPixels), t(x.size());
  for (float& v : x) v = static_cast<float>(mean) + normal(random);
  for (float& v : t) v = normal(random);
  const Exact exact(x, t);
  const std::vector<Step> steps =
      RunStep(*model->program, emulated, shares, x, t);
  const double u = mean * 6e-8;
  for (const Step& step : steps) {
    ASSERT_TRUE(step.status.ok()) << step.status;
    EXPECT_EQ(step.cells, steps[0].cells) << "all ranks have the same bits";
    for (int64_t c = 0; c < kChannels; ++c) {
      EXPECT_NEAR(step.cells.at("m")[c], 0.1 * exact.mean[c], 1e-7 + 0.2 * u);
      EXPECT_NEAR(step.cells.at("v")[c], 0.9 + 0.1 * exact.variance[c],
                  3e-7 + (shares.size() > 1 ? 0.2 * u : 0));
    }
  }
  if (!sync && shares.size() > 1) return;  // other gradients than the whole's
  const double elements = static_cast<double>(x.size());
  const double most = static_cast<double>(
      *std::max_element(shares.begin(), shares.end()) * kChannels * kPixels);
  size_t i = 0;
  for (const Step& step : steps) {
    for (int64_t c = 0; c < kChannels; ++c) {
      EXPECT_NEAR(step.cells.at("s")[c], 1.5 - exact.scale[c], 3e-7 + u);
      EXPECT_NEAR(step.cells.at("b")[c], 0.5 - exact.bias[c], 3e-7);
    }
    // The seed of a rank's gradient is its count over the largest one.
    const double weight = elements / most;
    for (float found : step.gradient) {
      EXPECT_NEAR(found * most, exact.gradient[i] * weight * most,
                  1e-5 + 10 * u)
          << i;
      ++i;
    }
  }
  EXPECT_EQ(i, x.size());
}

INSTANTIATE_TEST_SUITE_P(
    Means, NormFarFromZero,
    ::testing::Combine(::testing::Values(0.0, 1e3, 1e4, 1e5),
                       ::testing::Values(Shares{9}, Shares{5, 4},
                                         Shares{6, 1, 0, 2}),
                       ::testing::Bool(), ::testing::Bool()));

// Statistics and sums of a rank's group alone, on the GPU's kernels as on the
// CPU's: the same numbers in the same order.
TEST(NormsOfGroups, OnTheKernelsOfEitherDevice) {
  const auto model = CompileText(
      kModel, kStrategy,
      {"dist.sync_batch_norm=true", "dist.sync_batch_norm_group_size=2"});
  ASSERT_TRUE(model.ok()) << model.status();
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(9 * kChannels * kPixels), t(x.size());
  for (float& v : x) v = 3 + normal(random);
  for (float& v : t) v = normal(random);
  const Shares shares = {4, 2, 0, 3};
  const std::vector<Step> cpu =
      RunStep(*model->program, /*emulated=*/false, shares, x, t);
  const std::vector<Step> gpu =
      RunStep(*model->program, /*emulated=*/true, shares, x, t);
  for (size_t r = 0; r < shares.size(); ++r) {
    ASSERT_TRUE(cpu[r].status.ok()) << cpu[r].status;
    ASSERT_TRUE(gpu[r].status.ok()) << gpu[r].status;
    EXPECT_EQ(gpu[r].cells, gpu[0].cells) << "all ranks have the same bits";
    ASSERT_EQ(cpu[r].gradient.size(), gpu[r].gradient.size());
    for (size_t i = 0; i < cpu[r].gradient.size(); ++i) {
      EXPECT_NEAR(cpu[r].gradient[i], gpu[r].gradient[i], 1e-8);
    }
    for (const auto& [name, values] : cpu[r].cells) {
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_NEAR(values[i], gpu[r].cells.at(name)[i], 1e-6) << name;
      }
    }
  }
}

// ---- Low inputs. What they lost when they were rounded is lost; of what they
// are, the statistics are made in f32 with the same error as above. So that
// rounding leaves something of it, the deviation is a hundredth of the mean.

struct Low {
  const char* level;
  const char* dtype;
  double mean;
};

class LowNormFarFromZero
    : public ::testing::TestWithParam<std::tuple<Low, Shares, bool>> {};

float Rounded(float value, bool half_precision) {
  return half_precision ? static_cast<float>(half(value))
                        : static_cast<float>(bfloat16(value));
}

TEST_P(LowNormFarFromZero, TheStatisticsAreWhatF64Makes) {
  const auto& [low, shares, sync] = GetParam();
  const auto model = CompileText(
      kModel, kStrategy,
      {absl::StrCat("amp.level=", low.level),
       absl::StrCat("amp.dtype=", low.dtype),
       "amp.custom_white_list=elementwise_add",  // it reads an f32 feed
       "amp.loss_scaling.use_dynamic_loss_scaling=false",
       "amp.loss_scaling.init_loss_scaling=1",
       absl::StrCat("dist.sync_batch_norm=", sync ? "true" : "false")});
  ASSERT_TRUE(model.ok()) << model.status();
  int norms = 0;
  for (const proto::OpRow& op : model->ops.all()) {
    norms += op.name() == "y" && op.precision() != "f32";
  }
  EXPECT_EQ(norms, 1) << "the norm reads low values";
  int64_t samples = 0;
  for (int64_t share : shares) samples += share;
  const float deviation = static_cast<float>(low.mean / 100);
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(samples * kChannels * kPixels), t(x.size());
  for (float& v : x) {
    v = Rounded(static_cast<float>(low.mean) + deviation * normal(random),
                low.dtype == std::string("fp16"));
  }
  for (float& v : t) v = normal(random);
  const Exact exact(x, t);
  const double u = low.mean * 6e-8;
  for (const Step& step :
       RunStep(*model->program, /*emulated=*/false, shares, x, t)) {
    ASSERT_TRUE(step.status.ok()) << step.status;
    for (int64_t c = 0; c < kChannels; ++c) {
      EXPECT_NEAR(step.cells.at("m")[c], 0.1 * exact.mean[c], 1e-7 + 0.2 * u);
      EXPECT_NEAR(step.cells.at("v")[c], 0.9 + 0.1 * exact.variance[c],
                  3e-7 * (1 + exact.variance[c]) + 0.2 * u * deviation);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Means, LowNormFarFromZero,
    ::testing::Combine(
        ::testing::Values(Low{"O1", "fp16", 1e3}, Low{"O2", "fp16", 3e4},
                          Low{"O1", "bf16", 1e3}, Low{"O2", "bf16", 1e5}),
        ::testing::Values(Shares{9}, Shares{6, 1, 0, 2}), ::testing::Bool()));

}  // namespace
}  // namespace runtime
}  // namespace halftone
