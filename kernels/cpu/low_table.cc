#include "kernels/cpu/low_table.h"

#include <cstring>
#include <numeric>
#include <unordered_map>

#include "absl/synchronization/mutex.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/wide_vector.h"

namespace halftone {
namespace kernels {
namespace low_table_internal {

template <typename T>
std::shared_ptr<const std::vector<T>> Shared(
    const std::string& name,
    const std::function<void(const uint16_t*, T*)>& make) {
  struct Registry {
    absl::Mutex mutex;
    std::unordered_map<std::string, std::weak_ptr<const std::vector<T>>> tables;
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
    const std::string&, const std::function<void(const uint16_t*, uint16_t*)>&);
template std::shared_ptr<const std::vector<float>> Shared(
    const std::string&, const std::function<void(const uint16_t*, float*)>&);

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

// slopes[x[k]] for a vector, gathered in registers: a load right behind stores
// of its parts would wait for them.
template <int kSize>
inline void Gather(const float* slopes, const uint16_t* x, float* to) {
  uint64_t words[kSize / 4];
  std::memcpy(words, x, sizeof(words));
  const auto at = [&](int k) {
    return slopes[(words[k / 4] >> (16 * (k % 4))) & 0xffff];
  };
  using Vector = WideVector<kSize>;
  Vector* const vector = reinterpret_cast<Vector*>(to);
  if constexpr (kSize == 8) {
    *vector = Vector{at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
  } else {
    static_assert(kSize == 16, "a vector of LowVector");
    *vector =
        Vector{at(0), at(1), at(2),  at(3),  at(4),  at(5),  at(6),  at(7),
               at(8), at(9), at(10), at(11), at(12), at(13), at(14), at(15)};
  }
}

template <typename T>
void MultiplyRun(const float* slopes, const T* x, const T* grad, T* out,
                 int64_t n) {
  const auto* bits = reinterpret_cast<const uint16_t*>(x);
  ForIsa([=](auto isa) {
    using Low = LowVector<decltype(isa)::value>;
    int64_t i = 0;
    for (; i + Low::kSize <= n; i += Low::kSize) {
      alignas(64) float made[Low::kSize], factors[Low::kSize];
      Gather<Low::kSize>(slopes, bits + i, factors);
      Low::Load(grad + i, made);
      using Vector = WideVector<Low::kSize>;
      *reinterpret_cast<Vector*>(made) *= *reinterpret_cast<Vector*>(factors);
      Low::Store(made, out + i);
    }
    for (; i < n; ++i) {
      out[i] = static_cast<T>(static_cast<float>(grad[i]) * slopes[bits[i]]);
    }
  });
}

}  // namespace

void LookUp(const LowTable& table, const void* x, void* out, int64_t elements,
            int threads) {
  ParallelFor(threads, elements, kMapGrain, [&](int64_t begin, int64_t end) {
    LookUpRun(table->data(), static_cast<const uint16_t*>(x) + begin,
              static_cast<uint16_t*>(out) + begin, end - begin);
  });
}

void MultiplyBySlopes(DType dtype, const LowSlopes& slopes, const void* x,
                      const void* grad, void* out, int64_t elements,
                      int threads) {
  const auto multiply = [&](auto zero) {
    using T = decltype(zero);
    ParallelFor(threads, elements, kMapGrain, [&](int64_t begin, int64_t end) {
      MultiplyRun(slopes->data(), static_cast<const T*>(x) + begin,
                  static_cast<const T*>(grad) + begin,
                  static_cast<T*>(out) + begin, end - begin);
    });
  };
  dtype == DType::kF16 ? multiply(half()) : multiply(bfloat16());
}

}  // namespace kernels
}  // namespace halftone
