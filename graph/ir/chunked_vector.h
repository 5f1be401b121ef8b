// A growing array whose elements never move.
#ifndef HALFTONE_GRAPH_IR_CHUNKED_VECTOR_H_
#define HALFTONE_GRAPH_IR_CHUNKED_VECTOR_H_

#include <cstdint>
#include <memory>
#include <vector>

namespace halftone {

// Chunks of 2^kLog2 elements, of which all are made at once.
template <typename T, int kLog2 = 7>
class ChunkedVector {
 public:
  // Before the first element: chunks are no larger than `size` needs.
  void Reserve(int32_t size) {
    log2_ = 0;
    while (log2_ < kLog2 && (1 << log2_) < size) ++log2_;
  }
  T& Add() {
    const size_t at = Offset(size_++);
    if (at == 0) chunks_.emplace_back(new T[1u << log2_]);
    return chunks_.back()[at];
  }
  int32_t size() const { return size_; }
  T& operator[](int32_t i) { return chunks_[Chunk(i)][Offset(i)]; }
  const T& operator[](int32_t i) const { return chunks_[Chunk(i)][Offset(i)]; }

 private:
  size_t Chunk(int32_t i) const { return static_cast<uint32_t>(i) >> log2_; }
  size_t Offset(int32_t i) const {
    return static_cast<uint32_t>(i) & ((1u << log2_) - 1);
  }

  std::vector<std::unique_ptr<T[]>> chunks_;
  int32_t size_ = 0;
  int32_t log2_ = kLog2;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_CHUNKED_VECTOR_H_
