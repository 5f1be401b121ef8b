#include "tests/ops/large_op.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"
#include "tests/ops/devices.h"

namespace halftone {

using kernels::BoundOp;

Large::Large(const std::string& op)
    : block_(&program_.AddEntry("test").block()),
      name_(op),
      builder_(block_, op) {
  builder_.Name("op");
}

Large& Large::Layouts(Layout layout) {
  layout_ = layout;
  return *this;
}

Large& Large::In(const char* slot, DType dtype, const Dims& dims,
                 Values values) {
  TensorType type;
  type.dtype = dtype;
  if (dims.size() == 4) type.layout = layout_;
  for (int64_t d : dims) type.dims.push_back(Dim(d));
  const ValueId value =
      block_->AddFeed(absl::StrCat("in", inputs_.size()), type);
  builder_.In(slot, value);
  inputs_.push_back(std::move(values));
  ids_.push_back(value);
  return *this;
}

Large& Large::In(const char* slot, DType dtype, const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  // Another length, other draws.
  Values values = kernels::Draws(n + static_cast<int64_t>(inputs_.size()));
  values.resize(n);
  return In(slot, dtype, dims, std::move(values));
}

Large& Large::Attr(const char* name, AttrValue value) {
  builder_.Attr(name, std::move(value));
  return *this;
}

Large& Large::Out(const std::string& slot, int members) {
  for (int i = 0; i < members; ++i) {
    builder_.Out(slot, absl::StrCat("out", outs_++));
  }
  return *this;
}

Large& Large::Bind(const char* type_var, DType dtype) {
  builder_.Bind(type_var, dtype);
  return *this;
}

void Large::Expect(const Tolerance& tolerance) {
  const auto id = builder_.Build();
  ASSERT_TRUE(id.ok()) << id.status();
  const Op& op = block_->op(*id);
  std::vector<Values> inputs;
  for (ValueId value : op.inputs.all()) {
    const size_t i = std::find(ids_.begin(), ids_.end(), value) - ids_.begin();
    inputs.push_back(kernels::Rounded(block_->dtype(value), inputs_[i]));
  }
  const auto cpu = OpRunner::Create("cpu", 2);
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  const BoundOp on_cpu(*block_, op, SymbolValues(), (*cpu)->context());
  const auto reference = kernels::Kernels().Find(on_cpu);
  ASSERT_TRUE(reference.ok()) << reference.status();
  const auto expected = (*cpu)->Run(on_cpu, *(*reference)[0], inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const std::string& device : TestedDevices()) {
    ExpectOn(device, op, inputs, *expected, tolerance);
  }
}

void Large::ExpectOn(const std::string& device, const Op& op,
                     const std::vector<Values>& inputs,
                     const RunResult& expected, const Tolerance& tolerance) {
  const auto runner = OpRunner::Create(device, 1);
  ASSERT_TRUE(runner.ok()) << runner.status();
  const BoundOp bound(*block_, op, SymbolValues(), (*runner)->context());
  const auto candidates = TestedKernels().Find(bound);
  ASSERT_TRUE(candidates.ok()) << candidates.status();
  for (const kernels::Candidate* candidate : *candidates) {
    for (const auto place :
         {OpRunner::Place::kApart, OpRunner::Place::kShifted}) {
      SCOPED_TRACE(
          absl::StrCat(name_, " ", kernels::ToString(bound.inputs()[0]), " ",
                       candidate->name, " on ", device,
                       place == OpRunner::Place::kShifted ? ", shifted" : ""));
      const auto found = (*runner)->Run(bound, *candidate, inputs, place);
      ASSERT_TRUE(found.ok()) << found.status();
      for (size_t i = 0; i < expected.values.size(); ++i) {
        ASSERT_EQ(Difference(bound.outputs()[i].dtype, expected.values[i],
                             found->values[i], tolerance),
                  "")
            << "output " << i;
      }
    }
  }
}

const std::vector<DType>& Floats() {
  static const auto* const dtypes = new std::vector<DType>{kF32, kF16, kBF16};
  return *dtypes;
}

const std::vector<Layout>& BothLayouts() {
  static const auto* const layouts =
      new std::vector<Layout>{Layout::kRowMajor, Layout::kChannelsLast};
  return *layouts;
}

Large::Values Whole(int64_t n, int64_t most) {
  Large::Values values = kernels::Draws(n, 0, static_cast<double>(most + 1));
  for (double& v : values) v = std::floor(v);
  return values;
}

Large::Values Positive(int64_t n) { return kernels::Draws(n, 0.25, 2); }

}  // namespace halftone
