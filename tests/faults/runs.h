// Whole runs of the convnet to damage, stop and go on with.
#ifndef HALFTONE_TESTS_FAULTS_RUNS_H_
#define HALFTONE_TESTS_FAULTS_RUNS_H_

#include <functional>
#include <string>
#include <vector>

#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {

using Parts = std::vector<std::string>;

// Arguments of a run of the convnet into `out` with a line for each step.
Parts RunCommand(const std::string& out, const Parts& more,
                 const std::string& checkpoint_every = "20");

// A run of 46 steps with checkpoints of steps 20, 40 and 46: a copy of one.
std::string TrainedRun();

// A run of 1000 epochs, under way.
Child StartRun(const std::string& out, const std::string& checkpoint_every);

// Fails if the child ends before, or within a minute.
void WaitUntil(const Child& child, const std::function<bool()>& holds);

}  // namespace halftone

#endif  // HALFTONE_TESTS_FAULTS_RUNS_H_
