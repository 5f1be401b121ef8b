// What primer.cc has not: a list, an optional slot, a temporary, a workspace,
// attributes of each kind, dims that change.
#include "kernels/plugin/halftone_op.h"
namespace ho = halftone::op;
void SumList(ho::Call& call) {
  float* out = call.Output<float>(0);
  float* kept = static_cast<float*>(call.workspace());
  const bool twice = call.Bool("twice");
  for (int64_t i = 0; i < call.elements(); ++i) {
    kept[i] = call.Input<float>(0, 0)[i] + call.Input<float>(0, 1)[i];
    out[i] = twice ? 2 * kept[i] : kept[i];
  }
}
HALFTONE_OP_LIBRARY("wide", "3", library) {
  library.Op("add_list", "Out = X[0] + X[1], twice if asked.")
      .TypeVar("T", {ho::kF32})
      .In("X", "T", "two of one shape", ho::kList)
      .In("Bias", "T", "not read", ho::kOptional)
      .Out("Out", "T")
      .Attr("twice", false, "double it")
      .Attr("n", 3, "an int")
      .Attr("word", "none", "a string")
      .Amp(ho::kBlack)
      .Infer([](ho::InferCall& call) {
        if (call.Inputs(0) != 2) throw ho::Error("expected two values in X");
        if (!ho::SameDimsOf(call.Input(0, 0), call.Input(0, 1))) {
          throw ho::Error("expected equal dims");
        }
        if (call.Int("n") != 3 || call.Str("word") != "none") {
          throw ho::Error("other attributes than the defaults");
        }
        call.SetDims(0, call.Input(0));
      })
      .Gradient(ho::GradientOp("assign")
                    .In("X", ho::OutGrad("Out"))
                    .OutTemporary("Out", "flow"))
      .Gradient(ho::GradientOp("fan_out")
                    .In("X", ho::Temporary("flow"))
                    .Out("Out", "X"))
      .Kernel(ho::kCpu, {ho::kF32}, SumList,
              [](ho::Call& call) { return call.elements() * 4; });
  library.Op("fan_out", "Out[i] = X.")
      .TypeVar("T", {ho::kF32})
      .In("X", "T")
      .Out("Out", "T", "any number", ho::kList)
      .Amp(ho::kGray)
      .Infer(ho::SameDims)
      .Kernel(ho::kCpu, {ho::kF32}, [](ho::Call& call) {
        for (int slot = 0; slot < 2; ++slot) {
          std::memcpy(call.Output<float>(0, slot), call.Input<float>(0),
                      4 * call.elements());
        }
      });
}
