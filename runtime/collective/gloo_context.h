// Gloo over connections that are there already.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_GLOO_CONTEXT_H_
#define HALFTONE_RUNTIME_COLLECTIVE_GLOO_CONTEXT_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gloo/context.h"
#include "runtime/rendezvous/socket.h"

namespace halftone {
namespace runtime {

// A context whose pairs use `peers`, by rank; that of `rank` itself is not
// open. `address` is this machine's, for Gloo to name its device. Errors are
// exceptions.
std::shared_ptr<gloo::Context> MakeGlooContext(
    const std::string& address, int rank, std::vector<Socket> peers,
    std::chrono::milliseconds timeout);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_GLOO_CONTEXT_H_
