// Distances and the rules built on them, clipping, mixing, means of the closest values: against plain loops.
#include <numeric>

#include "byzadmm/clipping.hpp"
#include "byzadmm/closest.hpp"
#include "byzadmm/distances.hpp"
#include "byzadmm/krum.hpp"
#include "byzadmm/medoid.hpp"
#include "byzadmm/mixing.hpp"
#include "byzadmm/ranking.hpp"
#include "byzadmm/sign_majority.hpp"
#include "support.hpp"

namespace byzadmm::tests {

namespace {

/// (n, n) squared distances in double, straight from the definition.
template <class T>
Buffer<double> plain_distances(const RowBuffers<T>& x) {
  Buffer<double> squared(x.n * x.n);
  for (index_t i = 0; i < x.n; ++i)
    for (index_t k = 0; k < x.n; ++k)
      for (index_t j = 0; j < x.d; ++j) {
        const double apart = static_cast<double>(x.row[i][j]) - static_cast<double>(x.row[k][j]);
        squared[i * x.n + k] += apart * apart;
      }
  return squared;
}

template <class T>
void test_distances() {
  // 80 rows and more go through products, fewer through differences; odd sizes end in the middle of a vector and tile.
  for (const index_t n : {1, 2, 5, 20, 80, 101})
    for (const index_t d : {1, 7, 64, 513, 1030}) {
      RowBuffers<T> x(n, d);
      for (auto& row : x.row)
        for (index_t j = 0; j < d; ++j) row[j] += T(30);  // far from the origin: a bare product would cancel
      const Buffer<double> expected = plain_distances(x);
      for (const int threads : {1, 3}) {
        Buffer<double> squared(n * n);
        Buffer<bool> bad(n);
        std::vector<std::int32_t> exponent;
        squared_distances<T>(x.view(), squared.get(), exponent, bad.get(), threads);
        bool ok = exponent.empty() && std::none_of(bad.get(), bad.get() + n, [](bool b) { return b; });
        for (index_t e = 0; e < n * n; ++e)
          ok = ok && close(squared[e], expected[e], 200 * kEps<T> * (1 + expected[e]));
        check(ok, "squared_distances " + name_of<T>() + " n=" + std::to_string(n) + " d=" + std::to_string(d));
      }
    }
  RowBuffers<T> x(6, 33);
  x.row[2][17] = kNaN<T>;
  x.row[4][0] = kInf<T>;
  Buffer<double> squared(36);
  Buffer<bool> bad(6);
  std::vector<std::int32_t> exponent;
  squared_distances<T>(x.view(), squared.get(), exponent, bad.get(), 1);
  check(bad[2] && bad[4] && !bad[0] && std::isinf(squared[2 * 6 + 4]) && std::isinf(squared[0 * 6 + 2]),
        "squared_distances: rows that are not finite are infinitely far");
}

/// Rows on a line, each a power of two times the same one: their squares leave the range of T, and of double.
template <class T>
void test_any_magnitude() {
  constexpr index_t n = 7, d = 37;
  constexpr int kLow = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
  constexpr int kStep = (std::numeric_limits<T>::max_exponent - 4 - kLow) / (n - 1);
  RowBuffers<T> x(n, d);
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < d; ++j) x.row[i][j] = std::ldexp(T(j % 3 + 1), kLow + static_cast<int>(i) * kStep);
  Buffer<double> squared(n * n), score(n);
  Buffer<bool> bad(n);
  std::vector<std::int32_t> exponent;
  squared_distances<T>(x.view(), squared.get(), exponent, bad.get(), 2);
  check(exponent.empty() == (sizeof(T) == 4), "squared_distances: exponents where double is too narrow");
  std::vector<Wide> wide;
  for (index_t e = 0; e < n * n; ++e)
    wide.push_back(exponent.empty() ? Wide(squared[e]) : Wide(squared[e], exponent[static_cast<std::size_t>(e)]));
  bool ok = true;
  for (index_t i = 0; i < n; ++i)
    for (index_t k = 0; k < i; ++k) {
      double sum = 0;  // in units of row i
      for (index_t j = 0; j < d; ++j)
        sum += std::pow(static_cast<double>(j % 3 + 1) * (1 - std::ldexp(1.0, static_cast<int>(k - i) * kStep)), 2);
      const Wide expected(sum, 2 * (kLow + static_cast<int>(i) * kStep)), got = wide[i * n + k];
      ok = ok && got.exponent == expected.exponent && close(got.mantissa, expected.mantissa, 8 * kEps<T>) &&
           got == wide[k * n + i];
    }
  check(ok, "squared_distances of any magnitude " + name_of<T>());
  check(medoid(x.view(), wide.data(), nullptr, score.get(), 2) == n / 2, "medoid of any magnitude " + name_of<T>());
  Buffer<double> weight(n);
  for (index_t i = 0; i < n; ++i) weight[i] = i == 0 ? 10 : static_cast<double>(i % 2);
  check(medoid(x.view(), wide.data(), weight.get(), score.get(), 1) == 0, "medoid with weights " + name_of<T>());
}

void test_wide() {
  const double values[] = {0, 5e-324, 1e-300, 1.5, 7, 1e300, std::numeric_limits<double>::infinity()};
  bool ok = true;
  for (const double a : values)
    for (const double b : values) {
      ok = ok && (Wide(a) < Wide(b)) == (a < b) && (Wide(a) == Wide(b)) == (a == b);
      ok = ok && static_cast<double>(Wide(a) + Wide(b)) == a + b && static_cast<double>(0.5 * Wide(a)) == 0.5 * a;
      if (b <= a && std::isfinite(b)) ok = ok && static_cast<double>(Wide(a) - Wide(b)) == a - b;
    }
  for (const int e : {-2150, -3, 0, 3, 2150}) ok = ok && sqrt(Wide(9, 2 * e)) == Wide(3, e);
  check(ok, "Wide: the arithmetic of double");
}

void test_choices() {
  std::uniform_int_distribution<int> whole(0, 9);
  for (const index_t n : {3, 7, 11, 30})
    for (const index_t f : {index_t{0}, (n - 3) / 4}) {
      // Whole numbers: sums are exact, and ties are many.
      Buffer<double> squared(n * n);
      for (index_t i = 0; i < n; ++i)
        for (index_t k = 0; k < i; ++k) squared[i * n + k] = squared[k * n + i] = whole(generator);
      const auto score_of = [&](index_t i, const std::vector<char>& left, index_t neighbors) {
        std::vector<double> others;
        for (index_t k = 0; k < n; ++k)
          if (k != i && left[static_cast<std::size_t>(k)]) others.push_back(squared[i * n + k]);
        std::sort(others.begin(), others.end());
        const auto count = std::min<std::size_t>(others.size(), static_cast<std::size_t>(neighbors));
        return std::accumulate(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(count), 0.0);
      };
      std::vector<char> left(static_cast<std::size_t>(n), 1);
      Buffer<double> score(n);
      krum_scores(squared.get(), n, n - f - 2, score.get(), 2);
      bool ok = true;
      for (index_t i = 0; i < n; ++i) ok = ok && score[i] == score_of(i, left, n - f - 2);
      check(ok, "krum_scores n=" + std::to_string(n));
      Buffer<double> weight(n), weighted(n);
      for (index_t i = 0; i < n; ++i) weight[i] = 1;
      krum_scores(squared.get(), weight.get(), n, static_cast<double>(n - f - 2), weighted.get(), 2);
      check(std::equal(score.get(), score.get() + n, weighted.get()), "krum_scores with weights of one");
      const index_t count = n - 2 * f;
      Buffer<index_t> chosen(count);
      bulyan_choice(squared.get(), n, f, count, chosen.get());
      for (index_t c = 0; c < count; ++c) {
        const index_t neighbors = std::max<index_t>(1, n - c - f - 2);
        index_t best = -1;
        for (index_t i = 0; i < n; ++i)
          if (left[static_cast<std::size_t>(i)] &&
              (best < 0 || score_of(i, left, neighbors) < score_of(best, left, neighbors)))
            best = i;
        ok = ok && chosen[c] == best;
        left[static_cast<std::size_t>(chosen[c])] = 0;
      }
      check(ok, "bulyan_choice n=" + std::to_string(n) + " f=" + std::to_string(f));

      std::vector<Wide> wide(squared.get(), squared.get() + n * n), wide_score(static_cast<std::size_t>(n));
      Buffer<index_t> wide_chosen(count);
      krum_scores(wide.data(), n, n - f - 2, wide_score.data(), 2);
      for (index_t i = 0; i < n; ++i)
        ok = ok && static_cast<double>(wide_score[static_cast<std::size_t>(i)]) == score[i];
      krum_scores(wide.data(), weight.get(), n, static_cast<double>(n - f - 2), wide_score.data(), 2);
      for (index_t i = 0; i < n; ++i)
        ok = ok && static_cast<double>(wide_score[static_cast<std::size_t>(i)]) == score[i];
      bulyan_choice(wide.data(), n, f, count, wide_chosen.get());
      check(ok && std::equal(chosen.get(), chosen.get() + count, wide_chosen.get()), "the same choices with Wide");
    }
}

/// Rows on a line, in a matrix with a gap behind each row: the one in the middle of the close ones, whatever the far
/// and the broken one are.
template <class T>
void test_krum_of_rows() {
  const T place[] = {1, T(1.25), T(0.75), T(1.5), 0, 0, T(0.5)};
  const T far[][2] = {{50, kNaN<T>}, {kInf<T>, std::numeric_limits<T>::max()}, {T(1e30), -kInf<T>}};
  for (const index_t d : {1, 2, 19})
    for (const auto& pair : far) {
      Buffer<T> matrix(7 * (d + 3));
      for (index_t i = 0; i < 7; ++i)
        for (index_t j = 0; j < d + 3; ++j)
          matrix[i * (d + 3) + j] = j >= d ? kNaN<T> : i == 4 ? pair[0] : i == 5 ? pair[1] : place[i];
      check(krum<T>(MatrixRows<T>(matrix.get(), 7, d, d + 3), 2, 2) == 0, "krum " + name_of<T>());
    }
}

template <class T>
void test_means_of_some() {
  for (const index_t n : {1, 3, 4, 9, 21})
    for (const index_t d : {1, 15, 130, 300}) {
      RowBuffers<T> x(n, d);
      const index_t size = (n + 1) / 2;
      Buffer<index_t> neighbor(n * size);
      for (index_t i = 0; i < n; ++i)
        for (index_t s = 0; s < size; ++s) neighbor[i * size + s] = (i + 2 * s) % n;
      // An even n meets the same row twice by steps of two: take neighbours in order there.
      if (n % 2 == 0)
        for (index_t i = 0; i < n; ++i)
          for (index_t s = 0; s < size; ++s) neighbor[i * size + s] = (i + s) % n;
      Buffer<T> mixed(n * d);
      neighbor_means<T>(x.view(), neighbor.get(), n, size, mixed.get(), 2);
      bool ok = true;
      for (index_t i = 0; i < n; ++i)
        for (index_t j = 0; j < d; ++j) {
          double sum = 0;
          for (index_t s = 0; s < size; ++s) sum += static_cast<double>(x.row[neighbor[i * size + s]][j]);
          ok = ok && close(static_cast<double>(mixed[i * d + j]), sum / static_cast<double>(size), 4 * kEps<T>);
        }
      check(ok, "neighbor_means " + name_of<T>() + " n=" + std::to_string(n) + " d=" + std::to_string(d));

      Buffer<T> center(d), out(d);
      fill_normal(center);
      closest_mean<T>(x.view(), center.get(), size, out.get(), 2);
      ok = true;
      for (index_t j = 0; j < d; ++j) {
        std::vector<index_t> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), 0);
        const auto apart = [&](index_t i) { return std::abs(x.row[i][j] - center[j]); };
        std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) { return apart(a) < apart(b); });
        double sum = 0;
        for (index_t s = 0; s < size; ++s) sum += static_cast<double>(x.row[order[static_cast<std::size_t>(s)]][j]);
        ok = ok && close(static_cast<double>(out[j]), sum / static_cast<double>(size), 4 * kEps<T>);
      }
      check(ok, "closest_mean " + name_of<T>() + " n=" + std::to_string(n) + " d=" + std::to_string(d));
    }
}

template <class T>
void test_clipping() {
  for (const index_t n : {1, 4, 7})
    for (const index_t d : {1, 9, 600, 1100}) {
      const RowBuffers<T> x(n, d);
      const double tau = 0.5 * std::sqrt(static_cast<double>(d));
      Buffer<T> clipped(n * d), v(d);
      Buffer<double> norm(n), factor(n), plain(d);
      clip<T>(x.view(), tau, 0, clipped.get(), norm.get(), 2);
      bool ok = true;
      for (index_t i = 0; i < n; ++i) {
        double square = 0;
        for (index_t j = 0; j < d; ++j) square += static_cast<double>(x.row[i][j]) * static_cast<double>(x.row[i][j]);
        const double shrink = std::min(1.0, tau / std::sqrt(square));
        for (index_t j = 0; j < d; ++j)
          ok = ok &&
               close(static_cast<double>(clipped[i * d + j]), shrink * static_cast<double>(x.row[i][j]), 40 * kEps<T>);
      }
      check(ok, "clip " + name_of<T>() + " n=" + std::to_string(n) + " d=" + std::to_string(d));
      Buffer<std::int32_t> exponent(n);
      lengths<T>(x.view(), x.row[n - 1].get(), factor.get(), exponent.get(), 2);
      ok = factor[n - 1] == 0 && exponent[n - 1] == Wide::kZero;
      for (index_t i = 0; i < n - 1; ++i) {
        double square = 0;
        for (index_t j = 0; j < d; ++j)
          square += std::pow(static_cast<double>(x.row[i][j]) - static_cast<double>(x.row[n - 1][j]), 2);
        ok = ok && close(std::ldexp(factor[i], exponent[i]) / std::sqrt(square), 1.0, 40 * kEps<T>);
      }
      check(ok, "lengths " + name_of<T>() + " n=" + std::to_string(n) + " d=" + std::to_string(d));
      centered_clip<T>(x.view(), tau, 3, v.get(), factor.get(), 2);
      for (int iteration = 0; iteration < 3; ++iteration) {
        Buffer<double> move(d);
        for (index_t i = 0; i < n; ++i) {
          double square = 0;
          for (index_t j = 0; j < d; ++j) square += std::pow(static_cast<double>(x.row[i][j]) - plain[j], 2);
          const double shrink = std::min(1.0, tau / std::sqrt(square));
          for (index_t j = 0; j < d; ++j) move[j] += shrink * (static_cast<double>(x.row[i][j]) - plain[j]);
        }
        for (index_t j = 0; j < d; ++j) plain[j] += move[j] / static_cast<double>(n);
      }
      ok = true;
      for (index_t j = 0; j < d; ++j) ok = ok && close(static_cast<double>(v[j]), plain[j], 60 * kEps<T>);
      check(ok, "centered_clip " + name_of<T>() + " n=" + std::to_string(n) + " d=" + std::to_string(d));
    }
}

/// Ranks with ties, where the lowest index comes first, of plain and of wide numbers: against a stable sort.
void test_ranking() {
  const index_t n = 13;
  std::uniform_int_distribution<int> few(1, 3);
  Buffer<double> score(n), squared(n * n);
  Buffer<std::int32_t> exponent(n), power(n * n);
  for (index_t i = 0; i < n; ++i) {
    score[i] = few(generator) / 4.0;
    exponent[i] = few(generator);
    for (index_t k = 0; k < i; ++k) {
      squared[i * n + k] = squared[k * n + i] = few(generator) / 4.0;
      power[i * n + k] = power[k * n + i] = few(generator);
    }
  }
  for (const bool wide : {false, true}) {
    const auto value = [&](const Buffer<double>& mantissa, const Buffer<std::int32_t>& shift, index_t e) {
      return Wide(mantissa[e], wide ? shift[e] : 0);
    };
    bool ok = true;
    std::vector<index_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), index_t{0});
    std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) {
      if (wide && exponent[a] != exponent[b]) return exponent[a] < exponent[b];
      return score[a] < score[b];
    });
    for (const index_t count : {index_t{1}, index_t{5}, n}) {
      Buffer<index_t> chosen(count), neighbor(n * count);
      least_scores(score.get(), wide ? exponent.get() : nullptr, n, count, chosen.get());
      ok = ok && std::equal(chosen.get(), chosen.get() + count, order.begin());
      nearest_rows({squared.get(), wide ? power.get() : nullptr, n}, count, neighbor.get(), 2);
      for (index_t i = 0; i < n; ++i) {
        std::vector<index_t> others(static_cast<std::size_t>(n));
        std::iota(others.begin(), others.end(), index_t{0});
        std::stable_sort(others.begin(), others.end(), [&](index_t a, index_t b) {
          if (a == i || b == i) return a == i && b != i;
          return value(squared, power, i * n + a) < value(squared, power, i * n + b);
        });
        std::vector<index_t> mine(neighbor.get() + i * count, neighbor.get() + (i + 1) * count);
        std::sort(mine.begin(), mine.end());
        std::sort(others.begin(), others.begin() + count);
        ok = ok && std::equal(mine.begin(), mine.end(), others.begin());
      }
    }
    check(ok, wide ? "ranks of wide numbers" : "ranks");
  }
}

template <class T>
void test_sign_majority() {
  for (const index_t n : {1, 4, 7})
    for (const index_t d : {1, 511, 1100}) {
      RowBuffers<T> x(n, d);
      Buffer<T> out(d);
      bool ok = !sign_majority<T>(x.view(), out.get(), 2);
      for (index_t j = 0; j < d; ++j) {
        int votes = 0;
        for (index_t i = 0; i < n; ++i) votes += (x.row[i][j] > 0) - (x.row[i][j] < 0);
        ok = ok && out[j] == static_cast<T>((votes > 0) - (votes < 0));
      }
      check(ok, "sign_majority " + name_of<T>() + " n=" + std::to_string(n) + " d=" + std::to_string(d));
    }
}

}  // namespace

void test_selection() {
  test_wide();
  test_choices();
  test_ranking();
  test_distances<float>();
  test_distances<double>();
  test_krum_of_rows<float>();
  test_krum_of_rows<double>();
  test_any_magnitude<float>();
  test_any_magnitude<double>();
  test_means_of_some<float>();
  test_means_of_some<double>();
  test_clipping<float>();
  test_clipping<double>();
  test_sign_majority<float>();
  test_sign_majority<double>();
}

}  // namespace byzadmm::tests
