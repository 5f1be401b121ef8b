// For tests that give the tool something wrong: scratch files, the ways to
// damage one, and what holds for every refusal.
#ifndef HALFTONE_TESTS_FAULTS_FAULTS_H_
#define HALFTONE_TESTS_FAULTS_FAULTS_H_

#include <string>
#include <vector>

#include "tests/support/child.h"

namespace halftone {

inline constexpr char kConvnet[] = "models/mnist_convnet.pbtxt";
inline constexpr char kO1[] = "models/mnist_o1.pbtxt";
inline constexpr char kDigits[] = "idx:models/digits";

// A new directory below the test's.
std::string Scratch();
// `content` in a new directory, under `name`; its path.
std::string WriteNew(const std::string& name, const std::string& content);
void WriteTo(const std::string& path, const std::string& content);

// `tools/halftone` with these arguments.
Result Halftone(std::vector<std::string> arguments);
// mnist_convnet by mnist_o1, compiled once.
const std::string& Convnet();

// An error and nothing else: exit code `code`, one line of stderr that begins
// as errors do and holds all of `says`, nothing on stdout, and no more memory
// than a small model takes, whatever a file claims.
void ExpectRefused(const std::vector<std::string>& arguments, int code,
                   const std::vector<std::string>& says);
// The same, with `flag` and a place in an empty directory added, in which
// nothing is left.
void ExpectRefusedAndNothingWritten(std::vector<std::string> arguments,
                                    const std::string& flag, int code,
                                    const std::vector<std::string>& says);

// What becomes of a file, by the name of the case; null: it is not there.
struct Damage {
  std::string name;
  std::string content;
  bool missing = false;
};
// Missing, empty, blank, truncated in the middle and by its last byte, random
// bytes, one flipped bit.
std::vector<Damage> AllDamages(const std::string& good);

// All files below `directory`, sorted, relative to it.
std::vector<std::string> FilesBelow(const std::string& directory);

}  // namespace halftone

#endif  // HALFTONE_TESTS_FAULTS_FAULTS_H_
