// What a device reaches in products and copies. Private to runtime/tune.
#ifndef HALFTONE_RUNTIME_TUNE_RATES_H_
#define HALFTONE_RUNTIME_TUNE_RATES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "graph/base/dtype_fwd.h"
#include "graph/ir/program.h"
#include "kernels/kernel_registry.h"
#include "runtime/plan/tuning_table.h"
#include "runtime/tune/bench.h"

namespace halftone {
namespace runtime {

// What is timed: a product of square matrices, and a relu, which reads and
// writes each of its f32 elements once.
struct RateSizes {
  int64_t side = 0, elements = 0;
};
// Large enough to fill the device and to leave no cache any use.
RateSizes RateSizesOf(const Device& device);

// What a rank reaches: the best of `runs` runs of any kernel of the registry,
// memory while the cores of the other ranks of `bind` copy too. 16-bit products
// are of `low`; f32: there are none. A rate is 0 where no kernel takes the op
// or its operands do not fit; a kernel that fails while it runs is an error.
absl::StatusOr<TuningTable::Rates> MeasureRates(
    const kernels::KernelRegistry& kernels, const kernels::BindContext& bind,
    const RateSizes& sizes, DType low, int runs, Bench& bench, Device& device);

// The type of the program's 16-bit products; f32: it has none.
DType LowProductsOf(const Program& program);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TUNE_RATES_H_
