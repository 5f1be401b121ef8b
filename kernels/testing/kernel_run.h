// For the tests of kernels: one op on literal tensors.
//
//   KernelRun run("elementwise_add");
//   run.In("X", F32({2}, {1, 2})).In("Y", F32({2}, {3, 4}));
//   EXPECT_THAT(run.Get("Out"), ElementsAre(4, 6));
#ifndef HALFTONE_KERNELS_TESTING_KERNEL_RUN_H_
#define HALFTONE_KERNELS_TESTING_KERNEL_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "graph/ir/attr.h"
#include "graph/ir/program.h"
#include "graph/schema/op_builder.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// A tensor with its elements in logical row-major order; they are rounded to
// the dtype where they are stored.
struct Tensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;
  std::vector<double> values;
  Layout layout = Layout::kRowMajor;
};
Tensor F32(std::vector<int64_t> dims, std::vector<double> values);
Tensor F16(std::vector<int64_t> dims, std::vector<double> values);
Tensor BF16(std::vector<int64_t> dims, std::vector<double> values);
Tensor I64(std::vector<int64_t> dims, std::vector<double> values);
Tensor Scalar(double value, DType dtype = DType::kF32);
// Elements in logical row-major order to and from memory in the dtype and
// layout of `desc`; storing rounds.
void StoreTensor(const TensorDesc& desc, const std::vector<double>& values,
                 void* data);
std::vector<double> LoadTensor(const TensorDesc& desc, const void* data);
// n draws from [low, high), the same each time.
std::vector<double> Draws(int64_t n, double low = -1, double high = 1);
// n draws of k / 8, |k| <= 8: sums of their products are exact in f32, in any
// order. `salt`: other draws.
std::vector<double> Eighths(int64_t n, int64_t salt = 0);
// The values as a tensor of `dtype` stores them.
std::vector<double> Rounded(DType dtype, const std::vector<double>& values);

class KernelRun {
 public:
  explicit KernelRun(absl::string_view op);
  ~KernelRun();

  // Appends to the slot; list slots are filled by several calls.
  KernelRun& In(absl::string_view slot, Tensor tensor);
  KernelRun& Attr(absl::string_view name, AttrValue value);
  // Optional and list outputs: how many members.
  KernelRun& Out(absl::string_view slot, int members = 1);
  KernelRun& Bind(absl::string_view type_var, DType dtype);
  // The output slot shares the input slot's storage, member by member.
  KernelRun& Alias(absl::string_view output, absl::string_view input);
  KernelRun& Threads(int threads);
  KernelRun& World(int world_size);
  // Of the candidates that support the op, the one of this name.
  KernelRun& Use(absl::string_view candidate);

  // Runs the candidate (the first, or that of Use), unless that was done.
  // Fails the test if there is none.
  void Run();
  // Runs it again on the same buffers, for timing.
  void Enqueue();
  // Fills the workspace with NaNs, as another kernel might that shares it.
  void SpoilWorkspace();
  // Fresh copies of all buffers for the next Enqueue; the old ones are spoilt.
  void MoveBuffers();

  // Elements of an output in logical row-major order. Runs if need be.
  std::vector<double> Get(absl::string_view slot, int member = 0);
  double Value(absl::string_view slot) { return Get(slot)[0]; }
  // Of all inputs that are read and all outputs.
  int64_t TensorBytes();
  // The stored bytes.
  std::string Bytes(absl::string_view slot, int member = 0);
  // The name of the candidate that runs.
  std::string CandidateName();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_TESTING_KERNEL_RUN_H_
