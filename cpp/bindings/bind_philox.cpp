// The generator behind every draw.
#include "areas.hpp"
#include "byzadmm/philox.hpp"

namespace byzadmm::bindings {

namespace {

using Words = std::array<std::uint64_t, 3>;

Stream stream_of(std::uint64_t seed, const Words& words) { return {seed, words[0], words[1], words[2]}; }

}  // namespace

void bind_philox(py::module_& m) {
  m.def(
      "philox_normal",
      [](const py::array& out, double std, std::uint64_t seed, const Words& words) {
        dispatch_float(out, "out", [&](auto tag) {
          using T = decltype(tag);
          T* to = require_out<T>(out, "out", shape_of(out));
          const index_t size = out.size();
          Unlocked nogil;
          philox_normal(stream_of(seed, words), static_cast<T>(std), to, size);
        });
      },
      "out"_a, "std"_a, "seed"_a, "stream"_a, "Normal draws of one stream into out.");
  m.def(
      "philox_integers",
      [](const py::array& out, std::uint64_t high, std::uint64_t seed, const Words& words) {
        std::int64_t* to = require_out<std::int64_t>(out, "out", shape_of(out));
        const index_t size = out.size();
        Unlocked nogil;
        philox_integers(stream_of(seed, words), high, to, size);
      },
      "out"_a, "high"_a, "seed"_a, "stream"_a, "Integers in [0, high) of one stream into out.");
}

}  // namespace byzadmm::bindings
