// Groups of floats as a few bits each: a group is read once into the
// first-level cache, and packed from there.
#include "kernels/common/group_codes.h"

#include <algorithm>
#include <cfloat>
#include <cstring>

#include "graph/base/philox.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/random.h"
#include "kernels/functors/group_code.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using functors::GroupRange;
using functors::GroupScale;

// n is a multiple of kVector.
GroupRange RangeOf(const float* x, int64_t n) {
  alignas(64) float least[kVector], most[kVector], positive[kVector];
  alignas(64) int32_t odd[kVector];
  ForIsa([=, l = +least, m = +most, p = +positive, o = +odd] {
    Vector low = FLT_MAX - Vector{}, high = -FLT_MAX - Vector{};
    Vector above = low;
    VectorMask all_finite = VectorMask{} - 1;
    for (int64_t i = 0; i < n; i += kVector) {
      const Vector v = VectorAt(x + i);
      low = v < low ? v : low;
      high = v > high ? v : high;
      const Vector larger = v > 0.0f ? v : FLT_MAX - Vector{};
      above = larger < above ? larger : above;
      all_finite &= (v - v) == 0.0f;
    }
    std::memcpy(l, &low, sizeof(low));
    std::memcpy(m, &high, sizeof(high));
    std::memcpy(p, &above, sizeof(above));
    std::memcpy(o, &all_finite, sizeof(all_finite));
  });
  return {*std::min_element(least, least + kVector),
          *std::max_element(most, most + kVector),
          *std::min_element(positive, positive + kVector),
          std::all_of(odd, odd + kVector, [](int32_t m) { return m != 0; })};
}

// Bodies of ForIsa as functions of values: what a closure holds could be what
// bytes are stored to, and would be loaded again for each.
inline void Encode(functors::GroupEncoder encode, const float* x,
                   const uint16_t* random, int64_t n, uint8_t* codes) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) codes[i] = encode(x[i], random[i]);
}
template <int kBits>
inline void PackBytes(const uint8_t* codes, int64_t bytes, uint8_t* packed) {
#pragma GCC ivdep
  for (int64_t j = 0; j < bytes; ++j) {
    unsigned byte = codes[j];
    for (int k = 1; k < 8 / kBits; ++k) {
      byte |= unsigned{codes[j + k * bytes]} << (k * kBits);
    }
    packed[j] = static_cast<uint8_t>(byte);
  }
}
inline void Decode(functors::GroupDecoder decode, const uint8_t* packed,
                   int shift, int mask, int64_t n, float* out) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) out[j] = decode(packed[j] >> shift & mask);
}

// Codes of 8 / kBits stretches of `bytes` elements, each stretch's in bits of
// its own. `codes` has zeros behind what was made.
template <int kBits>
void Pack(const uint8_t* codes, int64_t bytes, uint8_t* packed) {
  ForIsa([=] { PackBytes<kBits>(codes, bytes, packed); });
}

template <int kBits>
void Unpack(const functors::GroupDecoder& decoder, const uint8_t* packed,
            int64_t bytes, int64_t n, float* out) {
  ForIsa([=] {
    for (int k = 0; k < 8 / kBits; ++k) {
      const int64_t first = k * bytes;
      const int64_t count = n - first < bytes ? n - first : bytes;
      Decode(decoder, packed, k * kBits, (1 << kBits) - 1, count, out + first);
    }
  });
}

// Calls body(std::integral_constant<int, bits>).
template <typename Body>
void ForBits(int bits, const Body& body) {
  if (bits == 2) return body(std::integral_constant<int, 2>());
  if (bits == 4) return body(std::integral_constant<int, 4>());
  body(std::integral_constant<int, 8>());
}

struct QuantizeKernel {
  GroupsOf groups;
  uint32_t stream_id;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const auto scalar = [&](int i) {
      return static_cast<uint64_t>(
          *static_cast<const int64_t*>(buffers.inputs[i]));
    };
    const uint64_t key = PhiloxKey(scalar(1), stream_id);
    const uint64_t step = scalar(2), first_sample = scalar(3);
    const int64_t in_sample = groups.shape.groups();
    ParallelFor(stream.threads(), groups.groups(),
                CeilDiv(kMapGrain, groups.shape.group),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t sample = i / in_sample;
                    Group(buffers, key, step, first_sample, sample,
                          i % in_sample);
                  }
                });
  }

 private:
  static int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

  void Group(const Buffers& buffers, uint64_t key, uint64_t step,
             uint64_t first_sample, int64_t sample, int64_t g) const {
    const GroupShape& shape = groups.shape;
    const int64_t first = g * shape.group, n = shape.SizeOf(g);
    const int64_t whole = CeilDiv(n, kVector) * kVector;
    alignas(64) float buffer[kMostGroup];
    const float* x = LoadBlock(groups.dtype, buffers.inputs[0],
                               sample * shape.elements + first, n, buffer);
    if (whole != n) {  // an element more often changes no range
      std::memmove(buffer, x, n * sizeof(float));
      std::fill(buffer + n, buffer + whole, buffer[0]);
      x = buffer;
    }
    const GroupScale scale = GroupScale::Of(RangeOf(x, whole), shape.bits);
    float* const scales = static_cast<float*>(buffers.outputs[1]) +
                          2 * (sample * shape.groups() + g);
    scales[0] = scale.base;
    scales[1] = scale.step;
    // Element e of a sample has half of draw e / 2; groups begin at even ones.
    uint32_t words[kMostGroup / 2 + 8];
    const uint32_t* draws = DrawBits(key, step, first_sample + sample,
                                     first / 2, CeilDiv(n, 2), words);
    uint16_t halves[kMostGroup];
    std::memcpy(halves, draws, CeilDiv(n, 2) * sizeof(uint32_t));
    // With room for the last byte's.
    uint8_t codes[kMostGroup + 4];
    ForIsa([=, to = +codes, random = +halves,
            encode = functors::GroupEncoder::Of(scale, shape.bits)] {
      Encode(encode, x, random, n, to);
    });
    std::memset(codes + n, 0, 4);
    uint8_t* const packed = static_cast<uint8_t*>(buffers.outputs[0]) +
                            sample * shape.bytes() + shape.FirstByte(g);
    ForBits(shape.bits, [&](auto bits) {
      Pack<decltype(bits)::value>(codes, shape.BytesOf(n), packed);
    });
  }
};

struct DequantizeKernel {
  GroupsOf groups;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t in_sample = groups.shape.groups();
    ParallelFor(stream.threads(), groups.groups(),
                (kMapGrain + groups.shape.group - 1) / groups.shape.group,
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    Group(buffers, i / in_sample, i % in_sample);
                  }
                });
  }

 private:
  void Group(const Buffers& buffers, int64_t sample, int64_t g) const {
    const GroupShape& shape = groups.shape;
    const int64_t n = shape.SizeOf(g);
    const int64_t at = sample * shape.elements + g * shape.group;
    const float* const scales = static_cast<const float*>(buffers.inputs[2]) +
                                2 * (sample * shape.groups() + g);
    const uint8_t* const packed =
        static_cast<const uint8_t*>(buffers.inputs[1]) +
        sample * shape.bytes() + shape.FirstByte(g);
    alignas(64) float buffer[kMostGroup];
    float* const out =
        OutputBlock(groups.dtype, buffers.outputs[0], at, buffer);
    ForBits(shape.bits, [&](auto bits) {
      Unpack<decltype(bits)::value>(
          functors::GroupDecoder::Of({scales[0], scales[1]}), packed,
          shape.BytesOf(n), n, out);
    });
    StoreBlock(groups.dtype, out, buffers.outputs[0], at, n);
  }
};

Candidate InOneLayout(Candidate candidate) {
  candidate.supports = HasOneLayout;
  return candidate;
}

}  // namespace

void RegisterCpuGroupCodes(KernelRegistry& registry) {
  AddForSchema(registry, "quantize_groups",
               InOneLayout(MakeCandidate("groups", [](const BoundOp& op) {
                 return QuantizeKernel{
                     GroupsOf(op, op.Input("X"), op.Output("Scales")),
                     static_cast<uint32_t>(op.Int("stream"))};
               })));
  AddForSchema(registry, "dequantize_groups",
               InOneLayout(MakeCandidate("groups", [](const BoundOp& op) {
                 return DequantizeKernel{
                     GroupsOf(op, op.Output("Out"), op.Input("Scales"))};
               })));
}

}  // namespace kernels
}  // namespace halftone
