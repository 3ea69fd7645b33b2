// Runs every test of this folder; exit code 1 if one failed.
#include "support.hpp"

int main() {
  using namespace byzadmm::tests;
  test_kernels();
  test_linear();
  test_selection();
  test_spread();
  test_training();
  test_messages();
  test_coding();
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
