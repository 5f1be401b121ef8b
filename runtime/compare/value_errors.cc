#include "runtime/compare/value_errors.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/dtype.h"
#include "graph/base/half.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel_for.h"

namespace halftone {
namespace runtime {
namespace {

using kernels::kConvertBlock;

// Elements whose sums are made before they are added to the others'.
constexpr int64_t kBlock = 16 * kConvertBlock;
constexpr int kLanes = 16;

template <typename T>
constexpr float SmallestNormal() {
  return sizeof(T) == 2 ? 0x1p-126f : std::numeric_limits<float>::min();
}
template <>
constexpr float SmallestNormal<half>() {
  return 0x1p-14f;
}

// Numbers of one dtype without their signs, as integers that count them.
void Magnitudes(const float* x, int64_t n, int32_t* to) {
  std::memcpy(to, x, n * sizeof(float));
  for (int64_t i = 0; i < n; ++i) to[i] &= 0x7fffffff;
}
template <typename T>
void Magnitudes(const T* x, int64_t n, int32_t* to) {
  uint16_t bits[kConvertBlock];
  std::memcpy(bits, x, n * sizeof(T));
  for (int64_t i = 0; i < n; ++i) to[i] = bits[i] & 0x7fff;
}

inline bool IsFinite(float x) {
  return std::fabs(x) <= std::numeric_limits<float>::max();
}

struct Lanes {
  double abs[kLanes] = {}, error2[kLanes] = {}, reference2[kLanes] = {};
  double value2[kLanes] = {}, product[kLanes] = {};
  float max_abs[kLanes] = {}, max_rel[kLanes] = {}, max_ref[kLanes] = {};
  int32_t counted[kLanes] = {}, not_finite[kLanes] = {};
  int32_t overflow[kLanes] = {}, underflow[kLanes] = {};
  uint32_t ulps[kLanes] = {};
};

// What is known of up to kConvertBlock elements.
struct Chunk {
  float x[kConvertBlock];  // values
  float r[kConvertBlock];  // scaled references
  // Both in the dtype.
  int32_t x_magnitude[kConvertBlock], r_magnitude[kConvertBlock];
};

// Vectors only where what is added up has a place of its own in each lane, and
// the loops over lanes are not unrolled.
inline void AddExtremes(const Chunk& chunk, int64_t i, int count,
                        float smallest, Lanes* lanes) {
#pragma GCC unroll 1
  for (int l = 0; l < count; ++l) {
    const float x = chunk.x[i + l], r = chunk.r[i + l];
    const float magnitude = std::fabs(r);
    const int32_t counts = IsFinite(r), finite = IsFinite(x);
    const int32_t both = counts & finite;
    const float error = both ? std::fabs(x - r) : 0.0f;
    const float rel = magnitude > 0 ? error / magnitude : 0.0f;
    const float reference = counts ? magnitude : 0.0f;
    lanes->max_abs[l] = std::max(lanes->max_abs[l], error);
    lanes->max_rel[l] = std::max(lanes->max_rel[l], rel);
    lanes->max_ref[l] = std::max(lanes->max_ref[l], reference);
    const int32_t infinite =
        std::fabs(x) > std::numeric_limits<float>::max() ? 1 : 0;
    const int32_t flushed =
        (x == 0 ? 1 : 0) & (magnitude > 0 ? 1 : 0) & (magnitude < smallest);
    lanes->counted[l] += counts;
    lanes->not_finite[l] += counts & (finite ^ 1);
    lanes->overflow[l] += counts & infinite;
    lanes->underflow[l] += flushed;
    const int32_t a = chunk.x_magnitude[i + l], b = chunk.r_magnitude[i + l];
    const uint32_t apart = static_cast<uint32_t>(std::abs(a - b));
    const uint32_t across = static_cast<uint32_t>(a) + static_cast<uint32_t>(b);
    const uint32_t steps = (x < 0) == (r < 0) ? apart : across;
    const uint32_t ulps = both ? steps : 0u;
    lanes->ulps[l] = std::max(lanes->ulps[l], ulps);
  }
}

inline void AddSums(const Chunk& chunk, int64_t i, int count, Lanes* lanes) {
#pragma GCC unroll 1
  for (int l = 0; l < count; ++l) {
    const float x = chunk.x[i + l], r = chunk.r[i + l];
    const bool both = IsFinite(x) & IsFinite(r);
    const double value = both ? x : 0.0f;
    const double reference = both ? r : 0.0f;
    const double error = value - reference;
    lanes->abs[l] += std::fabs(error);
    lanes->error2[l] += error * error;
    lanes->reference2[l] += reference * reference;
    lanes->value2[l] += value * value;
    lanes->product[l] += value * reference;
  }
}

template <typename T>
void AddChunk(const T* value, const float* reference, float scale, int64_t n,
              Lanes* lanes) {
  Chunk chunk;
  T rounded[kConvertBlock];
  kernels::ToFloat(value, chunk.x, n);
  for (int64_t i = 0; i < n; ++i) chunk.r[i] = scale * reference[i];
  kernels::FromFloat(chunk.r, rounded, n);
  Magnitudes(value, n, chunk.x_magnitude);
  Magnitudes(rounded, n, chunk.r_magnitude);
  kernels::ForIsa([&chunk, n, lanes] {
    Lanes sums = *lanes;
    const int64_t whole = n / kLanes * kLanes;
    const int rest = static_cast<int>(n - whole);
    for (int64_t i = 0; i < whole; i += kLanes) {
      AddExtremes(chunk, i, kLanes, SmallestNormal<T>(), &sums);
      AddSums(chunk, i, kLanes, &sums);
    }
    AddExtremes(chunk, whole, rest, SmallestNormal<T>(), &sums);
    AddSums(chunk, whole, rest, &sums);
    *lanes = sums;
  });
}

// In the order of the lanes; extremes and sums unscaled.
ValueErrors Collect(const Lanes& lanes, double scale) {
  ValueErrors errors;
  for (int l = 0; l < kLanes; ++l) {
    errors.elements += lanes.counted[l];
    errors.non_finite += lanes.not_finite[l];
    errors.overflow += lanes.overflow[l];
    errors.underflow += lanes.underflow[l];
    errors.sum_abs_error += lanes.abs[l] / scale;
    errors.sum_squared_error += lanes.error2[l] / scale / scale;
    errors.sum_squared_reference += lanes.reference2[l] / scale / scale;
    errors.sum_squared_value += lanes.value2[l] / scale / scale;
    errors.sum_product += lanes.product[l] / scale / scale;
    errors.max_abs_error =
        std::max(errors.max_abs_error, lanes.max_abs[l] / scale);
    errors.max_rel_error =
        std::max<double>(errors.max_rel_error, lanes.max_rel[l]);
    errors.max_reference =
        std::max(errors.max_reference, lanes.max_ref[l] / scale);
    errors.max_ulps = std::max<double>(errors.max_ulps, lanes.ulps[l]);
  }
  return errors;
}

template <typename T>
ValueErrors OfType(const void* value, const float* reference, float scale,
                   int64_t elements, int threads) {
  const T* const values = static_cast<const T*>(value);
  const int64_t blocks = (elements + kBlock - 1) / kBlock;
  std::vector<ValueErrors> parts(blocks);
  kernels::ParallelFor(
      threads, blocks, /*grain=*/1, [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
          Lanes lanes;
          const int64_t stop = std::min(elements, (block + 1) * kBlock);
          for (int64_t i = block * kBlock; i < stop; i += kConvertBlock) {
            AddChunk(values + i, reference + i, scale,
                     std::min(kConvertBlock, stop - i), &lanes);
          }
          parts[block] = Collect(lanes, scale);
        }
      });
  ValueErrors errors;
  for (const ValueErrors& part : parts) errors.Add(part);
  return errors;
}

}  // namespace

double ValueErrors::mean_abs_error() const {
  const int64_t finite = elements - non_finite;
  return finite > 0 ? sum_abs_error / finite : 0;
}

double ValueErrors::relative_error() const {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (non_finite > 0) return kInfinite;
  if (sum_squared_error == 0) return 0;
  double square = sum_squared_reference;
  if (square < elements * rounding * rounding) {
    const double summands = rounding / std::numeric_limits<float>::epsilon();
    square = elements * summands * summands;
  }
  return square == 0 ? kInfinite : std::sqrt(sum_squared_error / square);
}

double ValueErrors::cosine() const {
  if (sum_squared_reference == 0 && sum_squared_value == 0) return 1;
  if (sum_squared_reference == 0 || sum_squared_value == 0) return 0;
  return sum_product / std::sqrt(sum_squared_reference) /
         std::sqrt(sum_squared_value);
}

double ValueErrors::share(int64_t count) const {
  return elements > 0 ? static_cast<double>(count) / elements : 0;
}

void ValueErrors::Add(const ValueErrors& other) {
  elements += other.elements;
  non_finite += other.non_finite;
  overflow += other.overflow;
  underflow += other.underflow;
  sum_abs_error += other.sum_abs_error;
  max_abs_error = std::max(max_abs_error, other.max_abs_error);
  max_rel_error = std::max(max_rel_error, other.max_rel_error);
  max_ulps = std::max(max_ulps, other.max_ulps);
  sum_squared_error += other.sum_squared_error;
  sum_squared_reference += other.sum_squared_reference;
  sum_squared_value += other.sum_squared_value;
  sum_product += other.sum_product;
  max_reference = std::max(max_reference, other.max_reference);
  rounding = std::max(rounding, other.rounding);
}

ValueErrors ErrorsOf(DType dtype, const void* value, const float* reference,
                     float scale, int64_t elements, int threads) {
  switch (dtype) {
    case DType::kF16:
      return OfType<half>(value, reference, scale, elements, threads);
    case DType::kBF16:
      return OfType<bfloat16>(value, reference, scale, elements, threads);
    default:
      HT_CHECK(dtype == DType::kF32, "errors of f32, f16 or bf16");
      return OfType<float>(value, reference, scale, elements, threads);
  }
}

void WriteScaled(const float* reference, float scale, DType dtype, void* to,
                 int64_t elements, int threads) {
  kernels::ParallelFor(
      threads, elements, kBlock, [&](int64_t begin, int64_t end) {
        float scaled[kConvertBlock];
        for (int64_t i = begin; i < end; i += kConvertBlock) {
          const int64_t n = std::min(kConvertBlock, end - i);
          float* const out = kernels::OutputBlock(dtype, to, i, scaled);
          for (int64_t j = 0; j < n; ++j) out[j] = scale * reference[i + j];
          kernels::StoreBlock(dtype, out, to, i, n);
        }
      });
}

}  // namespace runtime
}  // namespace halftone
