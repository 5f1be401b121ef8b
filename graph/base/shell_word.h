// Names and paths in commands that are suggested.
#ifndef HALFTONE_GRAPH_BASE_SHELL_WORD_H_
#define HALFTONE_GRAPH_BASE_SHELL_WORD_H_

#include <string>

#include "absl/strings/string_view.h"

namespace halftone {

// As a shell takes it: quoted where that is needed, "'a b'".
std::string ShellWord(absl::string_view word);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_SHELL_WORD_H_
