// Lengths of rows, and rows shortened to a given one, around zero (clip) or around a point that follows them (centered
// clipping).
#pragma once

#include "byzadmm/distances.hpp"
#include "byzadmm/mean.hpp"
#include "byzadmm/selection.hpp"

namespace byzadmm {

namespace detail {

/// (x - center) * unit, where unit is a power of two, at most 1/2 if the difference may overflow.
template <class T>
BYZ_ALWAYS_INLINE double difference(T x, T center, double unit) {
  const double a = static_cast<double>(x), b = static_cast<double>(center), apart = a - b;
  return std::isinf(apart) ? a * unit - b * unit : apart * unit;
}

/// mantissa * 2^exponent with the mantissa in [1, 2), or 0: the longest rows are longer than the largest float64.
struct Length {
  double mantissa;
  int exponent;
  double value() const { return std::ldexp(mantissa, exponent); }
};

/// `number` times 2^shift.
inline Length length_from(double number, int shift = 0) {
  int exponent = 0;
  const double mantissa = 2 * std::frexp(number, &exponent);
  return {mantissa, exponent - 1 + shift};
}

/// ||x - center|| from its square, done over in units of the largest difference where squares left the range of T.
/// center may be null.
template <class T>
Length length_of(double squared, const T* x, const T* center, index_t d) {
  const auto apart = [=](index_t j, double unit) { return difference<T>(x[j], center ? center[j] : T(0), unit); };
  int unit = 0;
  if (!is_safe<T>(squared)) {
    double largest = 0;
    for (index_t j = 0; j < d; ++j) largest = std::max(largest, std::fabs(apart(j, 1.0)));
    unit = largest > 0 ? std::max(std::min(std::ilogb(largest), 1022), -1022) : 0;
    squared = 0;
    const double factor = std::ldexp(1.0, -unit);
    for (index_t j = 0; j < d; ++j) {
      const double scaled = apart(j, factor);
      squared += scaled * scaled;
    }
  }
  return length_from(std::sqrt(squared), unit);
}

/// length_i = the root of the sum of partial over tiles.  partial: (tiles, n).
template <class T>
void finish_lengths(Rows<T> x, const T* center, const double* partial, index_t tiles, Length* length, int threads) {
  for_tasks(x.n, threads, [&](index_t i, int) {
    double sum = 0;
    for (index_t t = 0; t < tiles; ++t) sum += partial[t * x.n + i];
    length[i] = length_of(sum, x.row[i], center, x.d);
  });
}

/// Whether length <= limit.
inline bool within(Length length, Length limit) {
  if (length.mantissa == 0 || limit.mantissa == 0) return length.mantissa <= limit.mantissa;
  const bool less = length.exponent < limit.exponent && length.mantissa == length.mantissa;
  return less || (length.exponent == limit.exponent && length.mantissa <= limit.mantissa);
}

/// min(1, limit / length) as a product: differences are multiplied by `unit`, which keeps them finite and makes up for
/// a quotient below the normal range, and then by `rest`.
struct Shortening {
  double unit, rest;
};

inline Shortening shortening(Length length, Length limit) {
  if (within(length, limit)) return {1.0, 1.0};
  if (limit.mantissa == 0) return {0.5, 0.0};
  const double ratio = limit.mantissa / length.mantissa;
  const int exponent = limit.exponent - length.exponent;
  const double factor = std::ldexp(ratio, exponent);
  if (!(factor >= std::numeric_limits<double>::min()))  // halves: what is lost on the way is nothing in the end
    return {std::ldexp(1.0, exponent / 2), std::ldexp(ratio, exponent - exponent / 2)};
  return length.exponent < std::numeric_limits<double>::max_exponent ? Shortening{1.0, factor}
                                                                     : Shortening{0.5, factor * 2};
}

/// sum of (x_j - center_j)^2 over columns [lo, hi), at most a tile; center may be null.
template <class T>
BYZ_ALWAYS_INLINE double squares(const T* x, const T* center, index_t lo, index_t hi) {
  using V = simd::vec<T>;
  constexpr index_t L = simd::lanes<T>;
  V sum[4] = {};
  const auto apart = [&](index_t j, index_t count) {
    const V value = count >= L ? simd::load(x + j) : simd::load_part(x + j, count);
    if (!center) return value;
    return value - (count >= L ? simd::load(center + j) : simd::load_part(center + j, count));
  };
  index_t j = lo;
  for (; j + 4 * L <= hi; j += 4 * L)
    for (int k = 0; k < 4; ++k) {
      const V value = apart(j + k * L, L);
      sum[k] = simd::madd<T>(value, value, sum[k]);
    }
  for (; j < hi; j += L) {
    const V value = apart(j, hi - j);
    sum[0] = simd::madd<T>(value, value, sum[0]);
  }
  return static_cast<double>(simd::sum_lanes<T>((sum[0] + sum[1]) + (sum[2] + sum[3])));
}

/// ||x - center||^2 a tile at a time, in T, where T is wide enough for it; center may be null.
template <class T>
double squares_of_row(const T* x, const T* center, index_t d) {
  constexpr index_t kTile = kDistanceTile<T>;
  double sum = 0;
  for (index_t lo = 0; lo < d; lo += kTile) sum += squares<T>(x, center, lo, std::min(lo + kTile, d));
  return sum;
}

/// The longest difference whose moves are added in S, and the inverse of the smallest factor.
template <class S>
constexpr double kLongestRow = sizeof(S) == 4 ? 1e30 : 1e290;

/// How many columns ahead rows are fetched, where all are read side by side: what lies there fits the second-level
/// cache.
template <class T>
BYZ_ALWAYS_INLINE index_t rows_ahead(index_t n) {
  return (n <= 32 ? 2048 : 512) / static_cast<index_t>(sizeof(T));
}

/// sum += the numbers of a vector of S, as double.
template <class S>
BYZ_ALWAYS_INLINE void add_wide(simd::vec<S> v, simd::vec<double>* sum) {
  if constexpr (sizeof(S) == 4) {
    sum[0] += simd::widen_low(v);
    sum[1] += simd::widen_high(v);
  } else {
    sum[0] += v;
  }
}

/// v_j += (1/n) sum_i factor_i (x_ij - v_j) over the vectors of S from `at`: four rows in S, then in double.
template <class S, int kVectors, class T>
BYZ_ALWAYS_INLINE void move_strip(Rows<T> x, const S* factor, index_t at, index_t ahead, T* v) {
  using V = simd::vec<S>;
  constexpr index_t L = simd::lanes<S>, kLine = 64 / static_cast<index_t>(sizeof(T));
  constexpr int kWide = sizeof(double) / sizeof(S), kSums = kVectors * kWide;
  const simd::vec<double> n = simd::splat(static_cast<double>(x.n));
  V from[kVectors], part[kVectors];
  simd::vec<double> sum[kSums] = {};
  for (int k = 0; k < kVectors; ++k) from[k] = simd::load_as<S>(v + at + k * L);
  const auto move = [&](index_t i, int k)
                        BYZ_LAMBDA_INLINE { return (simd::load_as<S>(x.row[i] + at + k * L) - from[k]) * factor[i]; };
  index_t i = 0;
  for (; i + 4 <= x.n; i += 4) {
    for (index_t next = i; next < i + 4; ++next)
      for (index_t j = 0; j < kVectors * L; j += kLine) __builtin_prefetch(x.row[next] + at + ahead + j);
    for (int k = 0; k < kVectors; ++k) part[k] = (move(i, k) + move(i + 1, k)) + (move(i + 2, k) + move(i + 3, k));
    for (int k = 0; k < kVectors; ++k) add_wide<S>(part[k], sum + k * kWide);
  }
  for (; i < x.n; ++i)
    for (int k = 0; k < kVectors; ++k) add_wide<S>(move(i, k), sum + k * kWide);
  for (int k = 0; k < kSums; ++k) {
    T* to = v + at + k * simd::lanes<double>;
    simd::store_as(to, simd::load_as<double>(to) + sum[k] / n);
  }
}

/// The same over columns [lo, hi); factor: (n).
template <class S, class T>
BYZ_ALWAYS_INLINE void add_moves(Rows<T> x, const S* factor, index_t lo, index_t hi, T* v) {
  constexpr int kVectors = 2;
  constexpr index_t kStrip = kVectors * simd::lanes<S>;
  index_t j = lo;
  for (; j + kStrip <= hi; j += kStrip)
    move_strip<S, kVectors>(x, factor, j, std::min(rows_ahead<T>(x.n), x.d - kStrip - j), v);
  for (; j < hi; ++j) {
    const S from = static_cast<S>(v[j]);
    const auto move = [&](index_t i) { return (static_cast<S>(x.row[i][j]) - from) * factor[i]; };
    double sum = 0;
    index_t i = 0;
    for (; i + 4 <= x.n; i += 4) sum += static_cast<double>((move(i) + move(i + 1)) + (move(i + 2) + move(i + 3)));
    for (; i < x.n; ++i) sum += static_cast<double>(move(i));
    v[j] = static_cast<T>(static_cast<double>(v[j]) + sum / static_cast<double>(x.n));
  }
}

/// v_j + (1/n) sum_i (x_ij - v_j) min(1, ...) of one column, finite for any finite numbers.
template <class T>
double moved_carefully(Rows<T> x, T v, const Shortening* by, index_t j) {
  const auto count = static_cast<double>(x.n);
  const auto move = [=](index_t i, double unit) {
    return difference<T>(x.row[i][j], v, by[i].unit) * unit * by[i].rest;
  };
  double sum = 0;
  for (index_t i = 0; i < x.n; ++i) sum += move(i, 1.0);
  const double mean = sum - sum == 0 ? sum / count : mean_without_overflow(x.n, count, move);
  constexpr double kLargest = std::numeric_limits<double>::max();
  return std::min(std::max(static_cast<double>(v) + mean, -kLargest), kLargest);  // only rounding leads beyond
}

/// to_j = x_j unit rest, multiplied in double.
template <class T>
BYZ_ALWAYS_INLINE void scale_row(const T* BYZ_RESTRICT x, double unit, double rest, index_t d, T* BYZ_RESTRICT to) {
  constexpr index_t L = simd::lanes<double>;
  index_t j = 0;
  for (; j + L <= d; j += L) simd::store_as(to + j, simd::load_as<double>(x + j) * unit * rest);
  for (; j < d; ++j) to[j] = static_cast<T>(static_cast<double>(x[j]) * unit * rest);
}

}  // namespace detail

/// v <- v + (1/n) sum_i (x_i - v) min(1, tau / ||x_i - v||), n_iter times.
/// x: (n, d); v: (d), finite, the center and then the result, distinct from x; factor: (n), the last min(1, ...). If
/// some x_ij is not finite, v stays as it is and factor is NaN. A tile of columns is moved and measured while it is in
/// the cache: n_iter + 1 passes over the rows.
template <class T>
BYZ_NOINLINE void centered_clip(Rows<T> x, double tau, int n_iter, T* v, double* factor, int threads) {
  using namespace detail;
  constexpr index_t kTile = 2 * kDistanceTile<T>;
  const index_t n = x.n, tiles = (x.d + kTile - 1) / kTile;
  const std::unique_ptr<double[]> partial(new double[static_cast<std::size_t>(tiles * n)]);
  std::vector<Length> length(static_cast<std::size_t>(n));
  std::vector<Shortening> by(static_cast<std::size_t>(n));
  std::vector<T> rounded(static_cast<std::size_t>(n));  // the factors
  const Length limit = length_from(tau);
  const bool far = n * x.d * static_cast<index_t>(sizeof(T)) > index_t{1}
                                                                   << 20;  // no second-level cache holds the rows
  const auto measure = [&](index_t lo, index_t hi) {
    for (index_t i = 0; i < n; ++i) {
      if (far) prefetch_columns<T>(x, i, i + 1, hi, std::min(hi + kTile, x.d));  // each row is left after 4 kB
      partial[lo / kTile * n + i] = squares(x.row[i], v, lo, hi);
    }
  };
  for_tiles(x.d, kTile, threads, [&](index_t lo, index_t hi, int) { measure(lo, hi); });
  for (int iteration = 0; iteration < n_iter; ++iteration) {
    finish_lengths(x, v, partial.get(), tiles, length.data(), threads);
    const auto finite = [](Length l) { return std::isfinite(l.mantissa); };
    if (iteration == 0 && !std::all_of(length.begin(), length.end(), finite)) {
      std::fill(factor, factor + n, std::numeric_limits<double>::quiet_NaN());
      return;
    }
    const bool again = iteration + 1 < n_iter;
    double longest = 0, smallest = 1;
    for (index_t i = 0; i < n; ++i) {
      by[i] = shortening(length[i], limit);
      factor[i] = by[i].unit * by[i].rest;
      rounded[i] = static_cast<T>(factor[i]);
      longest = std::max(longest, length[i].value());
      smallest = std::min(smallest, factor[i]);
    }
    // Whether S is wide enough for every difference and every factor.
    const auto fits = [=](double limit) { return longest <= limit && smallest >= 1.0 / limit; };
    const bool narrow = fits(kLongestRow<float>), wide = fits(kLongestRow<double>);
    for_tiles(x.d, kTile, threads, [&](index_t lo, index_t hi, int) {
      if (wide) {
        if (narrow) add_moves<T>(x, rounded.data(), lo, hi, v);
        else add_moves<double>(x, factor, lo, hi, v);
      } else {
        for (index_t j = lo; j < hi; ++j) v[j] = static_cast<T>(moved_carefully(x, v[j], by.data(), j));
      }
      if (again) measure(lo, hi);
    });
  }
}

/// ||x_i - center|| = mantissa_i * 2^exponent_i, in the order of Wide: by exponent, then mantissa; a row that is not
/// finite is infinitely long.  x: (n, d); center: (d), finite, or nullptr for 0; mantissa, exponent: (n).
template <class T>
BYZ_NOINLINE void lengths(Rows<T> x, const T* center, double* mantissa, std::int32_t* exponent, int threads) {
  using namespace detail;
  for_tasks(x.n, threads, [&](index_t i, int) {
    const T* row = x.row[i];
    const double squared = squares_of_row(row, center, x.d);
    const bool finite = squared <= std::numeric_limits<double>::max() ||
                        std::all_of(row, row + x.d, [](T v) { return std::isfinite(v); });
    const Length length = finite ? length_of(squared, row, center, x.d)
                                 : Length{std::numeric_limits<double>::infinity(), Wide::kInfinite};
    mantissa[i] = length.mantissa;
    exponent[i] = length.mantissa == 0 ? Wide::kZero : static_cast<std::int32_t>(length.exponent);
  });
}

/// out_i = x_i min(1, limit / ||x_i||) with limit = max_norm * 2^exponent.  x: (n, d); out: (n, d), distinct from x;
/// norm: (n), of the rows as they came, infinite beyond float64.
template <class T>
BYZ_NOINLINE void clip(Rows<T> x, double max_norm, int exponent, T* out, double* norm, int threads) {
  using namespace detail;
  const Length limit = length_from(max_norm, exponent);
  for_tasks(x.n, threads, [&](index_t i, int) {
    const Length length = length_of<T>(squares_of_row<T>(x.row[i], nullptr, x.d), x.row[i], nullptr, x.d);
    norm[i] = length.value();
    T* to = out + i * x.d;
    const auto [unit, rest] = shortening(length, limit);
    if (unit == 1 && rest == 1) std::copy(x.row[i], x.row[i] + x.d, to);
    else scale_row(x.row[i], unit, rest, x.d, to);
  });
}

}  // namespace byzadmm
