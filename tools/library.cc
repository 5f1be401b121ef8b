// The root of libhalftone.so: a command needs all that programs may call, the
// builder of models and the printer among it.
#include "tools/command.h"

namespace halftone {

extern int (*const kRunCommand)(std::vector<std::string>);
int (*const kRunCommand)(std::vector<std::string>) = RunCommand;

}  // namespace halftone
