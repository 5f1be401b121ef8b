// Ops that move elements: reshapes, joins and cuts. transpose has a file of
// its own.
#include "kernels/cpu/shape.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/common/dispatch.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/copy.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

auto MakeReshape(const BoundOp& op) {
  const int64_t bytes = op.outputs()[0].bytes();
  return [bytes](const Buffers& buffers, runtime::Stream& stream) {
    CopyBytes(buffers.inputs[0], buffers.outputs[0], bytes, stream.threads());
  };
}

auto MakeConcat(const BoundOp& op) {
  const int64_t out_row = AroundAxis(op.outputs()[0], op.Int("axis")).row();
  std::vector<Around> parts;
  for (const TensorDesc& x : op.inputs()) {
    parts.push_back(AroundAxis(x, op.Int("axis")));
  }
  return [out_row, parts](const Buffers& buffers, runtime::Stream& stream) {
    char* to = static_cast<char*>(buffers.outputs[0]);
    for (size_t i = 0; i < parts.size(); ++i) {
      const char* from = static_cast<const char*>(buffers.inputs[i]);
      CopyRows(from, parts[i].row(), to, out_row, parts[i].outer,
               parts[i].row(), stream.threads());
      to += parts[i].row();
    }
  };
}

auto MakeConcatGrad(const BoundOp& op) {
  const int64_t row = AroundAxis(op.Input("OutGrad"), op.Int("axis")).row();
  std::vector<Around> parts;
  for (const TensorDesc& part : op.outputs()) {
    parts.push_back(AroundAxis(part, op.Int("axis")));
  }
  return [row, parts](const Buffers& buffers, runtime::Stream& stream) {
    const char* from = static_cast<const char*>(buffers.inputs[0]);
    for (size_t i = 0; i < parts.size(); ++i) {
      CopyRows(from, row, static_cast<char*>(buffers.outputs[i]),
               parts[i].row(), parts[i].outer, parts[i].row(),
               stream.threads());
      from += parts[i].row();
    }
  };
}

auto MakeSlice(const BoundOp& op) {
  const int64_t axis = op.Int("axis");
  const Around in = AroundAxis(op.Input("X"), axis);
  const Around out = AroundAxis(op.Output("Out"), axis);
  return [in, out, start = SliceStart(op)](const Buffers& buffers,
                                           runtime::Stream& stream) {
    const char* from = static_cast<const char*>(buffers.inputs[0]);
    CopyRows(from + start * in.slice, in.row(),
             static_cast<char*>(buffers.outputs[0]), out.row(), out.outer,
             out.row(), stream.threads());
  };
}

auto MakePadLike(const BoundOp& op) {
  const int64_t axis = op.Int("axis");
  const Around in = AroundAxis(op.Input("X"), axis);
  const Around out = AroundAxis(op.Output("Out"), axis);
  const int64_t before = op.Int("start") * out.slice;
  return [in, out, before](const Buffers& buffers, runtime::Stream& stream) {
    const char* from = static_cast<const char*>(buffers.inputs[0]);
    char* to = static_cast<char*>(buffers.outputs[0]);
    const int64_t after = out.row() - before - in.row();
    const int64_t grain = kCopyGrain / std::max<int64_t>(1, out.row()) + 1;
    ParallelFor(
        stream.threads(), out.outer, grain, [=](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            char* row = to + r * out.row();
            memset(row, 0, before);
            CopyRows(from + r * in.row(), 0, row + before, 0, 1, in.row(), 1);
            memset(row + before + in.row(), 0, after);
          }
        });
  };
}

template <typename T>
void PadPixels(const ChannelPadding& pad, const T* from, T* to, int threads) {
  const int64_t grain = kCopyGrain / (pad.padded * int64_t{sizeof(T)} + 1) + 1;
  ParallelFor(threads, pad.images * pad.pixels, grain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const T* pixel = from + i / pad.pixels * pad.image_stride +
                                   i % pad.pixels * pad.pixel_stride;
                  T* out = to + i * pad.padded;
                  for (int64_t c = 0; c < pad.channels; ++c) {
                    out[c] = pixel[c * pad.channel_stride];
                  }
                  std::fill(out + pad.channels, out + pad.padded, T());
                }
              });
}

auto MakePadChannels(const BoundOp& op) {
  return [pad = ChannelPaddingOf(op), size = SizeOf(op.Input("X").dtype)](
             const Buffers& buffers, runtime::Stream& stream) {
    const auto run = [&](auto zero) {
      using T = decltype(zero);
      PadPixels(pad, static_cast<const T*>(buffers.inputs[0]),
                static_cast<T*>(buffers.outputs[0]), stream.threads());
    };
    if (size == 1) return run(uint8_t());
    if (size == 2) return run(uint16_t());
    if (size == 4) return run(uint32_t());
    run(uint64_t());
  };
}

}  // namespace

void RegisterCpuShape(KernelRegistry& registry) {
  for (const char* op : {"reshape", "reshape_like", "flatten"}) {
    AddForSchema(registry, op, MakeCandidate("copy", MakeReshape));
  }
  AddForSchema(registry, "concat", MakeCandidate("copy", MakeConcat));
  AddForSchema(registry, "concat_grad", MakeCandidate("copy", MakeConcatGrad));
  AddForSchema(registry, "slice", MakeCandidate("copy", MakeSlice));
  AddForSchema(registry, "pad_like", MakeCandidate("copy", MakePadLike));
  AddForSchema(registry, "pad_channels",
               MakeCandidate("pixels", MakePadChannels));
  RegisterCpuTranspose(registry);
}

}  // namespace kernels
}  // namespace halftone
