// The gradient of maximum pooling of channels-last images, window by window:
// its channels are neighbours in every element, so that vectors of them are
// compared where they lie and what each element gets is added where it lies.
#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"

namespace halftone {
namespace kernels {
namespace {

constexpr int64_t kMostTaps = 256;  // elements of a window
constexpr int64_t kStep = 4 * kVector;
// Floats between rows: caches have few places for rows of a power of two, and
// loads wait for stores to what has the same place in a page.
constexpr int64_t kApart = 144;

// An element of a window: its channels in x and in what it gets.
struct Tap {
  const float* x;
  float* sums;
};

class ChannelsMaxGrad {
 public:
  ChannelsMaxGrad(const PoolShape& shape, DType dtype)
      : shape_(shape),
        dtype_(dtype),
        slots_(shape.d.kernel == 1 ? shape.h.kernel
                                   : shape.d.kernel * shape.h.in),
        slot_(shape.InRow() + kApart) {
    FillLines();
  }

  static bool Supports(const PoolShape& shape) {
    return shape.max && shape.channels >= kVector && !shape.d.adaptive &&
           !shape.h.adaptive && !shape.w.adaptive &&
           shape.d.kernel * shape.h.kernel * shape.w.kernel <= kMostTaps;
  }

  // Rows of x and what they get; a row of maxima and of gradients.
  int64_t ScratchFloats() const {
    return 2 * (slots_ * slot_ + shape_.OutRow());
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t plane = shape_.d.in * shape_.h.in * shape_.InRow();
    ForEachWithScratch(
        stream.threads(), shape_.planes, plane, buffers.workspace,
        ScratchFloats(),
        [&](int64_t p, float* scratch) { RunPlane(buffers, p, scratch); });
  }

 private:
  enum { kX, kOut, kOutGrad };

  // A row of an image, and where its slot is.
  struct Row {
    int64_t row, slot;
  };
  // A line of windows: the rows that no line before it has had, those that no
  // line after it has, and the slots of its windows' rows inside the image.
  struct Line {
    std::vector<Row> begin, end;
    std::vector<int64_t> slots;
  };

  void FillLines() {
    const PoolDim &d = shape_.d, &h = shape_.h;
    for (int64_t od = 0; od < d.out; ++od) {
      for (int64_t oh = 0; oh < h.out; ++oh) {
        Line line;
        for (int64_t k = 0; k < d.kernel * h.kernel; ++k) {
          const int64_t z = od * d.stride - d.before + k / h.kernel;
          const int64_t y = oh * h.stride - h.before + k % h.kernel;
          const bool inside = 0 <= z && z < d.in && 0 <= y && y < h.in;
          if (inside) line.slots.push_back(SlotOf(z * h.in + y));
        }
        lines_.push_back(std::move(line));
      }
    }
    for (int64_t row = 0; row < d.in * h.in; ++row) {
      const Range over_d = d.WindowsOver(row / h.in);
      const Range over_h = h.WindowsOver(row % h.in);
      if (over_d.size() <= 0 || over_h.size() <= 0) {
        bare_.push_back(row);
        continue;
      }
      lines_[over_d.begin * h.out + over_h.begin].begin.push_back(
          {row, SlotOf(row)});
      lines_[(over_d.end - 1) * h.out + over_h.end - 1].end.push_back(
          {row, SlotOf(row)});
    }
  }

  // Rows that are needed at one time have slots of their own.
  int64_t SlotOf(int64_t row) const {
    const int64_t z = row / shape_.h.in, y = row % shape_.h.in;
    return slot_ * (shape_.d.kernel == 1
                        ? y % shape_.h.kernel
                        : z % shape_.d.kernel * shape_.h.in + y);
  }

  void RunPlane(const Buffers& buffers, int64_t p, float* scratch) const {
    const int64_t n = shape_.InRow(), windows = shape_.OutRow();
    const int64_t rows = p * shape_.d.in * shape_.h.in;
    int64_t line_at = p * static_cast<int64_t>(lines_.size()) * windows;
    float* const sums = scratch + slots_ * slot_;
    float* const buffer = sums + slots_ * slot_;
    const auto store = [&](const float* from, int64_t row) {
      char* to = static_cast<char*>(buffers.outputs[0]);
      FromFloat(dtype_, from, to + (rows + row) * n * SizeOf(dtype_), n);
    };
    for (const int64_t row : bare_) {
      std::fill_n(sums, n, 0.0f);
      store(sums, row);
    }
    for (const Line& line : lines_) {
      for (const Row& row : line.begin) {
        const float* x = LoadBlock(dtype_, buffers.inputs[kX],
                                   (rows + row.row) * n, n, scratch + row.slot);
        ToFloat(x, scratch + row.slot, n);
        std::fill_n(sums + row.slot, n, 0.0f);
      }
      const float* out =
          LoadBlock(dtype_, buffers.inputs[kOut], line_at, windows, buffer);
      const float* grad = LoadBlock(dtype_, buffers.inputs[kOutGrad], line_at,
                                    windows, buffer + windows);
      ForIsa([this, &line, scratch, out, grad, sums] {
        Run(line, scratch, out, grad, sums);
      });
      for (const Row& row : line.end) store(sums + row.slot, row.row);
      line_at += windows;
    }
  }

  // ---- For bodies of ForIsa.

  // The last window first: an element has its windows in the order of
  // pool_grad.cc.
  void Run(const Line& line, const float* x, const float* out,
           const float* grad, float* sums) const {
    const int64_t channels = shape_.channels;
    Tap taps[kMostTaps];
    for (int64_t ow = shape_.w.out - 1; ow >= 0; --ow) {
      const Range columns = shape_.w.Window(ow);
      int n = 0;
      for (const int64_t slot : line.slots) {
        for (int64_t c = columns.begin; c < columns.end; ++c) {
          const int64_t at = slot + c * channels;
          taps[n++] = {x + at, sums + at};
        }
      }
      RunWindow(taps, n, out + ow * channels, grad + ow * channels);
    }
  }

  void RunWindow(const Tap* taps, int n, const float* out,
                 const float* grad) const {
    const int64_t channels = shape_.channels;
    int64_t c = 0;
    for (; c + kStep <= channels; c += kStep) {
      RunVectors<4>(taps, n, out, grad, c);
    }
    for (; c + kVector <= channels; c += kVector) {
      RunVectors<1>(taps, n, out, grad, c);
    }
    for (; c < channels; ++c) RunChannel(taps, n, out[c], grad[c], c);
  }

  // The gradient goes to the first element that is the maximum.
  template <int kVectors>
  static void RunVectors(const Tap* taps, int n, const float* out,
                         const float* grad, int64_t c) {
    Vector most[kVectors];
    VectorMask open[kVectors], nans = {};
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      most[k] = VectorAt(out + c + k * kVector);
      nans |= most[k] != most[k];
      open[k] = VectorMask(VectorAt(grad + c + k * kVector));
    }
    for (int i = 0; i < n; ++i) {
      const float* x = taps[i].x + c;
      float* sums = taps[i].sums + c;
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        const VectorMask same = VectorAt(x + k * kVector) == most[k];
        // A 0 more changes no sum that began with 0.
        VectorAt(sums + k * kVector) += Vector(same & open[k]);
        open[k] &= ~same;
      }
    }
    int any = 0;
    for (int k = 0; k < kVector; ++k) any |= nans[k];
    if (any == 0) return;
    for (int64_t k = c; k < c + kVectors * kVector; ++k) {
      if (out[k] != out[k]) RunChannel(taps, n, out[k], grad[k], k);
    }
  }

  // A NaN is the maximum wherever there is one.
  static void RunChannel(const Tap* taps, int n, float out, float grad,
                         int64_t c) {
    for (int i = 0; i < n; ++i) {
      const float x = taps[i].x[c];
      if (x == out || (x != x && out != out)) {
        taps[i].sums[c] += grad;
        return;
      }
    }
  }

  PoolShape shape_;
  DType dtype_;
  int64_t slots_, slot_;  // rows that are kept; floats from one to the next
  std::vector<Line> lines_;
  std::vector<int64_t> bare_;  // rows in no window
};

}  // namespace

void RegisterCpuPoolMaxGradLast(KernelRegistry& registry) {
  const Candidate channels = PoolCandidate<ChannelsMaxGrad>("channels");
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    registry.Add("pool2d_grad", {dtype}, Layout::kChannelsLast, channels);
  }
}

}  // namespace kernels
}  // namespace halftone
