// Benchmarks of single ops, each in f32, bf16 and f16.
#ifndef HALFTONE_TESTS_BENCHMARKS_REGISTER_CASES_H_
#define HALFTONE_TESTS_BENCHMARKS_REGISTER_CASES_H_

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "graph/base/dtype.h"

namespace halftone {

// Registers run(state, case, dtype) as "<case's name>/<dtype>" for each of
// `cases`, which must outlive the benchmarks. True, for a static initializer.
template <typename Cases, typename Run>
bool RegisterCases(const Cases& cases, const Run& run) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const auto& c : cases) {
      benchmark::RegisterBenchmark(
          absl::StrCat(c.name, "/", Name(dtype)).c_str(),
          [&c, dtype, run](benchmark::State& state) { run(state, c, dtype); })
          ->Unit(benchmark::kMicrosecond);
    }
  }
  return true;
}

}  // namespace halftone

#endif  // HALFTONE_TESTS_BENCHMARKS_REGISTER_CASES_H_
