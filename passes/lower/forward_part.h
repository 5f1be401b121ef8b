// The forward part of a lowered train entry, as recompute sees it: which ops
// can run again, what of them backward reads.
#ifndef HALFTONE_PASSES_LOWER_FORWARD_PART_H_
#define HALFTONE_PASSES_LOWER_FORWARD_PART_H_

#include <string>
#include <vector>

#include "google/protobuf/repeated_field.h"
#include "graph/ir/program.h"

namespace halftone {
namespace passes {

class ForwardPart {
 public:
  explicit ForwardPart(const Entry& train);

  const Block& block() const { return block_; }
  // All ops in order; places are indices into it.
  const std::vector<OpId>& ops() const { return ops_; }
  // By op id.
  int PlaceOf(OpId op) const { return places_[op.index()]; }
  // The place of the first backward op behind the gradients' seed; that of no
  // op where there is none.
  int backward() const { return backward_; }
  // Whether the op may run again in backward: it makes something that grows
  // with the samples and that nobody holds until the end.
  bool IsRepeatable(OpId op) const { return repeatable_[op.index()]; }
  // Whether backward is to read another op's copy of the value, if its op is
  // repeated: not what is as large for any number of samples.
  bool IsReplaceable(ValueId value) const {
    return !block_.type(value).Elements().is_constant();
  }
  // The op in whose storage the value lies, through views; invalid: none.
  OpId OwnerOf(ValueId value) const;

 private:
  const Block& block_;
  std::vector<OpId> ops_;
  std::vector<int> places_;       // by op id
  std::vector<bool> repeatable_;  // by op id
  int backward_ = 0;
};

// Whether the op reads more of its input at that position than its dims.
bool ReadsContent(const Op& op, int input);

// Whether one of the globs matches what the op, or one of its body, is or was
// called, or what it makes.
bool IsNamedBy(const google::protobuf::RepeatedPtrField<std::string>& globs,
               const Block& block, const Op& op);

// Whether its output lies in its input's storage.
bool IsPlainView(const Block& block, const Op& op);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_FORWARD_PART_H_
