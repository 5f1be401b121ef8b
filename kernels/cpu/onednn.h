// oneDNN primitives as kernels. Operands are described as they lie in memory;
// what the library does not take as it is (f16, bf16 where the processor has
// no instructions for it) goes through f32 in the workspace, and so does what
// it wants in a blocked format of its own.
#ifndef HALFTONE_KERNELS_CPU_ONEDNN_H_
#define HALFTONE_KERNELS_CPU_ONEDNN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dnnl.hpp"
#include "graph/base/dtype.h"
#include "kernels/bound_op.h"
#include "kernels/kernel.h"

namespace halftone {
namespace kernels {

// How the primitive takes an operand.
enum class OnednnFormat {
  kAsItLies,
  // As it lies if the library has code of its own for that (not products of
  // unrolled images, not plain loops), else as kAny.
  kBestAsItLies,
  // As the library likes it best; it is brought there.
  kAny,
};

// An argument of a primitive: where it comes from and how it lies there.
struct OnednnOperand {
  int arg = 0;       // DNNL_ARG_SRC, ...
  int position = 0;  // in Buffers::inputs, or outputs
  bool output = false;
  DType dtype = DType::kInvalid;
  OnednnFormat format = OnednnFormat::kAsItLies;
  dnnl::memory::dims dims, strides;  // as the primitive sees it
};

// One primitive with its operands. `describe` makes its description from the
// operands' (in their order; format `any` where the library may choose).
struct OnednnSpec {
  std::vector<OnednnOperand> operands;
  std::function<dnnl::primitive_desc(const dnnl::engine&,
                                     const std::vector<dnnl::memory::desc>&,
                                     const dnnl::primitive_attr&)>
      describe;
  // The outputs' negative elements become 0. Not as a post-op of the
  // library's, which would make zeros of NaNs as well.
  bool relu = false;
};

// Makes the spec of a bound op; called at planning and again at Prepare.
using MakeOnednnSpec = std::function<OnednnSpec(const BoundOp&)>;

// A candidate that supports what the library does, but no operand without
// elements.
Candidate OnednnCandidate(const std::string& name, MakeOnednnSpec make);

// The dims and strides of a tensor as it lies.
OnednnOperand MakeOperand(int arg, int position, bool output,
                          const TensorDesc& desc);

// The library's engine, one for all kernels; and how many threads it takes on
// the calling thread, when it makes a primitive and when it runs one.
const dnnl::engine& OnednnEngine();
void OnednnUseThreads(int threads);

// The library writes its code through what an allocation gave it without
// looking (2.6.3), so there has to be room before it is asked: where a
// primitive is made, and where it first runs, which is when products write
// theirs. Throws std::bad_alloc.
void OnednnExpectRoom();

// Whether this processor has instructions that oneDNN may use: AVX2, AVX-512,
// those on bf16, and AMX.
bool OnednnHasAvx2();
bool OnednnHasAvx512();
bool OnednnHasBf16();
bool OnednnHasAmx();

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_ONEDNN_H_
