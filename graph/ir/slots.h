// What an op's slots hold.
#ifndef HALFTONE_GRAPH_IR_SLOTS_H_
#define HALFTONE_GRAPH_IR_SLOTS_H_

#include <cstdint>
#include <initializer_list>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace halftone {

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
  absl::Span<const int32_t> ends() const { return ends_; }
  int slots() const { return static_cast<int>(ends_.size()); }
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
    values_.insert(values_.end(), items.begin(), items.end());
    EndSlot();
  }

 private:
  friend class Block;  // of which the uses of the values follow
  // `items` are none of these.
  void Replace(int slot, absl::Span<const T> items) {
    const int first = begin(slot), last = end(slot);
    values_.erase(values_.begin() + first, values_.begin() + last);
    values_.insert(values_.begin() + first, items.begin(), items.end());
    Shift(slot, static_cast<int>(items.size()) - (last - first));
  }
  // At the end of a slot.
  void Insert(int slot, T item) {
    values_.insert(values_.begin() + end(slot), item);
    Shift(slot, 1);
  }
  void Remove(int i) {
    const int slot = SlotOf(i);
    values_.erase(values_.begin() + i);
    Shift(slot, -1);
  }
  void Clear() {
    values_.clear();
    ends_.clear();
  }
  // Adds to the ends from a slot on.
  void Shift(int slot, int by) {
    for (int s = slot; s < slots(); ++s) ends_[s] += by;
  }

  // Most ops have a few slots of a few items.
  absl::InlinedVector<T, 4> values_;
  absl::InlinedVector<int32_t, 4> ends_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_SLOTS_H_
