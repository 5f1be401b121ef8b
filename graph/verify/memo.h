// What verifications of one program may share.
#ifndef HALFTONE_GRAPH_VERIFY_MEMO_H_
#define HALFTONE_GRAPH_VERIFY_MEMO_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "graph/ir/ids.h"
#include "graph/ir/type_memo.h"

namespace halftone {

enum class Phase : int;

// Names and types are interned and never change; whether an op's types agree
// with its schema, and a body with its fusion, depends on its kind (KindOf)
// alone: what was right about them once is right for good, in whatever op,
// entry and phase. Ops that were right stay so until they are edited.
class VerifyMemo {
 public:
  // The program's edit() at the last verification that found nothing; 0: none.
  uint64_t verified() const { return verified_; }
  // The phase whose rules that one checked.
  Phase phase() const { return phase_; }
  void SetVerified(uint64_t edit, Phase phase) {
    verified_ = edit;
    phase_ = phase;
  }

  // How many names, in the order in which they were interned, are good.
  int32_t good_names() const { return good_names_; }
  void SetGoodNames(int32_t count) { good_names_ = count; }
  bool IsGood(NameId name) const { return name.index() < good_names_; }
  bool IsGood(TypeId type) const {
    return type.index() < static_cast<int>(good_types_.size()) &&
           good_types_[type.index()];
  }
  void SetGood(TypeId type) {
    const size_t index = type.index();
    if (index >= good_types_.size()) good_types_.resize(index + 64);
    good_types_[index] = true;
  }
  bool HasPassed(TypeMemo::Key kind) const { return passed_.contains(kind); }
  void SetPassed(TypeMemo::Key kind) { passed_.insert(kind); }

 private:
  uint64_t verified_ = 0;
  Phase phase_{};
  int32_t good_names_ = 0;
  std::vector<bool> good_types_;               // by TypeId
  absl::flat_hash_set<TypeMemo::Key> passed_;  // as KindOf gives them
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_VERIFY_MEMO_H_
