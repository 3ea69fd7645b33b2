// Counter-based random numbers: Philox4x64-10 (Salmon et al., SC 2011), the generator of numpy.random.Philox.
//
// A stream is named by (seed; s0, s1, s2): key = (seed, 0), counter = (block, s0, s1, s2), block = 0, 1, ... Any part
// of any stream can be computed alone, so threads, resuming and the order of calls never change a draw.
#pragma once

#include <cmath>

#include "byzadmm/choices.hpp"
#include "byzadmm/parallel.hpp"
#include "byzadmm/simd.hpp"

namespace byzadmm {

/// Four words of block `block` of the stream. A hundred instructions that wait for each other; the processor overlaps
/// neighbouring blocks by itself (writing four of them abreast was slower: their words do not fit the registers).
BYZ_ALWAYS_INLINE void philox_block(const Stream& stream, std::uint64_t block, std::uint64_t* word) {
  constexpr std::uint64_t kMul0 = 0xD2E7470EE14C6C93u, kMul1 = 0xCA5A826395121157u;
  constexpr std::uint64_t kKey0 = 0x9E3779B97F4A7C15u, kKey1 = 0xBB67AE8584CAA73Bu;
  std::uint64_t c0 = block, c1 = stream.s0, c2 = stream.s1, c3 = stream.s2, k0 = stream.seed, k1 = 0;
  for (int round = 0; round < 10; ++round) {
    const auto a = static_cast<unsigned __int128>(kMul0) * c0;
    const auto b = static_cast<unsigned __int128>(kMul1) * c2;
    c0 = static_cast<std::uint64_t>(b >> 64) ^ c1 ^ k0;
    c2 = static_cast<std::uint64_t>(a >> 64) ^ c3 ^ k1;
    c1 = static_cast<std::uint64_t>(b);
    c3 = static_cast<std::uint64_t>(a);
    k0 += kKey0;
    k1 += kKey1;
  }
  word[0] = c0;
  word[1] = c1;
  word[2] = c2;
  word[3] = c3;
}

/// draw(lo, hi) over [0, size), in parts between which the caller may end it.
template <class Draw>
BYZ_ALWAYS_INLINE void draw_in_parts(index_t size, Draw&& draw) {
  constexpr index_t kPart = index_t{1} << 16;
  for (index_t lo = 0; lo < size; lo += kPart) {
    check_stop();
    draw(lo, size - lo < kPart ? size : lo + kPart);
  }
}

/// out_e = floor(word_e * high / 2^64), e < size: uniform on [0, high) up to a bias of high / 2^64.
inline void philox_integers(const Stream& stream, std::uint64_t high, std::int64_t* out, index_t size) {
  draw_in_parts(size, [=](index_t lo, index_t hi) {
    std::uint64_t word[4];
    for (index_t e = lo; e < hi; e += 4) {
      philox_block(stream, static_cast<std::uint64_t>(e / 4), word);
      const index_t count = hi - e < 4 ? hi - e : 4;
      for (index_t w = 0; w < count; ++w)
        out[e + w] = static_cast<std::int64_t>((static_cast<unsigned __int128>(word[w]) * high) >> 64);
    }
  });
}

namespace detail {

/// Vectors of single-precision normals computed in step: one alone spends most of its time waiting for itself.
constexpr int kInStep = 4;
using Singles = simd::vec<float>[kInStep];

/// y_i = c[0] w_i^8 + ... + c[8].
BYZ_ALWAYS_INLINE void horner(const Singles& w, const float (&c)[9], Singles& y) {
  for (auto& v : y) v = simd::splat(c[0]);
#pragma GCC unroll 8
  for (int term = 1; term < 9; ++term)
    for (int i = 0; i < kInStep; ++i) y[i] = simd::madd<float>(y[i], w[i], simd::splat(c[term]));
}

/// x <- log x for normal positive x (about 1 unit in the last place): exponent and a polynomial of the mantissa in
/// [1/sqrt 2, sqrt 2).
BYZ_ALWAYS_INLINE void log_single(Singles& x) {
  using V = simd::vec<float>;
  using M = simd::vec<std::int32_t>;
  constexpr float kMantissa[9] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                  -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                  2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  Singles exponent, m, y;
  for (int i = 0; i < kInStep; ++i) {
    const M shifted = (M)x[i] - 0x3f3504f3;  // sqrt(1/2): the mantissa below it borrows from the exponent
    exponent[i] = __builtin_convertvector(shifted >> 23, V);
    m[i] = (V)((shifted & 0x007fffff) + 0x3f3504f3) - 1.0f;
  }
  horner(m, kMantissa, y);
  for (int i = 0; i < kInStep; ++i) {
    const V m2 = m[i] * m[i];
    x[i] = exponent[i] * 0.693147180559945f + (m[i] + (y[i] * m2 * m[i] - 0.5f * m2));
  }
}

/// p <- the z >= 0 with upper tail probability p, 0 < p <= 1/2: sqrt(2) erfinv(1 - 2p) by the single-precision
/// polynomials of M. Giles ("Approximating the erfinv function", GPU Computing Gems, 2011) in w = -log(4 p (1 - p)).
BYZ_ALWAYS_INLINE void normal_quantile(Singles& p) {
  using V = simd::vec<float>;
  constexpr float kCentre[9] = {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                                -0.00125372503f, -0.00417768164f, 0.246640727f,    1.50140941f};
  constexpr float kTail[9] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                              -0.0076224613f,   0.00943887047f,  1.00167406f,    2.83297682f};
  Singles w, shifted, y;
  for (int i = 0; i < kInStep; ++i) w[i] = 4.0f * p[i] * (1.0f - p[i]);
  log_single(w);
  for (int i = 0; i < kInStep; ++i) shifted[i] = (w[i] = -w[i]) - 2.5f;
  horner(shifted, kCentre, y);
  simd::vec<std::int32_t> far{};
  for (int i = 0; i < kInStep; ++i) far |= w[i] >= 5.0f;
  if (simd::any(far)) {  // one time in ten
    Singles tail;
    for (int i = 0; i < kInStep; ++i) shifted[i] = simd::sqrt<float>(simd::max(w[i], V{})) - 3.0f;
    horner(shifted, kTail, tail);
    for (int i = 0; i < kInStep; ++i) y[i] = w[i] >= 5.0f ? tail[i] : y[i];
  }
  for (int i = 0; i < kInStep; ++i) p[i] = 1.41421356f * y[i] * (1.0f - 2.0f * p[i]);
}

/// The same in double precision: Wichura, algorithm AS 241 (PPND16), for p in (0, 1/2].
inline double normal_quantile(double p) {
  const auto ratio = [](double r, const double(&a)[8], const double(&b)[7]) {
    double top = a[7], bottom = b[6];
    for (int i = 6; i >= 0; --i) top = top * r + a[i];
    for (int i = 5; i >= 0; --i) bottom = bottom * r + b[i];
    return top / (bottom * r + 1.0);
  };
  constexpr double kCentreTop[8] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                                    1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                                    3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr double kCentreBottom[7] = {4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
                                       2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
                                       5.2264952788528545610e3};
  constexpr double kTailTop[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                  3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                  2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double kTailBottom[7] = {2.05319162663775882187e0,  1.67638483018380384940e0,  6.89767334985100004550e-1,
                                     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
                                     1.05075007164441684324e-9};
  constexpr double kFarTop[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                 2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                 2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double kFarBottom[7] = {5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
                                    7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
                                    2.04426310338993978564e-15};
  const double q = 0.5 - p;
  if (q <= 0.425) return q * ratio(0.180625 - q * q, kCentreTop, kCentreBottom);
  const double r = std::sqrt(-std::log(p));
  return r <= 5.0 ? ratio(r - 1.6, kTailTop, kTailBottom) : ratio(r - 5.0, kFarTop, kFarBottom);
}

}  // namespace detail

/// out_e = mean-free normal draw times std, e < size. A 32-bit half of a word each: top bit the sign, the rest the tail
/// probability (k + 1/2) / 2^32.
inline void philox_normal(const Stream& stream, float std, float* out, index_t size) {
  using V = simd::vec<float>;
  using M = simd::vec<std::int32_t>;
  constexpr index_t L = simd::lanes<float>, kGroup = detail::kInStep * L;
  // Many blocks before the first is used: a vector cannot be loaded while its words are still being stored.
  constexpr index_t kBlocks = 16, kChunk = 8 * kBlocks;
  static_assert(kChunk % kGroup == 0, "a chunk is whole groups of vectors");
  draw_in_parts(size, [=](index_t lo, index_t hi) {
    std::uint64_t word[4 * kBlocks];
    for (index_t e = lo; e < hi; e += kChunk) {
      for (index_t b = 0; b < kBlocks; ++b) philox_block(stream, static_cast<std::uint64_t>(e / 8 + b), word + 4 * b);
      for (index_t c = 0; c < kChunk && e + c < hi; c += kGroup) {
        M half[detail::kInStep];
        detail::Singles z;
        for (int i = 0; i < detail::kInStep; ++i) {
          half[i] = simd::load(reinterpret_cast<const std::int32_t*>(word) + c + i * L);
          z[i] = (__builtin_convertvector(half[i] & 0x7fffffff, V) + 0.5f) * 0x1p-32f;
        }
        detail::normal_quantile(z);
        for (int i = 0; i < detail::kInStep; ++i) {
          const V draw = (V)((M)(z[i] * std) ^ (half[i] & static_cast<std::int32_t>(0x80000000u)));
          const index_t at = e + c + i * L;
          if (at + L <= hi) simd::store(out + at, draw);
          else if (at < hi) simd::store_part(out + at, draw, hi - at);
        }
      }
    }
  });
}

/// The same in double precision: one word each, tail probability (k + 1/2) / 2^53 with k its bits 11 to 62.
inline void philox_normal(const Stream& stream, double std, double* out, index_t size) {
  draw_in_parts(size, [=](index_t lo, index_t hi) {
    std::uint64_t word[4];
    for (index_t e = lo; e < hi; ++e) {
      if (e % 4 == 0) philox_block(stream, static_cast<std::uint64_t>(e / 4), word);
      const std::uint64_t w = word[e % 4];
      const double p = (static_cast<double>((w & 0x7fffffffffffffffu) >> 11) + 0.5) * 0x1p-53;
      const double z = detail::normal_quantile(p) * std;
      out[e] = (w >> 63) != 0 ? -z : z;
    }
  });
}

}  // namespace byzadmm
