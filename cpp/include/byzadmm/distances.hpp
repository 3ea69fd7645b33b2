// Pairwise squared distances between rows, once, for every rule that needs them.
//
// Tiles of columns are copied side by side, and a block of row pairs is kept in registers; a tile is summed in T, tiles
// in double. Every pair is summed in the same order, so equal rows have equal distances, bit by bit.
//
// Differences are squared as they are: |x|^2 + |y|^2 - 2xy cancels when vectors are large and close together. For many
// rows the arithmetic costs more than the memory, and that formula takes half of it: it is used there, on rows moved
// to a point in their middle, and every pair that still cancels is done over by differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "byzadmm/cache.hpp"
#include "byzadmm/network.hpp"
#include "byzadmm/parallel.hpp"
#include "byzadmm/simd.hpp"
#include "byzadmm/views.hpp"
#include "byzadmm/wide.hpp"

namespace byzadmm {

namespace detail {

/// Columns of a tile: 2 kB of a row, so that the rows of a register block stay in the first-level cache.
template <class T>
constexpr index_t kDistanceTile = 2048 / static_cast<index_t>(sizeof(T));
constexpr index_t kPairRows = 3;
constexpr index_t kStay = 12;                       // rows of a tile that stay in the first-level cache
constexpr index_t kDistanceBlock = 72;              // rows per block: two packed blocks fit the second-level cache
constexpr index_t kPartialSums = index_t{1} << 16;  // bounds the memory of sums per range of columns

/// Squared distances outside this range may have met an overflow or an underflow of T on the way.
template <class T>
constexpr double kSmallestSafe = sizeof(T) == 4 ? 1e-30 : 1e-290;
template <class T>
constexpr double kLargestSafe = sizeof(T) == 4 ? 1e37 : 1e300;

template <class T>
bool is_safe(double squared) {
  return squared >= kSmallestSafe<T> && squared <= kLargestSafe<T>;
}

/// What a block of pairs of rows adds up: products, squared differences, or those and the differences inside of `a`.
enum class Pairs { products, differences, with_own };

/// sums_ik += a tile's share of the pairs of three rows from i and three from k, as many of them as there is room for,
/// over `width` columns, a whole number of vectors.  rows: (n, kDistanceTile); sums: (n, n).  On its own, so that
/// nothing around it disturbs the registers: 12 sums, 3 rows and a difference fill 16 of them.
template <Pairs kPairs, class T>
BYZ_NOINLINE void add_block(const T* rows, index_t width, index_t i, index_t k, index_t room_i, index_t room_k,
                            double* sums, index_t n) {
  using V = simd::vec<T>;
  constexpr index_t stride = kDistanceTile<T>;
  static_assert(kPairRows == 3);
  const T *a0 = rows + i * stride, *a1 = a0 + stride, *a2 = a1 + stride;
  const T *b0 = rows + k * stride, *b1 = b0 + stride, *b2 = b1 + stride;
  V s00{}, s01{}, s02{}, s10{}, s11{}, s12{}, s20{}, s21{}, s22{}, own0{}, own1{}, own2{};  // arrays go to memory
  const auto add = [](V p, V q, V& to) BYZ_LAMBDA_INLINE {
    to = kPairs == Pairs::products ? simd::madd<T>(p, q, to) : simd::madd<T>(p - q, p - q, to);
  };
  for (index_t j = 0; j < width; j += simd::lanes<T>) {
    const V x = simd::load(a0 + j), y = simd::load(a1 + j), z = simd::load(a2 + j);
    if (kPairs == Pairs::with_own) add(x, y, own0), add(x, z, own1), add(y, z, own2);
    const V u = simd::load(b0 + j);
    add(x, u, s00), add(y, u, s10), add(z, u, s20);
    const V v = simd::load(b1 + j);
    add(x, v, s01), add(y, v, s11), add(z, v, s21);
    const V w = simd::load(b2 + j);
    add(x, w, s02), add(y, w, s12), add(z, w, s22);
  }
  T total[kPairRows + 1][4];
  simd::sum_lanes_of_four<T>({s00, s01, s02, V{}}, total[0]);
  simd::sum_lanes_of_four<T>({s10, s11, s12, V{}}, total[1]);
  simd::sum_lanes_of_four<T>({s20, s21, s22, V{}}, total[2]);
  if (kPairs == Pairs::with_own) simd::sum_lanes_of_four<T>({own0, own1, own2, V{}}, total[3]);
  for (index_t r = 0; r < std::min(kPairRows, room_i); ++r) {
    double* to = sums + (i + r) * n + k;
    if (room_k >= 4)
      for (int c = 0; c < 4; ++c) to[c] += static_cast<double>(total[r][c]);
    else
      for (index_t c = 0; c < std::min(kPairRows, room_k); ++c) to[c] += static_cast<double>(total[r][c]);
  }
  if (kPairs != Pairs::with_own) return;
  const T* inside = total[3];
  double* to = sums + i * n + i;
  if (room_i > 1) to[1] += static_cast<double>(inside[0]);
  if (room_i > 2) to[2] += static_cast<double>(inside[1]), to[n + 2] += static_cast<double>(inside[2]);
}

/// Columns [lo, hi) of the rows, less `middle` if there is one, into (n, kDistanceTile), zeros up to a whole vector.
template <class T>
void pack_rows(Rows<T> x, index_t lo, index_t hi, const T* middle, T* packed) {
  constexpr index_t L = simd::lanes<T>;
  const index_t width = hi - lo, whole = width / L * L, left = width - whole;
  for (index_t i = 0; i < x.n; ++i, packed += kDistanceTile<T>) {
    const T* row = x.row[i] + lo;
    if (!middle) {
      std::copy(row, row + width, packed);
      if (left) std::fill(packed + width, packed + whole + L, T(0));
      continue;
    }
    for (index_t j = 0; j < whole; j += L) simd::store(packed + j, simd::load(row + j) - simd::load(middle + j));
    if (left) simd::store(packed + whole, simd::load_part(row + whole, left) - simd::load_part(middle + whole, left));
  }
}

/// The columns [lo, hi) of a point in the middle of the rows, the median of a few of them. Attackers may own these few:
/// then most pairs cancel, and `distances_by_products` gives up.
template <class T>
void find_middle(Rows<T> x, index_t lo, index_t hi, T* middle) {
  constexpr index_t L = simd::lanes<T>;
  constexpr int kSample = 9;
  for (index_t j = lo; j < hi; j += L) {
    simd::vec<T> sample[kSample];
    for (int s = 0; s < kSample; ++s) {
      const T* row = x.row[(2 * s + 1) * x.n / (2 * kSample)] + j;
      sample[s] = j + L <= hi ? simd::load(row) : simd::load_part(row, hi - j);
    }
    run_network<MedianNetwork<kSample>>(sample);
    simd::store(middle + j - lo, sample[kSample / 2]);
  }
}

/// sums_ik += a tile's share of the pairs of a block of rows from `first_a` and one from `first_b`, for i <= k.
template <bool kProducts, class T>
void add_blocks(const T* rows, index_t n, index_t first_a, index_t first_b, index_t width, double* sums,
                Ahead<T>& ahead) {
  constexpr index_t B = kPairRows;
  const index_t last_a = std::min(first_a + kDistanceBlock, n), last_b = std::min(first_b + kDistanceBlock, n);
  const index_t groups = (n + B - 1) / B, lines = 2 * ahead.size() / (groups * (groups + 1)) + 1;
  for (index_t stay = first_a; stay < last_a; stay += kStay)
    for (index_t k = std::max(first_b, stay); k < last_b; k += B)
      for (index_t i = stay; i < std::min({stay + kStay, last_a, k + 1}); i += B) {
        if (!kProducts && i == k && k + B < last_b) continue;  // comes with the block to its right
        const bool own = i == k || (i + B == k && i >= first_b);
        constexpr Pairs kOthers = kProducts ? Pairs::products : Pairs::differences;
        const auto add = kProducts || !own ? add_block<kOthers, T> : add_block<Pairs::with_own, T>;
        ahead.ask(lines);
        add(rows, width, i, k, last_a - i, !kProducts && i == k ? 0 : last_b - k, sums, n);
      }
}

/// to_ik = sum over the columns of (x_ij - x_kj)^2 for i < k, or for i <= k of the products of rows less `centre` (d),
/// of rows less a point in their middle if that is null.  to: (n, n).
template <bool kProducts, class T>
void pair_sums(Rows<T> x, const T* centre, double* to, int threads) {
  constexpr index_t kTile = kDistanceTile<T>, kBlock = kDistanceBlock;
  const index_t n = x.n, tiles = (x.d + kTile - 1) / kTile, padded = n + kPairRows;
  std::vector<std::pair<index_t, index_t>> blocks;
  for (index_t a = 0; a < n; a += kBlock)
    for (index_t b = a; b < n; b += kBlock) blocks.emplace_back(a, b);
  // Few rows: threads share ranges of columns, whose bounds depend on n and d. Many rows: they share the blocks of
  // pairs, and each copies all rows for itself; a pair's sum has the same order whoever computes it.
  const index_t ranges = std::max<index_t>(1, std::min({index_t{16}, kPartialSums / (n * n), tiles}));
  const index_t shares = ranges > 1 ? 1 : std::min<index_t>(threads, static_cast<index_t>(blocks.size()));
  const auto slots = static_cast<std::size_t>(std::min<index_t>(threads, ranges * shares));
  const std::unique_ptr<T[]> packed(new T[slots * static_cast<std::size_t>(padded * kTile) + kCacheLine]());
  const std::unique_ptr<double[]> partial(new double[static_cast<std::size_t>(ranges > 1 ? ranges * n * n : 0)]());
  if (ranges == 1) for_tasks(n, threads, [&](index_t i, int) { std::fill(to + i * n, to + (i + 1) * n, 0.0); });
  for_tasks(ranges * shares, threads, [&](index_t task, int slot) {
    const index_t range = task / shares, share = task % shares;
    T* rows = line_start(packed.get()) + slot * padded * kTile;
    double* sums = ranges > 1 ? partial.get() + range * n * n : to;
    for (index_t t = range * tiles / ranges; t < (range + 1) * tiles / ranges; ++t) {
      const index_t lo = t * kTile, hi = std::min(lo + kTile, x.d);
      const index_t width = (hi - lo + simd::lanes<T> - 1) / simd::lanes<T> * simd::lanes<T>;
      T middle[kTile];
      if (kProducts && !centre) find_middle(x, lo, hi, middle);
      pack_rows(x, lo, hi, !kProducts ? nullptr : centre ? centre + lo : middle, rows);
      Ahead<T> ahead(x, hi, n <= kBlock ? std::min(hi + kTile, x.d) : hi);
      for (std::size_t p = static_cast<std::size_t>(share); p < blocks.size(); p += static_cast<std::size_t>(shares)) {
        if (stopping()) return;
        const auto [first_a, first_b] = blocks[p];
        add_blocks<kProducts>(rows, n, first_a, first_b, width, sums, ahead);
      }
    }
  });
  for (index_t i = 0; i < n && ranges > 1; ++i)
    for (index_t k = i; k < n; ++k) {
      double sum = 0;
      for (index_t r = 0; r < ranges; ++r) sum += partial[r * n * n + i * n + k];
      to[i * n + k] = sum;
    }
}

/// ||x - y||^2 by differences, a tile at a time.
template <class T>
double pair_distance(const T* x, const T* y, index_t d) {
  using V = simd::vec<T>;
  constexpr index_t L = simd::lanes<T>;
  double total = 0;
  for (index_t lo = 0; lo < d; lo += kDistanceTile<T>) {
    const index_t hi = std::min(lo + kDistanceTile<T>, d);
    V even{}, odd{};
    index_t j = lo;
    for (; j + 2 * L <= hi; j += 2 * L) {
      const V first = simd::load(x + j) - simd::load(y + j), second = simd::load(x + j + L) - simd::load(y + j + L);
      even = simd::madd<T>(first, first, even);
      odd = simd::madd<T>(second, second, odd);
    }
    for (; j < hi; j += L) {
      const index_t count = std::min(L, hi - j);
      const V apart = simd::load_part(x + j, count) - simd::load_part(y + j, count);
      even = simd::madd<T>(apart, apart, even);
    }
    total += static_cast<double>(simd::sum_lanes<T>(even + odd));
  }
  return total;
}

/// Upper triangle of squared distances through products; false if too many pairs cancel, or a sum is not finite.
template <class T>
bool distances_by_products(Rows<T> x, double* squared, int threads) {
  constexpr double kCancels = 0.1;
  const index_t n = x.n;
  pair_sums<true, T>(x, nullptr, squared, threads);
  std::vector<double> norm(static_cast<std::size_t>(n));
  for (index_t i = 0; i < n; ++i) {
    norm[i] = squared[i * n + i];
    squared[i * n + i] = 0;
    if (!(norm[i] <= kLargestSafe<T>)) return false;
  }
  std::vector<std::pair<index_t, index_t>> again;
  const auto most = static_cast<std::size_t>(n * n / 8);
  for (index_t i = 0; i < n; ++i) {
    check_stop();
    for (index_t k = i + 1; k < n; ++k) {
      const double both = norm[i] + norm[k], apart = both - 2 * squared[i * n + k];
      squared[i * n + k] = apart;
      if (!(apart >= kCancels * both && apart > kSmallestSafe<T>)) again.emplace_back(i, k);
      if (again.size() > most) return false;
    }
  }
  for_tasks(static_cast<index_t>(again.size()), threads, [&](index_t p, int) {
    const auto [i, k] = again[p];
    squared[i * n + k] = pair_distance(x.row[i], x.row[k], x.d);
  });
  return true;
}

/// The first `count` numbers at p (a vector of them at most) as doubles, zeros in the other lanes.
template <class T>
BYZ_ALWAYS_INLINE simd::vec<double> load_doubles(const T* p, index_t count) {
  constexpr index_t L = simd::lanes<double>;
  if (count >= L) return simd::load_as<double>(p);
  T part[L] = {};
  std::copy(p, p + count, part);
  return simd::load_as<double>(part);
}

/// ||x - y||^2, or ||x||^2 if y is null: scaled by the largest difference, so that squares neither overflow nor vanish.
template <class T>
Wide wide_square(const T* x, const T* y, index_t d) {
  using V = simd::vec<double>;
  constexpr index_t L = simd::lanes<double>;
  double half = 1, unit = 1;
  int exponent = 0;
  const auto apart = [&](index_t j, index_t count) BYZ_LAMBDA_INLINE {
    const V value = load_doubles(x + j, count) * half;
    return (y ? value - load_doubles(y + j, count) * half : value) * unit;
  };
  if constexpr (sizeof(T) == sizeof(double)) {  // the squares of float fit into double as they are
    const auto find_largest = [&] {
      V largest{};
      for (index_t j = 0; j < d; j += L) {
        const V here = apart(j, d - j);
        largest = simd::max(simd::max(here, -here), largest);
      }
      double lane[L];
      simd::store(lane, largest);
      return *std::max_element(lane, lane + L);
    };
    double largest = find_largest();
    if (std::isinf(largest)) {  // the difference of two of the largest numbers
      half = 0.5;
      largest = find_largest();
    }
    if (largest > 0) exponent = std::max(std::min(std::ilogb(largest), 1022), -1022);
    unit = std::ldexp(1.0, -exponent);
  }
  double total = 0;
  for (index_t lo = 0; lo < d; lo += kDistanceTile<T>) {
    const index_t hi = std::min(lo + kDistanceTile<T>, d);
    V sum{};
    for (index_t j = lo; j < hi; j += L) {
      const V here = apart(j, hi - j);
      sum = simd::madd<double>(here, here, sum);
    }
    total += simd::sum_lanes<double>(sum);
  }
  return {total, 2 * exponent + (half < 1 ? 2 : 0)};
}

/// ||x - y||, or ||x|| if y is null; infinite where it is beyond the largest double.
template <class T>
double safe_distance(const T* x, const T* y, index_t d) {
  return static_cast<double>(sqrt(wide_square(x, y, d)));
}

/// Squared distances of rows out of the range of T, again and scaled; which of them are equal is found out once for
/// each row, not for each pair, because colluders send many equal ones.  Fills `exponent` where double is too narrow.
template <class T>
void refine_distances(Rows<T> x, const bool* bad, double* squared, std::vector<std::int32_t>& exponent, int threads) {
  const index_t n = x.n;
  std::vector<index_t> twin(static_cast<std::size_t>(n));
  std::vector<std::pair<index_t, index_t>> pairs;
  for (index_t i = 0; i < n; ++i) twin[i] = i;
  for (index_t i = 0; i < n; ++i)
    for (index_t k = i + 1; k < n; ++k) {
      const double here = squared[i * n + k];
      if (bad[i] || bad[k] || is_safe<T>(here) || (here == 0 && twin[i] == twin[k])) continue;
      if (here == 0 && std::equal(x.row[i], x.row[i] + x.d, x.row[k])) twin[k] = twin[i];
      else pairs.emplace_back(i, k);
    }
  std::vector<Wide> again(pairs.size());
  for_tasks(static_cast<index_t>(pairs.size()), threads,
            [&](index_t p, int) { again[p] = wide_square(x.row[pairs[p].first], x.row[pairs[p].second], x.d); });
  const bool fits =
      std::all_of(again.begin(), again.end(), [](Wide w) { return is_safe<double>(static_cast<double>(w)); });
  if (!fits) {
    exponent.resize(static_cast<std::size_t>(n * n));
    for (index_t e = 0; e < n * n; ++e) {
      const Wide split = squared[e];
      squared[e] = split.mantissa;
      exponent[e] = split.exponent;
    }
  }
  for (std::size_t p = 0; p < pairs.size(); ++p)
    for (const index_t e : {pairs[p].first * n + pairs[p].second, pairs[p].second * n + pairs[p].first}) {
      squared[e] = fits ? static_cast<double>(again[p]) : again[p].mantissa;
      if (!fits) exponent[e] = again[p].exponent;
    }
}

}  // namespace detail

/// squared_ik = ||x_i - x_k||^2, and bad_i = row i is not finite: its distances to others are infinite.
/// x: (n, d); squared: (n, n), symmetric, zeros on the diagonal; bad: (n).  exponent: empty, unless some square is out
/// of the range of double: then (n, n), and every square is the Wide squared_ik * 2^exponent_ik.
template <class T>
BYZ_NOINLINE void squared_distances(Rows<T> x, double* squared, std::vector<std::int32_t>& exponent, bool* bad,
                                    int threads) {
  using namespace detail;
  const index_t n = x.n;
  if (n <= kDistanceBlock || !distances_by_products(x, squared, threads))
    pair_sums<false, T>(x, nullptr, squared, threads);
  // A pair with a finite distance consists of finite rows: only a row without one is looked at.
  std::fill(bad, bad + n, true);
  for (index_t i = 0; i < n; ++i) {
    squared[i * n + i] = 0;
    for (index_t k = i + 1; k < n; ++k)
      if (std::isfinite(squared[i * n + k])) bad[i] = bad[k] = false;
  }
  for (index_t i = 0; i < n; ++i)
    bad[i] = bad[i] && !std::all_of(x.row[i], x.row[i] + x.d, [](T value) { return std::isfinite(value); });
  bool all_safe = true;
  constexpr index_t kSide = 32;  // square by square, so that the mirror image is not written a cache line a number
  for (index_t left = 0; left < n; left += kSide) {
    check_stop();
    for (index_t i = 0; i < std::min(left + kSide, n); ++i)
      for (index_t k = std::max(left, i + 1); k < std::min(left + kSide, n); ++k) {
        double& here = squared[i * n + k];
        if (bad[i] || bad[k]) here = std::numeric_limits<double>::infinity();
        else all_safe = all_safe && is_safe<T>(here);
        squared[k * n + i] = here;
      }
  }
  exponent.clear();
  if (!all_safe) refine_distances(x, bad, squared, exponent, threads);
}

}  // namespace byzadmm
