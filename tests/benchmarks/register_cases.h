// Benchmarks of single ops, each in f32, bf16 and f16.
#ifndef HALFTONE_TESTS_BENCHMARKS_REGISTER_CASES_H_
#define HALFTONE_TESTS_BENCHMARKS_REGISTER_CASES_H_

#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "benchmark/benchmark.h"
#include "graph/base/dtype.h"

namespace halftone {

// How many times more samples "/large" cases have: more than caches hold.
inline constexpr int64_t kLarge = 16;

inline int64_t Elements(const std::vector<int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1},
                         std::multiplies<int64_t>());
}

// Bytes read and written per second of CPU time by a copy of such a size.
inline double CopyRate() {
  static const double rate = [] {
    const size_t bytes = size_t{1} << 26;
    std::vector<char> from(bytes, 1), to(bytes, 2);
    std::clock_t least = CLOCKS_PER_SEC;
    for (int round = 0; round < 9; ++round) {
      const std::clock_t start = std::clock();
      std::memcpy(to.data(), from.data(), bytes);
      benchmark::ClobberMemory();
      least = std::min(least, std::clock() - start);
    }
    return 2.0 * static_cast<double>(bytes) * CLOCKS_PER_SEC /
           static_cast<double>(least);
  }();
  return rate;
}

// Shows bytes per second, and their share of a copy's, of iterations that read
// and write so many.
inline void ReportBytes(benchmark::State& state, int64_t bytes) {
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["bytes_per_second"] = benchmark::Counter(
      static_cast<double>(bytes), rate, benchmark::Counter::kIs1024);
  state.counters["of_copy"] =
      benchmark::Counter(static_cast<double>(bytes) / CopyRate(), rate);
}

// Registers run(state, case, dtype) as "<case's name>/<dtype><suffix>" for each
// of `cases`, which must outlive the benchmarks. True, for a static
// initializer.
template <typename Cases, typename Run>
bool RegisterCases(const Cases& cases, const Run& run,
                   absl::string_view suffix = "") {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const auto& c : cases) {
      benchmark::RegisterBenchmark(
          absl::StrCat(c.name, "/", Name(dtype), suffix).c_str(),
          [&c, dtype, run](benchmark::State& state) { run(state, c, dtype); })
          ->Unit(benchmark::kMicrosecond);
    }
  }
  return true;
}

}  // namespace halftone

#endif  // HALFTONE_TESTS_BENCHMARKS_REGISTER_CASES_H_
