// Images sampled at places that a grid says, and the gradients: where the four
// elements around a place lie, and their weights, are found once for all
// channels.
#include "kernels/common/grid_sampler.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <type_traits>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/wide_vector.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using Run = std::function<void(const Buffers&, runtime::Stream&)>;

constexpr int64_t kPlaces = 512;  // that are sampled at once

// Of an image.
int64_t BlocksOf(const GridShape& shape) {
  return (shape.places() + kPlaces - 1) / kPlaces;
}

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

// For each place two pairs of neighbours in a plane, of a row and of the one
// after it, and the weights of their elements: 0 for what lies outside, as it
// does for the second element of a plane that has but one.
struct Corners {
  alignas(64) int32_t pairs[2][kPlaces];
  alignas(64) float weights[4 * kPlaces];

  // weight(i): that of the cell's i-th element.
  template <typename Weight>
  void Set(const GridShape& shape, const GridCell& cell, int64_t k,
           const Weight& weight) {
    const bool left = shape.w.Has(cell.w.first);
    const bool right = shape.w.Has(cell.w.first + 1);
    const int64_t last = std::max<int64_t>(0, shape.pixels() - 2);
    for (int r = 0; r < 2; ++r) {
      float* const to = &weights[4 * k + 2 * r];
      to[0] = to[1] = 0;
      pairs[r][k] = 0;
      const int64_t row = cell.h.first + r;
      if (!shape.h.Has(row) || (!left && !right)) continue;
      const int64_t first = row * shape.w.size + cell.w.first + (left ? 0 : 1);
      const int64_t pair = std::min(first, last);
      pairs[r][k] = static_cast<int32_t>(pair);
      to[first - pair] = weight(2 * r + (left ? 0 : 1));
      if (left && right) to[1] = weight(2 * r + 1);
    }
  }
};

using Four = WideVector<4>;

// What a plane has at the pairs.
struct Elements {
  alignas(64) float x[4 * kPlaces];

  template <typename T>
  void Load(const T* plane, int64_t pixels, const Corners& corners, int64_t n) {
    if constexpr (std::is_same_v<T, float>) {
      Take(plane, pixels, corners, n, x);
    } else {
      alignas(64) T taken[4 * kPlaces];
      Take(plane, pixels, corners, n, taken);
      ToFloat(taken, x, 4 * n);
    }
  }

  // Adds another plane's, each place's times its gradient.
  void Add(const Elements& plane, const float* grad, int64_t n) {
    ForIsa([=, from = plane.x, to = x] {
      for (int64_t k = 0; k < n; ++k) {
        *reinterpret_cast<Four*>(to + 4 * k) +=
            grad[k] * *reinterpret_cast<const Four*>(from + 4 * k);
      }
    });
  }

  // The weighted sum of each place. What has no weight is not looked at: it may
  // be infinite.
  void Sum(const Corners& corners, int64_t n, float* sums) const {
    ForIsa([=, weights = corners.weights] {
      const auto product = [=](int64_t k) {
        const Four w = *reinterpret_cast<const Four*>(&weights[4 * k]);
        return w != 0.0f ? w * *reinterpret_cast<const Four*>(&x[4 * k])
                         : Four{};
      };
      int64_t k = 0;
      for (; k + 4 <= n; k += 4) {
        const Four a = product(k), b = product(k + 1);
        const Four c = product(k + 2), d = product(k + 3);
        const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        const Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
        const Four below_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
        const Four below_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        *reinterpret_cast<Four*>(sums + k) =
            0.0f + __builtin_shufflevector(ab, cd, 0, 1, 4, 5) +
            __builtin_shufflevector(ab, cd, 2, 3, 6, 7) +
            __builtin_shufflevector(below_ab, below_cd, 0, 1, 4, 5) +
            __builtin_shufflevector(below_ab, below_cd, 2, 3, 6, 7);
      }
      for (; k < n; ++k) {
        const Four four = product(k);
        sums[k] = 0.0f + four[0] + four[1] + four[2] + four[3];
      }
    });
  }

 private:
  template <typename T>
  static void Take(const T* from, int64_t pixels, const Corners& corners,
                   int64_t n, T* to) {
    if (pixels < 2) {
      std::fill_n(to, 4 * n, pixels == 1 ? *from : T{});
      return;
    }
    for (int64_t k = 0; k < n; ++k) {
      for (int r = 0; r < 2; ++r) {
        memcpy(to + 4 * k + 2 * r, from + corners.pairs[r][k], 2 * sizeof(T));
      }
    }
  }
};

// body(image, first place of a block, places in it) for a task: a block, of
// fewer places where there would be fewer tasks than threads.
template <typename Body>
void ForBlocks(const GridShape& shape, int threads, const Body& body) {
  constexpr int64_t kFewest = 64;
  const int64_t tasks_per_image =
      (threads + shape.images - 1) / std::max<int64_t>(1, shape.images);
  const int64_t fair = shape.places() / std::max<int64_t>(1, tasks_per_image);
  const int64_t size = std::min(kPlaces, std::max(kFewest, fair));
  const int64_t blocks = (shape.places() + size - 1) / size;
  const int64_t elements = size * std::max<int64_t>(1, shape.channels);
  const int64_t grain = std::max<int64_t>(1, kMapGrain / (4 * elements + 1));
  ParallelFor(
      threads, shape.images * blocks, grain, [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t first = task % blocks * size;
          body(task / blocks, first, std::min(size, shape.places() - first));
        }
      });
}

template <typename T>
struct SampleKernel {
  GridShape shape;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const T* x = static_cast<const T*>(buffers.inputs[0]);
    ForBlocks(shape, stream.threads(),
              [&](int64_t image, int64_t first, int64_t n) {
                Corners corners;
                Elements elements;
                ForCells(shape, DTypeOf<T>(), buffers.inputs[1],
                         image * shape.places() + first, n,
                         [&](const GridCell& cell, int64_t k) {
                           corners.Set(shape, cell, k,
                                       [&](int i) { return cell.Weight(i); });
                         });
                for (int64_t c = 0; c < shape.channels; ++c) {
                  const int64_t plane = image * shape.channels + c;
                  const int64_t to = plane * shape.places() + first;
                  alignas(64) float buffer[kPlaces];
                  float* out =
                      OutputBlock(DTypeOf<T>(), buffers.outputs[0], to, buffer);
                  elements.Load(x + plane * shape.pixels(), shape.pixels(),
                                corners, n);
                  elements.Sum(corners, n, out);
                  StoreBlock(DTypeOf<T>(), out, buffers.outputs[0], to, n);
                }
              });
  }
};

// A plane of X after the other; scratch: the corners of an image's places, and
// the sums of a plane where they are not its gradient.
struct InputGradKernel {
  GridShape shape;
  DType dtype;

  int64_t ScratchFloats() const {
    return BlocksOf(shape) * int64_t{sizeof(Corners) / sizeof(float)} +
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
          float* const sums =
              reinterpret_cast<float*>(corners + BlocksOf(shape));
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
    for (int64_t b = 0; b < BlocksOf(shape); ++b) {
      const int64_t first = b * kPlaces;
      ForCells(shape, dtype, grid, image * shape.places() + first,
               std::min(kPlaces, shape.places() - first),
               [&](const GridCell& cell, int64_t k) {
                 corners[b].Set(shape, cell, k,
                                [&](int i) { return cell.Weight(i); });
               });
    }
  }

  void Plane(const Buffers& buffers, int64_t plane, const Corners* corners,
             float* scratch) const {
    const int64_t at = plane * shape.pixels();
    float* const sums = OutputBlock(dtype, buffers.outputs[0], at, scratch);
    std::fill_n(sums, shape.pixels(), 0.0f);
    alignas(64) float buffer[kPlaces];
    for (int64_t b = 0; b < BlocksOf(shape); ++b) {
      const int64_t first = b * kPlaces;
      const int64_t n = std::min(kPlaces, shape.places() - first);
      const float* grad = LoadBlock(dtype, buffers.inputs[2],
                                    plane * shape.places() + first, n, buffer);
      for (int64_t k = 0; k < n; ++k) {
        for (int i = 0; i < 4; ++i) {
          const float weight = corners[b].weights[4 * k + i];
          if (weight == 0) continue;
          sums[corners[b].pairs[i >> 1][k] + (i & 1)] += weight * grad[k];
        }
      }
    }
    StoreBlock(dtype, sums, buffers.outputs[0], at, shape.pixels());
  }
};

// What all channels have around a place is added up, by their gradients, before
// it is weighed.
template <typename T>
struct GridGradKernel {
  GridShape shape;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    constexpr DType kDType = DTypeOf<T>();
    const T* x = static_cast<const T*>(buffers.inputs[0]);
    ForBlocks(
        shape, stream.threads(), [&](int64_t image, int64_t first, int64_t n) {
          Corners by_x, by_y;
          Elements elements;
          const int64_t place = image * shape.places() + first;
          ForCells(shape, kDType, buffers.inputs[1], place, n,
                   [&](const GridCell& cell, int64_t k) {
                     by_x.Set(shape, cell, k,
                              [&](int i) { return cell.WeightByX(i); });
                     by_y.Set(shape, cell, k,
                              [&](int i) { return cell.WeightByY(i); });
                   });
          Elements sums = {};
          alignas(64) float buffer[2 * kPlaces];
          alignas(64) float to_x[kPlaces], to_y[kPlaces];
          for (int64_t c = 0; c < shape.channels; ++c) {
            const int64_t plane = image * shape.channels + c;
            const float* grad =
                LoadBlock(kDType, buffers.inputs[2],
                          plane * shape.places() + first, n, buffer);
            elements.Load(x + plane * shape.pixels(), shape.pixels(), by_x, n);
            sums.Add(elements, grad, n);
          }
          sums.Sum(by_x, n, to_x);
          sums.Sum(by_y, n, to_y);
          float* out =
              OutputBlock(kDType, buffers.outputs[0], 2 * place, buffer);
          for (int64_t k = 0; k < n; ++k) {
            out[2 * k] = to_x[k];
            out[2 * k + 1] = to_y[k];
          }
          StoreBlock(kDType, out, buffers.outputs[0], 2 * place, 2 * n);
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
