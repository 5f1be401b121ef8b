// Benchmarks of single ops, each in f32, bf16 and f16.
#ifndef HALFTONE_TESTS_BENCHMARKS_REGISTER_CASES_H_
#define HALFTONE_TESTS_BENCHMARKS_REGISTER_CASES_H_

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <numeric>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "benchmark/benchmark.h"
#include "graph/base/dtype.h"

namespace halftone {

// How many times more samples "/large" cases have: tensors of 51 MB of 16 bits,
// more than caches hold.
inline constexpr int64_t kLarge = 32;

inline int64_t Elements(const std::vector<int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1},
                         std::multiplies<int64_t>());
}

// What "/large/all" cases are run on: all of the machine's threads.
inline int AllThreads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Seconds that benchmarks on so many threads count: the CPU's on one.
inline double Seconds(int threads) {
  if (threads == 1) return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Bytes read and written per second by a copy, on so many threads: what they
// share is the machine's memory. Of 64 MiB a cache can hold enough to double
// it.
inline double CopyRate(int threads) {
  constexpr size_t kBytes = size_t{1} << 28;
  static auto& from = *new std::vector<char>(kBytes, 1);
  static auto& to = *new std::vector<char>(kBytes, 2);
  const auto copy_part = [&](size_t part) {
    const size_t begin = kBytes * part / threads;
    std::memcpy(&to[begin], &from[begin],
                kBytes * (part + 1) / threads - begin);
  };
  double least = 1;
  for (int round = 0; round < 5; ++round) {
    const double start = Seconds(threads);
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(copy_part, i);
    copy_part(0);
    for (std::thread& other : others) other.join();
    benchmark::ClobberMemory();
    least = std::min(least, Seconds(threads) - start);
  }
  return 2.0 * static_cast<double>(kBytes) / least;
}

// Shows bytes per second, and their share of a copy's on as many threads, of
// iterations that read and write so many. What memory gives a virtual machine
// changes within minutes: the copy is made again where it is older than a few
// seconds.
inline void ReportBytes(benchmark::State& state, int64_t bytes, int threads) {
  struct Copied {
    double rate = 0, at = 0;
  };
  constexpr double kFresh = 3;
  static std::map<int, Copied> by_threads;
  Copied& copied = by_threads[threads];
  constexpr int kByClock = 2;
  if (copied.rate == 0 || Seconds(kByClock) - copied.at > kFresh) {
    copied.rate = CopyRate(threads);
    copied.at = Seconds(kByClock);
  }
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["bytes_per_second"] = benchmark::Counter(
      static_cast<double>(bytes), rate, benchmark::Counter::kIs1024);
  state.counters["of_copy"] =
      benchmark::Counter(static_cast<double>(bytes) / copied.rate, rate);
}

// Registers run(state, case, dtype) as "<case's name>/<dtype><suffix>" for each
// of `cases`, which must outlive the benchmarks; "/real_time" behind it, and
// timed by the clock, where `by_clock`: for what runs on several threads. True,
// for a static initializer.
template <typename Cases, typename Run>
bool RegisterCases(const Cases& cases, const Run& run,
                   absl::string_view suffix = "", bool by_clock = false) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const auto& c : cases) {
      auto* registered = benchmark::RegisterBenchmark(
          absl::StrCat(c.name, "/", Name(dtype), suffix).c_str(),
          [&c, dtype, run](benchmark::State& state) { run(state, c, dtype); });
      registered->Unit(benchmark::kMicrosecond);
      if (by_clock) registered->UseRealTime();
    }
  }
  return true;
}

}  // namespace halftone

#endif  // HALFTONE_TESTS_BENCHMARKS_REGISTER_CASES_H_
