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

/// The blocks of a stream, four words each. What all of them share is computed once: the keys of the ten rounds, and
/// half of the first two, whose words do not depend on the number of the block.
class PhiloxBlocks {
 public:
  explicit PhiloxBlocks(const Stream& stream) {
    constexpr std::uint64_t kKey0 = 0x9E3779B97F4A7C15u, kKey1 = 0xBB67AE8584CAA73Bu;
    key0_[0] = stream.seed;
    key1_[0] = 0;
    for (int r = 1; r < kRounds; ++r) {
      key0_[r] = key0_[r - 1] + kKey0;
      key1_[r] = key1_[r - 1] + kKey1;
    }
    const auto b = static_cast<unsigned __int128>(kMul1) * stream.s1;
    low_ = static_cast<std::uint64_t>(b);
    second_ = static_cast<std::uint64_t>(b >> 64) ^ stream.s0 ^ key0_[0];
    third_ = stream.s2 ^ key1_[0];
    product_ = static_cast<unsigned __int128>(kMul0) * second_;
  }

  /// N blocks in step, round by round: begin, then round(2) to round(9), then end. A round is a few instructions that
  /// wait for each other, so there is time for other work between two.
  template <int N>
  class InStep {
   public:
    explicit InStep(const PhiloxBlocks& of) : of_(of) {}

    BYZ_ALWAYS_INLINE void begin(std::uint64_t block) {
      for (int i = 0; i < N; ++i) {
        const auto a = static_cast<unsigned __int128>(kMul0) * (block + static_cast<std::uint64_t>(i));
        const auto b = static_cast<unsigned __int128>(kMul1) * (static_cast<std::uint64_t>(a >> 64) ^ of_.third_);
        c0_[i] = static_cast<std::uint64_t>(b >> 64) ^ of_.low_ ^ of_.key0_[1];
        c1_[i] = static_cast<std::uint64_t>(b);
        c2_[i] = static_cast<std::uint64_t>(of_.product_ >> 64) ^ static_cast<std::uint64_t>(a) ^ of_.key1_[1];
        c3_[i] = static_cast<std::uint64_t>(of_.product_);
      }
    }
    BYZ_ALWAYS_INLINE void round(int r) {
      for (int i = 0; i < N; ++i) {
        const auto a = static_cast<unsigned __int128>(kMul0) * c0_[i];
        const auto b = static_cast<unsigned __int128>(kMul1) * c2_[i];
        c0_[i] = static_cast<std::uint64_t>(b >> 64) ^ c1_[i] ^ of_.key0_[r];
        c2_[i] = static_cast<std::uint64_t>(a >> 64) ^ c3_[i] ^ of_.key1_[r];
        c1_[i] = static_cast<std::uint64_t>(b);
        c3_[i] = static_cast<std::uint64_t>(a);
      }
    }
    BYZ_ALWAYS_INLINE void end(std::uint64_t* word) const {
      for (int i = 0; i < N; ++i, word += 4) {
        word[0] = c0_[i];
        word[1] = c1_[i];
        word[2] = c2_[i];
        word[3] = c3_[i];
      }
    }

   private:
    const PhiloxBlocks& of_;
    std::uint64_t c0_[N], c1_[N], c2_[N], c3_[N];
  };

  BYZ_ALWAYS_INLINE void block(std::uint64_t number, std::uint64_t* word) const {
    InStep<1> one(*this);
    one.begin(number);
#pragma GCC unroll 8
    for (int r = 2; r < kRounds; ++r) one.round(r);
    one.end(word);
  }

 private:
  static constexpr int kRounds = 10;
  static constexpr std::uint64_t kMul0 = 0xD2E7470EE14C6C93u, kMul1 = 0xCA5A826395121157u;
  std::uint64_t key0_[kRounds], key1_[kRounds];
  std::uint64_t low_, second_, third_;  // after the first round
  unsigned __int128 product_;           // in the second
};

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
  const PhiloxBlocks blocks(stream);
  draw_in_parts(size, [=, &blocks](index_t lo, index_t hi) {
    std::uint64_t word[4];
    for (index_t e = lo; e < hi; e += 4) {
      blocks.block(static_cast<std::uint64_t>(e / 4), word);
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
using Halves = simd::vec<std::int32_t>[kInStep];

/// y_i = c[0] w_i^8 + ... + c[8]; between(1) to between(8) is other work, done while the sums wait for themselves.
template <class Between>
BYZ_ALWAYS_INLINE void horner(const Singles& w, const float (&c)[9], Singles& y, Between between) {
  for (auto& v : y) v = simd::splat(c[0]);
#pragma GCC unroll 8
  for (int term = 1; term < 9; ++term) {
    for (int i = 0; i < kInStep; ++i) y[i] = simd::madd<float>(y[i], w[i], simd::splat(c[term]));
    between(term);
  }
}

/// x <- log x for normal positive x (about 1 unit in the last place): exponent and a polynomial of the mantissa in
/// [1/sqrt 2, sqrt 2).
template <class Between>
BYZ_ALWAYS_INLINE void log_single(Singles& x, Between between) {
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
  horner(m, kMantissa, y, between);
  for (int i = 0; i < kInStep; ++i) {
    const V m2 = m[i] * m[i];
    x[i] = exponent[i] * 0.693147180559945f + (m[i] + (y[i] * m2 * m[i] - 0.5f * m2));
  }
}

/// z <- the quantiles that halves of words stand for: top bit the sign, the rest k the tail probability p = (k + 1/2) /
/// 2^32 <= 1/2, whose quantile is sqrt(2) erfinv(1 - 2p) by the single-precision polynomials of M. Giles
/// ("Approximating the erfinv function", GPU Computing Gems, 2011) in -log(4 p (1 - p)). between(1) to between(16) is
/// other work.
template <class Between>
BYZ_ALWAYS_INLINE void normal_quantile(const Halves& half, Singles& z, Between between) {
  using V = simd::vec<float>;
  using M = simd::vec<std::int32_t>;
  constexpr float kCentre[9] = {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                                -0.00125372503f, -0.00417768164f, 0.246640727f,    1.50140941f};
  constexpr float kTail[9] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                              -0.0076224613f,   0.00943887047f,  1.00167406f,    2.83297682f};
  Singles p, w, shifted, y;
  for (int i = 0; i < kInStep; ++i) {
    p[i] = (__builtin_convertvector(half[i] & 0x7fffffff, V) + 0.5f) * 0x1p-32f;
    w[i] = 4.0f * p[i] * (1.0f - p[i]);
  }
  log_single(w, between);
  for (int i = 0; i < kInStep; ++i) shifted[i] = (w[i] = -w[i]) - 2.5f;
  horner(shifted, kCentre, y, [=](int term) BYZ_LAMBDA_INLINE { between(8 + term); });
  M far{};
  for (int i = 0; i < kInStep; ++i) far |= w[i] >= 5.0f;
  if (simd::any(far)) {  // one time in ten
    Singles tail;
    for (int i = 0; i < kInStep; ++i) shifted[i] = simd::sqrt<float>(simd::max(w[i], V{})) - 3.0f;
    horner(shifted, kTail, tail, [](int) {});
    for (int i = 0; i < kInStep; ++i) y[i] = w[i] >= 5.0f ? tail[i] : y[i];
  }
  for (int i = 0; i < kInStep; ++i) {
    const V size = 1.41421356f * y[i] * (1.0f - 2.0f * p[i]);
    z[i] = (V)((M)size ^ (half[i] & static_cast<std::int32_t>(0x80000000u)));
  }
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

/// out_e = mean-free normal draw times std, e < size, from a 32-bit half of a word each. The words of a group are made
/// between the steps of the group before: 64-bit products and vectors use different parts of a processor.
inline void philox_normal(const Stream& stream, float std, float* out, index_t size) {
  constexpr index_t L = simd::lanes<float>, kGroup = detail::kInStep * L, kBlocks = kGroup / 8;
  constexpr int kHalf = kBlocks / 2;
  const PhiloxBlocks blocks(stream);
  draw_in_parts(size, [=, &blocks](index_t lo, index_t hi) {
    std::uint64_t word[2][4 * kBlocks];
    for (index_t b = 0; b < kBlocks; ++b) blocks.block(static_cast<std::uint64_t>(lo / 8 + b), word[0] + 4 * b);
    PhiloxBlocks::InStep<kHalf> some(blocks);
    int now = 0;
    for (index_t e = lo; e < hi; e += kGroup, now ^= 1) {
      const auto next = static_cast<std::uint64_t>((e + kGroup) / 8);
      std::uint64_t* to = word[now ^ 1];
      detail::Halves half;
      detail::Singles z;
      for (int i = 0; i < detail::kInStep; ++i)
        half[i] = simd::load(reinterpret_cast<const std::int32_t*>(word[now]) + i * L);
      some.begin(next);
      detail::normal_quantile(half, z, [&](int step) BYZ_LAMBDA_INLINE {
        some.round(step <= 8 ? step + 1 : step - 7);
        if (step == 8) {
          some.end(to);
          some.begin(next + kHalf);
        }
        if (step == 16) some.end(to + 4 * kHalf);
      });
      for (int i = 0; i < detail::kInStep; ++i) {
        const index_t at = e + i * L;
        if (at + L <= hi) simd::store(out + at, z[i] * std);
        else if (at < hi) simd::store_part(out + at, z[i] * std, hi - at);
      }
    }
  });
}

/// The same in double precision: one word each, tail probability (k + 1/2) / 2^53 with k its bits 11 to 62.
inline void philox_normal(const Stream& stream, double std, double* out, index_t size) {
  const PhiloxBlocks blocks(stream);
  draw_in_parts(size, [=, &blocks](index_t lo, index_t hi) {
    std::uint64_t word[4];
    for (index_t e = lo; e < hi; ++e) {
      if (e % 4 == 0) blocks.block(static_cast<std::uint64_t>(e / 4), word);
      const std::uint64_t w = word[e % 4];
      const double p = (static_cast<double>((w & 0x7fffffffffffffffu) >> 11) + 0.5) * 0x1p-53;
      const double z = detail::normal_quantile(p) * std;
      out[e] = (w >> 63) != 0 ? -z : z;
    }
  });
}

}  // namespace byzadmm
