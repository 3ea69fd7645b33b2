// Messages: which the master accepts, and envelopes of which each is exactly what was expected, or nothing.
#include <cstdint>

#include "byzadmm/messages.hpp"
#include "support.hpp"

namespace byzadmm::tests {

namespace {

template <class T>
void test_acceptable() {
  const T largest = std::numeric_limits<T>::max();
  for (const index_t d : {1, 7, 33}) {
    Buffer<T> message(d), copy(d);
    for (index_t at = 0; at < d; ++at) {
      const auto answer = [&](T value, double bound) {
        std::fill(message.get(), message.get() + d, T(0));
        message[at] = value;
        const T* row = message.get();
        bool good = false;
        acceptable_rows<T>({&row, 1, d}, bound, &good);
        check(good == copy_acceptable<T>(row, d, largest_acceptable<T>(bound), copy.get()), "copy_acceptable agrees");
        check(std::equal(row, row + d, copy.get(), same<T>), "copy_acceptable copies");
        return good;
      };
      check(answer(largest, 0) && answer(-largest, 0), "finite messages " + name_of<T>());
      check(!answer(kNaN<T>, 0) && !answer(kInf<T>, 0) && !answer(-kInf<T>, 0), "not finite " + name_of<T>());
      check(answer(T(0.5), 0.5) && answer(T(-0.5), 0.5), "on the bound " + name_of<T>());
      check(!answer(T(0.75), 0.5) && !answer(T(-0.75), 0.5) && !answer(kNaN<T>, 0.5), "beyond it " + name_of<T>());
    }
  }
}

template <class T>
void test_envelopes() {
  constexpr index_t kHeader = 16, m = 5, d = 3;
  const std::string header = "to whom";
  Buffer<T> memory(static_cast<index_t>(kHeader / sizeof(T)) + 2 * d);  // aligned, and of exactly the size
  char* bytes = reinterpret_cast<char*>(memory.get());
  std::copy(header.begin(), header.end(), bytes);
  T* numbers = reinterpret_cast<T*>(bytes + kHeader);
  for (index_t e = 0; e < 2 * d; ++e) numbers[e] = static_cast<T>(e + 1);
  numbers[d] = kNaN<T>;
  const auto count = static_cast<index_t>(kHeader + 2 * d * static_cast<index_t>(sizeof(T)));
  const Envelope right{bytes, count, header, 2, 2};

  const auto taken = [&](const Envelope& one, Buffer<T>& out, Buffer<bool>& present, Buffer<bool>& good) {
    bool fits = false;
    take_messages<T>({one}, kHeader, 0, m, d, out.get(), present.get(), good.get(), &fits);
    return fits;
  };
  {
    Buffer<T> out(m * d);
    Buffer<bool> present(m), good(m);
    check(taken(right, out, present, good), "an envelope as expected " + name_of<T>());
    for (index_t i = 0; i < m; ++i) {
      check(present[i] == (i == 2 || i == 3), "its rows are present " + name_of<T>());
      check(good[i] == (i == 2), "a NaN is not good " + name_of<T>());
    }
    check(std::equal(numbers, numbers + 2 * d, out.get() + 2 * d, same<T>), "the numbers " + name_of<T>());
  }
  const std::vector<std::pair<const char*, Envelope>> wrong = {
      {"too short", {bytes, count - 1, header, 2, 2}},
      {"too long", {bytes, count + 1, header, 2, 2}},
      {"no bytes at all", {bytes, -1, header, 2, 2}},
      {"another header", {bytes, count, "to them", 2, 2}},
      {"a header longer than headers are", {bytes, count, "to whom it may concern", 2, 2}},
      {"rows below 0", {bytes, count, header, -1, 2}},
      {"rows past the last", {bytes, count, header, m - 1, 2}},
      {"fewer rows than none", {bytes, count, header, 2, -2}},
      {"more rows than there are", {bytes, count, header, 0, std::numeric_limits<index_t>::max()}},
      {"a first row that overflows", {bytes, count, header, std::numeric_limits<index_t>::max(), 2}},
  };
  for (const auto& [what, envelope] : wrong) {
    Buffer<T> out(m * d);
    Buffer<bool> present(m), good(m);
    bool untouched = !taken(envelope, out, present, good);
    for (index_t i = 0; i < m; ++i) untouched = untouched && !present[i] && !good[i];
    for (index_t e = 0; e < m * d; ++e) untouched = untouched && out[e] == T(0);
    check(untouched, std::string("refused, nothing written: ") + what + " " + name_of<T>());
  }
}

}  // namespace

void test_messages() {
  test_acceptable<float>();
  test_acceptable<double>();
  test_envelopes<float>();
  test_envelopes<double>();
}

}  // namespace byzadmm::tests
