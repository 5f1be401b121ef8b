#include "graph/strategy/first_rate.h"

namespace halftone {

std::optional<double> OwnFirstRate(const proto::LearningRate& lr) {
  if (lr.one_cycle().has_max_lr()) {
    return lr.one_cycle().max_lr() / lr.one_cycle().div_factor();
  }
  if (lr.cyclic().has_base_lr()) return lr.cyclic().base_lr();
  return std::nullopt;
}

}  // namespace halftone
