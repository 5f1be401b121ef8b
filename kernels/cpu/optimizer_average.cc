// Averages of parameters: one pass over memory.
#include <cstring>

#include "kernels/common/dispatch.h"
#include "kernels/common/settings.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/optimizer.h"
#include "kernels/cpu/pieces.h"

namespace halftone {
namespace kernels {
namespace {

class AverageKernel {
 public:
  explicit AverageKernel(const BoundOp& op)
      : members_(op.InputCount("Average")),
        applied_(op.InputIndex("Applied")),
        found_inf_(op.InputIndex("FoundInf")),
        param_(op.Input("Param").dtype),
        rule_(AverageRuleOf(op)),
        pieces_(op.inputs().subspan(0, members_)) {}

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const bool reject = *static_cast<const bool*>(buffers.inputs[found_inf_]);
    const functors::AverageStep step =
        rule_.At(*static_cast<const int64_t*>(buffers.inputs[applied_]));
    pieces_.ForEach(stream.threads(), [&](int64_t, const Piece& piece) {
      const auto* old = static_cast<const float*>(buffers.inputs[piece.member]);
      auto* out = static_cast<float*>(buffers.outputs[piece.member]);
      const void* p = buffers.inputs[members_ + piece.member];
      ForBlocks(piece.begin, piece.begin + piece.n, [&](int64_t at, int64_t n) {
        if (reject) {
          if (old != out) memcpy(out + at, old + at, n * sizeof(float));
          return;
        }
        alignas(64) float buffer[kConvertBlock];
        ApplyBinary(step, old + at, LoadBlock(param_, p, at, n, buffer),
                    out + at, n);
      });
    });
  }

 private:
  int members_, applied_, found_inf_;
  DType param_;
  functors::AverageRule rule_;
  Pieces pieces_;
};

}  // namespace

void RegisterCpuAverage(KernelRegistry& registry) {
  Candidate candidate = MakeCandidate(
      "one_pass", [](const BoundOp& op) { return AverageKernel(op); });
  candidate.supports = MembersShareLayout;
  AddForSchema(registry, "ema", candidate);
}

}  // namespace kernels
}  // namespace halftone
