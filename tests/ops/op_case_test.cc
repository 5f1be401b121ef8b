// The suite itself: its reader, its comparison, and that it fails where it
// should.
#include "tests/ops/op_case.h"

#include <cmath>

#include "absl/base/attributes.h"
#include "gmock/gmock.h"
#include "graph/schema/op_registry.h"
#include "gtest/gtest.h"
#include "tests/ops/compare.h"
#include "tests/ops/op_instance.h"
#include "tests/ops/op_runner.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<CaseFile> Read(const std::string& text,
                              const char* op = "softmax") {
  return ParseCaseFile(text, "f.txt", *Ops().Find(op));
}
std::string ErrorOf(const std::string& text) {
  const auto file = Read(text);
  return file.ok() ? "ok" : std::string(file.status().message());
}

TEST(OpCase, Parses) {
  const auto file = Read(
      "# comment\n"
      "tolerance 3 1e-6\n"
      "case a\n"
      "only T f16 bf16\n"
      "in X [2,2] 1 -2.5 # more\n"
      "  nan -inf\n"
      "attr axis 0\n"
      "out Out [2,2] 1 2 3 4\n"
      "gradient X\n");
  ASSERT_TRUE(file.ok()) << file.status();
  const OpCase& c = file->cases[0];
  EXPECT_EQ(c.line, 3);
  EXPECT_EQ(c.tolerance.ulps, 3);
  EXPECT_EQ(c.only.at("T").size(), 2u);
  EXPECT_EQ(c.in[0].values[1], -2.5);
  EXPECT_TRUE(std::isnan(c.in[0].values[2]));
  EXPECT_EQ(c.attrs[0].second, AttrValue(int64_t{0}));
  EXPECT_EQ(c.gradient, std::vector<std::string>{"X"});
}

TEST(OpCase, Errors) {
  EXPECT_EQ(ErrorOf(""), "f.txt: expected a case");
  EXPECT_EQ(ErrorOf("in X [1] 1"), "f.txt:1: expected a case before in");
  EXPECT_EQ(ErrorOf("case a\nin Y [1] 1"), "f.txt:2: softmax has no slot Y");
  EXPECT_THAT(ErrorOf("case a\nattr axes 1"), HasSubstr("no attribute axes"));
  EXPECT_THAT(ErrorOf("case a\nattr axis x"), HasSubstr("found x"));
  EXPECT_THAT(ErrorOf("case a\nin X [2] 1\nout Out [1] 1"),
              HasSubstr("f.txt:1: case a: slot X: expected 2 values, found 1"));
  EXPECT_THAT(ErrorOf("case a\nin X [1] 1"), HasSubstr("expected an output"));
  EXPECT_THAT(ErrorOf("case a\nwhat 1"), HasSubstr("found what"));
}

TEST(Difference, CountsUnitsOfTheDtype) {
  const double next = std::nextafter(1.0f, 2.0f);
  EXPECT_EQ(Difference(DType::kF32, {1}, {next}, {1, 0}), "");
  EXPECT_NE(Difference(DType::kF32, {1}, {next}, {0, 0}), "");
  EXPECT_NE(Difference(DType::kF32, {1}, {2 * next - 1}, {1, 0}), "");
  EXPECT_EQ(Difference(DType::kF16, {1}, {1 + 1.0 / 1024}, {2, 0}), "");
  EXPECT_NE(Difference(DType::kF16, {1}, {1 + 2.0 / 1024}, {2, 0}), "");
  EXPECT_NE(Difference(DType::kBF16, {1}, {1 + 2.0 / 128}, {2, 0}), "");
  EXPECT_EQ(Difference(DType::kF16, {1 + 1.0 / 4096}, {1}, {0, 0}), "");
  EXPECT_NE(Difference(DType::kI64, {1}, {2}, {9, 9}), "");
  EXPECT_NE(Difference(DType::kF32, {1}, {}, {1, 0}), "");
}

TEST(Difference, OfWhatIsNotFinite) {
  const double inf = INFINITY, nan = std::nan("");
  EXPECT_EQ(Difference(DType::kF32, {nan, inf}, {nan, inf}, {0, 0}), "");
  EXPECT_NE(Difference(DType::kF32, {inf}, {1e38}, {9, 9}), "");
  EXPECT_NE(Difference(DType::kF32, {1}, {nan}, {9, 9}), "");
  EXPECT_NE(Difference(DType::kF32, {nan}, {1}, {9, 9}), "");
  EXPECT_EQ(Difference(DType::kF16, {1e6}, {inf}, {0, 0}), "");
}

// A kernel with a fault in it, run on a case that a right one passes.
class FaultyKernel : public kernels::KernelInstance {
 public:
  FaultyKernel(int output_at, bool write_input)
      : output_at_(output_at), write_input_(write_input) {}
  // The runner is to notice it, not the address sanitizer.
  ABSL_ATTRIBUTE_NO_SANITIZE_ADDRESS
  absl::Status Enqueue(const kernels::Buffers& buffers,
                       runtime::Stream&) override {
    static_cast<float*>(buffers.outputs[0])[output_at_] = 1;
    if (write_input_) {
      *const_cast<float*>(static_cast<const float*>(buffers.inputs[0])) = 7;
    }
    return absl::OkStatus();
  }

 private:
  int output_at_;
  bool write_input_;
};

absl::Status RunFaulty(int output_at, bool write_input) {
  const auto file = Read("case a\nin X [2] 1 2\nout Out [2] 1 1\n");
  const OpCase& c = file->cases[0];
  const auto instance =
      MakeInstance(*file, c, ParseKernelKey("softmax(f32,f32)@row_major"));
  if (!instance.ok()) return instance.status();
  kernels::Candidate candidate;
  candidate.prepare = [=](const kernels::BoundOp&, runtime::Device&)
      -> absl::StatusOr<std::unique_ptr<kernels::KernelInstance>> {
    return {std::make_unique<FaultyKernel>(output_at, write_input)};
  };
  auto runner = OpRunner::Create("cpu", 1);
  return (*runner)
      ->Run(instance->Bind((*runner)->context()), candidate, instance->inputs)
      .status();
}

TEST(OpRunner, NoticesWritesWhereNoneBelong) {
  EXPECT_TRUE(RunFaulty(1, false).ok());
  EXPECT_THAT(std::string(RunFaulty(2, false).message()),
              HasSubstr("writes outside output 0 of 8 bytes"));
  EXPECT_THAT(std::string(RunFaulty(-1, false).message()),
              HasSubstr("writes outside output 0"));
  EXPECT_THAT(std::string(RunFaulty(0, true).message()),
              HasSubstr("writes to input 0"));
}

TEST(MakeInstance, HoldsTheCaseToTheSchema) {
  const auto key = ParseKernelKey("softmax(f32,f32)@row_major");
  auto file = Read("case a\nin X [2] 1 2\nout Out [3] 1 1 1\n");
  EXPECT_THAT(
      std::string(MakeInstance(*file, file->cases[0], key).status().message()),
      HasSubstr("slot Out: inferred f32[2], not the case's dims"));
  file = Read("case a\nin X [2] 1 2\nattr axis 4\nout Out [2] 1 1\n");
  EXPECT_FALSE(MakeInstance(*file, file->cases[0], key).ok());
}

}  // namespace
}  // namespace halftone
