// What verifications of one program may share.
#ifndef HALFTONE_GRAPH_VERIFY_MEMO_H_
#define HALFTONE_GRAPH_VERIFY_MEMO_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "graph/schema/type_key.h"

namespace halftone {

// Names and types are interned and never change; whether an op's types agree
// with its schema, and a body with its fusion, depends on its TypeKey alone:
// what was right about them once is right for good, in whatever op, entry and
// phase. Ops that were right stay so until they are edited.
class VerifyMemo {
 public:
  // The program's edit() at the last verification that found nothing; 0: none.
  uint64_t verified() const { return verified_; }
  // The phase whose rules that one checked.
  int phase() const { return phase_; }
  void SetVerified(uint64_t edit, int phase) {
    verified_ = edit;
    phase_ = phase;
  }

  bool IsGood(NameId name) const {
    return name.index() < static_cast<int>(good_names_.size()) &&
           good_names_[name.index()];
  }
  void SetGood(NameId name) {
    const size_t index = name.index();
    if (index >= good_names_.size()) good_names_.resize(index + index / 2 + 64);
    good_names_[index] = true;
  }
  bool IsGood(TypeId type) const {
    return type.index() < static_cast<int>(good_types_.size()) &&
           good_types_[type.index()];
  }
  void SetGood(TypeId type) {
    const size_t index = type.index();
    if (index >= good_types_.size()) good_types_.resize(index + 64);
    good_types_[index] = true;
  }
  bool HasPassed(const TypeKey& key) const {
    return passed_.contains(key.value());
  }
  void SetPassed(const TypeKey& key) { passed_.insert(key.value()); }

 private:
  uint64_t verified_ = 0;
  int phase_ = -1;
  std::vector<bool> good_names_;  // by NameId
  std::vector<bool> good_types_;  // by TypeId
  absl::flat_hash_set<TypeMemo::Key> passed_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_VERIFY_MEMO_H_
