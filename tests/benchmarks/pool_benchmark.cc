// Maximum pooling of the nets in models/ and its gradient, 64 images, on one
// thread, by each candidate: what windows that tile the image are worth.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace {

using kernels::KernelRun;
using Dims = std::vector<int64_t>;

struct Pool {
  const char* name;
  Dims x;
};
const Pool kPools[] = {
    {"mnist_first", {64, 16, 28, 28}},
    {"mnist_second", {64, 32, 14, 14}},
};

kernels::Tensor Filled(DType dtype, const Dims& dims, int64_t salt) {
  const int64_t n = dims[0] * dims[1] * dims[2] * dims[3];
  return {dtype, dims, kernels::Eighths(n, salt), Layout::kRowMajor};
}

void RunPool(benchmark::State& state, const Pool& pool, const std::string& op,
             DType dtype, const std::string& candidate) {
  const Dims& x = pool.x;
  const Dims out = {x[0], x[1], x[2] / 2, x[3] / 2};
  KernelRun run(op);
  run.Attr("ksize", Dims{2, 2}).Attr("strides", Dims{2, 2}).Use(candidate);
  run.In("X", Filled(dtype, x, 0));
  if (op == "pool2d_grad") {
    run.In("Out", Filled(dtype, out, 1)).In("OutGrad", Filled(dtype, out, 2));
  }
  run.Run();
  for (auto step : state) run.Enqueue();
}

void RegisterAll() {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const Pool& pool : kPools) {
      for (const auto& [op, candidate] :
           {std::pair("pool2d", "rows"), std::pair("pool2d", "tiles"),
            std::pair("pool2d_grad", "planes"),
            std::pair("pool2d_grad", "tiles")}) {
        benchmark::RegisterBenchmark(
            absl::StrCat(pool.name, "/", op, "/", Name(dtype), "/", candidate)
                .c_str(),
            [&pool, op = std::string(op), dtype,
             candidate = std::string(candidate)](benchmark::State& state) {
              RunPool(state, pool, op, dtype, candidate);
            })
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

const bool kRegistered = (RegisterAll(), true);

}  // namespace
}  // namespace halftone
