// Deep gradient compression: what a rank sends of a gradient, and the sum of
// what all have sent.
#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "kernels/common/dgc.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/gather.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/optimizer.h"
#include "kernels/cpu/parallel_for.h"

namespace halftone {
namespace kernels {
namespace {

template <typename T>
const T* In(const Buffers& buffers, int i) {
  return static_cast<const T*>(buffers.inputs[i]);
}
template <typename T>
T* Out(const Buffers& buffers, int i) {
  return static_cast<T*>(buffers.outputs[i]);
}

class DgcKernel {
 public:
  explicit DgcKernel(const BoundOp& op) : shape_(op) {
    for (int64_t n : shape_.elements) {
      begins_.push_back(workspace_);
      workspace_ += n;
    }
  }
  int64_t workspace_bytes() const {
    return workspace_ * static_cast<int64_t>(sizeof(uint32_t));
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const bool reject = *In<bool>(buffers, shape_.found_inf());
    ParallelFor(stream.threads(), shape_.members(), 1,
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int member = static_cast<int>(i);
                    if (reject) {
                      Keep(buffers, member);
                    } else {
                      Add(buffers, member);
                      Select(buffers, member);
                    }
                  }
                });
  }

 private:
  // body(place, g) for all elements, g scaled.
  template <typename Body>
  void ForGradient(const Buffers& buffers, int member, const Body& body) const {
    const float scale = *In<float>(buffers, shape_.inv_scale()) * shape_.scale;
    const void* const grad = buffers.inputs[shape_.gradient(member)];
    alignas(64) float buffer[kConvertBlock];
    ForBlocks(0, shape_.elements[member], [&](int64_t at, int64_t n) {
      const float* g = LoadBlock(shape_.grad, grad, at, n, buffer);
      for (int64_t i = 0; i < n; ++i) body(at + i, g[i] * scale);
    });
  }

  void Add(const Buffers& buffers, int member) const {
    double squares = 0;
    if (shape_.rule.clip_norm > 0) {
      ForGradient(buffers, member, [&](int64_t, float g) {
        squares += static_cast<double>(g) * g;
      });
    }
    const functors::DgcRule rule = shape_.rule;
    const float factor = rule.ClipFactor(squares);
    const float* const w = In<float>(buffers, shape_.weights(member));
    const float* const u = In<float>(buffers, shape_.velocity(member));
    const float* const v = In<float>(buffers, shape_.residual(member));
    float* const u_out = Out<float>(buffers, shape_.velocity_out(member));
    float* const v_out = Out<float>(buffers, shape_.residual_out(member));
    ForGradient(buffers, member, [&](int64_t i, float g) {
      float new_u = u[i], new_v = v[i];
      rule.Add(g * factor, w[i], new_u, new_v);
      u_out[i] = new_u;
      v_out[i] = new_v;
    });
  }

  // The least magnitude that is sent.
  uint32_t Threshold(const Buffers& buffers, int member) const {
    const float* const v = Out<float>(buffers, shape_.residual_out(member));
    uint32_t* const bits =
        static_cast<uint32_t*>(buffers.workspace) + begins_[member];
    const int64_t n = shape_.elements[member];
    for (int64_t i = 0; i < n; ++i) bits[i] = functors::MagnitudeBits(v[i]);
    uint32_t* const kth = bits + shape_.keep[member] - 1;
    std::nth_element(bits, kth, bits + n, std::greater<uint32_t>());
    return *kth;
  }

  void Select(const Buffers& buffers, int member) const {
    const uint32_t least = Threshold(buffers, member);
    float* const u = Out<float>(buffers, shape_.velocity_out(member));
    float* const v = Out<float>(buffers, shape_.residual_out(member));
    float* const values = Out<float>(buffers, shape_.values(member));
    int32_t* const indices = Out<int32_t>(buffers, shape_.indices(member));
    const int64_t n = shape_.elements[member];
    int64_t equals = shape_.keep[member];  // of `least` that are sent
    for (int64_t i = 0; i < n; ++i) {
      equals -= functors::MagnitudeBits(v[i]) > least;
    }
    int64_t sent = 0;
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t magnitude = functors::MagnitudeBits(v[i]);
      if (magnitude < least || (magnitude == least && equals-- <= 0)) continue;
      values[sent] = v[i];
      indices[sent++] = static_cast<int32_t>(i);
      u[i] = v[i] = 0;
    }
  }

  void Keep(const Buffers& buffers, int member) const {
    const size_t bytes = shape_.elements[member] * sizeof(float);
    const auto keep = [&](int from, int to) {
      if (buffers.inputs[from] == buffers.outputs[to]) return;
      std::memcpy(buffers.outputs[to], buffers.inputs[from], bytes);
    };
    keep(shape_.velocity(member), shape_.velocity_out(member));
    keep(shape_.residual(member), shape_.residual_out(member));
    for (int64_t i = 0; i < shape_.keep[member]; ++i) {
      Out<float>(buffers, shape_.values(member))[i] = 0;
      Out<int32_t>(buffers, shape_.indices(member))[i] =
          static_cast<int32_t>(i);
    }
  }

  DgcShape shape_;
  std::vector<int64_t> begins_;  // in the workspace, by member
  int64_t workspace_ = 0;
};

// Inputs are rank 0's, those of the other ranks a stride behind.
struct DgcSum {
  GatherShape gathered;
  std::vector<int64_t> elements, kept;

  explicit DgcSum(const BoundOp& op) : gathered(GatherShapeOf(op)) {
    for (size_t i = 0; i < op.outputs().size(); ++i) {
      elements.push_back(op.outputs()[i].elements());
      kept.push_back(op.inputs()[op.InputIndex("Values") + i].elements());
    }
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const auto members = static_cast<int64_t>(elements.size());
    ParallelFor(stream.threads(), members, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Add(buffers, static_cast<int>(i), static_cast<int>(members));
      }
    });
  }

  // Inputs are Like, which is not there, Values and Indices.
  void Add(const Buffers& buffers, int member, int members) const {
    float* const out = Out<float>(buffers, member);
    const int64_t n = elements[member];
    std::fill_n(out, n, 0.0f);
    const int64_t stride =
        gathered.stride_bytes / static_cast<int64_t>(sizeof(float));
    for (int rank = 0; rank < gathered.ranks; ++rank) {
      const float* const values =
          In<float>(buffers, members + member) + rank * stride;
      const int32_t* const indices =
          In<int32_t>(buffers, 2 * members + member) + rank * stride;
      for (int64_t i = 0; i < kept[member]; ++i) out[indices[i]] += values[i];
    }
    const auto ranks = static_cast<float>(gathered.ranks);
    for (int64_t i = 0; i < n; ++i) out[i] /= ranks;
  }
};

}  // namespace

void RegisterCpuDgc(KernelRegistry& registry) {
  Candidate dgc =
      MakeCandidate("select", [](const BoundOp& op) { return DgcKernel(op); });
  dgc.workspace_bytes = [](const BoundOp& op) {
    return DgcKernel(op).workspace_bytes();
  };
  dgc.supports = DgcLayoutsAgree;
  AddForSchema(registry, "dgc", dgc);
  AddForSchema(
      registry, "dgc_sum",
      MakeCandidate("loop", [](const BoundOp& op) { return DgcSum(op); }));
}

}  // namespace kernels
}  // namespace halftone
