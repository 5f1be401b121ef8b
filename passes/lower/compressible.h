// Which values of the forward part backward may read in few bits.
#ifndef HALFTONE_PASSES_LOWER_COMPRESSIBLE_H_
#define HALFTONE_PASSES_LOWER_COMPRESSIBLE_H_

#include <cstdint>
#include <vector>

#include "passes/lower/forward_part.h"
#include "passes/options/options.h"

namespace halftone {
namespace passes {

// Of what lies in one op's storage: all that backward reads of it.
struct Compressible {
  OpId op;
  // A value of its own or a view of one, and who reads that in backward, in
  // order.
  struct Value {
    ValueId value;
    int64_t rows = 1;  // of dim 0 that are one sample
    std::vector<Use> readers;
    int first = 0;  // place of the first
  };
  std::vector<Value> values;
  int last_forward = 0;  // place of the last reader in the forward part
};

// The bytes of a value, of a sample, and what they become.
struct PackedBytes {
  int64_t before = 0, after = 0;
};
PackedBytes PackedBytesOf(const Block& block, const Compressible::Value& value,
                          const proto::Compress& compress);

// What memory.compress lets be compressed, in order: floats of a constant size
// per sample, of which every reader in backward takes noise (OpSchema::Lossy)
// and that nobody holds. Not what is read in backward right behind its last
// reader in forward: that frees nothing.
std::vector<Compressible> FindCompressible(const ForwardPart& forward,
                                           const proto::Compress& compress);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_COMPRESSIBLE_H_
