// The pattern norm_grad_apply_two: the gradients of two images whose norms were
// added, in one pass over the gradient that both read. The bits are the body's.
#include "kernels/common/norm_fusions.h"
#include "kernels/cuda/norm.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// For Map.
struct TwoBodies {
  ChannelBody<NormGradMap> norms[2];  // of one y

  template <int V>
  struct Loaded {
    ChannelBody<NormGradMap>::Loaded<V> parts[2];
  };
  template <int V>
  HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const {
    norms[0].Load(i, loaded.parts[0]);
    loaded.parts[1].x = LoadRaw<V>(norms[1].dtype, norms[1].x, i);
    loaded.parts[1].y = loaded.parts[0].y;
  }
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    norms[0].Finish(i, loaded.parts[0]);
    norms[1].Finish(i, loaded.parts[1]);
  }
};

auto MakeTwo(const BoundOp& fusion) {
  const NormGradApplyTwoAt at(fusion);
  const Channels channels(fusion.inputs()[at.norms[0].x]);
  return [at, channels](const Buffers& buffers, Launcher& launch) {
    bool aligned = true;
    const auto body = [&](const NormApplyAt& norm) {
      return MakeChannelBody<NormGradMap>(
          channels, buffers.inputs[norm.x], buffers.inputs[norm.y_grad],
          buffers.outputs[norm.x_grad],
          {In(buffers, norm.mean), In(buffers, norm.a), In(buffers, norm.b),
           In(buffers, norm.c0)},
          &aligned);
    };
    const TwoBodies two = {{body(at.norms[0]), body(at.norms[1])}};
    Map<2>(launch, two, channels.elements(), channels.VectorFor(aligned));
  };
}

}  // namespace

void RegisterCudaNormGradApply(KernelRegistry& registry) {
  Candidate candidate = CudaCandidate("channels", MakeTwo);
  candidate.supports = SupportsNormGradApplyTwo;
  registry.AddPattern("norm_grad_apply_two",
                      {DType::kF32, DType::kF16, DType::kBF16},
                      {Layout::kRowMajor, Layout::kChannelsLast}, candidate);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
