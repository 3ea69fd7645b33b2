// Column-wise median and trimmed mean over workers.
//
// Both run on vectors of columns: a sorting network, unrolled by the compiler up to kMaxUnrolled rows and run from a
// table up to kMaxNetwork; above, selection by counting (selection.hpp). Both return whether a non-finite value may
// have been seen (the sum of a column was not finite): the caller then looks closer. A NaN spoils its own column only;
// infinities order as usual.
#pragma once

#include <memory>

#include "byzadmm/choices.hpp"
#include "byzadmm/mean.hpp"
#include "byzadmm/network.hpp"
#include "byzadmm/parallel.hpp"
#include "byzadmm/selection.hpp"
#include "byzadmm/views.hpp"

namespace byzadmm {

namespace detail {

constexpr index_t kColumnTile = 2048;

template <class T>
BYZ_ALWAYS_INLINE simd::vec<T> middle(simd::vec<T> a, simd::vec<T> b, Even even) {
  if (even == Even::low) return a;
  if (even == Even::high) return b;
  const simd::vec<T> half = simd::splat(T(0.5));
  const simd::vec<T> sum = a + b, mid = sum * half;
  // Two finite halves may overflow when added; halving first would lose the last bit of subnormals.
  return (sum - sum) == T(0) ? mid : a * half + b * half;
}

template <class T>
BYZ_ALWAYS_INLINE void put(T* out, simd::vec<T> v, index_t count) {
  if (count >= simd::lanes<T>) simd::store(out, v);
  else simd::store_part(out, v, count);
}

/// Lane by lane: is the sum of a column not finite? Then some value is not, or finite ones overflowed together.
template <class T>
BYZ_ALWAYS_INLINE auto is_suspect(simd::vec<T> sum) {
  return (sum - sum) != T(0);
}

template <class T>
inline T between(T value, T low, T high) {
  return value < low ? low : value > high ? high : value;
}

/// The mean of `count` ascending values: added in double, and float64 sums that overflow are redone scaled, where
/// rounding must not lead past the largest value.
template <class T>
inline T mean_of(const T* value, index_t stride, index_t count) {
  double sum = 0;
  for (index_t i = 0; i < count; ++i) sum += static_cast<double>(value[i * stride]);
  if (sum - sum == 0) return static_cast<T>(sum / static_cast<double>(count));
  const double mean = mean_without_overflow(count, static_cast<double>(count), [=](index_t i, double unit) {
    return static_cast<double>(value[i * stride]) * unit;
  });
  return between(static_cast<T>(mean), value[0], value[(count - 1) * stride]);
}

template <class T>
using half_vec = typename simd::VecOf<T, simd::kBytes / 2>::type;

/// Mean of v[first..last] lane by lane, float summed as double.
template <class T>
BYZ_ALWAYS_INLINE simd::vec<T> mean_of_range(const simd::vec<T>* v, index_t first, index_t last) {
  constexpr int L = simd::lanes<T>;
  simd::vec<T> mean;
  if constexpr (sizeof(T) == 4) {
    simd::vec<double> low{}, high{};
    for (index_t i = first; i <= last; ++i) {
      half_vec<float> part[2];
      std::memcpy(part, &v[i], sizeof part);
      low += __builtin_convertvector(part[0], simd::vec<double>);
      high += __builtin_convertvector(part[1], simd::vec<double>);
    }
    const double count = static_cast<double>(last - first + 1);
    const half_vec<float> part[2] = {__builtin_convertvector(low / count, half_vec<float>),
                                     __builtin_convertvector(high / count, half_vec<float>)};
    std::memcpy(&mean, part, sizeof mean);
  } else {
    simd::vec<T> sum{};
    for (index_t i = first; i <= last; ++i) sum += v[i];
    mean = sum / static_cast<T>(last - first + 1);
    if (simd::any((sum - sum) != T(0)))
      for (int l = 0; l < L; ++l) mean[l] = mean_of(reinterpret_cast<const T*>(v + first) + l, L, last - first + 1);
  }
  return mean;
}

/// finish(v) after network Net over N rows, in columns [lo, hi), hi - lo a multiple of the vector length.
/// Every index into v is a constant from the start (no loop over i), which keeps v in registers and the compiler quick.
template <class Net, class T, class Finish, std::size_t... I>
BYZ_ALWAYS_INLINE bool unrolled_columns(const T* const* row, index_t lo, index_t hi, T* out, Finish finish,
                                        std::index_sequence<I...>) {
  simd::vec<simd::int_of<T>> suspect{};
  for (index_t j = lo; j < hi; j += simd::lanes<T>) {
    simd::vec<T> v[sizeof...(I)] = {simd::load(row[I] + j)...};
    simd::vec<T> sum[2] = {};
    ((sum[I % 2] += v[I]), ...);
    suspect |= is_suspect<T>(sum[0] + sum[1]);
    run_network<Net>(v);
    simd::store(out + j, finish(v[I]...));
  }
  return simd::any(suspect);
}

template <class T, int N>
BYZ_NOINLINE bool median_columns(const T* const* row, index_t lo, index_t hi, int even, T* out) {
  return unrolled_columns<MedianNetwork<N>, T>(
      row, lo, hi, out,
      [even](auto... v) BYZ_LAMBDA_INLINE {
        const simd::vec<T> sorted[] = {v...};
        return N % 2 == 1 ? sorted[N / 2] : middle<T>(sorted[(N - 1) / 2], sorted[N / 2], static_cast<Even>(even));
      },
      std::make_index_sequence<N>{});
}

template <class T, int N>
BYZ_NOINLINE bool trimmed_columns(const T* const* row, index_t lo, index_t hi, int f, T* out) {
  return unrolled_columns<SortNetwork<N>, T>(
      row, lo, hi, out,
      [f](auto... v) BYZ_LAMBDA_INLINE {
        const simd::vec<T> sorted[] = {v...};  // in memory: f is not a constant
        return mean_of_range<T>(sorted, f, N - 1 - f);
      },
      std::make_index_sequence<N>{});
}

/// A rule over whole vectors of columns [lo, hi), unrolled for one n; `option` is the rule's own (even, f).
template <class T>
using UnrolledRule = bool (*)(const T* const* row, index_t lo, index_t hi, int option, T* out);

/// The rule for any bounds: the last columns go through a copy padded to whole vectors.
template <class T>
bool with_padded_tail(UnrolledRule<T> rule, Rows<T> x, index_t lo, index_t hi, int option, T* out) {
  constexpr index_t L = simd::lanes<T>;
  const index_t whole = lo + (hi - lo) / L * L, rest = hi - whole;
  bool suspect = whole > lo && rule(x.row, lo, whole, option, out);
  if (rest > 0) {
    T copy[kMaxUnrolled][L], tail[L];
    const T* pointer[kMaxUnrolled];
    for (index_t i = 0; i < x.n; ++i) {
      simd::store(copy[i], simd::load_part(x.row[i] + whole, rest));
      pointer[i] = copy[i];
    }
    suspect |= rule(pointer, 0, L, option, tail);
    std::memcpy(out + whole, tail, static_cast<std::size_t>(rest) * sizeof(T));
  }
  return suspect;
}

template <class T>
void median_selected(const simd::vec<T>* x, index_t n, Even even, simd::vec<T>& result) {
  const auto pair = ColumnSelector<T>(x, n).at_rank_and_next((n - 1) / 2);
  result = n % 2 == 1 ? pair[0] : middle<T>(pair[0], pair[1], even);
}

/// Ranks f .. n-1-f: everything strictly between the two end values, and as many copies of each end as belong there.
template <class T>
void trimmed_mean_selected(const simd::vec<T>* x, index_t n, index_t f, simd::vec<T>& result) {
  using V = simd::vec<T>;
  constexpr int L = simd::lanes<T>;
  const ColumnSelector<T> column(x, n);
  const V a = column.at_rank_and_next(f)[0], b = column.at_rank_and_next(n - 1 - f)[0];
  const auto copies_a = column.count_up_to(a) - static_cast<simd::int_of<T>>(f);
  auto copies_b = copies_a - copies_a + static_cast<simd::int_of<T>>(n - f);
  for (index_t i = 0; i < n; ++i) copies_b += x[i] < b;
  const auto kept = static_cast<double>(n - 2 * f);
  // The inner values in double, in row order; `unit` shrinks them when float64 would overflow.
  const auto total = [&](double unit, double* sum) {
    for (int l = 0; l < L; ++l) sum[l] = 0;
    for (index_t i = 0; i < n; ++i) {
      const V inner = ((x[i] > a) & (x[i] < b)) ? x[i] : V{};
      for (int l = 0; l < L; ++l) sum[l] += static_cast<double>(inner[l]) * unit;
    }
    for (int l = 0; l < L; ++l)
      sum[l] += static_cast<double>(copies_a[l]) * (static_cast<double>(a[l]) * unit) +
                static_cast<double>(copies_b[l]) * (static_cast<double>(b[l]) * unit);
  };
  double sum[L], scaled[L] = {};
  total(1.0, sum);
  bool overflowed = false;
  for (int l = 0; l < L; ++l) overflowed |= sum[l] - sum[l] != 0;
  if (overflowed) total(1.0 / kept, scaled);
  for (int l = 0; l < L; ++l)
    result[l] = a[l] == b[l]           ? a[l]
                : sum[l] - sum[l] == 0 ? static_cast<T>(sum[l] / kept)
                                       : between(static_cast<T>(scaled[l]), a[l], b[l]);
}

template <class T, int... N>
constexpr std::array<UnrolledRule<T>, sizeof...(N)> unrolled_medians(std::integer_sequence<int, N...>) {
  return {&median_columns<T, N + 1>...};
}
template <class T, int... N>
constexpr std::array<UnrolledRule<T>, sizeof...(N)> unrolled_trimmed_means(std::integer_sequence<int, N...>) {
  return {&trimmed_columns<T, N + 1>...};
}

/// tile(lo, hi, slot) over the columns; true if any tile says so.
template <class Tile>
bool any_tile(index_t d, index_t width, int threads, Tile&& tile) {
  const auto tiles = static_cast<std::size_t>((d + width - 1) / width);
  const std::unique_ptr<bool[]> said(new bool[tiles]());
  for_tiles(d, width, threads, [&](index_t lo, index_t hi, int slot) { said[lo / width] = tile(lo, hi, slot); });
  bool any = false;
  for (std::size_t t = 0; t < tiles; ++t) any |= said[t];
  return any;
}

/// rule(packed columns, result) on each vector of columns of x, packed so that its n values lie side by side. The rule
/// may reorder them. The columns packed next are fetched meanwhile, a share of the rows before each vector.
template <class T, class Rule>
bool on_packed_columns(Rows<T> x, T* out, int threads, Rule&& rule) {
  using V = simd::vec<T>;
  constexpr index_t L = simd::lanes<T>;
  const index_t columns = select_columns<T>(x.n), groups = columns / L, scratch = x.n * groups;
  const index_t tiles = (x.d + columns - 1) / columns, slots = threads < tiles ? threads : tiles;
  const std::unique_ptr<V[]> packed(new V[static_cast<std::size_t>(slots * scratch)]);
  return any_tile(x.d, columns, threads, [&](index_t lo, index_t hi, int slot) {
    V* mine = packed.get() + slot * scratch;
    pack_columns<T>(x, lo, hi, mine);
    const index_t next = hi + columns < x.d ? hi + columns : x.d;
    simd::vec<simd::int_of<T>> suspect{};
    for (index_t g = 0; g * L < hi - lo && !stopping(); ++g, mine += x.n) {
      prefetch_columns<T>(x, g * x.n / groups, (g + 1) * x.n / groups, hi, next);
      V sum{}, result;
      for (index_t i = 0; i < x.n; ++i) sum += mine[i];
      suspect |= is_suspect<T>(sum);
      rule(mine, result);
      put(out + lo + g * L, result, hi - lo - g * L);
    }
    return simd::any(suspect);
  });
}

template <class T>
bool on_unrolled_columns(UnrolledRule<T> rule, Rows<T> x, int option, T* out, int threads) {
  return any_tile(x.d, kColumnTile, threads,
                  [&](index_t lo, index_t hi, int) { return with_padded_tail(rule, x, lo, hi, option, out); });
}

}  // namespace detail

/// out_j = median_i x_ij.  x: (n, d), n >= 1; out: (d), distinct from x.
template <class T>
BYZ_NOINLINE bool median(Rows<T> x, Even even, T* out, int threads) {
  static constexpr auto unrolled = detail::unrolled_medians<T>(std::make_integer_sequence<int, kMaxUnrolled>{});
  const index_t low = (x.n - 1) / 2, high = x.n / 2;
  if (x.n <= kMaxUnrolled)
    return detail::on_unrolled_columns(unrolled[x.n - 1], x, static_cast<int>(even), out, threads);
  if (x.n <= kMaxNetwork) {
    const auto table = selection_table(static_cast<int>(x.n), static_cast<int>(low), static_cast<int>(high));
    return detail::on_packed_columns(x, out, threads, [&](simd::vec<T>* v, simd::vec<T>& result) {
      run_table(table, v);
      result = low == high ? v[low] : detail::middle<T>(v[low], v[high], even);
    });
  }
  return detail::on_packed_columns(x, out, threads, [&](simd::vec<T>* v, simd::vec<T>& result) {
    detail::median_selected<T>(v, x.n, even, result);
  });
}

/// out_j = mean of x_ij without the f smallest and the f largest.  x: (n, d), 0 <= 2f < n; out: (d), distinct from x.
template <class T>
BYZ_NOINLINE bool trimmed_mean(Rows<T> x, index_t f, T* out, int threads) {
  static constexpr auto unrolled = detail::unrolled_trimmed_means<T>(std::make_integer_sequence<int, kMaxUnrolled>{});
  if (x.n <= kMaxUnrolled) return detail::on_unrolled_columns(unrolled[x.n - 1], x, static_cast<int>(f), out, threads);
  if (x.n <= kMaxNetwork) {
    const index_t last = x.n - 1 - f;
    const auto table = selection_table(static_cast<int>(x.n), static_cast<int>(f), static_cast<int>(last));
    return detail::on_packed_columns(x, out, threads, [&](simd::vec<T>* v, simd::vec<T>& result) {
      run_table(table, v);
      result = detail::mean_of_range<T>(v, f, last);
    });
  }
  return detail::on_packed_columns(x, out, threads, [&](simd::vec<T>* v, simd::vec<T>& result) {
    detail::trimmed_mean_selected<T>(v, x.n, f, result);
  });
}

}  // namespace byzadmm
