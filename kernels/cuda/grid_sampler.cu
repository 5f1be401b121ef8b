// Images sampled at places that a grid says. What an element of X gave is added
// up in the order of the places: the numbers of the elements are sorted first,
// an image after the other.
#include "kernels/common/grid_sampler.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/sort_keys.h"
#include "kernels/cuda/vector.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// `place`: among those of all images.
HT_DEVICE GridCell CellAt(const GridShape& shape, DType dtype, const void* grid,
                          int64_t place) {
  return GridCell(shape, LoadOne(dtype, grid, 2 * place),
                  LoadOne(dtype, grid, 2 * place + 1));
}

// A thread for each element of Output.
__global__ void __launch_bounds__(kThreads)
    SampleKernel(GridShape shape, Divider places, Divider channels, DType dtype,
                 const void* x, const void* grid, void* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t plane = places.Divide(i), image = channels.Divide(plane);
  const GridCell cell =
      CellAt(shape, dtype, grid, i + (image - plane) * shape.places());
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int64_t element = cell.Element(shape, k);
    const float weight = cell.Weight(k);
    if (element < 0 || weight == 0) continue;
    sum += weight * LoadOne(dtype, x, plane * shape.pixels() + element);
  }
  StoreOne(dtype, out, i, sum);
}

// A thread for each place.
__global__ void __launch_bounds__(kThreads)
    GridGradKernel(GridShape shape, Divider places, DType dtype, const void* x,
                   const void* grid, const void* grad, void* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t image = places.Divide(i);
  const GridCell cell = CellAt(shape, dtype, grid, i);
  float to_x = 0, to_y = 0;
  for (int64_t c = 0; c < shape.channels; ++c) {
    const int64_t plane = image * shape.channels + c;
    const float g = LoadOne(dtype, grad, i + (plane - image) * shape.places());
    float by_x = 0, by_y = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int64_t element = cell.Element(shape, k);
      if (element < 0) continue;
      const float v = LoadOne(dtype, x, plane * shape.pixels() + element);
      if (cell.WeightByX(k) != 0) by_x += cell.WeightByX(k) * v;
      if (cell.WeightByY(k) != 0) by_y += cell.WeightByY(k) * v;
    }
    to_x += g * by_x;
    to_y += g * by_y;
  }
  StoreOne(dtype, out, 2 * i, to_x);
  StoreOne(dtype, out, 2 * i + 1, to_y);
}

// ---- The gradient of X.

// The elements around the places of an image, four for each: `pixels` for what
// lies outside. And their weights.
__global__ void __launch_bounds__(kThreads)
    CornersKernel(GridShape shape, DType dtype, const void* grid, int64_t image,
                  Sorted to, float* weights) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= shape.places()) return;
  const GridCell cell = CellAt(shape, dtype, grid, image * shape.places() + i);
  for (int k = 0; k < 4; ++k) {
    const int64_t element = cell.Element(shape, k);
    to.keys[4 * i + k] =
        static_cast<int32_t>(element < 0 ? shape.pixels() : element);
    to.places[4 * i + k] = static_cast<int32_t>(4 * i + k);
    weights[4 * i + k] = cell.Weight(k);
  }
}

constexpr int kLanes = 32;  // that add up an element, over its channels
constexpr int kRuns = kThreads / kLanes;

__global__ void __launch_bounds__(kThreads)
    AddCornersKernel(GridShape shape, DType dtype, int64_t image, Sorted sorted,
                     const float* weights, const void* grad, void* out) {
  const int64_t first =
      static_cast<int64_t>(blockIdx.x) * kRuns + threadIdx.x / kLanes;
  const int64_t count = 4 * shape.places();
  if (first >= count) return;
  const KeyRun run = RunAt(sorted, count, shape.pixels(), first);
  if (run.empty()) return;
  struct Corner {
    float weight;
    Raw grad;
  };
  for (int64_t c = threadIdx.x % kLanes; c < shape.channels; c += kLanes) {
    const int64_t plane = image * shape.channels + c;
    float sum = 0;
    ForRun(
        sorted, run,
        [&](int32_t corner) -> Corner {
          return {weights[corner],
                  LoadRaw<1>(dtype, grad, plane * shape.places() + corner / 4)};
        },
        [&](const Corner& corner) {
          float g[1];
          Unpack(dtype, corner.grad, g);
          if (corner.weight != 0) sum += corner.weight * g[0];
        });
    StoreOne(dtype, out, plane * shape.pixels() + run.key, sum);
  }
}

SortPlan PlanOf(const GridShape& shape) {
  return SortPlan(4 * shape.places(), shape.pixels());
}

Candidate MakeInputGrad() {
  Candidate candidate = CudaCandidate("sorted", [](const BoundOp& op) {
    const TensorDesc& out = op.Output("XGrad");
    return [shape = GridShape::Of(op), dtype = out.dtype, bytes = out.bytes()](
               const Buffers& b, Launcher& launch) {
      launch.Zero(b.outputs[0], bytes);
      const SortPlan plan = PlanOf(shape);
      if (plan.count == 0) return;
      float* const weights = reinterpret_cast<float*>(
          static_cast<char*>(b.workspace) + plan.workspace_bytes());
      for (int64_t image = 0; image < shape.images; ++image) {
        launch(CornersKernel, CeilDiv(shape.places(), kThreads), kThreads,
               shape, dtype, b.inputs[1], image, plan.Unsorted(b.workspace),
               weights);
        const Sorted sorted = plan.Sort(b.workspace, launch);
        launch(AddCornersKernel, CeilDiv(plan.count, kRuns), kThreads, shape,
               dtype, image, sorted, static_cast<const float*>(weights),
               b.inputs[2], b.outputs[0]);
      }
    };
  });
  candidate.supports = [](const BoundOp& op) {
    const GridShape shape = GridShape::Of(op);
    return SortPlan::Supports(4 * shape.places(), shape.pixels());
  };
  candidate.workspace_bytes = [](const BoundOp& op) {
    const SortPlan plan = PlanOf(GridShape::Of(op));
    return plan.workspace_bytes() + plan.count * int64_t{sizeof(float)};
  };
  return candidate;
}

Candidate MakeSample() {
  return CudaCandidate("elements", [](const BoundOp& op) {
    const TensorDesc& out = op.Output("Output");
    const GridShape shape = GridShape::Of(op);
    const int64_t n = out.elements();
    const Divider places(n > 0 ? shape.places() : 1);
    const Divider channels(n > 0 ? shape.channels : 1);
    return [=, dtype = out.dtype](const Buffers& b, Launcher& launch) {
      launch(SampleKernel, CeilDiv(n, kThreads), kThreads, shape, places,
             channels, dtype, b.inputs[0], b.inputs[1], b.outputs[0], n);
    };
  });
}

Candidate MakeGridGrad() {
  return CudaCandidate("places", [](const BoundOp& op) {
    const TensorDesc& out = op.Output("GridGrad");
    const GridShape shape = GridShape::Of(op);
    const int64_t n = out.elements() / 2;
    const Divider places(n > 0 ? shape.places() : 1);
    return [=, dtype = out.dtype](const Buffers& b, Launcher& launch) {
      launch(GridGradKernel, CeilDiv(n, kThreads), kThreads, shape, places,
             dtype, b.inputs[0], b.inputs[1], b.inputs[2], b.outputs[0], n);
    };
  });
}

}  // namespace

void RegisterCudaGridSampler(KernelRegistry& registry) {
  AddForSchema(registry, "grid_sampler", MakeSample());
  AddForSchema(registry, "grid_sampler_grad_input", MakeInputGrad());
  AddForSchema(registry, "grid_sampler_grad_grid", MakeGridGrad());
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
