// Groups of floats as a few bits each: a warp for each group.
#include <cfloat>

#include "graph/base/philox.h"
#include "kernels/common/group_codes.h"
#include "kernels/common/shapes.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/vector.h"
#include "kernels/functors/group_code.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

constexpr int kGroupsPerBlock = kThreads / kWarp;

struct Draws {
  const int64_t *seed, *step, *first_sample;
  uint32_t stream_id;
};

// The group of this thread's warp.
struct GroupOfWarp {
  int64_t index, sample, g;

  HT_DEVICE explicit GroupOfWarp(const GroupShape& shape) {
    index = static_cast<int64_t>(blockIdx.x) * kGroupsPerBlock +
            threadIdx.x / kWarp;
    sample = index / shape.groups();
    g = index % shape.groups();
  }
};

HT_DEVICE functors::GroupRange RangeOf(DType dtype, const void* x, int64_t at,
                                       int64_t n, int lane) {
  float least = FLT_MAX, most = -FLT_MAX, positive = FLT_MAX;
  int odd = 0;
  for (int64_t i = lane; i < n; i += kWarp) {
    const float v = LoadOne(dtype, x, at + i);
    least = v < least ? v : least;
    most = v > most ? v : most;
    positive = v > 0.0f && v < positive ? v : positive;
    odd |= v - v == 0.0f ? 0 : 1;
  }
  return {CombineWarp(least, Least()), CombineWarp(most, Most()),
          CombineWarp(positive, Least()), CombineWarp(odd, Plus()) == 0};
}

__global__ void __launch_bounds__(kThreads)
    QuantizeKernel(const __grid_constant__ GroupsOf groups, const void* x,
                   const __grid_constant__ Draws draws, uint8_t* codes,
                   float* scales) {
  const GroupShape& shape = groups.shape;
  const GroupOfWarp at(shape);
  if (at.sample >= groups.samples) return;  // the whole warp
  const int lane = threadIdx.x % kWarp;
  const int64_t first = at.g * shape.group, n = shape.SizeOf(at.g);
  const int64_t begin = at.sample * shape.elements + first;
  const functors::GroupScale scale = functors::GroupScale::Of(
      RangeOf(groups.dtype, x, begin, n, lane), shape.bits);
  if (lane == 0) {
    scales[2 * at.index] = scale.base;
    scales[2 * at.index + 1] = scale.step;
  }
  const auto encode = functors::GroupEncoder::Of(scale, shape.bits);
  const uint64_t key =
      PhiloxKey(static_cast<uint64_t>(*draws.seed), draws.stream_id);
  const int64_t bytes = shape.BytesOf(n);
  uint8_t* const packed =
      codes + at.sample * shape.bytes() + shape.FirstByte(at.g);
  for (int64_t j = lane; j < bytes; j += kWarp) {
    unsigned byte = 0;
    for (int shift = 0; shift < 8; shift += shape.bits) {
      const int64_t i = j + shift / shape.bits * bytes;
      if (i >= n) break;
      // Element e of a sample has half of draw e / 2.
      const int64_t word = (first + i) / 2;
      const Philox4 draw =
          PhiloxDraw(key, static_cast<uint64_t>(*draws.step),
                     static_cast<uint64_t>(*draws.first_sample + at.sample),
                     static_cast<uint32_t>(word / 4));
      const uint32_t random = WordOf(draw, word) >> (16 * ((first + i) % 2));
      const unsigned code = encode(LoadOne(groups.dtype, x, begin + i),
                                   static_cast<uint16_t>(random));
      byte |= code << shift;
    }
    packed[j] = static_cast<uint8_t>(byte);
  }
}

__global__ void __launch_bounds__(kThreads)
    DequantizeKernel(const __grid_constant__ GroupsOf groups,
                     const uint8_t* codes, const float* scales, void* out) {
  const GroupShape& shape = groups.shape;
  const GroupOfWarp at(shape);
  if (at.sample >= groups.samples) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t n = shape.SizeOf(at.g);
  const int64_t begin = at.sample * shape.elements + at.g * shape.group;
  const auto decode = functors::GroupDecoder::Of(
      {scales[2 * at.index], scales[2 * at.index + 1]});
  const int64_t bytes = shape.BytesOf(n);
  const uint8_t* const packed =
      codes + at.sample * shape.bytes() + shape.FirstByte(at.g);
  for (int64_t j = lane; j < bytes; j += kWarp) {
    const unsigned byte = packed[j];
    for (int shift = 0; shift < 8; shift += shape.bits) {
      const int64_t i = j + shift / shape.bits * bytes;
      if (i >= n) break;
      const unsigned code = byte >> shift & ((1u << shape.bits) - 1);
      StoreOne(groups.dtype, out, begin + i, decode(static_cast<int>(code)));
    }
  }
}

Candidate MakeQuantize() {
  return CudaCandidate("groups", [](const BoundOp& op) {
    return [groups = GroupsOf(op, op.Input("X"), op.Output("Scales")),
            stream_id = static_cast<uint32_t>(op.Int("stream"))](
               const Buffers& buffers, Launcher& launch) {
      const auto scalar = [&](int i) {
        return static_cast<const int64_t*>(buffers.inputs[i]);
      };
      launch(QuantizeKernel, CeilDiv(groups.groups(), kGroupsPerBlock),
             kThreads, groups, buffers.inputs[0],
             Draws{scalar(1), scalar(2), scalar(3), stream_id},
             static_cast<uint8_t*>(buffers.outputs[0]),
             static_cast<float*>(buffers.outputs[1]));
    };
  });
}

Candidate MakeDequantize() {
  return CudaCandidate("groups", [](const BoundOp& op) {
    return [groups = GroupsOf(op, op.Output("Out"), op.Input("Scales"))](
               const Buffers& buffers, Launcher& launch) {
      launch(DequantizeKernel, CeilDiv(groups.groups(), kGroupsPerBlock),
             kThreads, groups, static_cast<const uint8_t*>(buffers.inputs[1]),
             static_cast<const float*>(buffers.inputs[2]), buffers.outputs[0]);
    };
  });
}

void Register(KernelRegistry& registry, absl::string_view op,
              Candidate candidate) {
  candidate.supports = HasOneLayout;
  AddForSchema(registry, op, candidate);
}

}  // namespace

void RegisterCudaGroupCodes(KernelRegistry& registry) {
  Register(registry, "quantize_groups", MakeQuantize());
  Register(registry, "dequantize_groups", MakeDequantize());
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
