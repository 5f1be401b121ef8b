// Deep gradient compression: a block for each parameter, which finds the least
// magnitude that is sent bit by bit. No atomics: what is sent is the same each
// time.
#include <vector>

#include "kernels/common/dgc.h"
#include "kernels/common/gather.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/optimizer.h"
#include "kernels/cuda/vector.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

template <typename T>
const T* In(const Buffers& buffers, int i) {
  return static_cast<const T*>(buffers.inputs[i]);
}
template <typename T>
T* Out(const Buffers& buffers, int i) {
  return static_cast<T*>(buffers.outputs[i]);
}

struct DgcMember {
  const float* w;
  const void* grad;
  const float *u_in, *v_in;
  float *u, *v, *values;
  int32_t* indices;
  int32_t elements, keep;
};

HT_DEVICE void KeepMember(const DgcMember& m) {
  for (int32_t i = threadIdx.x; i < m.elements; i += kThreads) {
    m.u[i] = m.u_in[i];
    m.v[i] = m.v_in[i];
  }
  for (int32_t i = threadIdx.x; i < m.keep; i += kThreads) {
    m.values[i] = 0;
    m.indices[i] = i;
  }
}

HT_DEVICE void AddGradient(const DgcMember& m, DType dtype, float scale,
                           const functors::DgcRule& rule) {
  double squares = 0;
  if (rule.clip_norm > 0) {
    for (int32_t i = threadIdx.x; i < m.elements; i += kThreads) {
      const float g = LoadOne(dtype, m.grad, i) * scale;
      squares += static_cast<double>(g) * g;
    }
  }
  const float factor = rule.ClipFactor(CombineBlock(squares, 0.0, Plus()));
  for (int32_t i = threadIdx.x; i < m.elements; i += kThreads) {
    float u = m.u_in[i], v = m.v_in[i];
    rule.Add(LoadOne(dtype, m.grad, i) * scale * factor, m.w[i], u, v);
    m.u[i] = u;
    m.v[i] = v;
  }
  __syncthreads();
}

// The magnitude of the last element that is sent.
HT_DEVICE uint32_t LeastSent(const DgcMember& m) {
  uint32_t least = 0;
  for (int bit = 30; bit >= 0; --bit) {
    const uint32_t tried = least | (1u << bit);
    int32_t count = 0;
    for (int32_t i = threadIdx.x; i < m.elements; i += kThreads) {
      count += functors::MagnitudeBits(m.v[i]) >= tried ? 1 : 0;
    }
    if (CombineBlock(count, 0, Plus()) >= m.keep) least = tried;
  }
  return least;
}

// Threads have rows of places, so that what they send is in order.
HT_DEVICE void SendLargest(const DgcMember& m, uint32_t least) {
  HT_SHARED(int32_t[kThreads], larger);
  HT_SHARED(int32_t[kThreads], equal);
  const int32_t row = (m.elements + kThreads - 1) / kThreads;
  const int32_t thread = threadIdx.x;
  const int64_t first = static_cast<int64_t>(thread) * row;
  const int32_t begin =
      static_cast<int32_t>(first < m.elements ? first : m.elements);
  const int32_t end = m.elements - begin < row ? m.elements : begin + row;
  int32_t above = 0, same = 0;
  for (int32_t i = begin; i < end; ++i) {
    const uint32_t magnitude = functors::MagnitudeBits(m.v[i]);
    above += magnitude > least ? 1 : 0;
    same += magnitude == least ? 1 : 0;
  }
  larger[thread] = above;
  equal[thread] = same;
  __syncthreads();
  if (thread == 0) {  // where each begins, and how many equals it sends
    int32_t left = m.keep, at = 0;
    for (int t = 0; t < kThreads; ++t) left -= larger[t];
    for (int t = 0; t < kThreads; ++t) {
      const int32_t sent = equal[t] < left ? equal[t] : left;
      const int32_t count = larger[t] + sent;
      left -= sent;
      equal[t] = sent;
      larger[t] = at;
      at += count;
    }
  }
  __syncthreads();
  int32_t at = larger[thread];
  same = equal[thread];
  for (int32_t i = begin; i < end; ++i) {
    const uint32_t magnitude = functors::MagnitudeBits(m.v[i]);
    if (magnitude < least || (magnitude == least && same-- <= 0)) continue;
    m.values[at] = m.v[i];
    m.indices[at++] = i;
    m.u[i] = m.v[i] = 0;
  }
}

__global__ void __launch_bounds__(kThreads)
    DgcKernel(DgcMember member, DType dtype, float scale,
              functors::DgcRule rule, const float* inv_scale,
              const bool* found_inf) {
  if (*found_inf) {
    KeepMember(member);
    return;
  }
  AddGradient(member, dtype, *inv_scale * scale, rule);
  SendLargest(member, LeastSent(member));
}

auto MakeDgc(const BoundOp& op) {
  return [shape = DgcShape(op)](const Buffers& b, Launcher& launch) {
    for (int i = 0; i < shape.members(); ++i) {
      DgcMember m;
      m.w = In<float>(b, shape.weights(i));
      m.grad = b.inputs[shape.gradient(i)];
      m.u_in = In<float>(b, shape.velocity(i));
      m.v_in = In<float>(b, shape.residual(i));
      m.u = Out<float>(b, shape.velocity_out(i));
      m.v = Out<float>(b, shape.residual_out(i));
      m.values = Out<float>(b, shape.values(i));
      m.indices = Out<int32_t>(b, shape.indices(i));
      m.elements = static_cast<int32_t>(shape.elements[i]);
      m.keep = static_cast<int32_t>(shape.keep[i]);
      launch(DgcKernel, 1, kThreads, m, shape.grad, shape.scale, shape.rule,
             In<float>(b, shape.inv_scale()), In<bool>(b, shape.found_inf()));
    }
  };
}

// Values and indices are rank 0's, those of the other ranks a stride behind.
__global__ void __launch_bounds__(kThreads)
    DgcSumKernel(const float* values, const int32_t* indices, int64_t stride,
                 int ranks, int32_t kept, int32_t elements, float* out) {
  for (int32_t i = threadIdx.x; i < elements; i += kThreads) out[i] = 0;
  __syncthreads();
  for (int rank = 0; rank < ranks; ++rank) {
    // A rank sends a place once.
    for (int32_t i = threadIdx.x; i < kept; i += kThreads) {
      out[indices[rank * stride + i]] += values[rank * stride + i];
    }
    __syncthreads();
  }
  for (int32_t i = threadIdx.x; i < elements; i += kThreads) {
    out[i] /= static_cast<float>(ranks);
  }
}

auto MakeDgcSum(const BoundOp& op) {
  const GatherShape gathered = GatherShapeOf(op);
  std::vector<int32_t> kept, elements;
  for (size_t i = 0; i < op.outputs().size(); ++i) {
    kept.push_back(static_cast<int32_t>(
        op.inputs()[op.InputIndex("Values") + i].elements()));
    elements.push_back(static_cast<int32_t>(op.outputs()[i].elements()));
  }
  return [gathered, kept, elements](const Buffers& b, Launcher& launch) {
    const int members = static_cast<int>(kept.size());
    const int64_t stride =
        gathered.stride_bytes / static_cast<int64_t>(sizeof(float));
    for (int i = 0; i < members; ++i) {
      // Behind Like, which is not there.
      launch(DgcSumKernel, 1, kThreads, In<float>(b, members + i),
             In<int32_t>(b, 2 * members + i), stride, gathered.ranks, kept[i],
             elements[i], Out<float>(b, i));
    }
  };
}

}  // namespace

void RegisterCudaDgc(KernelRegistry& registry) {
  Candidate dgc = CudaCandidate("bit_by_bit", MakeDgc);
  dgc.supports = DgcLayoutsAgree;
  AddForSchema(registry, "dgc", dgc);
  AddForSchema(registry, "dgc_sum", CudaCandidate("loop", MakeDgcSum));
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
