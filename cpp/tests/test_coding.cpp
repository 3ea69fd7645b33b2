// Redundant gradients against plain loops.
#include "byzadmm/coding.hpp"
#include "support.hpp"

namespace byzadmm::tests {

namespace {

template <class T>
void test_sums_and_looks() {
  for (const index_t n : {1, 3, 4, 9})
    for (const index_t d : {1, 5, 64, 1030}) {
      const RowBuffers<T> x(n, 2 * d);
      Buffer<double> w(n), inner(64), outer((d + 63) / 64);
      fill_normal(w);
      fill_normal(inner);
      fill_normal(outer);
      const std::string which = name_of<T>() + " n=" + std::to_string(n) + " d=" + std::to_string(d);
      for (const int threads : {1, 3}) {
        Buffer<T> sum(2 * d);
        weighted_sum(x.view(), w.get(), 3.0, sum.get(), threads);
        bool ok = true;
        for (index_t j = 0; j < 2 * d; ++j) {
          double plain = 0;
          for (index_t i = 0; i < n; ++i) plain += w[i] * static_cast<double>(x.row[i][j]);
          ok = ok && close(static_cast<double>(sum[j]), plain / 3.0, 8 * kEps<T>);
        }
        check(ok, "weighted_sum " + which);
        Buffer<double> found(4 * n);
        look_at_rows(x.view(), inner.get(), inner.size, outer.get(), 0.25, found.get(), threads);
        ok = true;
        for (index_t i = 0; i < n; ++i) {
          double re = 0, im = 0, squares = 0, largest = 0;
          for (index_t j = 0; j < d; ++j) {
            const double u = 0.25 * static_cast<double>(x.row[i][j]), v = 0.25 * static_cast<double>(x.row[i][d + j]);
            const double phi = inner[j % 64] * outer[j / 64];
            re += u * phi, im += v * phi, squares += u * u + v * v;
            largest = std::max({largest, std::abs(u), std::abs(v)});
          }
          ok = ok && close(found[4 * i], re, 1e-10) && close(found[4 * i + 1], im, 1e-10) &&
               close(found[4 * i + 2], squares, 1e-12) && found[4 * i + 3] == largest;
        }
        check(ok, "look_at_rows " + which);
      }
    }
}

template <class T>
void test_votes() {
  // groups of 3, 2 and none: the middle one of the first, nobody, nobody
  RowBuffers<T> x(5, 7);
  for (index_t j = 0; j < 7; ++j) x.row[2][j] = x.row[1][j];
  const index_t first[] = {0, 3, 5, 5};
  index_t chosen[3];
  for (const int threads : {1, 3}) {
    majority_rows(x.view(), first, 3, 2, chosen, threads);
    check((chosen[0] == 1 || chosen[0] == 2) && chosen[1] == -1 && chosen[2] == -1, "majority_rows " + name_of<T>());
  }
}

}  // namespace

void test_coding() {
  test_sums_and_looks<float>();
  test_sums_and_looks<double>();
  test_votes<float>();
  test_votes<double>();
}

}  // namespace byzadmm::tests
