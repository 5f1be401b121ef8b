// Images sampled at places that a grid says, and the gradients: where the four
// elements around a place lie, and their weights, are found once for all
// channels.
#include "kernels/common/grid_sampler.h"

#include <algorithm>
#include <functional>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using Run = std::function<void(const Buffers&, runtime::Stream&)>;

constexpr int64_t kPlaces = 128;  // of a row that are sampled at once

// body(cell, k) for each of `n` places from `first` on.
template <typename Body>
void ForCells(const GridShape& shape, DType dtype, const void* grid,
              int64_t first, int64_t n, const Body& body) {
  alignas(64) float buffer[2 * kPlaces];
  const float* xy = LoadBlock(dtype, grid, 2 * first, 2 * n, buffer);
  for (int64_t k = 0; k < n; ++k) {
    body(GridCell(shape, xy[2 * k], xy[2 * k + 1]), k);
  }
}

// Four elements of a plane for each place, and their weights: 0 for those
// outside.
struct Corners {
  alignas(64) int32_t elements[4][kPlaces];
  alignas(64) float weights[4][kPlaces];

  void Set(const GridShape& shape, const GridCell& cell, int64_t k) {
    for (int i = 0; i < 4; ++i) {
      const int64_t element = cell.Element(shape, i);
      elements[i][k] = static_cast<int32_t>(std::max<int64_t>(0, element));
      weights[i][k] = element < 0 ? 0.0f : cell.Weight(i);
    }
  }
};

// What has no weight is not looked at: it may be infinite.
inline float Weighted(float weight, float x) {
  return weight != 0.0f ? weight * x : 0.0f;
}

// body(image, first place of a block, places in it) for a task: a row of
// Output.
template <typename Body>
void ForBlocksOfRows(const GridShape& shape, int threads, const Body& body) {
  const int64_t row = shape.columns * std::max<int64_t>(1, shape.channels);
  const int64_t grain = std::max<int64_t>(1, kMapGrain / (4 * row + 1));
  ParallelFor(threads, shape.images * shape.rows, grain,
              [&](int64_t begin, int64_t end) {
                for (int64_t task = begin; task < end; ++task) {
                  for (int64_t at = 0; at < shape.columns; at += kPlaces) {
                    body(task / shape.rows,
                         task % shape.rows * shape.columns + at,
                         std::min(kPlaces, shape.columns - at));
                  }
                }
              });
}

template <typename T>
struct SampleKernel {
  GridShape shape;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const T* x = static_cast<const T*>(buffers.inputs[0]);
    ForBlocksOfRows(
        shape, stream.threads(), [&](int64_t image, int64_t first, int64_t n) {
          Corners corners;
          ForCells(shape, DTypeOf<T>(), buffers.inputs[1],
                   image * shape.places() + first, n,
                   [&](const GridCell& cell, int64_t k) {
                     corners.Set(shape, cell, k);
                   });
          for (int64_t c = 0; c < shape.channels; ++c) {
            const int64_t plane = image * shape.channels + c;
            const int64_t to = plane * shape.places() + first;
            alignas(64) float buffer[kPlaces];
            float* out =
                OutputBlock(DTypeOf<T>(), buffers.outputs[0], to, buffer);
            Sample(x + plane * shape.pixels(), corners, n, out);
            StoreBlock(DTypeOf<T>(), out, buffers.outputs[0], to, n);
          }
        });
  }

 private:
  static void Sample(const T* x, const Corners& corners, int64_t n,
                     float* out) {
    ForIsa([=, &corners] {
#pragma GCC ivdep
      for (int64_t k = 0; k < n; ++k) {
        float sum = 0;
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          sum += Weighted(corners.weights[i][k],
                          static_cast<float>(x[corners.elements[i][k]]));
        }
        out[k] = sum;
      }
    });
  }
};

// A plane of X after the other; scratch: the corners of an image's places, and
// the sums of a plane where they are not its gradient.
struct InputGradKernel {
  GridShape shape;
  DType dtype;

  int64_t Blocks() const { return (shape.places() + kPlaces - 1) / kPlaces; }
  int64_t ScratchFloats() const {
    return Blocks() * int64_t{sizeof(Corners) / sizeof(float)} +
           (dtype == DType::kF32 ? 0 : (shape.pixels() + 15) / 16 * 16);
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t grain = std::max<int64_t>(
        1, kMapGrain / (4 * shape.places() + shape.pixels() + 1));
    ForTasksWithScratch(
        stream.threads(), shape.images * shape.channels, grain,
        buffers.workspace, ScratchFloats(),
        [&](int64_t begin, int64_t end, float* scratch) {
          Corners* const corners = reinterpret_cast<Corners*>(scratch);
          float* const sums = reinterpret_cast<float*>(corners + Blocks());
          int64_t image = -1;
          for (int64_t plane = begin; plane < end; ++plane) {
            if (plane / shape.channels != image) {
              image = plane / shape.channels;
              SetCorners(buffers.inputs[1], image, corners);
            }
            Plane(buffers, plane, corners, sums);
          }
        });
  }

 private:
  void SetCorners(const void* grid, int64_t image, Corners* corners) const {
    for (int64_t b = 0; b < Blocks(); ++b) {
      const int64_t first = b * kPlaces;
      ForCells(shape, dtype, grid, image * shape.places() + first,
               std::min(kPlaces, shape.places() - first),
               [&](const GridCell& cell, int64_t k) {
                 corners[b].Set(shape, cell, k);
               });
    }
  }

  void Plane(const Buffers& buffers, int64_t plane, const Corners* corners,
             float* scratch) const {
    const int64_t at = plane * shape.pixels();
    float* const sums = OutputBlock(dtype, buffers.outputs[0], at, scratch);
    std::fill_n(sums, shape.pixels(), 0.0f);
    alignas(64) float buffer[kPlaces];
    for (int64_t b = 0; b < Blocks(); ++b) {
      const int64_t first = b * kPlaces;
      const int64_t n = std::min(kPlaces, shape.places() - first);
      const float* grad = LoadBlock(dtype, buffers.inputs[2],
                                    plane * shape.places() + first, n, buffer);
      for (int64_t k = 0; k < n; ++k) {
        for (int i = 0; i < 4; ++i) {
          const float weight = corners[b].weights[i][k];
          if (weight != 0) sums[corners[b].elements[i][k]] += weight * grad[k];
        }
      }
    }
    StoreBlock(dtype, sums, buffers.outputs[0], at, shape.pixels());
  }
};

template <typename T>
struct GridGradKernel {
  GridShape shape;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    constexpr DType kDType = DTypeOf<T>();
    const T* x = static_cast<const T*>(buffers.inputs[0]);
    ForBlocksOfRows(
        shape, stream.threads(), [&](int64_t image, int64_t first, int64_t n) {
          Corners by_x, by_y;
          const int64_t place = image * shape.places() + first;
          ForCells(shape, kDType, buffers.inputs[1], place, n,
                   [&](const GridCell& cell, int64_t k) {
                     by_x.Set(shape, cell, k);
                     for (int i = 0; i < 4; ++i) {
                       const bool outside = cell.Element(shape, i) < 0;
                       by_x.weights[i][k] = outside ? 0 : cell.WeightByX(i);
                       by_y.weights[i][k] = outside ? 0 : cell.WeightByY(i);
                     }
                   });
          alignas(64) float sums[2 * kPlaces] = {}, buffer[2 * kPlaces];
          for (int64_t c = 0; c < shape.channels; ++c) {
            const int64_t plane = image * shape.channels + c;
            const float* grad =
                LoadBlock(kDType, buffers.inputs[2],
                          plane * shape.places() + first, n, buffer);
            Add(x + plane * shape.pixels(), by_x, by_y, grad, n, sums);
          }
          float* out =
              OutputBlock(kDType, buffers.outputs[0], 2 * place, buffer);
          std::copy_n(sums, 2 * n, out);
          StoreBlock(kDType, out, buffers.outputs[0], 2 * place, 2 * n);
        });
  }

 private:
  // x and y of each place.
  static void Add(const T* x, const Corners& by_x, const Corners& by_y,
                  const float* grad, int64_t n, float* sums) {
    ForIsa([=, &by_x, &by_y] {
#pragma GCC ivdep
      for (int64_t k = 0; k < n; ++k) {
        float to_x = 0, to_y = 0;
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          const float v = static_cast<float>(x[by_x.elements[i][k]]);
          to_x += Weighted(by_x.weights[i][k], v);
          to_y += Weighted(by_y.weights[i][k], v);
        }
        sums[2 * k] += grad[k] * to_x;
        sums[2 * k + 1] += grad[k] * to_y;
      }
    });
  }
};

template <template <typename> class Kernel>
Candidate MakeByType() {
  return MakeCandidate("corners", [](const BoundOp& op) {
    Run run;
    DispatchType(FloatTypes(), op.Input("X").dtype, [&](auto tag) {
      run = Kernel<typename decltype(tag)::type>{GridShape::Of(op)};
    });
    return run;
  });
}

// Places in a plane are i32.
Candidate OfSmallPlanes(Candidate candidate) {
  candidate.supports = [](const BoundOp& op) {
    return GridShape::Of(op).pixels() <= INT32_MAX;
  };
  return candidate;
}

Candidate MakeInputGrad() {
  const auto make = [](const BoundOp& op) {
    return InputGradKernel{GridShape::Of(op), op.Input("X").dtype};
  };
  Candidate candidate = MakeCandidate("corners", make);
  candidate.workspace_bytes = [make](const BoundOp& op) {
    return std::max(1, op.context().threads) * make(op).ScratchFloats() *
           int64_t{sizeof(float)};
  };
  return candidate;
}

}  // namespace

void RegisterCpuGridSampler(KernelRegistry& registry) {
  AddForSchema(registry, "grid_sampler",
               OfSmallPlanes(MakeByType<SampleKernel>()));
  AddForSchema(registry, "grid_sampler_grad_input",
               OfSmallPlanes(MakeInputGrad()));
  AddForSchema(registry, "grid_sampler_grad_grid",
               OfSmallPlanes(MakeByType<GridGradKernel>()));
}

}  // namespace kernels
}  // namespace halftone
