#include "graph/ir/slots.h"

namespace halftone {

SlotEnds::SlotEnds(const SlotEnds& other)
    : word_(other.packed()
                ? other.word_
                : reinterpret_cast<uintptr_t>(new Many(*other.many()))) {}

SlotEnds::SlotEnds(Many many) {
  const bool few =
      many.size() <= kMostSlots && (many.empty() || many.back() <= kMostItems);
  if (!few) {
    word_ = reinterpret_cast<uintptr_t>(new Many(std::move(many)));
    return;
  }
  for (int32_t end : many) push_back(end);
}

SlotEnds::Many SlotEnds::Unpacked() const {
  if (!packed()) return *many();
  Many ends;
  for (int s = 0; s < size(); ++s) ends.push_back((*this)[s]);
  return ends;
}

int SlotEnds::CountMany() const { return static_cast<int>(many()->size()); }

void SlotEnds::PushMany(int32_t end) {
  if (!packed()) {
    many()->push_back(end);
    return;
  }
  Many ends = Unpacked();
  ends.push_back(end);
  *this = SlotEnds(std::move(ends));
}

void SlotEnds::Shift(int slot, int by) {
  if (packed() && size() > slot) {
    // All nibbles from the slot's on, if none leaves its four bits.
    const int32_t last = (*this)[size() - 1] + by;
    if (last <= kMostItems) {
      for (int s = slot; s < size(); ++s) {
        word_ += static_cast<uint64_t>(static_cast<int64_t>(by)) << ShiftOf(s);
      }
      return;
    }
  }
  Many ends = Unpacked();
  for (int s = slot; s < static_cast<int>(ends.size()); ++s) ends[s] += by;
  *this = SlotEnds(std::move(ends));
}

}  // namespace halftone
