// Compiled models for the tests of reports.
#ifndef HALFTONE_TOOLS_REPORT_TESTING_TEST_MODELS_H_
#define HALFTONE_TOOLS_REPORT_TESTING_TEST_MODELS_H_

#include <string>
#include <vector>

#include "runtime/plan/tuning_table.h"
#include "tools/common/model_flags.h"
#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {

// models/mnist_convnet.pbtxt by models/mnist_o1.pbtxt and overrides. A test
// that calls it needs //models among its data.
CompiledModel CompileConvnet(const std::vector<passes::Override>& overrides);
// Once for all tests, without overrides.
const CompiledModel& Convnet();
// A model given as text, at O1 without an optimizer.
CompiledModel CompileText(const std::string& pbtxt);

// Its facts with what kernels and machine decide fixed: peak 5,000,000 bytes.
ModelFacts FixedFacts(const CompiledModel& model);

// A tuning table with rates of no machine: 20 GB/s, 500 and 400 GFLOP/s.
runtime::TuningTable MeasuredRates();

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_TESTING_TEST_MODELS_H_
