// Counter-based random numbers: Philox4x64-10 (Salmon et al., SC 2011), the generator of numpy.random.Philox.
//
// A stream is named by (seed; s0, s1, s2): key = (seed, 0), counter = (block, s0, s1, s2), block = 0, 1, ... Any part
// of any stream can be computed alone, so threads, resuming and the order of calls never change a draw.
#pragma once

#include <cmath>

#include "byzadmm/simd.hpp"

namespace byzadmm {

struct Stream {
  std::uint64_t seed;
  std::uint64_t s0, s1, s2;
};

/// Four words of block `block` of the stream.
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

/// out_e = floor(word_e * high / 2^64), e < size: uniform on [0, high) up to a bias of high / 2^64.
inline void philox_integers(const Stream& stream, std::uint64_t high, std::int64_t* out, index_t size) {
  std::uint64_t word[4];
  for (index_t e = 0; e < size; ++e) {
    if (e % 4 == 0) philox_block(stream, static_cast<std::uint64_t>(e / 4), word);
    out[e] = static_cast<std::int64_t>((static_cast<unsigned __int128>(word[e % 4]) * high) >> 64);
  }
}

namespace detail {

/// log x for normal positive x (single precision, about 1 unit in the last place): exponent and a polynomial of the
/// mantissa in [1/sqrt 2, sqrt 2).
BYZ_ALWAYS_INLINE simd::vec<float> log_single(simd::vec<float> x) {
  using V = simd::vec<float>;
  using M = simd::vec<std::int32_t>;
  const M shifted = (M)x - 0x3f3504f3;  // sqrt(1/2): the mantissa below it borrows from the exponent
  const V exponent = __builtin_convertvector(shifted >> 23, V);
  const V m = (V)((shifted & 0x007fffff) + 0x3f3504f3) - 1.0f;
  V y = simd::splat(7.0376836292e-2f);
  for (const float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                        2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f})
    y = simd::madd<float>(y, m, simd::splat(c));
  const V m2 = m * m;
  return exponent * 0.693147180559945f + (m + (y * m2 * m - 0.5f * m2));
}

template <class V>
BYZ_ALWAYS_INLINE V horner(V w, const float (&c)[9]) {
  V y = simd::splat(c[0]);
  for (int i = 1; i < 9; ++i) y = simd::madd<float>(y, w, simd::splat(c[i]));
  return y;
}

/// The z >= 0 with upper tail probability p, 0 < p <= 1/2: sqrt(2) erfinv(1 - 2p) by the single-precision polynomials
/// of M. Giles ("Approximating the erfinv function", GPU Computing Gems, 2011) in w = -log(4 p (1 - p)).
BYZ_ALWAYS_INLINE simd::vec<float> normal_quantile(simd::vec<float> p) {
  using V = simd::vec<float>;
  constexpr float kCentre[9] = {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                                -0.00125372503f, -0.00417768164f, 0.246640727f,    1.50140941f};
  constexpr float kTail[9] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                              -0.0076224613f,   0.00943887047f,  1.00167406f,    2.83297682f};
  const V w = -log_single(4.0f * p * (1.0f - p));
  V y = horner(w - 2.5f, kCentre);
  const auto far = w >= 5.0f;
  if (simd::any(far)) {  // one vector in forty
    V root = w;
    for (int l = 0; l < simd::lanes<float>; ++l) root[l] = std::sqrt(w[l] > 0 ? w[l] : 0.0f);
    y = far ? horner(root - 3.0f, kTail) : y;
  }
  return 1.41421356f * y * (1.0f - 2.0f * p);
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
  constexpr index_t L = simd::lanes<float>, kBlocks = 8, kChunk = 8 * kBlocks;  // floats per chunk
  static_assert(kChunk % L == 0, "a chunk is whole vectors");
  std::uint64_t word[4 * kBlocks];
  for (index_t e = 0; e < size; e += kChunk) {
    for (index_t b = 0; b < kBlocks; ++b) philox_block(stream, static_cast<std::uint64_t>(e / 8 + b), word + 4 * b);
    for (index_t c = 0; c < kChunk && e + c < size; c += L) {
      M half;
      std::memcpy(&half, reinterpret_cast<const char*>(word) + 4 * c, sizeof half);
      const V p = (__builtin_convertvector(half & 0x7fffffff, V) + 0.5f) * 0x1p-32f;
      const V z = detail::normal_quantile(p) * std;
      const V draw = (V)((M)z ^ (half & static_cast<std::int32_t>(0x80000000u)));
      if (e + c + L <= size) simd::store(out + e + c, draw);
      else simd::store_part(out + e + c, draw, size - e - c);
    }
  }
}

/// The same in double precision: one word each, tail probability (k + 1/2) / 2^53 with k its bits 11 to 62.
inline void philox_normal(const Stream& stream, double std, double* out, index_t size) {
  std::uint64_t word[4];
  for (index_t e = 0; e < size; ++e) {
    if (e % 4 == 0) philox_block(stream, static_cast<std::uint64_t>(e / 4), word);
    const std::uint64_t w = word[e % 4];
    const double p = (static_cast<double>((w & 0x7fffffffffffffffu) >> 11) + 0.5) * 0x1p-53;
    const double z = detail::normal_quantile(p) * std;
    out[e] = (w >> 63) != 0 ? -z : z;
  }
}

}  // namespace byzadmm
