// A run that was stopped or killed goes on as if it had not been: the same
// loss lines and the same state, bit for bit, with the same program, data,
// ranks and threads.
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/data/npz_testing.h"
#include "tests/models/model_text.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Case {
  const char* name;
  const char* model;  // a file; null: kScaleModel
  const char* strategy;
  const char* data;
  int ranks;
};

class Resume : public ::testing::TestWithParam<Case> {
 protected:
  Resume() : out_(FreshDirectory()) {
    auto compiled =
        GetParam().model == nullptr
            ? CompileText(kScaleModel, kScaleStrategy, {"train.epochs=3"})
            : CompileFile(GetParam().model, GetParam().strategy,
                          {"train.epochs=3"});
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (compiled.ok()) model_ = *std::move(compiled);
  }

  TrainConfig Config(const std::string& run) {
    TrainConfig config = ConfigOf(model_, GetParam().data, out_ + run);
    config.log_every = 4;
    config.checkpoint_every = {Cadence::Unit::kSteps, 5};
    config.keep_checkpoints = 1000;
    return config;
  }
  Trained Run(const TrainConfig& config) {
    return TrainOn(model_, config, GetParam().ranks);
  }

  // The whole of `run` is that of the run "/whole", which is never stopped.
  void ExpectAsWhole(const std::string& run) {
    const std::string whole = out_ + "/whole", other = out_ + run;
    for (const char* kind : {"step", "eval", "skip", "scale"}) {
      const std::vector<Json> a = Events(whole, kind), b = Events(other, kind);
      ASSERT_EQ(a.size(), b.size()) << kind;
      for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], b[i]);
    }
    const Checkpoint a = Newest(whole), b = Newest(other);
    ASSERT_EQ(a.manifest.step, b.manifest.step);
    EXPECT_EQ(a.manifest.numbers, b.manifest.numbers);
    ASSERT_EQ(a.tensors.size(), b.tensors.size());
    for (size_t i = 0; i < a.tensors.size(); ++i) {
      EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
      EXPECT_TRUE(a.tensors[i].bytes == b.tensors[i].bytes)
          << a.tensors[i].name;
    }
    for (const char* key :
         {"steps_applied", "loss_first", "loss_last", "metrics", "best_epoch",
          "loss_scaling", "scale_events"}) {
      EXPECT_EQ(Summary(whole)[key], Summary(other)[key]) << key;
    }
  }

  std::string out_;
  CompiledModel model_;
};

TEST_P(Resume, AfterASignal) {
  ASSERT_NE(model_.program, nullptr);
  ASSERT_TRUE(Run(Config("/whole")).status.ok());
  TrainConfig config = Config("/stopped");
  config.on_activity = [](int64_t step, const char* what) {
    if (step == 12 && std::string(what) == "train") ::kill(::getpid(), SIGTERM);
  };
  const Trained stopped = Run(config);
  ASSERT_TRUE(stopped.status.ok()) << stopped.status;
  EXPECT_EQ(stopped.signal, SIGTERM);
  EXPECT_EQ(Summary(config.out)["exit"], 128 + SIGTERM);
  const int64_t at = Newest(config.out).manifest.step;
  EXPECT_GE(at, 12);
  EXPECT_LE(at, 14);

  config.on_activity = nullptr;
  config.resume = true;
  const Trained resumed = Run(config);
  ASSERT_TRUE(resumed.status.ok()) << resumed.status;
  EXPECT_EQ(resumed.signal, 0);
  ExpectAsWhole("/stopped");
}

// Killed after metrics of later steps were written: these are cut off.
TEST_P(Resume, FromAnOlderCheckpoint) {
  ASSERT_NE(model_.program, nullptr);
  ASSERT_TRUE(Run(Config("/whole")).status.ok());
  TrainConfig config = Config("/killed");
  ASSERT_TRUE(Run(config).status.ok());
  int removed = 0;
  for (const CheckpointInfo& info : ListCheckpoints(config.out + "/ckpt")) {
    if (info.step <= 10) continue;
    // A damaged newer one is passed over.
    ASSERT_TRUE(
        WriteFileAtomically(info.path + "/state.safetensors", "x").ok());
    ++removed;
  }
  ASSERT_GT(removed, 1);
  config.resume = true;
  ASSERT_TRUE(Run(config).status.ok());
  ExpectAsWhole("/killed");
}

class ResumeElsewhere : public Resume {};

TEST_P(ResumeElsewhere, TakesTheSameSamples) {
  ASSERT_NE(model_.program, nullptr);
  ASSERT_TRUE(Run(Config("/whole")).status.ok());
  TrainConfig config = Config("/other");
  config.on_activity = [](int64_t step, const char* what) {
    if (step == 9 && std::string(what) == "train") ::kill(::getpid(), SIGINT);
  };
  ASSERT_EQ(Run(config).signal, SIGINT);
  config.on_activity = nullptr;
  config.resume = true;
  ASSERT_TRUE(
      TrainOn(model_, config, GetParam().ranks == 1 ? 2 : 1).status.ok());
  const std::vector<Json> a = Events(out_ + "/whole", "step");
  const std::vector<Json> b = Events(config.out, "step");
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i]["step"], b[i]["step"]);
    EXPECT_EQ(a[i]["n"], b[i]["n"]);
    // f32 sums in another order.
    EXPECT_NEAR(a[i]["loss"], b[i]["loss"], 1e-5 * a[i]["loss"].get<double>());
  }
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

constexpr char kConvNet[] = "models/mnist_convnet.pbtxt";
constexpr Case kScale1 = {"Scale1", nullptr, nullptr, "synthetic:130", 1};
constexpr Case kScale2 = {"Scale2", nullptr, nullptr, "synthetic:130", 2};

INSTANTIATE_TEST_SUITE_P(
    Models, Resume,
    ::testing::Values(kScale1, kScale2,
                      Case{"ConvNetO1On1", kConvNet, "models/mnist_o1.pbtxt",
                           "synthetic:460", 1},
                      Case{"ConvNetO1On2", kConvNet, "models/mnist_o1.pbtxt",
                           "synthetic:460", 2},
                      Case{"ConvNetO2On1", kConvNet, "models/mnist_o2.pbtxt",
                           "synthetic:460", 1},
                      Case{"ConvNetO2On2", kConvNet, "models/mnist_o2.pbtxt",
                           "synthetic:460", 2}),
    NameOf);

// Without choices that rounding can turn (relu of a convolution, max-pooling).
INSTANTIATE_TEST_SUITE_P(Models, ResumeElsewhere,
                         ::testing::Values(kScale1, kScale2,
                                           Case{"MlpOn1", "models/mlp.pbtxt",
                                                "models/mnist_fp32.pbtxt",
                                                "synthetic:460", 1}),
                         NameOf);

// ---- At another level: FP32 copies, statistics and slots are the same state.

struct Change {
  const char* name;
  std::vector<std::string> before, after;
  float scale;  // that the resumed run begins with
};

class ResumeAtALevel : public ::testing::TestWithParam<Change> {};

TEST_P(ResumeAtALevel, GoesOn) {
  const Change& change = GetParam();
  const auto compile = [](std::vector<std::string> overrides) {
    overrides.push_back("train.epochs=2");
    return CompileFile(kConvNet, "models/mnist_o1.pbtxt", overrides);
  };
  const auto before = compile(change.before), after = compile(change.after);
  ASSERT_TRUE(before.ok()) << before.status();
  ASSERT_TRUE(after.ok()) << after.status();
  TrainConfig config = ConfigOf(*before, "synthetic:128", FreshDirectory());
  config.strategy.mutable_train()->set_epochs(1);
  config.log_every = 1;
  ASSERT_TRUE(TrainOn(*before, config, 1).status.ok());

  TrainConfig next = ConfigOf(*after, "synthetic:128", config.out);
  next.resume = true;
  next.log_every = 1;
  const Trained trained = TrainOn(*after, next, 2);
  ASSERT_TRUE(trained.status.ok()) << trained.status;
  const std::vector<Json> steps = Events(config.out, "step");
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[2]["step"], 3);
  EXPECT_EQ(steps[2]["loss_scaling"], change.scale);
  EXPECT_EQ(steps[2]["applied"], 3);
}

const std::vector<std::string> kO0 = {"amp.level=O0"}, kO1 = {"amp.level=O1"},
                               kO2 = {"amp.level=O2"}, kO3 = {"amp.level=O3"};

INSTANTIATE_TEST_SUITE_P(
    Levels, ResumeAtALevel,
    ::testing::Values(Change{"O1ToO2", kO1, kO2, 32768},
                      Change{"O3ToO2", kO3, kO2, 32768},
                      Change{"O2ToO3", kO2, kO3, 32768},
                      Change{"O1ToO0", kO1, kO0, 32768},
                      // A constant scale is not taken for a dynamic one.
                      Change{"ConstantToDynamic",
                             {"amp.loss_scaling.use_dynamic_loss_scaling=false",
                              "amp.loss_scaling.init_loss_scaling=8"},
                             kO1,
                             32768}),
    [](const ::testing::TestParamInfo<Change>& info) {
      return std::string(info.param.name);
    });

// ---- Without a model of its own.

TEST(ResumeOfOne, ThatIsDoneDoesNothing) {
  const auto model = CompileText(kScaleModel, kScaleStrategy);
  ASSERT_TRUE(model.ok()) << model.status();
  TrainConfig config = ConfigOf(*model, "synthetic:64", FreshDirectory());
  ASSERT_TRUE(TrainOn(*model, config, 1).status.ok());
  const std::string before = *ReadFile(config.out + "/metrics.jsonl");
  config.resume = true;
  ASSERT_TRUE(TrainOn(*model, config, 1).status.ok());
  // But for saying so.
  EXPECT_THAT(*ReadFile(config.out + "/metrics.jsonl"), StartsWith(before));
  EXPECT_EQ(Events(config.out, "run_start").size(), 2u);
  EXPECT_EQ(Events(config.out, "run_start")[1]["resumed"], true);
  EXPECT_EQ(Events(config.out, "end").size(), 2u);
  for (const char* kind : {"step", "eval", "checkpoint"}) {
    EXPECT_EQ(Events(config.out, kind).back()["step"], 8) << kind;
  }
}

// A scale that begins too high and grows soon: events of both kinds, before and
// after the checkpoint.
TEST(ResumeOfOne, KeepsTheScaleEvents) {
  const auto model =
      CompileFile(kConvNet, "models/mnist_o1.pbtxt",
                  {"amp.loss_scaling.init_loss_scaling=16777216",
                   "amp.loss_scaling.decr_every_n_nan_or_inf=1",
                   "amp.loss_scaling.incr_every_n_steps=2", "train.epochs=3"});
  ASSERT_TRUE(model.ok()) << model.status();
  TrainConfig config = ConfigOf(*model, "synthetic:460", FreshDirectory());
  config.checkpoint_every = {Cadence::Unit::kSteps, 5};
  config.keep_checkpoints = 1000;
  ASSERT_TRUE(TrainOn(*model, config, 1).status.ok());
  const Json events = Summary(config.out)["scale_events"];
  int skipped = 0, raised = 0;
  float scale = 16777216;
  for (const Json& event : events) {
    EXPECT_EQ(event["scale_before"], scale) << event;
    scale = event["loss_scaling"];
    const bool was_skipped = event["skipped"];
    skipped += was_skipped;
    raised += !was_skipped;
    EXPECT_EQ(scale,
              event["scale_before"].get<float>() * (was_skipped ? 0.5f : 2.0f));
    EXPECT_EQ(event["first_bad"].is_null(), !was_skipped);
    if (was_skipped) {
      EXPECT_THAT(event["first_bad"].get<std::string>(), HasSubstr(".grad "));
    }
  }
  EXPECT_EQ(Summary(config.out)["loss_scaling"], scale);
  EXPECT_GT(skipped, 3);
  EXPECT_GT(raised, 3);
  EXPECT_EQ(static_cast<int>(Events(config.out, "skip").size()), skipped);
  EXPECT_EQ(static_cast<int>(Events(config.out, "scale").size()), raised);

  for (const CheckpointInfo& info : ListCheckpoints(config.out + "/ckpt")) {
    if (info.step > 10) std::filesystem::remove_all(info.path);
  }
  config.resume = true;
  ASSERT_TRUE(TrainOn(*model, config, 1).status.ok());
  EXPECT_EQ(Summary(config.out)["scale_events"], events);
}

// What is promised is said, and only then.
TEST(ResumeOfOne, SaysWhatIsNotAsBefore) {
  const auto model = CompileText(kScaleModel, kScaleStrategy);
  ASSERT_TRUE(model.ok()) << model.status();
  TrainConfig config = ConfigOf(*model, "synthetic:64", FreshDirectory());
  ASSERT_TRUE(TrainOn(*model, config, 1).status.ok());
  config.resume = true;
  const auto said = [&](int ranks, int threads) {
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(TrainOn(*model, config, ranks, nullptr,
                        [&](int r, std::unique_ptr<Device>) {
                          return MakeCpuDevice(r, threads);
                        })
                    .status.ok());
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(1, 1), HasSubstr("same program and 1 rank: bit for bit"));
  EXPECT_THAT(said(2, 1),
              HasSubstr("2 ranks: same samples, equal to rounding"));
  EXPECT_THAT(said(1, 2),
              HasSubstr("not bitwise: 2 threads per rank instead of 1"));
  const TrainConfig as_before = config;
  config.strategy.mutable_train()->set_seed(5);
  EXPECT_THAT(said(1, 1), HasSubstr("another seed (5 instead of 1)"));
  config = as_before;
  config.strategy.mutable_lr()->set_base(0.5);
  EXPECT_THAT(said(1, 1), HasSubstr("1 rank; another lr"));
  config = as_before;
  config.shuffle = false;
  EXPECT_THAT(said(1, 1),
              HasSubstr("another order of samples (as stored instead of "));
  config = as_before;
  config.data = "synthetic:32";
  EXPECT_THAT(said(1, 1),
              HasSubstr("another number of samples (32 instead of 64)"));
}

// What a rank makes of its own samples is another step on other ranks.
TEST(ResumeOfOne, SaysWhatDependsOnTheRanks) {
  const std::string normed = absl::StrCat(
      kSixFeatures, Param("w1", "6, 12"), Param("w2", "12, 4"),
      Param("s", "12", "constant: 1"), Param("c", "12", "constant: 0"),
      Matmul("x", "w1", "", "h"), BatchNorm("h", 12, "s", "c", "n"),
      Matmul("n", "w2", "", "logits"), CrossEntropy());
  const auto said = [](const std::string& text, const std::string& setting) {
    const auto model = CompileText(text, kScaleStrategy, {setting});
    EXPECT_TRUE(model.ok()) << model.status();
    TrainConfig config = ConfigOf(*model, "synthetic:64", NewDirectory());
    EXPECT_TRUE(TrainOn(*model, config, 1).status.ok());
    config.resume = true;
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(TrainOn(*model, config, 2).status.ok());
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string other = "2 ranks instead of 1: same samples, other steps: ";
  EXPECT_THAT(said(normed, "dist.sync_batch_norm=false"),
              HasSubstr(other + "batch norms take each rank's samples"));
  EXPECT_THAT(said(normed, "dist.sync_batch_norm=true"),
              HasSubstr("2 ranks: same samples, equal to rounding"));
  EXPECT_THAT(said(kScaleModel, "dist.gradient_mean=ranks"),
              HasSubstr(other + "a mean of ranks' means"));
  EXPECT_THAT(said(kScaleModel, "dist.localsgd.k_steps=4"),
              HasSubstr(other + "each rank takes steps of its own"));
}

TEST(ResumeOfOne, SaysThatTheSamplesAreOthers) {
  const auto model = CompileText(kScaleModel, kScaleStrategy);
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<float> x(640, 0.5f);
  const std::string path = FreshDirectory() + ".npz";
  const auto write = [&] {
    ZipFile file;
    file.members = {
        {"x.npy", NpyFile{"<f4", "64, 10", BytesOf(x)}.Serialize()},
        {"label.npy",
         NpyFile{"<i8", "64,", BytesOf(std::vector<int64_t>(64))}.Serialize()}};
    ASSERT_TRUE(WriteFileAtomically(path, file.Serialize()).ok());
  };
  write();
  TrainConfig config = ConfigOf(*model, "npz:" + path, FreshDirectory());
  ASSERT_TRUE(TrainOn(*model, config, 1).status.ok());
  config.resume = true;
  const auto said = [&] {
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(TrainOn(*model, config, 1).status.ok());
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(), HasSubstr("same program and 1 rank: bit for bit"));
  x[100] = 0.25f;
  write();
  EXPECT_THAT(said(), HasSubstr("1 rank; another set of samples"));
  EXPECT_THAT(said(), HasSubstr("1 rank; another set of samples"));
}

TEST(ResumeOfOne, WithoutACheckpointBeginsAnew) {
  const auto model = CompileText(kScaleModel, kScaleStrategy);
  ASSERT_TRUE(model.ok()) << model.status();
  TrainConfig config = ConfigOf(*model, "synthetic:64", FreshDirectory());
  config.resume = true;
  ASSERT_TRUE(TrainOn(*model, config, 1).status.ok());
  EXPECT_EQ(Summary(config.out)["steps_applied"], 8);
}

TEST(ResumeOfOne, OfAnotherModelIsRefused) {
  const auto model = CompileText(kScaleModel, kScaleStrategy);
  ASSERT_TRUE(model.ok()) << model.status();
  TrainConfig config = ConfigOf(*model, "synthetic:64", FreshDirectory());
  ASSERT_TRUE(TrainOn(*model, config, 1).status.ok());
  // Without momentum there are slots that the model does not have.
  const auto other =
      CompileText(kScaleModel,
                  "amp { level: \"O0\" } optimizer { sgd {} } lr { base: 0.1 } "
                  "train { batch_size: 16 epochs: 2 }");
  ASSERT_TRUE(other.ok()) << other.status();
  TrainConfig next = ConfigOf(*other, "synthetic:64", config.out);
  next.resume = true;
  const absl::Status status = TrainOn(*other, next, 2).status;
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCheckpoint) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("w."));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
