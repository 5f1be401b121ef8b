// From dtypes to C++ types, and from schemas to registered keys: what every
// kernel file needs once.
#ifndef HALFTONE_KERNELS_COMMON_DISPATCH_H_
#define HALFTONE_KERNELS_COMMON_DISPATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/check.h"
#include "graph/base/dtype.h"
#include "graph/base/half.h"
#include "graph/base/layout.h"
#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// ---- Types.

template <typename T>
struct TypeTag {
  using type = T;
};
template <typename... Ts>
struct TypeList {};
using FloatTypes = TypeList<float, half, bfloat16>;
using LowTypes = TypeList<half, bfloat16>;
using AnyTypes =
    TypeList<float, half, bfloat16, double, int32_t, int64_t, uint8_t, bool>;

template <typename T>
constexpr DType DTypeOf() {
  if (std::is_same<T, float>::value) return DType::kF32;
  if (std::is_same<T, half>::value) return DType::kF16;
  if (std::is_same<T, bfloat16>::value) return DType::kBF16;
  if (std::is_same<T, double>::value) return DType::kF64;
  if (std::is_same<T, int32_t>::value) return DType::kI32;
  if (std::is_same<T, int64_t>::value) return DType::kI64;
  if (std::is_same<T, uint8_t>::value) return DType::kU8;
  if (std::is_same<T, bool>::value) return DType::kBool;
  return DType::kInvalid;
}

// Calls body(TypeTag<T>()) for the one T of the list that is `dtype`; CHECKs
// that there is one: keys are matched before a kernel is made.
//
//   DispatchType(FloatTypes(), dtype, [&](auto tag) {
//     using T = typename decltype(tag)::type;
//     ...
//   });
template <typename... Ts, typename Body>
inline void DispatchType(TypeList<Ts...>, DType dtype, const Body& body) {
  const bool found =
      ((dtype == DTypeOf<Ts>() ? (body(TypeTag<Ts>()), true) : false) || ...);
  HT_CHECK(found, "no such type in the kernel's list");
}

// ---- Kernels as closures. The function given to MakeCandidate runs once, at
// Prepare: it reads the bound op and returns the closure that Enqueue calls,
// with everything computed that does not change.
//
//   MakeCandidate("direct", [](const BoundOp& op) {
//     return [n = op.outputs()[0].elements()](const Buffers& buffers,
//                                             runtime::Stream& stream) {...};
//   });
namespace dispatch_internal {
template <typename Run>
class ClosureInstance final : public KernelInstance {
 public:
  explicit ClosureInstance(Run run) : run_(std::move(run)) {}
  absl::Status Enqueue(const Buffers& buffers,
                       runtime::Stream& stream) override {
    if constexpr (std::is_void<std::invoke_result_t<Run&, const Buffers&,
                                                    runtime::Stream&>>::value) {
      run_(buffers, stream);
      return absl::OkStatus();
    } else {
      return run_(buffers, stream);
    }
  }

 private:
  Run run_;
};
}  // namespace dispatch_internal

template <typename Make>
Candidate MakeCandidate(absl::string_view name, Make make) {
  Candidate candidate;
  candidate.name = std::string(name);
  candidate.prepare = [make](const BoundOp& op, runtime::Device&)
      -> absl::StatusOr<std::unique_ptr<KernelInstance>> {
    auto run = make(op);
    return std::unique_ptr<KernelInstance>(
        new dispatch_internal::ClosureInstance<decltype(run)>(std::move(run)));
  };
  return candidate;
}

// A candidate of loops over whole images: where all of them lie in one layout,
// with scratch for `floats(op)` f32 (empty: none).
Candidate OverImages(Candidate candidate,
                     std::function<int64_t(const BoundOp&)> floats = nullptr);

// ---- Keys. Adds the candidate under every tuple of dtypes that the op's
// schema allows and every layout that its rule allows, so that keys and schema
// cannot drift apart. `unbound` names type variables that nothing may bind (all
// their slots left out): they get keys with kInvalid too.
void AddForSchema(KernelRegistry& registry, absl::string_view op,
                  const Candidate& candidate,
                  absl::Span<const absl::string_view> unbound = {});
// Likewise, for one layout: where the others have candidates of their own.
void AddForLayout(KernelRegistry& registry, absl::string_view op, Layout layout,
                  const Candidate& candidate);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_DISPATCH_H_
