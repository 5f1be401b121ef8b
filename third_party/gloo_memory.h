// What Gloo's tcp/pair.h and tcp/context.h take from gloo/common/memory.h,
// which Debian's libgloo-dev forgets to install: two pointers of this layout.
// They are only made and used inside the library.
#ifndef HALFTONE_THIRD_PARTY_GLOO_MEMORY_H_
#define HALFTONE_THIRD_PARTY_GLOO_MEMORY_H_

#include <memory>

namespace gloo {

template <typename T>
class NonOwningPtr final {
  std::shared_ptr<T> ptr_;
};

template <typename T>
class WeakNonOwningPtr final {
  std::weak_ptr<T> ptr_;
};

}  // namespace gloo

#endif  // HALFTONE_THIRD_PARTY_GLOO_MEMORY_H_
