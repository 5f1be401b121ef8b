// One op on generated tensors of thousands of elements, on every tested device
// against the CPU.
#ifndef HALFTONE_TESTS_OPS_LARGE_OP_H_
#define HALFTONE_TESTS_OPS_LARGE_OP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/program.h"
#include "graph/schema/op_builder.h"
#include "tests/ops/compare.h"
#include "tests/ops/op_runner.h"

namespace halftone {

inline constexpr DType kF32 = DType::kF32, kF16 = DType::kF16,
                       kBF16 = DType::kBF16;

// Sums of many roundings in another order; rounded to 16 bits, one unit.
inline constexpr Tolerance kSums = {64, 2e-5};
inline constexpr Tolerance kSame = {0, 0};
inline constexpr Tolerance kNear = {4, 1e-6};

class Large {
 public:
  using Values = std::vector<double>;
  using Dims = std::vector<int64_t>;

  explicit Large(const std::string& op);

  // Of the tensors of rank 4 that follow.
  Large& Layouts(Layout layout);
  Large& In(const char* slot, DType dtype, const Dims& dims, Values values);
  // Draws from [-1, 1).
  Large& In(const char* slot, DType dtype, const Dims& dims);
  Large& Attr(const char* name, AttrValue value);
  Large& Out(const std::string& slot, int members = 1);
  Large& Bind(const char* type_var, DType dtype);

  // Each candidate of each tested device against the CPU's first, also at
  // addresses that do not allow vectors, and twice: the same bits.
  void Expect(const Tolerance& tolerance);

 private:
  void ExpectOn(const std::string& device, const Op& op,
                const std::vector<Values>& inputs, const RunResult& expected,
                const Tolerance& tolerance);

  Program program_;
  Block* block_;
  std::string name_;
  OpBuilder builder_;
  Layout layout_ = Layout::kRowMajor;
  std::vector<Values> inputs_;
  std::vector<ValueId> ids_;
  int outs_ = 0;
};

// All float dtypes; both layouts.
const std::vector<DType>& Floats();
const std::vector<Layout>& BothLayouts();
// n whole numbers from 0 to `most`; n numbers from [0.25, 2).
Large::Values Whole(int64_t n, int64_t most);
Large::Values Positive(int64_t n);

}  // namespace halftone

#endif  // HALFTONE_TESTS_OPS_LARGE_OP_H_
