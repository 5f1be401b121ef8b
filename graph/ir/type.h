// Tensor types: dtype, symbolic logical dims, physical layout.
#ifndef HALFTONE_GRAPH_IR_TYPE_H_
#define HALFTONE_GRAPH_IR_TYPE_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "graph/base/dtype_fwd.h"
#include "graph/base/layout.h"
#include "graph/base/symbol_values.h"

namespace halftone {

// coefficient x product of symbols (each to a power): "B*128". Symbols are
// indices into Program::symbols(). A coefficient of 0 has no symbols.
class Dim {
 public:
  Dim() = default;
  // implicit: constants read naturally in shape code
  Dim(int64_t constant) : coefficient_(constant) {}  // NOLINT
  static Dim Symbol(int index) {
    Dim d(1);
    d.powers_[index] = 1;
    return d;
  }

  int64_t coefficient() const { return coefficient_; }
  int power(int symbol) const { return powers_[symbol]; }
  void set_power(int symbol, int power) { powers_[symbol] = power; }
  bool is_constant() const { return PowersWord() == 0; }

  Dim operator*(const Dim& other) const;
  // *this / other if the division leaves neither remainder nor negative
  // powers; otherwise false and *quotient is unchanged.
  bool DivideBy(const Dim& other, Dim* quotient) const;
  int64_t Evaluate(const SymbolValues& values) const;

  friend bool operator==(const Dim& a, const Dim& b) {
    return a.coefficient_ == b.coefficient_ && a.PowersWord() == b.PowersWord();
  }
  friend bool operator!=(const Dim& a, const Dim& b) { return !(a == b); }
  template <typename H>
  friend H AbslHashValue(H h, const Dim& d) {
    return H::combine(std::move(h), d.coefficient_, d.PowersWord());
  }

 private:
  // All powers at once: dims are compared more often than anything else.
  uint64_t PowersWord() const {
    static_assert(sizeof(powers_) == sizeof(uint64_t), "they fill a word");
    uint64_t word;
    std::memcpy(&word, powers_.data(), sizeof(word));
    return word;
  }

  int64_t coefficient_ = 1;
  std::array<uint8_t, kMaxSymbols> powers_{};
};

using Dims = absl::InlinedVector<Dim, 4>;

struct TensorType {
  DType dtype{};
  Layout layout = Layout::kRowMajor;
  Dims dims;
  // Each rank holds a part of the elements (ShardElements); dims are those of
  // the whole.
  bool sharded = false;

  int rank() const { return static_cast<int>(dims.size()); }
  // Product of the dims; Dim(1) for a scalar.
  Dim Elements() const;

  friend bool operator==(const TensorType& a, const TensorType& b) {
    return a.dtype == b.dtype && a.layout == b.layout && a.dims == b.dims &&
           a.sharded == b.sharded;
  }
  friend bool operator!=(const TensorType& a, const TensorType& b) {
    return !(a == b);
  }
  template <typename H>
  friend H AbslHashValue(H h, const TensorType& t) {
    return H::combine(std::move(h), t.dtype, t.layout, t.dims, t.sharded);
  }
};

// "f16[B*128,768]", " @channels_last" appended unless row-major,
// " @shard" if it is sharded;
// `symbols[i]` is the name of symbol i.
std::string ToString(const TensorType& type,
                     absl::Span<const std::string> symbols);
std::string ToString(const Dim& dim, absl::Span<const std::string> symbols);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_TYPE_H_
