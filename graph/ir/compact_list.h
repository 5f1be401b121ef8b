// A short list that is as small as it can be: ops and values have five of them.
#ifndef HALFTONE_GRAPH_IR_COMPACT_LIST_H_
#define HALFTONE_GRAPH_IR_COMPACT_LIST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <type_traits>

namespace halftone {

// Like absl::InlinedVector<T, kInline> in 4 bytes and the items instead of 8
// and the items, 8-byte aligned: a list of three ids takes 16 bytes instead of
// 24. Programs of 100,000 ops are walked some forty times, and what a walk
// costs is the cache lines and pages that it touches. Below 2^31 items.
template <typename T, int kInline>
class CompactList {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 4);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  CompactList() = default;
  CompactList(std::initializer_list<T> items)
      : CompactList(items.begin(), items.end()) {}
  template <typename Iterator>
  CompactList(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }
  CompactList(const CompactList& other) { CopyFrom(other); }
  CompactList(CompactList&& other) noexcept { Take(other); }
  CompactList& operator=(const CompactList& other) {
    if (this == &other) return *this;
    Free();
    CopyFrom(other);
    return *this;
  }
  CompactList& operator=(CompactList&& other) noexcept {
    if (this == &other) return *this;
    Free();
    Take(other);
    return *this;
  }
  ~CompactList() { Free(); }

  size_t size() const { return size_ & ~kOnHeap; }
  bool empty() const { return size() == 0; }
  T* data() { return on_heap() ? heap().items : inlined(); }
  const T* data() const { return const_cast<CompactList*>(this)->data(); }
  T* begin() { return data(); }
  T* end() { return data() + size(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size() - 1]; }
  const T& back() const { return data()[size() - 1]; }

  void push_back(T item) {
    if (size_ < kInline) {  // and not on the heap
      inlined()[size_++] = item;
      return;
    }
    const size_t at = size();
    if (at == capacity()) Grow(at + 1);
    heap().items[at] = item;
    ++size_;
  }
  void pop_back() { --size_; }
  // New items are value-initialised.
  void resize(size_t count) {
    if (count > capacity()) Grow(count);
    T* const items = data();
    for (size_t i = size(); i < count; ++i) items[i] = T();
    SetSize(count);
  }
  void clear() {
    Free();
    size_ = 0;
  }
  // `count` copies of the item before position `at`.
  void insert(size_t at, size_t count, T item) {
    const size_t old_size = size();
    resize(old_size + count);
    T* const items = data();
    std::copy_backward(items + at, items + old_size, items + old_size + count);
    std::fill_n(items + at, count, item);
  }
  void erase(size_t first, size_t last) {
    std::copy(begin() + last, end(), begin() + first);
    SetSize(size() - (last - first));
  }

  friend bool operator==(const CompactList& a, const CompactList& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator!=(const CompactList& a, const CompactList& b) {
    return !(a == b);
  }

 private:
  struct Heap {
    T* items;
    uint32_t capacity;
  };
  static constexpr uint32_t kOnHeap = uint32_t{1} << 31;
  static constexpr size_t kHeapBytes = sizeof(T*) + sizeof(uint32_t);
  static constexpr size_t kRoom = std::max(kInline * sizeof(T), kHeapBytes);

  bool on_heap() const { return (size_ & kOnHeap) != 0; }
  T* inlined() { return std::launder(reinterpret_cast<T*>(room_)); }
  // Its address is a multiple of 4 alone.
  Heap heap() const {
    Heap heap;
    std::memcpy(&heap, room_, kHeapBytes);
    return heap;
  }
  size_t capacity() const { return on_heap() ? heap().capacity : kInline; }
  void SetSize(size_t size) {
    size_ = (size_ & kOnHeap) | static_cast<uint32_t>(size);
  }
  void CopyFrom(const CompactList& other) {
    size_ = other.size_;
    std::memcpy(room_, other.room_, kRoom);
    if (!other.on_heap()) return;
    size_ &= ~kOnHeap;
    MoveTo(other.begin(), size(), size());
  }
  void Take(CompactList& other) {
    size_ = other.size_;
    std::memcpy(room_, other.room_, kRoom);
    other.size_ = 0;
  }
  void Free() {
    if (on_heap())
      std::allocator<T>().deallocate(heap().items, heap().capacity);
  }
  // Lets the list have room for `capacity` on the heap, and these items there.
  void MoveTo(const T* items, size_t count, size_t capacity) {
    Heap made;
    made.capacity = static_cast<uint32_t>(capacity);
    made.items = std::allocator<T>().allocate(capacity);
    std::uninitialized_copy(items, items + count, made.items);
    Free();
    std::memcpy(room_, &made, kHeapBytes);
    size_ |= kOnHeap;
  }
  void Grow(size_t least) {
    MoveTo(begin(), size(), std::max(least, 2 * capacity()));
  }

  uint32_t size_ = 0;  // and kOnHeap
  alignas(4) unsigned char room_[kRoom];
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_COMPACT_LIST_H_
