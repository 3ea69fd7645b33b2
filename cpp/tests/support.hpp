// What the C++ tests share: counting checks, exact heap buffers, seeded data.
//
// Every input and output is a heap buffer of exactly its size, so that a read or write past an odd end is seen.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "byzadmm/views.hpp"

namespace byzadmm::tests {

inline int passed = 0, failed = 0;

inline void check(bool ok, const std::string& what) {
  if (ok) {
    ++passed;
    return;
  }
  if (++failed <= 20) std::printf("FAILED: %s\n", what.c_str());
}

template <class T>
std::string name_of() {
  return sizeof(T) == 4 ? "float" : "double";
}

template <class T>
constexpr double kEps = static_cast<double>(std::numeric_limits<T>::epsilon());

template <class T>
constexpr T kInf = std::numeric_limits<T>::infinity();

template <class T>
constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

/// Equal values, NaN equal to NaN.
template <class T>
bool same(T a, T b) {
  return a == b || (a != a && b != b);
}

inline bool close(double a, double b, double tolerance) { return std::abs(a - b) <= tolerance; }

/// A heap buffer of exactly `size` elements; std::vector may own more.
template <class T>
struct Buffer {
  explicit Buffer(index_t size) : size(size), data(new T[static_cast<std::size_t>(size)]()) {}
  T& operator[](index_t i) { return data[static_cast<std::size_t>(i)]; }
  const T& operator[](index_t i) const { return data[static_cast<std::size_t>(i)]; }
  T* get() { return data.get(); }
  const T* get() const { return data.get(); }
  index_t size;
  std::unique_ptr<T[]> data;
};

inline std::mt19937_64 generator(20260);

template <class T>
void fill_normal(Buffer<T>& buffer, double scale = 1.0) {
  std::normal_distribution<double> normal;
  for (index_t i = 0; i < buffer.size; ++i) buffer[i] = static_cast<T>(scale * normal(generator));
}

/// n rows, each a heap buffer of its own.
template <class T>
struct RowBuffers {
  RowBuffers(index_t n, index_t d) : n(n), d(d) {
    for (index_t i = 0; i < n; ++i) {
      row.emplace_back(d);
      fill_normal(row.back());
      pointer.push_back(row.back().get());
    }
  }
  byzadmm::Rows<T> view() const { return {pointer.data(), n, d}; }
  std::vector<T> sorted_column(index_t j) const {
    std::vector<T> column;
    for (const auto& r : row) column.push_back(r[j]);
    std::sort(column.begin(), column.end());
    return column;
  }
  index_t n, d;
  std::vector<Buffer<T>> row;
  std::vector<const T*> pointer;
};

void test_kernels();
void test_linear();
void test_selection();
void test_spread();
void test_training();
void test_messages();
void test_coding();

}  // namespace byzadmm::tests
