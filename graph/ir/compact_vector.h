// A vector for records of which a program has a million.
#ifndef HALFTONE_GRAPH_IR_COMPACT_VECTOR_H_
#define HALFTONE_GRAPH_IR_COMPACT_VECTOR_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "absl/types/span.h"

namespace halftone {

// Up to kFew items lie in place, more on the heap: 4 + kFew * sizeof(T) bytes
// with the alignment of a 32-bit word, where absl::InlinedVector takes 8 more.
// Growing is amortised O(1); a change of any kind invalidates iterators.
template <typename T, int kFew>
class CompactVector {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 4 &&
                    kFew * sizeof(T) >= sizeof(T*),
                "small plain items, and room for a pointer in their place");

 public:
  using value_type = T;
  using const_iterator = const T*;
  using iterator = T*;

  CompactVector() = default;
  CompactVector(std::initializer_list<T> items) {
    Append(items.begin(), items.end());
  }
  CompactVector(const CompactVector& other) { Append(other); }
  CompactVector(CompactVector&& other) noexcept { Take(other); }
  CompactVector& operator=(const CompactVector& other) {
    if (this == &other) return *this;
    clear();
    Append(other);
    return *this;
  }
  CompactVector& operator=(CompactVector&& other) noexcept {
    if (this == &other) return *this;
    clear();
    Take(other);
    return *this;
  }
  ~CompactVector() { Free(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return size_ > kFew ? Heap() : Few(); }
  const T* data() const { return const_cast<CompactVector*>(this)->data(); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }

  void push_back(T item) {
    if (size_ < kFew) {
      Few()[size_++] = item;
    } else {
      *Grow(size_, 1) = item;
    }
  }
  const T& back() const { return data()[size_ - 1]; }
  void pop_back() { Shrink(size_ - 1); }
  void clear() {
    Free();
    size_ = 0;
  }
  // Items of their own, not of this vector, before the i-th.
  void insert(size_t i, absl::Span<const T> items) {
    if (items.empty()) return;
    std::copy(items.begin(), items.end(), Grow(i, items.size()));
  }
  void erase(size_t i, size_t count) {
    const T* const from = begin() + i + count;
    std::copy(from, const_cast<const T*>(end()), begin() + i);
    Shrink(size_ - static_cast<uint32_t>(count));
  }
  void Append(absl::Span<const T> items) { insert(size_, items); }
  template <typename Iterator>
  void Append(Iterator first, Iterator last) {
    for (T* to = Grow(size_, last - first); first != last; ++first) {
      *to++ = *first;
    }
  }

  friend bool operator==(const CompactVector& a, const CompactVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator!=(const CompactVector& a, const CompactVector& b) {
    return !(a == b);
  }

 private:
  // What a heap block of `size` items has room for, at least.
  static uint32_t Capacity(uint32_t size) {
    return uint32_t{1} << (32 - __builtin_clz(size - 1));
  }
  T* Few() { return reinterpret_cast<T*>(bytes_); }
  T* Heap() const {
    T* heap;
    std::memcpy(&heap, bytes_, sizeof(heap));
    return heap;
  }
  void SetHeap(T* heap) { std::memcpy(bytes_, &heap, sizeof(heap)); }
  void Free() {
    if (size_ > kFew) delete[] Heap();
  }
  void Take(CompactVector& other) {
    size_ = std::exchange(other.size_, 0);
    std::memcpy(bytes_, other.bytes_, sizeof(bytes_));
  }
  // Makes room for `count` items before the i-th and returns it.
  T* Grow(size_t i, size_t count) {
    const uint32_t size = size_ + static_cast<uint32_t>(count);
    if (size <= kFew || (size_ > kFew && size <= Capacity(size_))) {
      std::copy_backward(begin() + i, end(), begin() + size);
    } else {
      T* const heap = new T[Capacity(size)];
      std::copy(begin(), begin() + i, heap);
      std::copy(begin() + i, end(), heap + i + count);
      Free();
      SetHeap(heap);
    }
    size_ = size;
    return begin() + i;
  }
  void Shrink(uint32_t size) {
    if (size_ > kFew && size <= kFew) {
      T* const heap = Heap();
      std::memcpy(bytes_, heap, size * sizeof(T));
      delete[] heap;
    }
    size_ = size;
  }

  uint32_t size_ = 0;
  alignas(4) unsigned char bytes_[kFew * sizeof(T)];
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_COMPACT_VECTOR_H_
