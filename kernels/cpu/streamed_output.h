// Outputs that caches do not hold, written around them. An ordinary store reads
// its line from memory first: a third of all that an element-wise op moves.
#ifndef HALFTONE_KERNELS_CPU_STREAMED_OUTPUT_H_
#define HALFTONE_KERNELS_CPU_STREAMED_OUTPUT_H_

#include <algorithm>
#include <cstdint>

#include "absl/algorithm/container.h"
#include "graph/base/dtype.h"
#include "kernels/cpu/convert.h"
#include "kernels/kernel.h"

namespace halftone {
namespace kernels {

// Bytes from which on an output is streamed: what whoever reads it next would
// find of it in the last-level cache is little. Tests set it to less.
int64_t LeastStreamedBytes();
void SetLeastStreamedBytes(int64_t bytes);

// Copies by non-temporal stores; `to` of any alignment. To other threads they
// become visible by FinishStores.
void StreamBytes(const void* from, void* to, int64_t bytes);
void FinishStores();

class StreamedOutput {
 public:
  // `as_usual`: it is not streamed, as where it is small: an input lies there,
  // whose lines are in the caches when the output's are written, or making it
  // takes longer than memory does.
  StreamedOutput(void* data, DType dtype, int64_t elements, bool as_usual)
      : data_(static_cast<char*>(data)),
        dtype_(dtype),
        size_(static_cast<int64_t>(SizeOf(dtype))),
        streams_(!as_usual && elements * size_ >= LeastStreamedBytes()) {}

  static StreamedOutput Of(const Buffers& buffers, int output, DType dtype,
                           int64_t elements) {
    void* const data = buffers.outputs[output];
    return {data, dtype, elements, absl::c_linear_search(buffers.inputs, data)};
  }

  void* data() const { return data_; }
  DType dtype() const { return dtype_; }

  // make(to): makes elements [at, at + n), the first of them at `to`. Larger
  // parts than kConvertBlock elements of f32 are not streamed. FinishStores,
  // which costs nothing to speak of where nothing was, ends a thread's parts.
  template <typename Make>
  void WritePart(int64_t at, int64_t n, const Make& make) const {
    if (!streams_ || n * size_ > kPartBytes) {
      return make(static_cast<void*>(data_ + at * size_));
    }
    alignas(64) char near[kPartBytes];
    make(static_cast<void*>(near));
    StreamBytes(near, data_ + at * size_, n * size_);
  }

  // make(at, n, to) for [begin, end) or, where it is streamed, for one part of
  // that after the other.
  template <typename Make>
  void Write(int64_t begin, int64_t end, const Make& make) const {
    const int64_t most = streams_ ? kNear / size_ : end - begin;
    for (int64_t at = begin; at < end; at += most) {
      const int64_t n = std::min(most, end - at);
      WritePart(at, n, [&](void* to) { make(at, n, to); });
    }
    FinishStores();
  }

 private:
  static constexpr int64_t kPartBytes = kConvertBlock * sizeof(float);
  // As many stores as wait while the next part is computed.
  static constexpr int64_t kNear = 2048;

  char* data_;
  DType dtype_;
  int64_t size_;
  bool streams_;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_STREAMED_OUTPUT_H_
