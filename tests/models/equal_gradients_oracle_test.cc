// Parameters whose gradients are equal, against PyTorch: two biased
// convolutions that are added, and a recurrent cell with biases on both sides,
// unrolled, so that its weights are tied. HT_TORCH_PYTHON names the
// interpreter; without PyTorch the test is skipped.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/dtype.h"
#include "graph/base/file.h"
#include "graph/base/text.h"
#include "gtest/gtest.h"
#include "runtime/train/feeds.h"
#include "tests/models/model_text.h"
#include "tests/models/training.h"
#include "tests/support/run_steps.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kSamples = 12, kSteps = 5;
constexpr char kData[] = "synthetic:12";

constexpr char kHead[] = R"(name: "equal"  format: 1
feed { name: "x" dtype: F32 dims: [-1, 6] }
feed { name: "image" dtype: F32 dims: [-1, 2, 5, 5] }
feed { name: "label" dtype: I64 dims: [-1] }
)";
constexpr char kStrategy[] = R"(amp { level: "O0" }
optimizer { momentum { momentum: 0.9 } }
lr { base: 0.1 constant: true }
train { batch_size: 12 }
)";

std::string Convolutions() {
  return Param("w1", "3, 2, 3, 3") + Param("w2", "3, 2, 3, 3") +
         Param("b1", "3") + Param("b2", "3") + Param("w", "75, 4") +
         Param("b", "4") + Conv("image", "w1", "b1", "c1") +
         Conv("image", "w2", "b2", "c2") + Add("c1", "c2", "c") +
         Unary("flatten", "c", "flat") + Matmul("flat", "w", "b", "logits");
}

// Both steps of a cell read the same weights, and what its two biases get is
// the same.
std::string Recurrent() {
  std::string text = Param("w0", "6, 5") + Param("wi", "6, 5") +
                     Param("wh", "5, 5") + Param("bi", "5") + Param("bh", "5") +
                     Param("w", "5, 4") + Param("b", "4") +
                     Matmul("x", "w0", "", "i0") + Unary("tanh", "i0", "h0");
  for (int t = 1; t <= 2; ++t) {
    const std::string n = absl::StrCat(t);
    text += Matmul("x", "wi", "bi", "i" + n) +
            Matmul(absl::StrCat("h", t - 1), "wh", "bh", "r" + n) +
            Add("i" + n, "r" + n, "s" + n) + Unary("tanh", "s" + n, "h" + n);
  }
  return text + Matmul("h2", "w", "b", "logits");
}

using Tensors = std::map<std::string, std::vector<double>>;

std::vector<double> FloatsOf(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return {values.begin(), values.end()};
}

std::string Line(const std::string& name, const std::vector<int64_t>& dims,
                 const std::vector<double>& values) {
  return absl::StrCat(name, " ", absl::StrJoin(dims, ","), "=",
                      absl::StrJoin(values, " ",
                                    [](std::string* out, double value) {
                                      absl::StrAppend(out, ExactDouble(value));
                                    }),
                      "\n");
}

// What the feeds hold, all samples.
std::string FeedLines(const Program& program) {
  const std::vector<FeedSpec> specs = FeedSpecsOf(program);
  DataOptions options;
  options.seed = 1;  // as the run's
  const auto data = OpenData(kData, specs, options);
  EXPECT_TRUE(data.ok()) << data.status();
  std::string lines;
  for (size_t f = 0; f < specs.size(); ++f) {
    std::vector<int64_t> dims = specs[f].dims;
    int64_t elements = 1;
    for (const int64_t dim : dims) elements *= dim;
    dims.insert(dims.begin(), kSamples);
    std::vector<double> values;
    for (int64_t i = 0; i < kSamples; ++i) {
      std::string sample(elements * SizeOf(specs[f].dtype), '\0');
      const absl::Status read = data->train->Read(
          {i}, static_cast<int>(f),
          absl::MakeSpan(reinterpret_cast<uint8_t*>(&sample[0]),
                         sample.size()));
      EXPECT_TRUE(read.ok()) << read;
      if (specs[f].dtype == DType::kI64) {
        int64_t label = 0;
        std::memcpy(&label, sample.data(), sizeof(label));
        values.push_back(static_cast<double>(label));
        continue;
      }
      for (const double value : FloatsOf(sample)) values.push_back(value);
    }
    lines += Line(specs[f].name, dims, values);
  }
  return lines;
}

std::string ParameterLines(const Program& program, const StepsResult& start) {
  std::string lines;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind != CellKind::kParameter) continue;
    std::vector<int64_t> dims;
    for (const Dim& dim : cell.type.dims) dims.push_back(dim.coefficient());
    const std::string name(cell.name);
    lines += Line(name, dims, FloatsOf(start.cells[0].at(name)));
  }
  return lines;
}

StepsResult MustRun(const CompiledModel& model, int ranks, int64_t steps) {
  StepsSpec spec;
  spec.ranks = ranks;
  spec.batch = kSamples;
  spec.steps = steps;
  spec.data = kData;
  spec.learning_rate = 0.1f;
  auto result = RunSteps(*model.program, spec);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : StepsResult();
}

std::string Python() {
  const char* path = std::getenv("HT_TORCH_PYTHON");
  return path == nullptr ? "/usr/bin/python3" : path;
}

std::string Output(const std::string& command, int* status) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof(buffer), pipe)) {
    output.append(buffer, n);
  }
  *status = pclose(pipe);
  return output;
}

Tensors Parse(const std::string& output) {
  Tensors tensors;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, '=');
    if (parts.size() != 2) continue;
    const std::string name = parts[0].substr(0, parts[0].find(' '));
    for (absl::string_view word : absl::StrSplit(parts[1], ' ')) {
      double value = 0;
      EXPECT_TRUE(absl::SimpleAtod(word, &value)) << line;
      tensors[name].push_back(value);
    }
  }
  return tensors;
}

class EqualGradientsOracle : public ::testing::TestWithParam<const char*> {};

// f32 against f64: sums of at most 300 products of the order of 1 over 5 steps.
TEST_P(EqualGradientsOracle, TrainsAsPyTorchDoes) {
  int status = 0;
  Output(Python() + " -c 'import torch' 2>/dev/null", &status);
  if (status != 0) GTEST_SKIP() << Python() << " has no torch";
  const std::string name = GetParam();
  const auto model = CompileText(
      absl::StrCat(kHead, name == "Recurrent" ? Recurrent() : Convolutions(),
                   CrossEntropy()),
      kStrategy);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string file = FreshDirectory() + ".tensors";
  ASSERT_TRUE(WriteFileAtomically(
                  file, ParameterLines(*model->program, MustRun(*model, 1, 0)) +
                            FeedLines(*model->program))
                  .ok());
  const Tensors expected = Parse(
      Output(absl::StrCat(Python(), " tests/models/equal_gradients_oracle.py ",
                          name, " ", kSteps, " ", file),
             &status));
  ASSERT_EQ(status, 0);
  // All parameters, and the losses.
  ASSERT_EQ(expected.size(), name == "Recurrent" ? 7u + 1 : 6u + 1);
  for (const int ranks : {1, 2}) {
    const StepsResult found = MustRun(*model, ranks, kSteps);
    for (const auto& [what, values] : expected) {
      const std::vector<double> ours =
          what == "loss" ? found.losses : FloatsOf(found.cells[0].at(what));
      ASSERT_EQ(ours.size(), values.size()) << what;
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_NEAR(ours[i], values[i], 2e-6 * (1 + std::abs(values[i])))
            << what << " " << i << " on " << ranks << " ranks";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EqualGradientsOracle,
                         ::testing::Values("Convolutions", "Recurrent"),
                         [](const ::testing::TestParamInfo<const char*>& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace runtime
}  // namespace halftone
