// Casts and copies.
#include <cstring>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/map.h"
#include "kernels/functors/cast.h"

namespace halftone {
namespace kernels {
namespace {

bool ComputesInF32(DType dtype) { return dtype == DType::kF32 || IsLow(dtype); }

template <typename From, typename To>
void CastEach(const void* from_data, void* to_data, int64_t n) {
  const From* from = static_cast<const From*>(from_data);
  To* to = static_cast<To*>(to_data);
  for (int64_t i = 0; i < n; ++i) {
    to[i] = functors::Cast<To>(from[i]);
  }
}

using CastFunction = void (*)(const void*, void*, int64_t);

CastFunction FindCast(DType from, DType to) {
  CastFunction found = nullptr;
  DispatchType(AnyTypes(), from, [&](auto from_tag) {
    DispatchType(AnyTypes(), to, [&](auto to_tag) {
      found = CastEach<typename decltype(from_tag)::type,
                       typename decltype(to_tag)::type>;
    });
  });
  return found;
}

// To and from f32 the bulk conversions are vectorised; everything else is
// rare.
struct CastKernel {
  DType from, to;
  int64_t elements;
  CastFunction cast;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const void* in = buffers.inputs[0];
    void* out = buffers.outputs[0];
    if (from == to) {
      CopyBytes(in, out, elements * SizeOf(to), stream.threads());
      return;
    }
    const StreamedOutput output(out, to, elements, /*as_usual=*/false);
    ParallelFor(
        stream.threads(), elements, kMapGrain, [&](int64_t begin, int64_t end) {
          output.Write(begin, end, [&](int64_t at, int64_t n, void* made) {
            if (ComputesInF32(to)) {
              CastToFloat(in, at, n, made);
            } else {
              cast(static_cast<const char*>(in) + at * SizeOf(from), made, n);
            }
          });
        });
  }

 private:
  void CastToFloat(const void* in, int64_t at, int64_t n, void* made) const {
    alignas(64) float buffer[kConvertBlock];
    ForBlocks(0, n, [&](int64_t i, int64_t count) {
      const float* values =
          LoadBlock(from, in, at + i, count, OutputBlock(to, made, i, buffer));
      StoreBlock(to, values, made, i, count);
    });
  }
};

CastKernel MakeCast(const BoundOp& op) {
  const DType from = op.inputs()[0].dtype, to = op.outputs()[0].dtype;
  return {from, to, op.outputs()[0].elements(), FindCast(from, to)};
}

auto MakeAssign(const BoundOp& op) {
  const int64_t bytes = op.outputs()[0].bytes();
  return [bytes](const Buffers& buffers, runtime::Stream& stream) {
    CopyBytes(buffers.inputs[0], buffers.outputs[0], bytes, stream.threads());
  };
}

}  // namespace

void RegisterCpuCast(KernelRegistry& registry) {
  AddForSchema(registry, "cast", MakeCandidate("blocks", MakeCast));
  for (const char* const op : {"assign", "share_data"}) {
    AddForSchema(registry, op, MakeCandidate("copy", MakeAssign));
  }
}

}  // namespace kernels
}  // namespace halftone
