// Rules by name, for the training loop.
#pragma once

#include <algorithm>
#include <vector>

#include "byzadmm/choices.hpp"
#include "byzadmm/geometric_median.hpp"
#include "byzadmm/mean.hpp"
#include "byzadmm/median.hpp"

namespace byzadmm {

/// out = rule(x), x finite. Eliminated workers count towards f.
template <class T>
void apply_rule(const Rule& rule, Rows<T> x, index_t eliminated, T* out, int threads) {
  switch (rule.kind) {
    case RuleKind::mean: mean<T>(x, nullptr, out, threads); break;
    case RuleKind::median: median<T>(x, Even::mid, out, threads); break;
    case RuleKind::trimmed_mean:
      trimmed_mean<T>(x, std::min(std::max<index_t>(rule.f - eliminated, 0), (x.n - 1) / 2), out, threads);
      break;
    case RuleKind::geometric_median: {
      std::vector<double> share(static_cast<std::size_t>(x.n));
      geometric_median<T>(x, nullptr, rule.tol, rule.max_iter, out, share.data(), threads);
      break;
    }
  }
}

}  // namespace byzadmm
