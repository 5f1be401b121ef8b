// What the kernels of parameter updates share: one launch for all members of an
// op, in place where the planner aliases outputs to inputs.
#ifndef HALFTONE_KERNELS_CUDA_OPTIMIZER_PIECES_H_
#define HALFTONE_KERNELS_CUDA_OPTIMIZER_PIECES_H_

#include <vector>

#include "kernels/common/settings.h"
#include "kernels/cuda/pieces.h"
#include "kernels/cuda/vector.h"
#include "kernels/functors/optimizer.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace update {

using functors::GradientTransform;
using functors::kMostStates;

inline constexpr int32_t kPieceElements = 16384;
// A launch's members: of small models, of others (29 KiB of parameters).
inline constexpr int kFew = 32, kMany = 300;

// The pointers of a member.
enum {
  kParam,
  kGrad,
  kState,
  kParamOut = kState + kMostStates,
  kStateOut,
  kLow = kStateOut + kMostStates,
  kTensors,
  kSquaredNorm = kTensors,  // null: no clip_norm
  kPointers
};

template <int kMembers>
using Table = PieceTable<kPointers, kMembers>;

// What is the same for all members.
struct Shared {
  DType param, grad, low;
  bool has_low, aligned;
  float clip_value, clip_norm;
  // Null: not there.
  const float *learning_rate, *inv_scale, *clip_factor;
  const int64_t* applied;
  const bool* found_inf;
};

// Of the step.
template <typename Rule>
HT_DEVICE typename Rule::Method MethodOf(const Rule& rule,
                                         const Shared& shared) {
  return rule.At(shared.learning_rate == nullptr ? 0.0f : *shared.learning_rate,
                 shared.applied == nullptr ? 0 : *shared.applied);
}
// Of a member.
HT_DEVICE GradientTransform TransformOf(const Shared& shared,
                                        void* const* data) {
  GradientTransform transform;
  transform.inv_scale = shared.inv_scale == nullptr ? 1.0f : *shared.inv_scale;
  transform.clip_factor =
      shared.clip_factor == nullptr ? 1.0f : *shared.clip_factor;
  transform.limit = shared.clip_value;
  if (data[kSquaredNorm] != nullptr) {
    transform.LimitNorm(*static_cast<const float*>(data[kSquaredNorm]),
                        shared.clip_norm);
  }
  return transform;
}

template <int kStates>
struct LoadedMember {
  Raw p, g, s[kStates > 0 ? kStates : 1];
};

template <int V, int kStates>
HT_DEVICE LoadedMember<kStates> LoadMember(const Shared& shared,
                                           void* const* data, int64_t i) {
  LoadedMember<kStates> loaded;
  loaded.p = LoadRaw<V>(shared.param, data[kParam], i);
  loaded.g = LoadRaw<V>(shared.grad, data[kGrad], i);
#pragma unroll
  for (int s = 0; s < kStates; ++s) {
    loaded.s[s] = LoadRaw<V>(DType::kF32, data[kState + s], i);
  }
  return loaded;
}

// The new parameter in its own dtype and, of that, the 16-bit copy.
template <int V>
HT_DEVICE void StoreParam(const Shared& shared, void* const* data, int64_t i,
                          const float (&p)[V]) {
  const Raw stored = Pack(shared.param, p);
  StoreRaw<V>(shared.param, data[kParamOut], i, stored);
  if (!shared.has_low) return;
  float as_stored[V];
  Unpack(shared.param, stored, as_stored);
  StoreVector(shared.low, data[kLow], i, as_stored);
}

// outputs = inputs.
template <int V, int kStates>
HT_DEVICE void KeepMember(const Shared& shared, void* const* data, int64_t i) {
#pragma unroll
  for (int s = 0; s < kStates; ++s) {
    if (data[kState + s] == data[kStateOut + s]) continue;
    StoreRaw<V>(DType::kF32, data[kStateOut + s], i,
                LoadRaw<V>(DType::kF32, data[kState + s], i));
  }
  if (data[kParam] == data[kParamOut] && !shared.has_low) return;
  float p[V];
  LoadVector(shared.param, data[kParam], i, p);
  StoreParam(shared, data, i, p);
}

// ---- On the host.

template <typename T>
const T* ScalarAt(const Buffers& buffers, int index) {
  return index < 0 ? nullptr : static_cast<const T*>(buffers.inputs[index]);
}

// Pointers of one member; whether vectors can be moved to and from all.
template <int kStates>
bool FillPointers(const UpdateSlots& slots, const Buffers& buffers, int member,
                  void** data) {
  const auto in = [&](int slot) {
    return const_cast<void*>(buffers.inputs[slot * slots.members + member]);
  };
  const auto out = [&](int slot) {
    return buffers.outputs[slot * slots.members + member];
  };
  for (int p = 0; p < kPointers; ++p) data[p] = nullptr;
  data[kParam] = in(0);
  data[kGrad] = in(1);
  data[kParamOut] = out(0);
  for (int s = 0; s < kStates; ++s) {
    data[kState + s] = in(2 + s);
    data[kStateOut + s] = out(1 + s);
  }
  if (slots.has_low) data[kLow] = out(1 + kStates);
  if (slots.squared_norm >= 0) {
    data[kSquaredNorm] = const_cast<float*>(
        ScalarAt<float>(buffers, slots.squared_norm) + slots.norm_of[member]);
  }
  bool aligned = true;
  for (int p = 0; p < kTensors; ++p) aligned = aligned && Aligned({data[p]});
  return aligned;
}

inline Shared SharedOf(const UpdateSlots& slots, const Buffers& buffers) {
  Shared shared;
  shared.param = slots.param;
  shared.grad = slots.grad;
  shared.low = slots.low;
  shared.has_low = slots.has_low;
  shared.aligned = true;
  shared.clip_value = slots.clip_value;
  shared.clip_norm = slots.clip_norm;
  shared.learning_rate = ScalarAt<float>(buffers, slots.learning_rate);
  shared.inv_scale = ScalarAt<float>(buffers, slots.inv_scale);
  shared.clip_factor = ScalarAt<float>(buffers, slots.clip_factor);
  shared.applied = ScalarAt<int64_t>(buffers, slots.applied);
  shared.found_inf = ScalarAt<bool>(buffers, slots.found_inf);
  return shared;
}

// Members [begin, begin + table->count) and what they share.
template <int kStates, int kMembers>
Shared Fill(const UpdateSlots& slots, absl::Span<const TensorDesc> params,
            const Buffers& buffers, int begin, Table<kMembers>* table) {
  FillTable(params, begin, kPieceElements, table);
  Shared shared = SharedOf(slots, buffers);
  for (int i = 0; i < table->count; ++i) {
    shared.aligned =
        FillPointers<kStates>(slots, buffers, begin + i, table->data[i]) &&
        shared.aligned;
  }
  return shared;
}

}  // namespace update
}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_OPTIMIZER_PIECES_H_
