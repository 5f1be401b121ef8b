// A short wait for a rank of the same machine.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_SPIN_H_
#define HALFTONE_RUNTIME_COLLECTIVE_SPIN_H_

namespace halftone {
namespace runtime {

// Ranks mostly arrive within microseconds of each other; a look at a counter
// is cheaper than being woken. Looks until `arrived` or about 20 microseconds
// have passed; whether it did.
template <typename Arrived>
bool Spin(const Arrived& arrived) {
  constexpr int kLooks = 400;
  for (int i = 0; i < kLooks; ++i) {
    if (arrived()) return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return arrived();
}

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_SPIN_H_
