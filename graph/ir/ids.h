// 32-bit ids of what a program holds. An id is an index into its owner's
// table: ops and values into their Block, all others into their Program.
#ifndef HALFTONE_GRAPH_IR_IDS_H_
#define HALFTONE_GRAPH_IR_IDS_H_

#include <cstdint>
#include <functional>
#include <utility>

namespace halftone {

template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(int32_t index) : index_(index) {}
  constexpr int32_t index() const { return index_; }
  constexpr bool valid() const { return index_ >= 0; }
  friend constexpr bool operator==(Id a, Id b) { return a.index_ == b.index_; }
  friend constexpr bool operator!=(Id a, Id b) { return a.index_ != b.index_; }
  friend constexpr bool operator<(Id a, Id b) { return a.index_ < b.index_; }
  template <typename H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.index_);
  }

 private:
  int32_t index_ = -1;
};

using OpId = Id<struct OpTag>;
using ValueId = Id<struct ValueTag>;
using CellId = Id<struct CellTag>;
using ConstantId = Id<struct ConstantTag>;
using TypeId = Id<struct TypeTag>;
using NameId = Id<struct NameTag>;

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_IDS_H_
