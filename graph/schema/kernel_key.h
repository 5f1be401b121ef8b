// How a kernel is asked for: "op(f16,f32)@row_major", the op, its schema's type
// variables in order, the layout of the lead slot.
#ifndef HALFTONE_GRAPH_SCHEMA_KERNEL_KEY_H_
#define HALFTONE_GRAPH_SCHEMA_KERNEL_KEY_H_

#include <cstring>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/dtype.h"
#include "graph/base/layout.h"

namespace halftone {

class KernelKey {
 public:
  KernelKey(absl::string_view op, absl::Span<const DType> binding,
            Layout layout) {
    Append(op);
    Append("(");
    for (size_t i = 0; i < binding.size(); ++i) {
      if (i > 0) Append(",");
      Append(Name(binding[i]));
    }
    Append(")@");
    Append(Name(layout));
  }
  absl::string_view text() const { return {text_.data(), text_.size()}; }

 private:
  void Append(absl::string_view part) {
    const size_t end = text_.size();
    text_.resize(end + part.size());
    std::memcpy(text_.data() + end, part.data(), part.size());
  }
  absl::InlinedVector<char, 96> text_;  // most fit
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_KERNEL_KEY_H_
