// A growing array whose elements never move.
#ifndef HALFTONE_GRAPH_IR_CHUNKED_VECTOR_H_
#define HALFTONE_GRAPH_IR_CHUNKED_VECTOR_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace halftone {

// Chunks of 2^kFirstLog2, twice that, ... 512, 512 ... elements: small in a
// fusion's body, without waste in an entry of a million ops.
template <typename T, int kFirstLog2 = 3>
class ChunkedVector {
 public:
  static constexpr int kLastLog2 = 9;

  ChunkedVector() = default;
  ChunkedVector(ChunkedVector&&) = default;
  ChunkedVector& operator=(ChunkedVector&&) = default;

  T& Add() {
    const Place place = Find(size_);
    if (place.chunk == static_cast<int>(chunks_.size())) {
      const int log2 = place.chunk < kLastLog2 - kFirstLog2
                           ? kFirstLog2 + place.chunk
                           : kLastLog2;
      chunks_.emplace_back(new T[1 << log2]);
    }
    ++size_;
    return chunks_[place.chunk][place.offset];
  }
  int32_t size() const { return size_; }
  T& operator[](int32_t i) {
    const Place place = Find(i);
    return chunks_[place.chunk][place.offset];
  }
  const T& operator[](int32_t i) const {
    const Place place = Find(i);
    return chunks_[place.chunk][place.offset];
  }

 private:
  struct Place {
    int chunk, offset;
  };
  // Shifted by the first chunk's size, chunk k begins at a power of two.
  static Place Find(int32_t i) {
    const uint32_t shifted = static_cast<uint32_t>(i) + (1u << kFirstLog2);
    if (shifted >= (1u << kLastLog2)) {
      return {
          static_cast<int>(shifted >> kLastLog2) + kLastLog2 - kFirstLog2 - 1,
          static_cast<int>(shifted & ((1u << kLastLog2) - 1))};
    }
    const int log2 = 31 - __builtin_clz(shifted);
    return {log2 - kFirstLog2, static_cast<int>(shifted - (1u << log2))};
  }

  std::vector<std::unique_ptr<T[]>> chunks_;
  int32_t size_ = 0;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_CHUNKED_VECTOR_H_
