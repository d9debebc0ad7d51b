#include <doctest.h>

#include <cmath>

#include "host/cpu_wait.hpp"
#include "tests/scratch.hpp"

using namespace fablint;

namespace {

// A clock that a test sets.
class FakeClock : public Clock {
  public:
    const char* name() const override { return "fake"; }
    double now() const override { return now_s; }
    double now_s = 0.0;
};

}  // namespace

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

TEST_CASE("a share of waiting is that of the time of the blocks, and at most 1") {
    if (std::isnan(cpu_wait_s())) return;  // this kernel does not count
    FakeClock clock;
    CpuWaitShare share(clock);
    CHECK(std::isnan(share.value()));
    share.begin_block();
    clock.now_s = 1e6;
    share.end_block();
    CHECK(share.value() < 1e-3);  // this test waited for seconds at most
    CHECK(share.value() >= 0.0);
    share.clear();
    CHECK(std::isnan(share.value()));
}
