// What an import makes, whatever it reads.
#ifndef HALFTONE_GRAPH_IMPORT_IMPORTED_MODEL_H_
#define HALFTONE_GRAPH_IMPORT_IMPORTED_MODEL_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/io/model_reader.h"

namespace halftone {

// The note of ops whose whole numbers go through f32 (op_writer.h:
// kMostPlaces).
inline constexpr char kThroughF32[] =
    "computes whole numbers in f32, exact up to 16,777,216; reduce larger ones "
    "before they are fed";

struct ImportedModel {
  ModelFile model;
  std::string source;  // "Paddle 2.6.2, 13 ops in block 0 of 1"
  std::string from;    // "paddle 2.6.2"
  int64_t ops = 0;     // that were read
  // "backward", "optimizer" ...: how many ops were left out.
  std::map<std::string, int64_t> left_out;
  std::string loss_from;  // "op role 256", "--loss"
  std::string no_loss;    // why there is none
  // By kind of initialiser: how many parameters have it, from a startup program
  // and from the source's defaults.
  std::map<std::string, int64_t> startup_inits, default_inits;
  std::vector<std::string> unread_feeds;  // left out
  // Tensors that are not trained and that no initialiser makes: nothing but
  // the file of weights has them.
  int64_t constants_of_file = 0;
  // What the model computes otherwise than its source may mean it, a line for
  // each kind of op.
  std::vector<std::string> notes;
  // Values that may be the loss, where there is none.
  std::vector<std::string> loss_candidates;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_IMPORTED_MODEL_H_
