// Geometric median of the workers: argmin_z sum_i w_i ||x_i - z||.
//
// Two ways, chosen by the shape of the rows (median_spaces.hpp):
// - n <= d and n <= kMaxGram: the Gram matrix of x_i - c, the centre c being the most central row in a sample of the
//   columns. A point is z = c + sum_i v_i yhat_i with yhat_i = (x_i - c) / ||x_i - c||, and inner products go
//   through H_ij = yhat_i . yhat_j, so that iterations work on n numbers. The rows are read to form the matrix and
//   to form the result, whatever the number of iterations. Float32 rows are tried with products in float32 first; the
//   distances from the result are then measured, and tell whether it is one (search_quickly).
// - otherwise: a copy of the rows, less the column-wise median, on which every iteration works directly.
//
// Attackers may send any finite number. Every row is therefore scaled by a power of two of its own; the unit of length
// is the size of the solution (balanced_exponent), and rows far beyond it count by their direction only; rows are
// judged by the forces on them, and values of f compared by differences in which the distances to far rows cancel.
// Digits are lost where the solution lies much closer to a row than c does: that row then becomes the centre, and the
// Gram matrix is formed again. Lengths that come about by cancellation (rows in few dimensions) are known from a Gram
// matrix only to the square root of rounding: where more is asked for, the copy takes over.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "byzadmm/centred_rows.hpp"
#include "byzadmm/choices.hpp"
#include "byzadmm/median.hpp"
#include "byzadmm/median_spaces.hpp"
#include "byzadmm/views.hpp"

namespace byzadmm {

namespace detail {

/// Above this many rows, passing over a copy of them costs less than n^2 d / 2 products.
constexpr index_t kMaxGram = 512;
/// A row whose residual is within kTie of 0 is a minimiser; residuals below kFloor are not told from 0.
constexpr double kTie = 5e-14, kFloor = 1e-15;
/// Lengths that count as 0: the squares of longer ones are in range, and those of small parts of them.
constexpr double kNear = 0x1p-450;
/// Change of the residual by rounding the result, above which a bound on it says too little.
constexpr double kTurn = 1e-3;
/// Tolerances for which products in float32 may do, and columns below which they gain nothing.
constexpr double kQuickTolerance = 5e-7;
constexpr index_t kQuickColumns = 256;

/// point: see MedianSearch::shares.  row, pair: the row k, the midpoint of rows k and other.  recentre: more digits are
/// needed around row k.  blurred: more than the space has.
enum class Found { point, row, pair, recentre, blurred };

/// Newton's method on f(z) = sum_i w_i ||y_i - z|| over either space, after a look at the rows, where f has its kinks.
template <class Space>
class MedianSearch {
 public:
  index_t k = 0, other = 0;
  int iterations = 0;
  double residual = 0;

  /// w: (n), largest value 1.
  MedianSearch(Space& space, const std::vector<double>& w, double tol)
      : space_(space),
        w_(w),
        n_(space.n),
        dim_(space.dim),
        tol_(tol),
        noise_limit_(space.measured() ? std::numeric_limits<double>::infinity() : std::max(0.1 * tol, 1e-13)),
        numbers_(static_cast<std::size_t>(4 * n_ + 14 * dim_)) {
    for (double wi : w) total_ += wi;
    double* next = numbers_.data();
    const auto take = [&next](index_t count) { return next += count, next - count; };
    for (State* s : {&here_, &then_}) {
      s->z = take(dim_), s->z_dual = take(dim_), s->delta = take(dim_), s->delta_dual = take(dim_);
      s->d = take(n_), s->share = take(n_);
    }
    step_ = take(dim_), r_ = take(dim_), p_ = take(dim_), p_dual_ = take(dim_), q_ = take(dim_), q_dual_ = take(dim_);
    tested_.resize(static_cast<std::size_t>(n_));
    was_centre_.resize(static_cast<std::size_t>(n_));
  }

  /// One search around the current centre (z = 0), at most max_iter steps in all.
  Found run(int max_iter) {
    std::fill(tested_.begin(), tested_.end(), char{0});
    Found found = space_.all_rows_first() ? try_rows() : Found::point;
    if (found != Found::point) return found;
    start();
    while (true) {
      if (!tested_[here_.nearest] && (found = try_row(here_.nearest)) != Found::point) return found;
      residual = here_.residual;
      if (residual <= kFloor || iterations >= max_iter) break;
      if (here_.noise > noise_limit_ && residual <= std::max(here_.noise, tol_)) break;
      if (here_.blur > tol_ && residual <= 4 * here_.blur) break;
      newton_step(here_);
      if (residual <= tol_ && norm(step_) <= tol_ * total_ / here_.pull) break;
      ++iterations;
      if (!move()) break;
    }
    if (here_.noise > noise_limit_) return recentre(here_.nearest, Found::blurred);
    if (residual > tol_ && here_.blur > kFloor && iterations < max_iter) return Found::blurred;
    return close_row();
  }

  /// Convex weights of the rows whose combination is the point found.
  const double* shares() const { return here_.share; }
  /// Distances from the rows, by which these weights were divided.
  const double* distances() const { return here_.d; }
  /// Change of the residual if the point moves by `length`, at most.
  double turn(double length) const { return length * here_.pull / total_; }

 private:
  /// f and its derivatives at z.  With a_i = w_i / d_i: pull = sum a_i, share_i = a_i / pull,
  /// delta = sum share_i y_i - z, so that -grad f = pull * delta.  Rows at z are left out; `at` is their weight.
  /// noise: rounding error of the residual that recentring would cure; blur: that it would not.
  struct State {
    double *z, *z_dual, *delta, *delta_dual, *d, *share;
    double zz, value, pull, at, force, residual, noise, blur;
    index_t nearest;
  };

  double inner(const double* p, const double* dual) const { return dot(p, dual, dim_); }
  /// Of a vector whose dual is not at hand.
  double norm(const double* p) {
    space_.dual(p, q_dual_);
    return std::sqrt(std::max(inner(p, q_dual_), 0.0));
  }

  void evaluate(State& s) {
    space_.dual(s.z, s.z_dual);
    s.zz = std::max(inner(s.z, s.z_dual), 0.0);
    space_.distances(s.z, s.z_dual, s.zz, s.d);
    differentiate(s, s.zz == 0);
  }

  /// From the centre. If rows are so close to it that they count as one with it at the size of the solution, away from
  /// all of them: the way through the scales between would take many steps.
  void start() {
    std::fill(here_.z, here_.z + dim_, 0.0);
    evaluate(here_);
    bool many = false;
    for (index_t i = 0; i < n_; ++i)
      if (space_.size[i] != kAtCentre && space_.size[i] < space_.unit - kSimilar) {
        here_.d[i] = 0;
        many = true;
      }
    if (!many) return;
    differentiate(here_, true);
    if (here_.force > here_.at) {
      newton_step(here_);
      std::copy(step_, step_ + dim_, here_.z);
    }
    evaluate(here_);
  }

  /// The rest of a state, from its z and d.  at_row: z is a row, and d = 0 for the rows that equal it.
  void differentiate(State& s, bool at_row) {
    s.value = s.pull = s.at = s.noise = 0;
    s.nearest = 0;
    const double near = at_row && s.zz > 0 ? 0.0 : kNear;
    for (index_t i = 0; i < n_; ++i) {
      const double d = s.d[i];
      if (d < s.d[s.nearest]) s.nearest = i;
      s.value += w_[i] * d;
      s.share[i] = 0;
      if (d <= near) {
        s.at += w_[i];
        if (!at_row) s.noise += w_[i];
        continue;
      }
      const double noise = space_.noise(d, s.zz);
      s.noise += w_[i] * std::min(noise, 1.0);
      if (at_row && noise >= 1) continue;  // on no side of the row that is known
      s.share[i] = w_[i] / d;
      s.pull += s.share[i];
    }
    s.noise /= total_;
    if (s.pull == 0) {  // every row is here
      s.force = s.residual = s.blur = 0;
      return;
    }
    for (index_t i = 0; i < n_; ++i) s.share[i] /= s.pull;
    space_.combine(s.share, s.delta);
    for (index_t j = 0; j < dim_; ++j) s.delta[j] -= s.z[j];
    space_.dual(s.delta, s.delta_dual);
    s.force = s.pull * std::sqrt(std::max(inner(s.delta, s.delta_dual), 0.0));
    s.blur = s.pull * space_.blur(s.delta) / total_;
    s.residual = std::max(std::max(s.force - s.at, 0.0) / total_, s.at > 0 ? 0.0 : s.blur);
    if (at_row && s.blur > 0) {
      const double blur = s.blur * total_;
      s.noise += (s.force - std::sqrt(std::max(s.force * s.force - blur * blur, 0.0))) / total_;
    }
  }

  /// The state at row i: how far f is from having its minimum there (negative: a sharp minimum).
  double excess_at_row(index_t i, State& s) {
    std::fill(s.share, s.share + n_, 0.0);
    s.share[i] = 1;
    space_.combine(s.share, s.z);
    s.zz = space_.row_square(i);
    space_.row_distances(i, s.d);
    differentiate(s, true);
    return (s.force - s.at) / total_;
  }

  /// Every row becomes the centre once at most: then its digits are as good as they get.
  Found recentre(index_t i, Found otherwise) {
    if (was_centre_[i]) return otherwise;
    was_centre_[i] = 1;
    k = i;
    return Found::recentre;
  }

  Found try_row(index_t i) {
    tested_[i] = 1;
    const bool at_centre = space_.size[i] == kAtCentre;
    // Rows next to the centre (the unit is of the size of the solution) and mere directions are not the solution.
    if (!at_centre && (space_.row_square(i) <= kNear * kNear || space_.size[i] - space_.unit > kFar))
      return Found::point;
    const double excess = excess_at_row(i, then_);
    if (excess > std::max(then_.noise, kTie)) return Found::point;
    if (std::abs(excess) <= then_.noise && then_.noise > kTie)
      return at_centre ? Found::blurred : recentre(i, Found::point);
    k = i;
    residual = std::max(excess, 0.0);
    return Found::row;
  }

  /// Is one of the rows with the least f the minimiser, or are two of them, and all between?
  Found try_rows() {
    std::vector<double> square(static_cast<std::size_t>(n_)), length(square), rise(square);
    for (index_t i = 0; i < n_; ++i) {
      square[i] = space_.row_square(i);
      length[i] = std::sqrt(square[i]);
    }
    for (index_t i = 0; i < n_; ++i) {
      // f(y_i) - f(0): distances to far rows cancel term by term.
      double* along = then_.d;
      space_.along_row(i, along);
      for (index_t j = 0; j < n_; ++j) {
        const double up = square[i] - 2 * along[j];
        const double both = std::sqrt(std::max(square[j] + up, 0.0)) + length[j];
        along[j] = up / std::max(both, kNear * kNear);
      }
      rise[i] = dot(along, w_.data(), n_);
    }
    const index_t best = std::min_element(rise.begin(), rise.end()) - rise.begin();
    std::fill(tested_.begin(), tested_.end(), char{1});
    std::vector<index_t> tied;
    const auto slack = [&](index_t i) { return 1e-7 * total_ * length[i]; };
    for (index_t i = 0; i < n_; ++i) {
      if (rise[i] - rise[best] > slack(i) + slack(best)) continue;
      const Found found = try_row(i);
      if (found == Found::point) continue;
      if (found != Found::row || then_.force - then_.at < -kTie * total_) return found;
      tied.push_back(i);
    }
    if (tied.empty()) return Found::point;
    k = other = tied.front();
    space_.row_distances(k, then_.d);
    for (index_t i : tied)
      if (then_.d[i] > then_.d[other]) other = i;
    return other != k ? Found::pair : Found::row;
  }

  /// The row next to the solution, if it cannot be told from it within the tolerance.
  Found close_row() {
    const index_t i = here_.nearest;
    if (residual > tol_ || here_.d[i] * here_.pull * (1 - here_.share[i]) > tol_ * total_) return Found::point;
    const double excess = excess_at_row(i, then_);
    if (excess > std::max(tol_, kTie) || then_.noise > noise_limit_) return Found::point;
    k = i;
    residual = std::max(excess, 0.0);
    return Found::row;
  }

  /// step = -(hess f)^{-1} grad f by conjugate gradients: (I - sum_i share_i u_i u_i') step = delta, with
  /// u_i = (z - y_i) / d_i.
  /// The sum has trace 1, hence at most one eigenvalue above 1/2: the iteration ends soon, however thin the data.
  void newton_step(const State& s) {
    constexpr int kMaxSteps = 40;
    std::copy(s.delta, s.delta + dim_, step_);
    if (s.at > 0) {  // at a kink: the step of Vardi and Zhang
      for (index_t j = 0; j < dim_; ++j) step_[j] *= 1 - s.at / s.force;
      return;
    }
    std::vector<double>& r_dual = cg_dual_;
    std::vector<double>& f = cg_rows_;
    r_dual.assign(s.delta_dual, s.delta_dual + dim_);
    f.resize(static_cast<std::size_t>(n_));
    std::copy(s.delta, s.delta + dim_, r_);
    std::copy(s.delta, s.delta + dim_, p_);
    std::copy(s.delta_dual, s.delta_dual + dim_, p_dual_);
    const double start = inner(r_, r_dual.data());
    double rr = start;
    bool moved = false;
    for (int it = 0; it < kMaxSteps && rr > 1e-24 * start; ++it) {
      space_.along(p_, p_dual_, f.data());
      const double zp = inner(s.z, p_dual_);
      double sum = 0;
      for (index_t i = 0; i < n_; ++i) {
        f[i] = s.share[i] * ((zp - f[i]) / s.d[i]) / s.d[i];
        sum += f[i];
      }
      space_.combine(f.data(), q_);
      for (index_t j = 0; j < dim_; ++j) q_[j] += p_[j] - sum * s.z[j];
      const double pq = inner(q_, p_dual_);
      if (!(pq > 4 * kEpsilon * inner(p_, p_dual_))) break;  // flat: rows on a line
      const double alpha = rr / pq;
      if (!moved) std::fill(step_, step_ + dim_, 0.0);
      moved = true;
      space_.dual(q_, q_dual_);
      add_scaled(alpha, p_, step_, dim_);
      add_scaled(-alpha, q_, r_, dim_);
      add_scaled(-alpha, q_dual_, r_dual.data(), dim_);
      const double after = std::max(inner(r_, r_dual.data()), 0.0), beta = after / rr;
      rr = after;
      for (index_t j = 0; j < dim_; ++j) p_[j] = r_[j] + beta * p_[j];
      for (index_t j = 0; j < dim_; ++j) p_dual_[j] = r_dual[j] + beta * p_dual_[j];
    }
  }

  /// here += t * step with t = 1 if that halves the gradient, otherwise to where the slope along the step is nearly
  /// gone. Slopes decide where differences of f are lost in rounding. False if there is no way down.
  bool move() {
    const double start = -here_.pull * inner(step_, here_.delta_dual);
    if (!(start < 0)) return false;
    const double ceiling = here_.value * (1 + 1e-14);
    const bool absorbed = *std::max_element(space_.size.begin(), space_.size.end()) > space_.unit + kSimilar;
    if (absorbed) {
      cg_rows_.resize(static_cast<std::size_t>(n_));
      space_.dual(step_, q_dual_);
      space_.along(step_, q_dual_, cg_rows_.data());
    }
    double low = 0, high = 0, t = 1;  // high = 0: none yet
    bool found = false;
    for (int trial = 0; trial < 60; ++trial) {
      go(t);
      const double slope = -then_.pull * inner(step_, then_.delta_dual);
      const bool below = absorbed ? rise(t) <= 0 : then_.value <= ceiling;
      found = below && (then_.residual <= 0.5 * here_.residual || std::abs(slope) <= -0.1 * start);
      if (found) break;
      (slope < 0 && below ? low : high) = t;
      if (high > 0 && high - low <= 1e-6 * high) break;
      t = high > 0 ? 0.5 * (low + high) : 2 * t;
    }
    if (!found) {
      if (low == 0) return false;
      go(low);
    }
    std::swap(here_, then_);
    return true;
  }

  /// f(then) - f(here) for z = here + t * step, where the distances to far rows cancel term by term.  Takes <y_i, step>
  /// in cg_rows_ and the dual of step in q_dual_.
  double rise(double t) const {
    const double from = 2 * inner(here_.z, q_dual_) + t * inner(step_, q_dual_);
    double sum = 0;
    for (index_t i = 0; i < n_; ++i)
      sum += w_[i] * ((from - 2 * cg_rows_[i]) / std::max(here_.d[i] + then_.d[i], kNear));
    return sum * t;
  }

  void go(double t) {
    std::copy(here_.z, here_.z + dim_, then_.z);
    add_scaled(t, step_, then_.z, dim_);
    evaluate(then_);
  }

  Space& space_;
  const std::vector<double>& w_;
  index_t n_, dim_;
  double tol_, noise_limit_, total_ = 0;
  std::vector<double> numbers_, cg_dual_, cg_rows_;
  std::vector<char> tested_, was_centre_;
  State here_{}, then_{};
  double *step_, *r_, *p_, *p_dual_, *q_, *q_dual_;
};

/// d = 1: the weighted median, the midpoint where half of the weight lies on either side.  Returns the residual.
template <class T>
double median_on_line(Rows<T> x, const std::vector<double>& w, T* out, double* combination) {
  std::vector<index_t> order(static_cast<std::size_t>(x.n));
  for (index_t i = 0; i < x.n; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) { return x.row[a][0] < x.row[b][0]; });
  double total = 0, below = 0;
  for (index_t i : order) total += w[i];
  const double slack = kTie * total;
  index_t at = 0;
  while (at + 1 < x.n && below + w[order[at]] < 0.5 * total - slack) below += w[order[at++]];
  const bool even = at + 1 < x.n && below + w[order[at]] <= 0.5 * total + slack;
  put_rows(x, order[at], order[even ? at + 1 : at], out, combination);
  double pull = 0, here = 0;
  for (index_t i : order) (x.row[i][0] == *out ? here : pull) += x.row[i][0] < *out ? -w[i] : w[i];
  return std::max(std::abs(pull) - here, 0.0) / total;
}

/// The whole of geometric_median in one space; false if that has not digits enough.  Goes on counting info.iterations.
template <class Space, class T>
bool search_median(CentredRows<T>& rows, const std::vector<double>& w, double tol, int max_iter, T* out,
                   double* combination, int threads, GeometricMedianInfo& info) {
  const index_t n = rows.x.n;
  const double enough = std::max(tol, 10 * kFloor);
  Space space(rows, threads);
  MedianSearch<Space> search(space, w, tol);
  search.iterations = info.iterations;
  const auto measured = [&] {
    rows.set_centre(out);
    return residual_at_centre(rows, w, threads);
  };
  for (int round = 1; round <= Space::kMaxRounds; ++round) {
    if (!space.build(w)) {
      info = {-1, false, std::numeric_limits<double>::quiet_NaN()};
      return true;
    }
    const Found found = search.run(max_iter);
    info = {search.iterations, search.residual <= enough, search.residual};
    switch (found) {
      case Found::recentre: rows.set_centre(rows.x.row[search.k]); continue;
      case Found::row: put_rows(rows.x, search.k, search.k, out, combination); return true;
      case Found::pair:
        put_rows(rows.x, search.k, search.other, out, combination);
        info.residual = measured();
        return true;
      case Found::blurred:
        if (Space::kMaxRounds < std::numeric_limits<int>::max()) return false;
        [[fallthrough]];
      case Found::point:
        std::vector<double> f(static_cast<std::size_t>(n));
        for (index_t i = 0; i < n; ++i) {
          f[i] = std::ldexp(search.shares()[i], space.shift[i]);
          // A row that was moved nearer as a mere direction has less of a share where it really is.
          const int moved = space.size[i] == kAtCentre ? 0 : rows.exponent[i] - space.unit - space.shift[i];
          combination[i] = std::ldexp(search.shares()[i], -moved);
        }
        const double turn = search.turn(combine_rows(rows, f, space.unit, out, threads));
        info.residual = std::min(info.residual + turn, 1.0);
        if (turn > kTurn || found == Found::blurred) info.residual = measured();
        if (found == Found::blurred) info.converged = info.residual <= enough;
        return true;
    }
  }
  return false;
}

/// The same from products in float32, for rows without surprises: at half of the cost, and two passes over the rows.
///
/// The result is z = sum_i share_i x_i with share_i proportional to w_i / d_i, so that the forces w_i (x_i - z) / d_i
/// cancel exactly. With the distances D_i from z, measured in double while z is formed, what is left of the forces
/// w_i (x_i - z) / D_i is at most sum_i w_i |1 - D_i / d_i|, however the d_i came about. False if that exceeds the
/// tolerance, or the solution is not a plain point.  centre: (d).
template <class T>
bool search_quickly(CentredRows<T>& rows, const T* centre, const std::vector<double>& w, double tol, int max_iter,
                    T* out, double* combination, int threads, GeometricMedianInfo& info) {
  const index_t n = rows.x.n;
  GramSpace<T> space(rows, threads);
  if (!space.build_quickly(centre, w)) return false;
  MedianSearch<GramSpace<T>> search(space, w, 0.25 * tol);
  if (search.run(max_iter) != Found::point || !(search.residual <= 0.25 * tol)) return false;
  std::vector<double> square(static_cast<std::size_t>(n));
  const double lost = combine_and_measure(rows.x, centre, search.shares(), out, square.data(), threads);
  double apart = 0, total = 0;
  for (index_t i = 0; i < n; ++i) {
    apart += w[i] * std::abs(1 - std::sqrt(square[i]) / std::ldexp(search.distances()[i], space.unit));
    total += w[i];
  }
  const double turn = search.turn(std::ldexp(lost, -space.unit));
  if (!(apart <= tol * total) || !(turn <= kTurn)) return false;
  std::copy(search.shares(), search.shares() + n, combination);
  info = {search.iterations, true, apart / total + turn};
  return true;
}

/// The row with the least sum of distances to the others, judged by some columns: a centre near the solution unless
/// the data hides it from the sample, and then the search recentres.
template <class T>
index_t central_row(Rows<T> x) {
  constexpr index_t kBlock = 64, kBlocks = 4;
  constexpr double kMost = 0x1p500;  // squares that overflow count as this: the rows between are still told apart
  index_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  using V = simd::vec<double>;
  constexpr index_t L = simd::lanes<double>;
  std::vector<double> gaps(static_cast<std::size_t>(x.n * x.n)), y(static_cast<std::size_t>(x.n * kBlock));
  for (index_t block = 0; block < kBlocks; ++block) {
    const index_t lo = x.d <= kBlock * kBlocks ? block * kBlock : block * (x.d / kBlocks);
    const index_t hi = std::min(lo + kBlock, x.d);
    for (index_t i = 0; i < x.n && lo < hi; ++i) {
      double* yi = y.data() + i * kBlock;
      std::fill(std::copy(x.row[i] + lo, x.row[i] + hi, yi), yi + kBlock, 0.0);
      for (index_t k = 0; k < i; ++k) {
        const double* yk = y.data() + k * kBlock;
        V even{}, odd{};
        for (index_t j = 0; j < kBlock; j += 2 * L) {
          const V a = simd::load(yi + j) - simd::load(yk + j), b = simd::load(yi + j + L) - simd::load(yk + j + L);
          even = simd::madd<double>(a, a, even);
          odd = simd::madd<double>(b, b, odd);
        }
        const double sum = simd::sum_lanes<double>(even + odd);
        gaps[i * x.n + k] += sum;
        gaps[k * x.n + i] += sum;
      }
    }
  }
  for (index_t i = 0; i < x.n; ++i) {
    double sum = 0;
    for (index_t k = 0; k < x.n; ++k) sum += std::min(std::sqrt(gaps[i * x.n + k]), kMost);
    if (sum < least) {
      least = sum;
      best = i;
    }
  }
  return best;
}

}  // namespace detail

/// out = argmin_z sum_i weight_i ||x_i - z||; a row that is the minimiser is copied, the middle of a segment of
/// minimisers is taken.  x: (n, d), n >= 1, d >= 1; weight: (n) finite, > 0, or nullptr for equal ones;
/// out: (d), distinct from x; combination: (n), convex weights with out = sum_i combination_i x_i.  tol bounds the
/// residual and the error relative to the (harmonic) mean distance to the rows.  Same bits for any `threads`.
/// A row that is not finite ends it: iterations = -1, and out is not to be used.
template <class T>
BYZ_NOINLINE GeometricMedianInfo geometric_median(Rows<T> x, const double* weight, double tol, int max_iter, T* out,
                                                  double* combination, int threads) {
  std::vector<double> w(static_cast<std::size_t>(x.n), 1.0);
  if (weight != nullptr) {
    // Relative to the largest, their sum is finite.
    const double most = *std::max_element(weight, weight + x.n);
    for (index_t i = 0; i < x.n; ++i) w[i] = weight[i] / most;
  }
  if (x.d == 1 || x.n == 1) {
    const detail::CentredRows<T> rows(x);
    for (index_t i = 0; i < x.n; ++i)
      if (!rows.finite(i)) return {-1, false, std::numeric_limits<double>::quiet_NaN()};
    if (x.d == 1) return {0, true, detail::median_on_line(x, w, out, combination)};
    detail::put_rows(x, index_t{0}, index_t{0}, out, combination);
    return {0, true, 0.0};
  }
  detail::CentredRows<T> rows(x);
  GeometricMedianInfo info{0, false, 1.0};
  if (x.n <= x.d && x.n <= detail::kMaxGram) {
    const T* centre = x.row[detail::central_row(x)];
    if (sizeof(T) == 4 && x.d >= detail::kQuickColumns && tol >= detail::kQuickTolerance &&
        detail::search_quickly(rows, centre, w, tol, max_iter, out, combination, threads, info))
      return info;
    rows.set_centre(centre);
    if (detail::search_median<detail::GramSpace<T>>(rows, w, tol, max_iter, out, combination, threads, info))
      return info;
  } else {
    median(x, Even::mid, out, threads);
    rows.set_centre(out);
  }
  detail::search_median<detail::CopySpace<T>>(rows, w, tol, max_iter, out, combination, threads, info);
  return info;
}

}  // namespace byzadmm
