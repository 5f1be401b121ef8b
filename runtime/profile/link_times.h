// What collectives take over links.
#ifndef HALFTONE_RUNTIME_PROFILE_LINK_TIMES_H_
#define HALFTONE_RUNTIME_PROFILE_LINK_TIMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/targets/links.h"
#include "runtime/plan/plan.h"

namespace halftone {
namespace runtime {

// Ranks on machines, so many on each but the last.
struct Topology {
  int ranks = 1;
  int per_machine = 1;
  Link inside, between;
  bool by_nodes = false;  // sums are made on each machine first
  int machines() const { return (ranks + per_machine - 1) / per_machine; }
};

// Seconds of a plan's collective: of a ring through all ranks, machine by
// machine, 2 (N - 1) / N of the bytes over the slowest link and 2 (N - 1)
// latencies, half of both where parts are gathered; or, where it is less and
// the sum crosses machines, of a double binary tree between these, with 2 log M
// latencies and twice the bytes. The model is that by which NCCL chooses.
// Rings: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009;
// trees: Sanders, Speck and Traff, "Two-tree algorithms for full bandwidth",
// 2009. By nodes: a sum's parts on each machine, their sum between machines,
// and the parts gathered on each.
double CollectiveSeconds(const Step& collective, const Topology& topology);
double CollectiveSeconds(Step::Kind kind, double bytes,
                         const Topology& topology);

// A link as a file: JSON with name, bandwidth in bytes per second, start and
// latency in seconds.
std::string PrintLink(const Link& link);
// Errors (kModel) name `file` and member.
absl::StatusOr<Link> ParseLink(absl::string_view content,
                               absl::string_view file);
// A name of a record, or a file that PrintLink's text is in.
absl::StatusOr<Link> FindLinkOrRead(const std::string& word,
                                    absl::string_view flag);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PROFILE_LINK_TIMES_H_
