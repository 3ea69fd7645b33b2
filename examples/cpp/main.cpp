// Vectors of seven workers, of which two are Byzantine: what the mean makes of them, and what robust rules do.
//
// cmake -S examples/cpp -B build -Dbyzadmm_DIR=$(python -c "import byzadmm; print(byzadmm.get_cmake_dir())")
// cmake --build build && build/robust
#include <byzadmm/byzadmm.hpp>
#include <cstdio>
#include <vector>

int main() {
  constexpr byzadmm::index_t n = 7, d = 3, f = 2;
  const std::vector<float> matrix = {
      1.00f, 2.00f, 3.00f,  //
      1.25f, 2.25f, 2.75f,  //
      0.75f, 2.00f, 3.25f,  //
      1.00f, 1.75f, 3.00f,  //
      1.25f, 2.00f, 3.25f,  //
      -80.f, 90.f,  -70.f,  // Byzantine
      -80.f, 90.f,  -70.f,  // Byzantine
  };
  const byzadmm::MatrixRows<float> rows(matrix.data(), n, d);  // a row per worker; the numbers are not copied
  const int threads = byzadmm::resolve_threads(0, n * d);      // one for small work, otherwise all
  std::vector<float> result(d);
  const auto print = [&](const char* rule) {
    std::printf("%-17s %7.3f %7.3f %7.3f\n", rule, result[0], result[1], result[2]);
  };

  byzadmm::mean<float>(rows, nullptr, result.data(), threads);
  print("mean");
  byzadmm::median<float>(rows, byzadmm::Even::mid, result.data(), threads);
  print("median");
  std::vector<double> share(n);  // the result as a convex combination of the rows
  byzadmm::geometric_median<float>(rows, nullptr, 1e-6, 1000, result.data(), share.data(), threads);
  print("geometric median");
  const byzadmm::index_t chosen = byzadmm::krum<float>(rows, f, threads);
  result.assign(matrix.data() + chosen * d, matrix.data() + (chosen + 1) * d);
  print("krum");
}
