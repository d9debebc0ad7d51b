#include <doctest.h>

#include <cmath>

#include "host/cpu_wait.hpp"
#include "tests/scratch.hpp"

using namespace fablint;

TEST_CASE("the time of waiting for a CPU is the second number of schedstat, in ns") {
    const Scratch scratch;
    const auto read = [&](const std::string& text) {
        write_text(scratch.path / "schedstat", text);
        return cpu_wait_s((scratch.path / "schedstat").string());
    };
    CHECK(read("44917197 1430817373 31\n") == doctest::Approx(1.430817373));
    CHECK(read("44917197 0 31\n") == 0.0);
    CHECK(std::isnan(read("0 0 0\n")));  // a kernel that does not count
    CHECK(std::isnan(read("")));
    CHECK(std::isnan(cpu_wait_s((scratch.path / "absent").string())));
}
