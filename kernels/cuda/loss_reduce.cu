// Reductions and broadcast_like, their gradient.
#include <vector>

#include "kernels/common/shapes.h"
#include "kernels/cuda/loss.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/sums.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

struct Finish {
  DType dtype;
  void* out;
  float divisor;  // 0: a mean of nothing

  template <typename State>
  HT_DEVICE void operator()(int64_t i, const State& state) const {
    float sum = static_cast<float>(state.a);
    if (divisor != 1.0f) sum = divisor == 0.0f ? 0.0f : sum / divisor;
    StoreOne(dtype, out, i, sum);
  }
};

// Dims of one kind, outermost first; neighbours that lie side by side merge.
void Append(int64_t extent, int64_t stride, Nest* nest) {
  if (extent == 1) return;
  if (nest->rank() > 0 && nest->strides.back() == stride * extent) {
    nest->dims.back() *= extent;
    nest->strides.back() = stride;
    return;
  }
  nest->dims.push_back(extent);
  nest->strides.push_back(stride);
}

struct Reduction {
  Nest kept, reduced;
  int64_t columns = 1;
  float divisor = 1.0f;
  SumShape shape;

  // Columns are the innermost dims if those are kept.
  Reduction(const BoundOp& op, bool mean) {
    const TensorDesc& x = op.Input("X");
    const std::vector<bool> axes = ReducedAxes(op, x.rank());
    const Extents strides = StridesOf(x);
    for (const int64_t i : ReductionOrder(x, op.Output("Out"), axes)) {
      Append(x.dims[i], strides[i], axes[i] ? &reduced : &kept);
      (axes[i] ? shape.summands : shape.outputs) *= x.dims[i];
    }
    if (mean) divisor = static_cast<float>(shape.summands);
    const bool inner_kept =
        kept.rank() > 0 && kept.strides.back() == 1 && reduced.rank() > 0;
    if (inner_kept && kept.dims.back() > 0) {
      shape.columns = kept.dims.back();
      shape.outputs /= shape.columns;
      kept.dims.pop_back();
      kept.strides.pop_back();
    }
    shape.vector = VectorWithin(x.dtype);
  }

  static bool Fits(const Reduction& r) {
    return Loops::Fits(r.kept) && Loops::Fits(r.reduced);
  }
  void Finalize() {
    shape.kept = Loops(kept);
    shape.reduced = Loops(reduced);
    shape.Cut();
  }

 private:
  // Vectors of so many stay within an innermost run, at multiples of as many.
  int VectorWithin(DType dtype) const {
    for (int v = VectorOf({dtype}); v >= 4; v /= 2) {
      bool good = shape.columns > 1
                      ? shape.columns % v == 0
                      : reduced.rank() > 0 && reduced.strides.back() == 1 &&
                            reduced.dims.back() % v == 0;
      for (const Nest* nest : {&kept, &reduced}) {
        for (int64_t stride : nest->strides) {
          good = good && (stride == 1 || stride % v == 0);
        }
      }
      if (good) return v;
    }
    return 1;
  }
};

Reduction PlanOf(const BoundOp& op, bool mean) {
  Reduction plan(op, mean);
  plan.Finalize();
  return plan;
}

Candidate MakeReduce(bool mean) {
  Candidate candidate = CudaCandidate("pieces", [mean](const BoundOp& op) {
    return [plan = PlanOf(op, mean), in = op.Input("X").dtype,
            out = op.Output("Out").dtype](const Buffers& buffers,
                                          Launcher& launch) {
      SumData data;
      data.dtype = in;
      data.x = buffers.inputs[0];
      Sum<PlainSum>(launch, plan.shape, data, buffers.workspace,
                    Finish{out, buffers.outputs[0], plan.divisor});
    };
  });
  candidate.supports = [mean](const BoundOp& op) {
    return Reduction::Fits(Reduction(op, mean));
  };
  candidate.workspace_bytes = [mean](const BoundOp& op) {
    return PlanOf(op, mean).shape.workspace_floats(PlainSum::kSums) *
           int64_t{sizeof(float)};
  };
  return candidate;
}

struct DivideBy {
  float divisor;
  HT_HOST_DEVICE float operator()(float x) const { return x / divisor; }
};

Candidate MakeBroadcast() {
  Candidate candidate = CudaCandidate("vector", [](const BoundOp& op) {
    const TensorDesc& out = op.Output("Out");
    const BroadcastLike like = BroadcastLikeOf(op);
    return
        [x = Operand(op.Input("X").dtype, out, like.strides), dtype = out.dtype,
         n = out.elements(), divide = DivideBy{like.divisor}](
            const Buffers& buffers, Launcher& launch) {
          MapUnary(launch, x, buffers.inputs[0], dtype, buffers.outputs[0], n,
                   divide);
        };
  });
  candidate.supports = [](const BoundOp& op) {
    return Operand::Fits(op.Output("Out"), BroadcastLikeOf(op).strides);
  };
  return candidate;
}

}  // namespace

void RegisterCudaReduce(KernelRegistry& registry) {
  AddForSchema(registry, "mean", MakeReduce(true));
  AddForSchema(registry, "reduce_mean", MakeReduce(true));
  AddForSchema(registry, "reduce_sum", MakeReduce(false));
  AddForSchema(registry, "broadcast_like", MakeBroadcast());
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
