// When a signal that asks for an end means no more than the one before.
#ifndef HALFTONE_GRAPH_BASE_SYSTEM_REPEATED_SIGNAL_H_
#define HALFTONE_GRAPH_BASE_SYSTEM_REPEATED_SIGNAL_H_

namespace halftone {

// One request often comes several times at once: `timeout` signals its child
// and then its group, systemd and Slurm all processes of a job, and a launcher
// hands on to its ranks what these had already. A second one that means it
// comes later than this after the first.
constexpr int kSameRequestMs = 250;

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_SYSTEM_REPEATED_SIGNAL_H_
