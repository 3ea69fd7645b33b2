// Covers of graphs, the top eigenpair, and the rules built on them: against enumeration and the definition.
#include <numeric>

#include "byzadmm/diameter.hpp"
#include "byzadmm/variance.hpp"
#include "support.hpp"

namespace byzadmm::tests {

namespace {

using Rng = std::mt19937_64;

index_t below(Rng& rng, index_t n) { return static_cast<index_t>(rng() % static_cast<std::uint64_t>(n)); }
double unit(Rng& rng) { return static_cast<double>(rng() >> 11) * 0x1p-53; }

void test_cover() {
  Rng rng(1);
  bool ok = true;
  for (int turn = 0; turn < 400; ++turn) {
    const index_t n = 1 + below(rng, 12), percent = 10 + below(rng, 60);
    std::vector<unsigned> edges(static_cast<std::size_t>(n));
    std::vector<Bits> near(static_cast<std::size_t>(n), Bits(n));
    Bits all(n);
    for (index_t i = 0; i < n; ++i) {
      all.add(i);
      for (index_t k = 0; k < i; ++k)
        if (below(rng, 100) < percent) {
          near[i].add(k);
          near[k].add(i);
          edges[i] |= 1u << k;
        }
    }
    const auto covers = [&](unsigned set) {
      for (index_t i = 0; i < n; ++i)
        if (!(set >> i & 1) && (edges[i] & ~set)) return false;
      return true;
    };
    int least = static_cast<int>(n);
    for (unsigned set = 0; set < 1u << n; ++set)
      if (covers(set)) least = std::min(least, __builtin_popcount(set));
    CoverSearch search(near);
    for (index_t k = 0; k <= n; ++k) {
      Bits cover(n);
      const bool found = search.find(all, k, cover);
      ok = ok && found == (k >= least) && !search.gave_up();
      unsigned set = 0;
      cover.each([&](index_t i) { set |= 1u << i; });
      ok = ok && (!found || (covers(set) && __builtin_popcount(set) <= k));
    }
  }
  check(ok, "CoverSearch: the smallest covers of random graphs");
}

/// Rows with repeated, vanishing and single eigenvalues among them.
void test_eigenpair() {
  Rng rng(2);
  double worst = 0;
  for (int turn = 0; turn < 600; ++turn) {
    const index_t m = 1 + below(rng, 40), rank = turn % 3 == 2 ? 1 : 1 + below(rng, m);
    std::vector<double> y(static_cast<std::size_t>(m * rank)), a(static_cast<std::size_t>(m * m));
    for (double& v : y) v = turn % 3 == 0 ? static_cast<double>(below(rng, 3) - 1) : unit(rng) - 0.5;
    if (turn % 3 == 2)  // one row apart from all others, which are equal
      for (index_t i = 0; i < m; ++i) y[i] = (i == turn % m ? 1.0 : 0.0) - 1.0 / static_cast<double>(m);
    TopEigenpair pair(m);
    for (index_t i = 0; i < m; ++i)
      for (index_t k = 0; k < m; ++k) {
        for (index_t j = 0; j < rank; ++j) a[i * m + k] += y[i * rank + j] * y[k * rank + j];
        pair.matrix[i * m + k] = a[i * m + k];
      }
    double trace = 0, off = 0, length = 0;
    for (index_t i = 0; i < m; ++i) trace += a[i * m + i];
    const double value = pair.find(m);
    for (index_t i = 0; i < m; ++i) {
      double sum = -value * pair.vector[i];
      for (index_t k = 0; k < m; ++k) sum += a[i * m + k] * pair.vector[k];
      off += sum * sum;
      length += pair.vector[i] * pair.vector[i];
    }
    // The largest: beyond it, elimination of the matrix - x meets negative pivots only.
    bool largest = true;
    std::vector<double> left = a;
    for (index_t i = 0; i < m; ++i) left[i * m + i] -= value * (1 + 1e-10);
    for (index_t i = 0; i < m && largest; ++i) {
      largest = left[i * m + i] < 0;
      for (index_t r = i + 1; r < m; ++r)
        for (index_t k = m - 1; k >= i; --k) left[r * m + k] -= left[r * m + i] / left[i * m + i] * left[i * m + k];
    }
    if (trace == 0) largest = value == 0;
    worst = std::max({worst, std::sqrt(off) / (trace == 0 ? 1 : value), std::fabs(length - 1), largest ? 0.0 : 1.0});
    if (!(off == off && length == length)) worst = kInf<double>;
  }
  check(worst < 1e-13, "TopEigenpair: a unit vector of the largest eigenvalue");
}

/// Both choices against all sets in lexicographic order, in double and in Wide.
template <class N>
void test_choices() {
  Rng rng(3);
  bool diameters = true, variances = true;
  for (int turn = 0; turn < 60; ++turn) {
    const index_t n = 3 + below(rng, 7), f = 1 + below(rng, (n - 1) / 2), m = n - f, d = 1 + below(rng, 3);
    std::vector<double> x(static_cast<std::size_t>(n * d));
    for (double& v : x) v = turn % 2 ? static_cast<double>(below(rng, 4)) : unit(rng);
    std::vector<N> squared(static_cast<std::size_t>(n * n), N(0));
    std::vector<double> plain(static_cast<std::size_t>(n * n));
    for (index_t e = 0; e < n * n; ++e) {
      for (index_t j = 0; j < d; ++j) plain[e] += std::pow(x[e / n * d + j] - x[e % n * d + j], 2);
      squared[e] = plain[e];
    }
    std::vector<index_t> closest, narrowest;
    double diameter = kInf<double>, variance = kInf<double>;
    std::vector<char> taken(static_cast<std::size_t>(n));
    std::fill(taken.begin(), taken.begin() + m, 1);
    TopEigenpair pair(m);
    do {
      std::vector<index_t> rows;
      for (index_t i = 0; i < n; ++i)
        if (taken[i]) rows.push_back(i);
      double widest = 0;
      for (index_t e = 0; e < m * m; ++e) {
        widest = std::max(widest, plain[rows[e / m] * n + rows[e % m]]);
        double product = 0;
        for (index_t j = 0; j < d; ++j) {
          double mean = 0;
          for (const index_t i : rows) mean += x[i * d + j] / static_cast<double>(m);
          product += (x[rows[e / m] * d + j] - mean) * (x[rows[e % m] * d + j] - mean);
        }
        pair.matrix[e] = product;
      }
      const double top = widest > 0 ? pair.find(m) : 0;
      if (widest < diameter) diameter = widest, closest = rows;
      if (top < variance - 1e-9) variance = top, narrowest = rows;
    } while (std::prev_permutation(taken.begin(), taken.end()));
    Buffer<index_t> chosen(m);
    diameters = least_diameter(squared.data(), n, f, chosen.get()) && diameters &&
                std::equal(closest.begin(), closest.end(), chosen.get());
    least_variance(squared.data(), n, f, chosen.get());
    variances = variances && std::equal(narrowest.begin(), narrowest.end(), chosen.get());
  }
  check(diameters, "least_diameter: the first of the best sets");
  check(variances, "least_variance: the first of the best sets");
}

/// On a line: 0, 0, 0 and 8 have the mean 2, tau 4, 4, 4 and 36; then nothing is left to lose.
void test_filter() {
  const Wide far(0.5, 2001);
  for (const bool huge : {false, true}) {
    std::vector<Wide> squared(16);
    for (const index_t i : {0, 1, 2}) squared[i * 4 + 3] = squared[12 + i] = huge ? far : Wide(64);
    Buffer<double> weight(4);
    const int rounds = filtered_weights(squared.data(), 4, 1, 0x1p-40, weight.get());
    check(rounds == 2 && weight[3] == 0 && weight[1] == weight[0] && weight[2] == weight[0] &&
              close(weight[0], 8.0 / 9, 1e-14),
          "filtered_weights: an outlier of any size loses its weight");
  }
}

}  // namespace

void test_spread() {
  test_cover();
  test_eigenpair();
  test_choices<double>();
  test_choices<Wide>();
  test_filter();
}

}  // namespace byzadmm::tests
