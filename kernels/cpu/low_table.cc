#include "kernels/cpu/low_table.h"

#include <cstring>
#include <map>
#include <numeric>

#include "absl/synchronization/mutex.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel_for.h"

namespace halftone {
namespace kernels {
namespace low_table_internal {

template <typename T>
std::shared_ptr<const std::vector<T>> Shared(
    const FunctionName& name,
    const std::function<void(const uint16_t*, T*)>& make) {
  struct Registry {
    absl::Mutex mutex;
    std::map<FunctionName, std::weak_ptr<const std::vector<T>>> tables;
  };
  static Registry& registry = *new Registry;
  absl::MutexLock lock(&registry.mutex);
  std::weak_ptr<const std::vector<T>>& known = registry.tables[name];
  if (auto table = known.lock()) return table;
  std::vector<uint16_t> patterns(kLowPatterns);
  std::iota(patterns.begin(), patterns.end(), uint16_t{0});
  auto table = std::make_shared<std::vector<T>>(kLowPatterns);
  make(patterns.data(), table->data());
  known = table;
  return table;
}

template std::shared_ptr<const std::vector<uint16_t>> Shared(
    const FunctionName&,
    const std::function<void(const uint16_t*, uint16_t*)>&);
template std::shared_ptr<const std::vector<float>> Shared(
    const FunctionName&, const std::function<void(const uint16_t*, float*)>&);

}  // namespace low_table_internal

namespace {

// A store for eight results: of stores of 16 bits there is one a cycle.
using Eight = uint16_t __attribute__((vector_size(16), aligned(2), may_alias));

void LookUpRun(const uint16_t* table, const uint16_t* x, uint16_t* out,
               int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t low, high;
    std::memcpy(&low, x + i, sizeof(low));
    std::memcpy(&high, x + i + 4, sizeof(high));
    const auto at = [&](uint64_t word, int place) {
      return table[(word >> (16 * place)) & 0xffff];
    };
    const Eight results = {at(low, 0),  at(low, 1),  at(low, 2),  at(low, 3),
                           at(high, 0), at(high, 1), at(high, 2), at(high, 3)};
    *reinterpret_cast<Eight*>(out + i) = results;
  }
  for (; i < n; ++i) out[i] = table[x[i]];
}

}  // namespace

void LookUp(const LowTable& table, const void* x, void* out, int64_t elements,
            int threads) {
  ParallelFor(threads, elements, kMapGrain, [&](int64_t begin, int64_t end) {
    LookUpRun(table->data(), static_cast<const uint16_t*>(x) + begin,
              static_cast<uint16_t*>(out) + begin, end - begin);
  });
}

}  // namespace kernels
}  // namespace halftone
