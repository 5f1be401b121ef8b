// The types of an op's input or output values by slot, as their owner holds
// them.
#ifndef HALFTONE_GRAPH_SCHEMA_SLOT_TYPES_H_
#define HALFTONE_GRAPH_SCHEMA_SLOT_TYPES_H_

#include <cstddef>
#include <iterator>
#include <vector>

#include "graph/ir/type.h"

namespace halftone {

// An update of all parameters has lists of thousands: types are not copied.
using SlotTypes = std::vector<std::vector<const TensorType*>>;

// Those of one slot.
class TypeList {
 public:
  explicit TypeList(const SlotTypes::value_type& types) : types_(types) {}

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = TensorType;
    using difference_type = std::ptrdiff_t;
    using pointer = const TensorType*;
    using reference = const TensorType&;
    explicit Iterator(const TensorType* const* at) : at_(at) {}
    reference operator*() const { return **at_; }
    pointer operator->() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    friend bool operator==(Iterator a, Iterator b) { return a.at_ == b.at_; }
    friend bool operator!=(Iterator a, Iterator b) { return a.at_ != b.at_; }

   private:
    const TensorType* const* at_;
  };

  size_t size() const { return types_.size(); }
  bool empty() const { return types_.empty(); }
  const TensorType& operator[](size_t i) const { return *types_[i]; }
  Iterator begin() const { return Iterator(types_.data()); }
  Iterator end() const { return Iterator(types_.data() + types_.size()); }

 private:
  const SlotTypes::value_type& types_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_SLOT_TYPES_H_
