// How much memory a benchmark took.
#ifndef HALFTONE_TESTS_BENCHMARKS_PEAK_RSS_H_
#define HALFTONE_TESTS_BENCHMARKS_PEAK_RSS_H_

#include <sys/resource.h>

#include <cstdint>

namespace halftone {

// The most memory that this process has held, in bytes.
inline int64_t PeakRss() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace halftone

#endif  // HALFTONE_TESTS_BENCHMARKS_PEAK_RSS_H_
