// What an op's slots hold.
#ifndef HALFTONE_GRAPH_IR_SLOTS_H_
#define HALFTONE_GRAPH_IR_SLOTS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <utility>

#include "absl/types/span.h"
#include "graph/ir/compact_vector.h"

namespace halftone {

// Where each slot's items end among those of all slots: 12 bytes. Most ops have
// a few slots of a few items, whose ends are bytes in place.
class SlotEnds {
 public:
  SlotEnds() = default;
  SlotEnds(const SlotEnds& other) { Copy(other); }
  SlotEnds(SlotEnds&& other) noexcept { Take(other); }
  SlotEnds& operator=(const SlotEnds& other) {
    if (this == &other) return *this;
    Free();
    Copy(other);
    return *this;
  }
  SlotEnds& operator=(SlotEnds&& other) noexcept {
    if (this == &other) return *this;
    Free();
    Take(other);
    return *this;
  }
  ~SlotEnds() { Free(); }

  int size() const { return size_; }
  int operator[](int slot) const { return wide_ ? Wide()[slot] : bytes_[slot]; }
  void push_back(int end) {
    if (!wide_ && size_ < kFew && end <= kMostFew) {
      bytes_[size_++] = static_cast<uint8_t>(end);
      return;
    }
    int32_t* const wide = new int32_t[size_ + 1];
    for (int s = 0; s < size_; ++s) wide[s] = (*this)[s];
    wide[size_] = end;
    Free();
    std::memcpy(bytes_, &wide, sizeof(wide));
    wide_ = true;
    ++size_;
  }
  // Adds to the ends from a slot on.
  void Shift(int slot, int by) {
    SlotEnds shifted;
    for (int s = 0; s < size_; ++s) {
      shifted.push_back((*this)[s] + (s < slot ? 0 : by));
    }
    *this = std::move(shifted);
  }
  // Calls it with words that differ for different ends of as many slots.
  template <typename Add>
  void Words(const Add& add) const {
    if (!wide_) {
      uint64_t word;
      std::memcpy(&word, bytes_, sizeof(word));
      add(word);
      return;
    }
    for (int s = 0; s < size_; ++s) add(static_cast<uint64_t>(Wide()[s]));
  }
  friend bool operator==(const SlotEnds& a, const SlotEnds& b) {
    if (a.size_ != b.size_ || a.wide_ != b.wide_) return false;
    return a.wide_ ? std::equal(a.Wide(), a.Wide() + a.size_, b.Wide())
                   : std::memcmp(a.bytes_, b.bytes_, kFew) == 0;
  }

 private:
  static constexpr int kFew = 8;
  static constexpr int kMostFew = std::numeric_limits<uint8_t>::max();

  const int32_t* Wide() const {
    int32_t* wide;
    std::memcpy(&wide, bytes_, sizeof(wide));
    return wide;
  }
  void Free() {
    if (wide_) delete[] Wide();
  }
  void Copy(const SlotEnds& other) {
    size_ = other.size_;
    wide_ = other.wide_;
    std::memcpy(bytes_, other.bytes_, kFew);
    if (!wide_) return;
    int32_t* const wide = new int32_t[size_];
    std::copy(other.Wide(), other.Wide() + size_, wide);
    std::memcpy(bytes_, &wide, sizeof(wide));
  }
  void Take(SlotEnds& other) {
    size_ = std::exchange(other.size_, 0);
    wide_ = std::exchange(other.wide_, false);
    std::memcpy(bytes_, other.bytes_, kFew);
    std::memset(other.bytes_, 0, kFew);
  }

  uint16_t size_ = 0;  // an op has a few slots, however long its lists are
  bool wide_ = false;  // whether `bytes_` is the address of 32-bit ends
  alignas(4) uint8_t bytes_[kFew] = {};
};

// In the schema's slot order: slot s holds items [end(s-1), end(s)). An absent
// optional slot is empty.
template <typename T>
class Slots {
 public:
  Slots() = default;
  Slots(std::initializer_list<std::initializer_list<T>> slots) {
    for (const std::initializer_list<T>& slot : slots) AddSlot(slot);
  }
  absl::Span<const T> all() const { return values_; }
  const SlotEnds& ends() const { return ends_; }
  int slots() const { return ends_.size(); }
  int begin(int slot) const { return slot == 0 ? 0 : ends_[slot - 1]; }
  int end(int slot) const { return ends_[slot]; }
  absl::Span<const T> slot(int s) const {
    return all().subspan(begin(s), end(s) - begin(s));
  }
  bool has(int s) const { return begin(s) < end(s); }
  // The slot of the value at flat position `i`.
  int SlotOf(int i) const {
    int s = 0;
    while (ends_[s] <= i) ++s;
    return s;
  }
  // Appends an item to the slot that EndSlot ends.
  void Add(T item) { values_.push_back(item); }
  void EndSlot() { ends_.push_back(static_cast<int>(values_.size())); }
  template <typename Items>
  void AddSlot(const Items& items) {
    values_.Append(items.begin(), items.end());
    EndSlot();
  }

 private:
  friend class Block;  // of which the uses of the values follow
  // `items` are none of these.
  void Replace(int slot, absl::Span<const T> items) {
    const int first = begin(slot), count = end(slot) - first;
    values_.erase(first, count);
    values_.insert(first, items);
    ends_.Shift(slot, static_cast<int>(items.size()) - count);
  }
  // At the end of a slot.
  void Insert(int slot, T item) {
    values_.insert(end(slot), {item});
    ends_.Shift(slot, 1);
  }
  void Remove(int i) {
    const int slot = SlotOf(i);
    values_.erase(i, 1);
    ends_.Shift(slot, -1);
  }

  CompactVector<T, 4> values_;
  SlotEnds ends_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_SLOTS_H_
