// Rules by the largest eigenvalue of the rows' covariance. Nothing here reads the rows.
//
// With squared distances D, J = I - 11'/m and m rows, -1/2 J D J holds the products of the centered rows: it has the
// nonzero eigenvalues of their scatter matrix, m times the covariance. It is formed in the unit of the largest distance
// of its rows, which is at most twice the eigenvalue: rounding is relative to that.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "byzadmm/cover.hpp"
#include "byzadmm/eigenpair.hpp"
#include "byzadmm/wide.hpp"

namespace byzadmm {

namespace detail {

/// value * 2^-exponent, 0 or infinite where it is out of range.
template <class N>
double in_unit(N value, std::int32_t exponent) {
  const Wide wide = value;
  return wide.exponent == Wide::kZero ? 0.0 : std::ldexp(wide.mantissa, wide.exponent - exponent);
}

/// The search for the m of n rows whose scatter matrix has the least largest eigenvalue.
///
/// Rows are added in the order of their indices. No row makes the scatter smaller, so a partial set is given up as soon
/// as half of a squared distance in it, or its scatter along one of the last top eigenvectors (`cuts`), exceeds the
/// least eigenvalue found.
template <class N>
class LeastVariance {
 public:
  LeastVariance(const N* squared, index_t n, index_t m)
      : squared_(squared),
        n_(n),
        m_(m),
        pair_(m),
        scaled_(size(n * n)),
        far_(size(n), Bits(n)),
        on_path_(n),
        mean_(size(m)),
        sum_(size(m + 1)),
        square_(size(m + 1)) {
    for (auto& along : along_) along.resize(size(n));
  }

  void find(index_t* chosen) {
    start();
    pass_ = 1;
    if (best_ > 0 && best_ <= std::numeric_limits<double>::max()) extend(0);
    // Of all within rounding of the least, the first.
    pass_ = 2;
    set_limit();
    done_ = false;
    path_.clear();
    on_path_ = Bits(n_);
    extend(0);
    std::copy(found_.begin(), found_.end(), chosen);
  }

 private:
  static constexpr int kCuts = 16;
  static constexpr double kTie = 1e-10;  // eigenvalues this close are equal: rounding could have made the difference
  // Distances are rounded, those of float32 rows in float32: what is true of exact ones holds for them this closely.
  static constexpr double kCutSlack = 1 + 0x1p-10;
  static std::size_t size(index_t i) { return static_cast<std::size_t>(i); }

  /// The least eigenvalue to begin with: that of the m rows nearest to the row which needs the smallest radius.
  void start() {
    std::vector<N> line(size(n_));
    N radius = std::numeric_limits<double>::infinity();
    index_t center = 0;
    for (index_t i = 0; i < n_; ++i) {
      check_stop();
      std::copy(squared_ + i * n_, squared_ + (i + 1) * n_, line.begin());
      std::nth_element(line.begin(), line.begin() + m_ - 1, line.end());
      if (line[size(m_ - 1)] < radius) radius = line[size(m_ - 1)], center = i;
    }
    const N* from = squared_ + center * n_;
    std::vector<index_t> order(size(n_));
    std::iota(order.begin(), order.end(), index_t{0});
    std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) { return from[a] < from[b]; });
    found_.assign(order.begin(), order.begin() + m_);
    std::sort(found_.begin(), found_.end());
    scale(Wide(radius).exponent);
    best_ = eigenvalue(found_.data());
    if (best_ > 0 && best_ <= std::numeric_limits<double>::max()) rescale();
    set_limit();
  }

  void scale(std::int32_t exponent) {
    unit_ = exponent;
    for (index_t e = 0; e < n_ * n_; ++e) scaled_[size(e)] = in_unit(squared_[e], unit_);
    cuts_ = 0;
  }

  /// Move the least eigenvalue to about 1.
  void rescale() {
    int exponent = 0;
    best_ = std::frexp(best_, &exponent);
    scale(unit_ + exponent);
  }

  void set_limit() {
    limit_ = best_ * (pass_ == 1 ? 1 - kTie : 1 + kTie);
    for (index_t i = 0; i < n_; ++i) {
      far_[size(i)] = Bits(n_);
      for (index_t k = 0; k < n_; ++k)
        if (scaled_[size(i * n_ + k)] / 2 > limit_) far_[size(i)].add(k);
    }
  }

  /// Largest eigenvalue of the scatter of m rows.
  double eigenvalue(const index_t* rows) {
    double top = 0;
    for (index_t i = 0; i < m_; ++i)
      for (index_t k = 0; k < i; ++k) top = std::max(top, scaled_[size(rows[i] * n_ + rows[k])]);
    if (top == 0 || top > std::numeric_limits<double>::max()) return top;
    double all = 0;
    for (index_t i = 0; i < m_; ++i) {
      double sum = 0;
      for (index_t k = 0; k < m_; ++k) sum += scaled_[size(rows[i] * n_ + rows[k])] / top;
      mean_[size(i)] = sum / static_cast<double>(m_);
      all += mean_[size(i)];
    }
    all /= static_cast<double>(m_);
    for (index_t i = 0; i < m_; ++i)
      for (index_t k = 0; k < m_; ++k)
        pair_.matrix[size(i * m_ + k)] =
            -0.5 * (scaled_[size(rows[i] * n_ + rows[k])] / top - mean_[size(i)] - mean_[size(k)] + all);
    return pair_.find(m_) * top;
  }

  void extend(index_t first) {
    check_stop();
    const auto depth = static_cast<index_t>(path_.size());
    for (index_t j = first; j <= n_ - (m_ - depth) && !done_; ++j) {
      if (!fits(j, depth)) continue;
      path_.push_back(j);
      on_path_.add(j);
      if (depth + 1 < m_) extend(j + 1);
      else judge();
      if (done_ && pass_ == 2) return;
      path_.pop_back();
      on_path_.remove(j);
    }
  }

  /// Whether the path may go on with row j; the sums along the cuts follow.
  bool fits(index_t j, index_t depth) {
    if (on_path_.count(far_[size(j)]) > 0) return false;
    const auto &sum = sum_[size(depth)], &square = square_[size(depth)];
    for (int c = 0; c < cuts_; ++c) {
      const double p = along_[c][size(j)], s = sum[c] + p, q = square[c] + p * p;
      if (q - s * s / static_cast<double>(depth + 1) > kCutSlack * limit_) {
        ++hits_[c];
        return false;
      }
      sum_[size(depth + 1)][c] = s;
      square_[size(depth + 1)][c] = q;
    }
    return true;
  }

  /// A whole set: its eigenvalue, and its eigenvector as a cut.
  void judge() {
    const double value = eigenvalue(path_.data());
    if (value <= limit_) {
      found_ = path_;
      if (pass_ == 2 || value == 0) {
        done_ = true;
        best_ = value;
        return;
      }
      best_ = value;
      const bool far_below = best_ < 0x1p-10;
      if (far_below) rescale();
      set_limit();
      if (far_below) return;  // `value` is in the old unit
    }
    if (value > 0 && value <= std::numeric_limits<double>::max()) add_cut(value);
  }

  void add_cut(double value) {
    int c = cuts_;
    if (cuts_ < kCuts) {
      ++cuts_;
    } else {  // in the place of the one that was of least use lately
      c = static_cast<int>(std::min_element(hits_.begin(), hits_.end()) - hits_.begin());
      for (index_t& hits : hits_) hits /= 2;
    }
    hits_[c] = 1;
    auto& along = along_[c];
    const double factor = -0.5 / std::sqrt(value);
    for (index_t j = 0; j < n_; ++j) {
      double p = 0, top = 0;
      for (index_t k = 0; k < m_; ++k) {
        const double apart = scaled_[size(j * n_ + path_[size(k)])];
        top = std::max(top, apart);
        p += pair_.vector[size(k)] * apart;
      }
      // A row this far from one of the path is in no set that is left: both have a row in common with the path.
      along[size(j)] = top > 9 * limit_ ? 0.0 : factor * p;
    }
    double middle = 0;
    for (const index_t j : path_) middle += along[size(j)] / static_cast<double>(m_);
    for (double& p : along) p -= middle;
    double s = 0, q = 0;
    for (index_t depth = 0; depth <= m_; ++depth) {
      sum_[size(depth)][c] = s;
      square_[size(depth)][c] = q;
      if (depth == m_) break;
      const double p = along[size(path_[size(depth)])];
      s += p;
      q += p * p;
    }
  }

  const N* squared_;
  index_t n_, m_;
  TopEigenpair pair_;
  std::vector<double> scaled_;  // squared_ * 2^-unit_
  std::int32_t unit_ = 0;
  double best_ = 0, limit_ = 0;
  int pass_ = 1, cuts_ = 0;
  bool done_ = false;
  std::vector<index_t> path_, found_;  // found_: the set of best_
  std::vector<Bits> far_;              // rows that no set has beside this one
  Bits on_path_;
  std::vector<double> mean_;
  std::array<std::vector<double>, kCuts> along_;  // every row along a unit vector
  std::array<index_t, kCuts> hits_{};
  std::vector<std::array<double, kCuts>> sum_, square_;  // of the first rows of the path, for every number of them
};

}  // namespace detail

/// The n - f rows whose covariance has the least largest eigenvalue; of several such sets, to ten digits, the
/// lexicographically smallest list.  squared: (n, n), no NaN; 2f < n; chosen: (n - f), ascending.
template <class N>
void least_variance(const N* squared, index_t n, index_t f, index_t* chosen) {
  if (f == 0) std::iota(chosen, chosen + n, index_t{0});
  else detail::LeastVariance<N>(squared, n, n - f).find(chosen);
}

/// Weights by the covariance-bound agnostic filter: from c_i = 1, while the sum exceeds n - 2f, c_i loses the share
/// tau_i / max tau over c_k > 0, with tau_i the square of row i - mean along the top eigenvector of the weighted
/// covariance.  weight: (n), the c of the round with the least largest eigenvalue, the first of equals.  squared:
/// (n, n), finite.  Returns the number of rounds.
///
/// Each round has the unit of the largest distance between rows that have weight left. A weight below `crumb` may be
/// rounding of tau and counts as 0: the products of such a row, however far, would be rounding as well.
template <class N>
int filtered_weights(const N* squared, index_t n, index_t f, double crumb, double* weight) {
  const auto size = [](index_t i) { return static_cast<std::size_t>(i); };
  std::vector<double> c(size(n), 1.0), products(size(n * n)), mean(size(n)), root(size(n)), tau(size(n));
  std::vector<index_t> live(size(n));
  std::iota(live.begin(), live.end(), index_t{0});
  std::copy(c.begin(), c.end(), weight);
  TopEigenpair pair(n);
  Wide least = std::numeric_limits<double>::infinity();
  for (int round = 1;; ++round) {
    const auto m = static_cast<index_t>(live.size());
    const auto apart = [&](index_t i, index_t k) { return squared[live[size(i)] * n + live[size(k)]]; };
    N top = 0;
    double total = 0;
    for (index_t i = 0; i < m; ++i) {
      total += c[size(live[size(i)])];
      for (index_t k = 0; k < i; ++k) top = std::max(top, apart(i, k));
    }
    if (top == N(0)) {
      std::copy(c.begin(), c.end(), weight);
      return round;
    }
    const std::int32_t unit = Wide(top).exponent;
    double all = 0;
    for (index_t i = 0; i < m; ++i) {
      double sum = 0;
      for (index_t k = 0; k < m; ++k) {
        products[size(i * m + k)] = detail::in_unit(apart(i, k), unit);
        sum += c[size(live[size(k)])] * products[size(i * m + k)];
      }
      mean[size(i)] = sum / total;
      root[size(i)] = std::sqrt(c[size(live[size(i)])]);
      all += c[size(live[size(i)])] * mean[size(i)] / total;
    }
    for (index_t i = 0; i < m; ++i)
      for (index_t k = 0; k < m; ++k) {
        double& product = products[size(i * m + k)];
        product = -0.5 * (product - mean[size(i)] - mean[size(k)] + all);
        pair.matrix[size(i * m + k)] = root[size(i)] * root[size(k)] * product;
      }
    const Wide value(pair.find(m) / total, unit);
    if (value < least) {
      least = value;
      std::copy(c.begin(), c.end(), weight);
    }
    double largest = 0;
    for (index_t i = 0; i < m; ++i) {
      double along = 0;
      for (index_t k = 0; k < m; ++k) along += root[size(k)] * pair.vector[size(k)] * products[size(i * m + k)];
      tau[size(i)] = along * along;
      largest = std::max(largest, tau[size(i)]);
    }
    std::vector<index_t> next;
    total = 0;
    for (index_t i = 0; i < m; ++i) {
      double& mine = c[size(live[size(i)])];
      mine *= 1 - tau[size(i)] / largest;
      if (mine < crumb) mine = 0;
      else next.push_back(live[size(i)]);
      total += mine;
    }
    if (!(total > static_cast<double>(n - 2 * f))) return round;
    live = std::move(next);
  }
}

inline void least_variance(const SquaredDistances& squared, index_t f, index_t* chosen) {
  visit(squared, [&](const auto* from) { least_variance(from, squared.n, f, chosen); });
}

inline int filtered_weights(const SquaredDistances& squared, index_t f, double crumb, double* weight) {
  int rounds = 0;
  visit(squared, [&](const auto* from) { rounds = filtered_weights(from, squared.n, f, crumb, weight); });
  return rounds;
}

}  // namespace byzadmm
