// What an op's slots hold.
#ifndef HALFTONE_GRAPH_IR_SLOTS_H_
#define HALFTONE_GRAPH_IR_SLOTS_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "graph/ir/compact_list.h"

namespace halftone {

// Where each slot's items end among those of all slots. Almost every op has few
// slots of few items: their ends are packed into a word, four bits each.
class SlotEnds {
 public:
  SlotEnds() = default;
  SlotEnds(const SlotEnds& other);
  SlotEnds(SlotEnds&& other) noexcept
      : word_(std::exchange(other.word_, kNone)) {}
  SlotEnds& operator=(SlotEnds other) noexcept {
    std::swap(word_, other.word_);
    return *this;
  }
  ~SlotEnds() {
    if (!packed()) delete many();
  }

  int size() const {
    return packed() ? static_cast<int>(word_ >> 1 & 0x7f) : CountMany();
  }
  int32_t operator[](int slot) const {
    return packed() ? static_cast<int32_t>(word_ >> ShiftOf(slot) & kMostItems)
                    : (*many())[slot];
  }
  void push_back(int32_t end) {
    const int slots = size();
    if (packed() && slots < kMostSlots && end <= kMostItems) {
      word_ += (static_cast<uint64_t>(end) << ShiftOf(slots)) + 2;
    } else {
      PushMany(end);
    }
  }
  // Adds to the ends from a slot on.
  void Shift(int slot, int by);
  void clear() { *this = SlotEnds(); }

  // Equal ends are both packed, with equal words, or neither is.
  bool packed() const { return (word_ & 1) != 0; }
  uint64_t word() const { return word_; }
  friend bool operator==(const SlotEnds& a, const SlotEnds& b) {
    return a.word_ == b.word_ ||
           (!a.packed() && !b.packed() && *a.many() == *b.many());
  }

 private:
  using Many = std::vector<int32_t>;
  static constexpr int kMostSlots = 14;
  static constexpr int kMostItems = 15;
  static constexpr uint64_t kNone = 1;

  static int ShiftOf(int slot) { return 8 + 4 * slot; }
  // Packs them if they can be.
  explicit SlotEnds(Many many);
  Many Unpacked() const;
  Many* many() const { return reinterpret_cast<Many*>(word_); }
  int CountMany() const;
  void PushMany(int32_t end);

  // Odd: twice the number of slots, and one; from bit 8 on the ends. Even: the
  // address of more.
  uint64_t word_ = kNone;
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
  // Where each slot's items end among those of all slots.
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
  // The item at flat position `i`, to be changed.
  T& at(size_t i) { return values_[i]; }
  // Appends an item to the slot that EndSlot ends.
  void Add(T item) { values_.push_back(item); }
  void EndSlot() { ends_.push_back(static_cast<int>(values_.size())); }
  template <typename Items>
  void AddSlot(const Items& items) {
    for (const T& item : items) Add(item);
    EndSlot();
  }

 private:
  friend class Block;  // of which the uses of the values follow
  // `items` are none of these.
  void Replace(int slot, absl::Span<const T> items) {
    const int first = begin(slot), last = end(slot);
    values_.erase(first, last);
    values_.insert(first, items.size(), T());
    std::copy(items.begin(), items.end(), values_.begin() + first);
    ends_.Shift(slot, static_cast<int>(items.size()) - (last - first));
  }
  // At the end of a slot.
  void Insert(int slot, T item) {
    values_.insert(end(slot), 1, item);
    ends_.Shift(slot, 1);
  }
  void Remove(int i) {
    const int slot = SlotOf(i);
    values_.erase(i, i + 1);
    ends_.Shift(slot, -1);
  }
  void Clear() {
    values_.clear();
    ends_.clear();
  }

  // Most ops have a few items.
  CompactList<T, 3> values_;
  SlotEnds ends_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_SLOTS_H_
