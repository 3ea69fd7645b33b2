// The vector type of the kernels: GCC vector extensions at the width of the instruction set compiled for.
//
// One source serves every instruction set; the flags of the translation unit decide. Fused multiply-add is written out
// (madd) instead of left to contraction, so that a kernel's bits do not depend on what it was inlined into.
#pragma once

#include <cmath>
#include <cstring>
#include <type_traits>

#include "byzadmm/config.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace byzadmm::simd {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

template <class T, int Bytes>
struct VecOf {
  typedef T type __attribute__((vector_size(Bytes)));
};

template <class T>
using vec = typename VecOf<T, kBytes>::type;

/// The signed integer as wide as T: what comparing two vec<T> gives.
template <class T>
using int_of = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

template <class T>
constexpr int lanes = kBytes / static_cast<int>(sizeof(T));

template <class T>
BYZ_ALWAYS_INLINE vec<T> splat(T value) {
  return vec<T>{} + value;
}

template <class T>
BYZ_ALWAYS_INLINE vec<T> load(const T* p) {
  vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class T>
BYZ_ALWAYS_INLINE void store(T* p, vec<T> v) {
  std::memcpy(p, &v, sizeof v);
}

#if defined(__AVX512F__)
/// Ones for the first `count` lanes (0 <= count <= lanes).
BYZ_ALWAYS_INLINE std::uint16_t first_lanes(index_t count) { return static_cast<std::uint16_t>((1u << count) - 1); }
#elif defined(__AVX2__)
/// All ones in the first `count` lanes (0 <= count <= lanes).
template <class T>
BYZ_ALWAYS_INLINE __m256i first_lanes(index_t count) {
  constexpr index_t L = lanes<T>;
  static constexpr int_of<T> kOnes[2 * L] = {
      -1, -1, -1, -1, L > 4 ? -1 : 0, L > 4 ? -1 : 0, L > 4 ? -1 : 0, L > 4 ? -1 : 0};
  __m256i mask;
  std::memcpy(&mask, kOnes + (L - count), sizeof mask);
  return mask;
}
#endif

/// The first `count` elements at p, `fill` in the other lanes; reads nothing past p + count.
template <class T>
BYZ_ALWAYS_INLINE vec<T> load_part(const T* p, index_t count, T fill = T(0)) {
#if defined(__AVX512F__)
  const std::uint16_t mask = first_lanes(count);
  if constexpr (sizeof(T) == 4) return (vec<T>)_mm512_mask_loadu_ps((__m512)splat(fill), mask, p);
  else return (vec<T>)_mm512_mask_loadu_pd((__m512d)splat(fill), static_cast<__mmask8>(mask), p);
#elif defined(__AVX2__)
  const __m256i mask = first_lanes<T>(count);
  vec<T> v;
  if constexpr (sizeof(T) == 4) v = (vec<T>)_mm256_maskload_ps(p, mask);
  else v = (vec<T>)_mm256_maskload_pd(p, mask);
  return (vec<int_of<T>>)mask != 0 ? v : splat(fill);
#else
  vec<T> v = splat(fill);
  for (index_t l = 0; l < count; ++l) v[l] = p[l];
  return v;
#endif
}

/// A vector of half the length.
template <class T>
using half_of = typename VecOf<T, kBytes / 2>::type;

/// As double, and rounded to float; compilers take both apart.
BYZ_ALWAYS_INLINE vec<double> widen(half_of<float> v) {
#if defined(__AVX512F__)
  return (vec<double>)_mm512_cvtps_pd((__m256)v);
#elif defined(__AVX__)
  return (vec<double>)_mm256_cvtps_pd((__m128)v);
#else
  return __builtin_convertvector(v, vec<double>);
#endif
}
BYZ_ALWAYS_INLINE half_of<float> narrow(vec<double> v) {
#if defined(__AVX512F__)
  return (half_of<float>)_mm512_cvtpd_ps((__m512d)v);
#elif defined(__AVX__)
  return (half_of<float>)_mm256_cvtpd_ps((__m256d)v);
#else
  return __builtin_convertvector(v, half_of<float>);
#endif
}

/// The first half of a vector and the second, as double; and both rounded to one again.
BYZ_ALWAYS_INLINE vec<double> widen_low(vec<float> v) {
#if defined(__AVX__) && !defined(__AVX512F__)
  return (vec<double>)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v));
#else
  half_of<float> half;
  std::memcpy(&half, &v, sizeof half);
  return widen(half);
#endif
}
BYZ_ALWAYS_INLINE vec<double> widen_high(vec<float> v) {
#if defined(__AVX__) && !defined(__AVX512F__)
  return (vec<double>)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
#else
  half_of<float> half;
  std::memcpy(&half, reinterpret_cast<const char*>(&v) + sizeof half, sizeof half);
  return widen(half);
#endif
}
BYZ_ALWAYS_INLINE vec<float> narrow_both(vec<double> low, vec<double> high) {
  const half_of<float> half[2] = {narrow(low), narrow(high)};
  vec<float> v;
  std::memcpy(&v, half, sizeof v);
  return v;
}

#if defined(__AVX512F__)
/// The first lanes<T> bytes, converted.
template <class T>
BYZ_ALWAYS_INLINE vec<T> from_bytes(__m128i bytes) {
  if constexpr (sizeof(T) == 4) return (vec<T>)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
  else return (vec<T>)_mm512_cvtepi32_pd(_mm256_cvtepu8_epi32(bytes));
}
#endif

/// lanes<T> numbers of type X at p, converted.
template <class T, class X>
BYZ_ALWAYS_INLINE vec<T> load_as(const X* p) {
  if constexpr (std::is_same_v<X, T>) return load(p);
  if constexpr (std::is_same_v<X, float> && std::is_same_v<T, double>) {
    half_of<float> half;
    std::memcpy(&half, p, sizeof half);
#if defined(__AVX__)
    asm("" : "+x"(half));  // a conversion straight from memory takes 1.5 times as long on Zen 5
#endif
    return widen(half);
  }
#if defined(__SSE2__)
  if constexpr (std::is_same_v<X, std::uint8_t>) {
    std::conditional_t<lanes<T> == 2, std::uint16_t, std::conditional_t<lanes<T> == 4, std::int32_t, std::int64_t>>
        word;
    std::memcpy(&word, p, sizeof word);
    __m128i bytes = _mm_cvtsi64_si128(word);
    if constexpr (lanes<T> == 16) bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
#if defined(__AVX512F__)
    return from_bytes<T>(bytes);
#elif defined(__AVX2__)
    if constexpr (sizeof(T) == 4) return (vec<T>)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    else return (vec<T>)_mm256_cvtepi32_pd(_mm_cvtepu8_epi32(bytes));
#else
    const __m128i zero = _mm_setzero_si128(), wide = _mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero);
    if constexpr (sizeof(T) == 4) return (vec<T>)_mm_cvtepi32_ps(wide);
    else return (vec<T>)_mm_cvtepi32_pd(wide);
#endif
  }
#endif
  T lane[lanes<T>];
  for (int l = 0; l < lanes<T>; ++l) lane[l] = static_cast<T>(p[l]);
  return load(lane);
}

/// lanes<double> numbers to p, rounded to X.
template <class X>
BYZ_ALWAYS_INLINE void store_as(X* p, vec<double> v) {
  if constexpr (sizeof(X) == 8) return store(p, v);
  const half_of<float> rounded = narrow(v);
  std::memcpy(p, &rounded, sizeof rounded);
}

/// The first `count` of them, zeros in the other lanes; reads nothing past p + count.
template <class T, class X>
BYZ_ALWAYS_INLINE vec<T> load_part_as(const X* p, index_t count) {
  if constexpr (std::is_same_v<X, T>) return load_part(p, count);
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<X, std::uint8_t>) return from_bytes<T>(_mm_maskz_loadu_epi8(first_lanes(count), p));
#endif
  T lane[lanes<T>] = {};
  for (index_t l = 0; l < count; ++l) lane[l] = static_cast<T>(p[l]);
  return load(lane);
}

/// Bit b < count <= 64: whether `all`, or any of the lanes<T> bytes from p + b * lanes<T> on is not zero.
template <class T>
BYZ_ALWAYS_INLINE std::uint64_t nonzero_blocks(const std::uint8_t* p, index_t count, bool all) {
  const std::uint64_t every = ~std::uint64_t{0} >> (64 - count);
  std::uint64_t zero = 0;
  if (all) return every;
  index_t b = 0;
#if defined(__AVX512F__)
  for (constexpr index_t step = kBytes / lanes<T>; b + step <= count; b += step) {
    const __m512i bytes = _mm512_loadu_si512(p + b * lanes<T>);
    unsigned bits = _mm512_testn_epi64_mask(bytes, bytes);  // of eight bytes each
    if constexpr (sizeof(T) == 4) {
      bits &= bits >> 1;
      bits = (bits & 1) | (bits >> 1 & 2) | (bits >> 2 & 4) | (bits >> 3 & 8);
    }
    zero |= static_cast<std::uint64_t>(bits) << b;
  }
#elif defined(__AVX2__)
  for (constexpr index_t step = kBytes / lanes<T>; b + step <= count; b += step) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + b * lanes<T>));
    int bits;
    if constexpr (sizeof(T) == 4) bits = _mm256_movemask_pd((__m256d)_mm256_cmpeq_epi64(bytes, _mm256_setzero_si256()));
    else bits = _mm256_movemask_ps((__m256)_mm256_cmpeq_epi32(bytes, _mm256_setzero_si256()));
    zero |= static_cast<std::uint64_t>(bits) << b;
  }
#endif
#if defined(__SSE2__) && !defined(__AVX__)
  if constexpr (sizeof(T) == 4)
    for (; b + 4 <= count; b += 4) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + b * lanes<T>));
      const int bits = _mm_movemask_ps((__m128)_mm_cmpeq_epi32(bytes, _mm_setzero_si128()));
      zero |= static_cast<std::uint64_t>(bits) << b;
    }
#endif
  for (; b < count; ++b) {
    std::uint64_t word[(lanes<T> + 7) / 8] = {}, any = 0;
    std::memcpy(word, p + b * lanes<T>, lanes<T>);
    for (const std::uint64_t w : word) any |= w;
    zero |= static_cast<std::uint64_t>(any == 0) << b;
  }
  return every & ~zero;
}

template <class T>
BYZ_ALWAYS_INLINE void store_part(T* p, vec<T> v, index_t count) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) _mm512_mask_storeu_ps(p, first_lanes(count), (__m512)v);
  else _mm512_mask_storeu_pd(p, static_cast<__mmask8>(first_lanes(count)), (__m512d)v);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) _mm256_maskstore_ps(p, first_lanes<T>(count), (__m256)v);
  else _mm256_maskstore_pd(p, first_lanes<T>(count), (__m256d)v);
#else
  for (index_t l = 0; l < count; ++l) p[l] = v[l];
#endif
}

template <class V>
BYZ_ALWAYS_INLINE V min(V a, V b) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<V, vec<float>>) return (V)_mm512_min_ps((__m512)a, (__m512)b);
  if constexpr (std::is_same_v<V, vec<double>>) return (V)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif defined(__AVX__)
  if constexpr (std::is_same_v<V, vec<float>>) return (V)_mm256_min_ps((__m256)a, (__m256)b);
  if constexpr (std::is_same_v<V, vec<double>>) return (V)_mm256_min_pd((__m256d)a, (__m256d)b);
#elif defined(__SSE2__)
  if constexpr (std::is_same_v<V, vec<float>>) return (V)_mm_min_ps((__m128)a, (__m128)b);
  if constexpr (std::is_same_v<V, vec<double>>) return (V)_mm_min_pd((__m128d)a, (__m128d)b);
#endif
  return a < b ? a : b;
}

/// a > b ? a : b, likewise.
template <class V>
BYZ_ALWAYS_INLINE V max(V a, V b) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<V, vec<float>>) return (V)_mm512_max_ps((__m512)a, (__m512)b);
  if constexpr (std::is_same_v<V, vec<double>>) return (V)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif defined(__AVX__)
  if constexpr (std::is_same_v<V, vec<float>>) return (V)_mm256_max_ps((__m256)a, (__m256)b);
  if constexpr (std::is_same_v<V, vec<double>>) return (V)_mm256_max_pd((__m256d)a, (__m256d)b);
#elif defined(__SSE2__)
  if constexpr (std::is_same_v<V, vec<float>>) return (V)_mm_max_ps((__m128)a, (__m128)b);
  if constexpr (std::is_same_v<V, vec<double>>) return (V)_mm_max_pd((__m128d)a, (__m128d)b);
#endif
  return a > b ? a : b;
}

/// a * b + c, fused where the instruction set has it.
template <class T>
BYZ_ALWAYS_INLINE vec<T> madd(vec<T> a, vec<T> b, vec<T> c) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return (vec<T>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
  else return (vec<T>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
  if constexpr (sizeof(T) == 4) return (vec<T>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
  else return (vec<T>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__ARM_NEON) && defined(__aarch64__)
  if constexpr (sizeof(T) == 4) return (vec<T>)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
  else return (vec<T>)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
  return a * b + c;
#endif
}

/// Sum of the lanes, always halving: ((0+4)+(2+6)) + ((1+5)+(3+7)) for eight.
template <class T>
BYZ_ALWAYS_INLINE T sum_lanes(vec<T> v) {
#if defined(__AVX512F__)
  constexpr int kParts = lanes<T> / 2;
  T part[kParts];
  if constexpr (sizeof(T) == 4)
    _mm256_storeu_ps(part, _mm512_castps512_ps256((__m512)v) + _mm512_extractf32x8_ps((__m512)v, 1));
  else _mm256_storeu_pd(part, _mm512_castpd512_pd256((__m512d)v) + _mm512_extractf64x4_pd((__m512d)v, 1));
#else
  constexpr int kParts = lanes<T>;
  T part[kParts];
  store(part, v);
#endif
  for (int half = kParts / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) part[l] += part[l + half];
  return part[0];
}

template <class T>
BYZ_ALWAYS_INLINE vec<T> sqrt(vec<T> v) {
  T lane[lanes<T>];
  store(lane, v);
  for (T& x : lane) x = std::sqrt(x);  // compiles to one instruction
  return load(lane);
}

/// out[i] = sum of the lanes of v[i], for four vectors at once.
template <class T>
BYZ_ALWAYS_INLINE void sum_lanes_of_four(const vec<T> (&v)[4], T* out) {
#if defined(__AVX__)
  if constexpr (sizeof(T) == 4) {
#if defined(__AVX512F__)
    const auto half = [](vec<T> of) {
      return _mm512_castps512_ps256((__m512)of) + _mm512_extractf32x8_ps((__m512)of, 1);
    };
#else
    const auto half = [](vec<T> of) { return (__m256)of; };
#endif
    const auto pairs = [](__m256 a, __m256 b) { return _mm256_unpacklo_ps(a, b) + _mm256_unpackhi_ps(a, b); };
    const __m256 a = pairs(half(v[0]), half(v[1])), b = pairs(half(v[2]), half(v[3]));
    const __m256 sums = _mm256_shuffle_ps(a, b, 0x44) + _mm256_shuffle_ps(a, b, 0xEE);
    const __m128 total = _mm256_castps256_ps128(sums) + _mm256_extractf128_ps(sums, 1);
    std::memcpy(out, &total, sizeof total);
    return;
  }
#endif
  for (int i = 0; i < 4; ++i) out[i] = sum_lanes<T>(v[i]);
}

/// True if any lane of a comparison's result is set.
template <class M>
BYZ_ALWAYS_INLINE bool any(M mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
  return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
  std::uint64_t word[kBytes / 8], all = 0;
  std::memcpy(word, &mask, sizeof mask);
  for (std::uint64_t w : word) all |= w;
  return all != 0;
#endif
}

/// e^x for x <= 0 or moderate x, within 2 units in the last place; underflows to 0, NaN stays NaN.
/// 2^n * e^r with |r| <= ln2/2, e^r by its Taylor polynomial (degree 7 for float, 13 for double: below half an ulp).
template <class T>
BYZ_ALWAYS_INLINE vec<T> exp(vec<T> x) {
  using I = int_of<T>;
  constexpr bool kSingle = sizeof(T) == 4;
  constexpr T kLow = kSingle ? T(-87.0) : T(-708.0), kHigh = kSingle ? T(88.0) : T(709.0);
  constexpr T kShift = kSingle ? T(12582912.0) : T(6755399441055744.0);  // 1.5 * 2^mantissa: rounds to an integer
  const vec<T> clamped = max(min(x, splat(kHigh)), splat(kLow));
  const vec<T> rounded = madd<T>(clamped, splat(T(1.4426950408889634)), splat(kShift));
  const vec<T> n = rounded - kShift;
  // ln2 in two parts: the first has trailing zeros, so n * part is exact.
  const vec<T> minus = -n;
  vec<T> r = madd<T>(minus, splat(kSingle ? T(0.693359375) : T(0.6931471803691238)), clamped);
  r = madd<T>(minus, splat(kSingle ? T(-2.12194440e-4) : T(1.9082149292705877e-10)), r);
  constexpr int kDegree = kSingle ? 7 : 13;
  constexpr double kInverseFactorial[] = {
      1.0,        1.0,         0.5,          1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
      1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
  vec<T> y = splat(T(kInverseFactorial[kDegree]));
  for (int i = kDegree - 1; i >= 0; --i) y = madd<T>(y, r, splat(T(kInverseFactorial[i])));
  constexpr int kMantissa = kSingle ? 23 : 52, kBias = kSingle ? 127 : 1023;
  const auto exponent = ((vec<I>)rounded - (vec<I>)splat(kShift) + I(kBias)) << kMantissa;
  y = y * (vec<T>)exponent;
  y = x < splat(kLow) ? splat(T(0)) : y;
  return x == x ? y : x;
}

/// body(j, load, store) for vectors of columns j = lo, lo + L, ..., the last of them partial: load(p) and store(p, v)
/// touch only columns below hi.
template <class T, class Body>
BYZ_ALWAYS_INLINE void for_vectors(index_t lo, index_t hi, Body body) {
  constexpr index_t L = lanes<T>;
  index_t j = lo;
  for (; j + L <= hi; j += L)
    body(
        j, [](const T* p) BYZ_LAMBDA_INLINE { return load(p); }, [](T* p, vec<T> v) BYZ_LAMBDA_INLINE { store(p, v); });
  if (j < hi)
    body(j, [=](const T* p) { return load_part(p, hi - j); }, [=](T* p, vec<T> v) { store_part(p, v, hi - j); });
}

}  // namespace byzadmm::simd
