// libFuzzer over one target, HT_FUZZ_TARGET: README.md says how it is built. A
// crash, a hang, a Status of another class than the target's is a find.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/targets.h"

namespace {

const halftone::FuzzTarget* target = nullptr;

}  // namespace

// Picks the target; with HT_FUZZ_SEEDS=FOLDER its sound files go there, for a
// corpus to begin with.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const name = std::getenv("HT_FUZZ_TARGET");
  target = name == nullptr ? nullptr : halftone::FindFuzzTarget(name);
  if (target == nullptr) {
    std::fprintf(stderr, "HT_FUZZ_TARGET: expected one of");
    for (const auto& known : halftone::FuzzTargets()) {
      std::fprintf(stderr, " %s", std::string(known.name).c_str());
    }
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  const char* const folder = std::getenv("HT_FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  int number = 0;
  for (const std::string& seed : target->seeds()) {
    std::ofstream(absl::StrCat(folder, "/seed-", number++), std::ios::binary)
        << seed;
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::Status status =
      target->read(std::string(reinterpret_cast<const char*>(data), size));
  if (!status.ok() && halftone::ExitCodeOf(status) != target->code) {
    std::fprintf(stderr, "%s: %s\n", std::string(target->name).c_str(),
                 status.ToString().c_str());
    std::abort();
  }
  return 0;
}
