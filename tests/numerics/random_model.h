// Small models that no one wrote, for drivers that compile and train many.
#ifndef HALFTONE_TESTS_NUMERICS_RANDOM_MODEL_H_
#define HALFTONE_TESTS_NUMERICS_RANDOM_MODEL_H_

#include <string>

#include "tests/support/trials.h"

namespace halftone {

struct RandomModel {
  std::string text;          // as ParseModel takes it
  bool batch_norms = false;  // ranks have other statistics, unless they sync
  // A slope jumps somewhere, where a rounding can turn a gradient over.
  bool kinks = false;
};

// A chain of ops of all classes with branches, over pictures or rows, that ends
// in a loss over classes or in a distance. Values stay of the order of 1 and
// norms have a large epsilon, so that roundings are not magnified by much.
RandomModel MakeRandomModel(Draws* draws);

// The same of ops and values in which nothing is rounded in f32: whole numbers
// that stay small, for one step of sgd whose batch and rate are powers of 2.
// However sums are ordered, its bits are the same.
RandomModel MakeExactModel(Draws* draws);

}  // namespace halftone

#endif  // HALFTONE_TESTS_NUMERICS_RANDOM_MODEL_H_
