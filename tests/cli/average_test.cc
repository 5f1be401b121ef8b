// optimizer.ema from the command line: what eval, predict and export read.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

Result Halftone(Words arguments, const Words& more = {}) {
  arguments.insert(arguments.begin(), "tools/halftone");
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunProgram(arguments);
}

Words Training(const std::string& out) {
  return {"run",        "models/mnist_convnet.pbtxt",
          "--data",     "idx:models/digits",
          "--strategy", "models/mnist_o1.pbtxt",
          "--epochs",   "1",
          "--out",      out};
}

// An epoch of the digits with averages, and both kinds of parameters.
struct Trained {
  std::string run = NewPath("-run"), raw = NewPath(".safetensors"),
              averages = NewPath(".safetensors");
};

const Trained& Made() {
  static const Trained made = [] {
    Trained t;
    const Result run =
        Halftone(Training(t.run), {"--set", "optimizer.ema.decay=0.9"});
    EXPECT_EQ(run.exit_code(), 0) << run.err;
    EXPECT_EQ(Halftone({"export", t.run, "-o", t.raw}).exit_code(), 0);
    const Result averaged =
        Halftone({"export", t.run, "--ema", "-o", t.averages});
    EXPECT_EQ(averaged.exit_code(), 0) << averaged.err;
    return t;
  }();
  return made;
}

std::string LossOf(const std::string& model, const Words& more) {
  const Result result =
      Halftone({"eval", model, "--data", "idx:models/digits", "--json"}, more);
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  return nlohmann::json::parse(result.out)["loss"].dump();
}

TEST(Average, AnOnnxModelIsWhatPredictComputes) {
  const auto exported = [](const std::string& from, const Words& more) {
    const std::string onnx = NewPath(".onnx");
    const Result result =
        Halftone({"export", from, "--format", "onnx", "-o", onnx}, more);
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    return ReadAll(onnx);
  };
  const std::string model = exported(Made().run, {});
  EXPECT_TRUE(model == exported(Made().run, {"--ema"}));
  EXPECT_FALSE(model ==
               exported("models/mnist_convnet.pbtxt", {"--init", Made().raw}));
}

TEST(Average, EvalOfARunReadsIt) {
  const Words plain = {"--strategy", "models/mnist_o1.pbtxt", "--init"};
  const auto with = [&plain](const std::string& init) {
    Words words = plain;
    words.push_back(init);
    return LossOf("models/mnist_convnet.pbtxt", words);
  };
  const std::string averaged = LossOf(Made().run, {});
  EXPECT_EQ(averaged, with(Made().averages));
  EXPECT_NE(averaged, with(Made().raw));
}

TEST(Average, PredictReadsIt) {
  const auto predicted = [](const std::string& model, const Words& more) {
    const Result result = Halftone(
        {"predict", model, "--data", "idx:models/digits", "--top", "2"}, more);
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    return result.out;
  };
  const std::string of_run = predicted(Made().run, {});
  EXPECT_EQ(of_run, predicted(Made().run, {"--init", Made().averages}));
  EXPECT_NE(of_run, predicted(Made().run, {"--init", Made().raw}));
}

TEST(Average, ExportWithoutAveragesIsRefused) {
  const std::string out = NewPath("-run");
  ASSERT_EQ(Halftone(Training(out)).exit_code(), 0);
  const Result result =
      Halftone({"export", out, "--ema", "-o", NewPath(".safetensors")});
  EXPECT_EQ(result.exit_code(), 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("its strategy has no optimizer.ema"));
}

}  // namespace
}  // namespace halftone
