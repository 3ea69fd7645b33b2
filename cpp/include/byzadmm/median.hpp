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

/// The mean of `count` values: added in double, and float64 sums that overflow are redone scaled, where rounding must
/// not lead past the largest value.
template <class T>
inline T mean_of(const T* value, index_t stride, index_t count) {
  double sum = 0;
  T low = value[0], high = low;
  for (index_t i = 0; i < count; ++i) {
    const T v = value[i * stride];
    sum += static_cast<double>(v);
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  if (sum - sum == 0) return static_cast<T>(sum / static_cast<double>(count));
  const double mean = mean_without_overflow(count, static_cast<double>(count), [=](index_t i, double unit) {
    return static_cast<double>(value[i * stride]) * unit;
  });
  return between(static_cast<T>(mean), low, high);
}

/// Mean of v[first..last] lane by lane, float summed as double.
template <class T>
BYZ_ALWAYS_INLINE simd::vec<T> mean_of_range(const simd::vec<T>* v, index_t first, index_t last) {
  const double count = static_cast<double>(last - first + 1);
  if constexpr (sizeof(T) == 4) {
    simd::vec<double> low{}, high{};
    for (index_t i = first; i <= last; ++i) {
      low += simd::widen_low(v[i]);
      high += simd::widen_high(v[i]);
    }
    return simd::narrow_both(low / count, high / count);
  } else {
    simd::vec<T> sum{};
    for (index_t i = first; i <= last; ++i) sum += v[i];
    simd::vec<T> mean = sum / count;
    if (simd::any((sum - sum) != T(0)))
      for (int l = 0; l < simd::lanes<T>; ++l)
        mean[l] = mean_of(reinterpret_cast<const T*>(v + first) + l, simd::lanes<T>, last - first + 1);
    return mean;
  }
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

template <class T, int N, int F>
BYZ_NOINLINE bool trimmed_columns(const T* const* row, index_t lo, index_t hi, int, T* out) {
  return unrolled_columns<TrimNetwork<N, F>, T>(
      row, lo, hi, out,
      [](auto... v) BYZ_LAMBDA_INLINE {
        const simd::vec<T> sorted[] = {v...};
        return mean_of_range<T>(sorted, F, N - 1 - F);
      },
      std::make_index_sequence<N>{});
}

/// A rule over whole vectors of columns [lo, hi), unrolled for one n; `option` is the rule's own (even).
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

/// total / count lane by lane of the values that `inside` picks, in row order, float summed as double. False if some
/// sum is not finite.
template <class T, class Inside>
BYZ_ALWAYS_INLINE bool mean_inside(const simd::vec<T>* x, index_t n, double count, Inside inside, simd::vec<T>& mean) {
  const auto values = [&](index_t i) { return (simd::vec<T>)((simd::vec<simd::int_of<T>>)x[i] & inside(i)); };
  if constexpr (sizeof(T) == 4) {
    simd::vec<double> low{}, high{};
    for (index_t i = 0; i < n; ++i) {
      const simd::vec<T> v = values(i);
      low += simd::widen_low(v);
      high += simd::widen_high(v);
    }
    mean = simd::narrow_both(low / count, high / count);
    return !simd::any((low - low != 0.0) | (high - high != 0.0));
  } else {
    constexpr index_t kRows = 32;  // added first, so that rounding does not grow with n
    simd::vec<T> sum{};
    for (index_t first = 0; first < n; first += kRows) {
      simd::vec<T> part{};
      for (index_t i = first; i < n && i < first + kRows; ++i) part += values(i);
      sum += part;
    }
    mean = sum / count;
    return !simd::any(sum - sum != 0.0);
  }
}

/// Mean of the ranks f .. n-1-f, where values that cut them off are found; where ties or values that are not finite
/// hide those: of everything strictly between the two end values, and of as many copies of each end as belong there.
template <class T>
void trimmed_mean_selected(const simd::vec<T>* x, index_t n, index_t f, simd::vec<T>& result) {
  using V = simd::vec<T>;
  using M = simd::vec<simd::int_of<T>>;
  constexpr int L = simd::lanes<T>;
  const ColumnSelector<T> column(x, n);
  const auto kept = static_cast<double>(n - 2 * f);
  V cut[2];
  if (f > 0 && column.cuts(f, cut) &&
      mean_inside<T>(x, n, kept, [&](index_t i) { return (x[i] > cut[0]) & (x[i] <= cut[1]); }, result))
    return;
  const V a = column.at_rank_and_next(f)[0], b = column.at_rank_and_next(n - 1 - f)[0];
  const M copies_a = column.count_up_to(a) - static_cast<simd::int_of<T>>(f);
  M copies_b = M{} + static_cast<simd::int_of<T>>(n - f), left_a = copies_a;
  for (index_t i = 0; i < n; ++i) copies_b += x[i] < b;
  copies_b = a == b ? M{} : copies_b;
  M left_b = copies_b;
  left_a = a == b ? M{} + static_cast<simd::int_of<T>>(n - 2 * f) : left_a;
  const auto inside = [&](index_t i) {  // the same values as above, in the same order
    const M at_a = (x[i] == a) & (left_a > 0), at_b = (x[i] == b) & (left_b > 0);
    left_a += at_a;
    left_b += at_b;
    return ((x[i] > a) & (x[i] < b)) | at_a | at_b;
  };
  if (mean_inside<T>(x, n, kept, inside, result)) return;
  for (int l = 0; l < L; ++l) {
    if (result[l] - result[l] == 0) continue;
    double sum = static_cast<double>(copies_a[l]) * (static_cast<double>(a[l]) / kept) +
                 static_cast<double>(copies_b[l]) * (static_cast<double>(b[l]) / kept);
    for (index_t i = 0; i < n; ++i)
      if (x[i][l] > a[l] && x[i][l] < b[l]) sum += static_cast<double>(x[i][l]) / kept;
    result[l] = a[l] == b[l] ? a[l] : between(static_cast<T>(sum), a[l], b[l]);
  }
}

template <class T, int... N>
constexpr std::array<UnrolledRule<T>, sizeof...(N)> unrolled_medians(std::integer_sequence<int, N...>) {
  return {&median_columns<T, N + 1>...};
}
constexpr int kTrims = (kMaxUnrolled + 1) / 2;  // f < kTrims

/// The rule for n rows and f at [(n - 1) * kTrims + f], nullptr where 2f >= n.
template <class T, int... I>
constexpr std::array<UnrolledRule<T>, sizeof...(I)> unrolled_trimmed_means(std::integer_sequence<int, I...>) {
  constexpr auto rule = [](auto at) -> UnrolledRule<T> {
    constexpr int kN = at / kTrims + 1, kF = at % kTrims;
    if constexpr (2 * kF < kN) return &trimmed_columns<T, kN, kF>;
    else return nullptr;
  };
  return {rule(std::integral_constant<int, I>{})...};
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
    const auto table =
        selection_table(static_cast<int>(x.n), static_cast<int>(low), static_cast<int>(high), Wanted::sorted);
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
  static constexpr auto unrolled =
      detail::unrolled_trimmed_means<T>(std::make_integer_sequence<int, kMaxUnrolled * detail::kTrims>{});
  if (x.n <= kMaxUnrolled)
    return detail::on_unrolled_columns(unrolled[(x.n - 1) * detail::kTrims + f], x, 0, out, threads);
  if (x.n <= kMaxNetwork) {
    const index_t last = x.n - 1 - f;
    const auto table = selection_table(static_cast<int>(x.n), static_cast<int>(f), static_cast<int>(last), Wanted::set);
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
