// Data and models that several tests train on.
#ifndef HALFTONE_TESTS_MODELS_SAMPLES_H_
#define HALFTONE_TESTS_MODELS_SAMPLES_H_

#include <string>

#include "absl/status/statusor.h"

namespace halftone {
namespace runtime {

// Samples of the feeds x : f32[B,features] and label : i64[B], by rules that a
// test computes with, too.
struct LabelledSamples {
  int samples, features;
  float (*feature)(int sample, int i);
  int (*label)(int sample);
};
// A file of them, as --data takes it: "npz:PATH". `bad_sample`: its first
// feature is infinite; below 0: none.
std::string WriteNpz(const LabelledSamples& samples, int bad_sample = -1);

// The text of the zoo's GPT-2 of 2 layers, 64 wide, on 8 tokens.
absl::StatusOr<std::string> SmallGpt2();

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_TESTS_MODELS_SAMPLES_H_
