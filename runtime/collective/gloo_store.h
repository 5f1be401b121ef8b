// Gloo's view of the run's store.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_GLOO_STORE_H_
#define HALFTONE_RUNTIME_COLLECTIVE_GLOO_STORE_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gloo/rendezvous/store.h"
#include "runtime/rendezvous/store_client.h"

namespace halftone {
namespace runtime {

// Throws gloo::IoException on errors, as Gloo expects. Keys get the prefix
// "gloo/".
class GlooStore : public gloo::rendezvous::Store {
 public:
  // get() and wait() without a time of their own wait `timeout`.
  GlooStore(StoreClient& client, absl::Duration timeout)
      : client_(client), timeout_(timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

 private:
  std::vector<std::string> Await(const std::vector<std::string>& keys,
                                 absl::Duration timeout);

  StoreClient& client_;
  absl::Duration timeout_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_GLOO_STORE_H_
