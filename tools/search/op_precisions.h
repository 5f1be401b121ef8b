// Precisions of single ops, as a strategy has them.
#ifndef HALFTONE_TOOLS_SEARCH_OP_PRECISIONS_H_
#define HALFTONE_TOOLS_SEARCH_OP_PRECISIONS_H_

#include <map>
#include <string>

#include "absl/types/span.h"
#include "proto/strategy.pb.h"

namespace halftone {
namespace tools {

// Op names, and whether they are to be low; else they are f32.
using OpPrecisions = std::map<std::string, bool>;

// Adds the ops to custom_white_opnames and custom_black_opnames. A glob there
// that says the contrary of one of them becomes the names of `model_ops` that
// it has besides.
void SetOpPrecisions(const OpPrecisions& low,
                     absl::Span<const std::string> model_ops, proto::Amp* amp);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_OP_PRECISIONS_H_
