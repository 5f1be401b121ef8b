// What Paddle's parameters are initialised with.
#ifndef HALFTONE_GRAPH_IMPORT_PADDLE_INIT_H_
#define HALFTONE_GRAPH_IMPORT_PADDLE_INIT_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "graph/import/paddle_program.h"

namespace halftone {

// The initialisers that a startup program has, by variable; what it makes in
// another way (literal values) is left out.
std::map<std::string, proto::Init> StartupInits(
    const paddle::ProgramDesc& startup);

// Paddle's default for a parameter of these dims that `op` reads in `slot`
// (null: none does): what paddle.nn's layers give their convolutions (normal,
// variance 2 / fan_in), 0 for biases, 1 for a norm's scale, Xavier's uniform
// distribution for all else.
proto::Init DefaultInit(const proto::Parameter& parameter,
                        const paddle::OpDesc* op, absl::string_view slot);

// "normal", "0": the kind, and a constant's value.
std::string KindOf(const proto::Init& init);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_PADDLE_INIT_H_
