// What the kernels of parameter updates share, and parts of
// RegisterCpuOptimizer that have files of their own.
#ifndef HALFTONE_KERNELS_CPU_OPTIMIZER_H_
#define HALFTONE_KERNELS_CPU_OPTIMIZER_H_

#include <cstdint>
#include <cstring>

#include "kernels/common/settings.h"
#include "kernels/cpu/convert.h"
#include "kernels/functors/optimizer.h"
#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

inline float UpdateScalar(const Buffers& buffers, int index, float absent) {
  return index < 0 ? absent : *static_cast<const float*>(buffers.inputs[index]);
}

// What is the same for a whole step.
template <typename Rule>
typename Rule::Method MethodOfStep(const Rule& rule, const UpdateSlots& slots,
                                   const Buffers& buffers) {
  const int64_t applied =
      slots.applied < 0
          ? 0
          : *static_cast<const int64_t*>(buffers.inputs[slots.applied]);
  return rule.At(UpdateScalar(buffers, slots.learning_rate, 0.0f), applied);
}
inline functors::GradientTransform TransformOfStep(const UpdateSlots& slots,
                                                   const Buffers& buffers) {
  functors::GradientTransform transform;
  transform.inv_scale = UpdateScalar(buffers, slots.inv_scale, 1.0f);
  transform.clip_factor = UpdateScalar(buffers, slots.clip_factor, 1.0f);
  transform.limit = slots.clip_value;
  return transform;
}

// Of one member.
inline functors::GradientTransform TransformOfMember(
    functors::GradientTransform transform, const UpdateSlots& slots,
    const Buffers& buffers, int member) {
  if (slots.clip_norm > 0) {
    const float* squares =
        static_cast<const float*>(buffers.inputs[slots.squared_norm]);
    transform.LimitNorm(squares[slots.norm_of[member]], slots.clip_norm);
  }
  return transform;
}

// One block of one parameter: pointers of what is computed in f32.
template <int kStates>
struct UpdateBlock {
  alignas(64) float p_buffer[kConvertBlock], g_buffer[kConvertBlock];
  const float* g;
  const float *p_in, *s_in[kStates > 0 ? kStates : 1];
  float *p_out, *s_out[kStates > 0 ? kStates : 1];
  int64_t n;
};

// The states of a block: copied into a loop they are known not to change.
struct StatePointers {
  const float* in[functors::kMostStates];
  float* out[functors::kMostStates];
};
template <int kStates>
StatePointers StatesOf(const UpdateBlock<kStates>& b) {
  StatePointers states;
  for (int s = 0; s < kStates; ++s) {
    states.in[s] = b.s_in[s];
    states.out[s] = b.s_out[s];
  }
  return states;
}

// The members of an update op with so many states, block by block.
template <int kStates>
class UpdateMembers {
 public:
  explicit UpdateMembers(const UpdateSlots& slots) : slots_(slots) {}

  const UpdateSlots& slots() const { return slots_; }

  void Load(const Buffers& buffers, int member, int64_t at, int64_t n,
            UpdateBlock<kStates>* b) const {
    b->n = n;
    b->g = LoadBlock(slots_.grad, In(buffers, 1, member), at, n, b->g_buffer);
    b->p_in =
        LoadBlock(slots_.param, In(buffers, 0, member), at, n, b->p_buffer);
    b->p_out =
        OutputBlock(slots_.param, Out(buffers, 0, member), at, b->p_buffer);
    for (int s = 0; s < kStates; ++s) {
      b->s_in[s] = static_cast<const float*>(In(buffers, 2 + s, member)) + at;
      b->s_out[s] = static_cast<float*>(Out(buffers, 1 + s, member)) + at;
    }
  }

  void Store(const Buffers& buffers, int member, int64_t at,
             const UpdateBlock<kStates>& b) const {
    StoreBlock(slots_.param, b.p_out, Out(buffers, 0, member), at, b.n);
    StoreLow(buffers, member, at, b.n);
  }

  // outputs = inputs.
  void Keep(const Buffers& buffers, int member, int64_t at, int64_t n) const {
    KeepOne(In(buffers, 0, member), Out(buffers, 0, member),
            SizeOf(slots_.param), at, n);
    for (int s = 0; s < kStates; ++s) {
      KeepOne(In(buffers, 2 + s, member), Out(buffers, 1 + s, member),
              sizeof(float), at, n);
    }
    StoreLow(buffers, member, at, n);
  }

 private:
  // Buffers of one parameter in slot `slot` of inputs or outputs.
  const void* In(const Buffers& buffers, int slot, int member) const {
    return buffers.inputs[slot * slots_.members + member];
  }
  void* Out(const Buffers& buffers, int slot, int member) const {
    return buffers.outputs[slot * slots_.members + member];
  }

  static void KeepOne(const void* in, void* out, int64_t size, int64_t at,
                      int64_t n) {
    if (in == out) return;
    memcpy(static_cast<char*>(out) + at * size,
           static_cast<const char*>(in) + at * size, n * size);
  }

  // LowOut = ParamOut as it is stored, rounded.
  void StoreLow(const Buffers& buffers, int member, int64_t at,
                int64_t n) const {
    if (!slots_.has_low) return;
    alignas(64) float buffer[kConvertBlock];
    const float* p =
        LoadBlock(slots_.param, Out(buffers, 0, member), at, n, buffer);
    StoreBlock(slots_.low, p, Out(buffers, 1 + kStates, member), at, n);
  }

  UpdateSlots slots_;
};

// optimizer_norms.cc
void RegisterCpuNormOptimizer(KernelRegistry& registry);
// optimizer_average.cc
void RegisterCpuAverage(KernelRegistry& registry);
// optimizer_dgc.cc
void RegisterCpuDgc(KernelRegistry& registry);
// optimizer_learning_rate.cc
void RegisterCpuLearningRate(KernelRegistry& registry);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_OPTIMIZER_H_
