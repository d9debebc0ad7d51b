// How a rank waits for a control message: spinning, or sleeping.
#include <doctest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "ranks/rank_group.hpp"

using namespace fablint;

namespace {

// A channel whose messages arrive after many looks; keeps the longest sleep that it was allowed in between.
class FakeSlowChannel : public ControlChannel {
  public:
    FakeSlowChannel(bool wakes, double& longest_sleep_s) : wakes_(wakes), longest_sleep_s_(longest_sleep_s) {}
    int rank() const override { return 0; }
    int size() const override { return 1; }
    std::string host_name() const override { return "host"; }
    void send(int, int, const void*, std::size_t) override {}
    void receive(int, int, void*, std::size_t, const Idle& idle) override {
        constexpr int looks = 1000;
        for (int look = 0; look < looks && idle; ++look) longest_sleep_s_ = std::max(longest_sleep_s_, idle());
    }
    void exchange(int, const void*, int, void*, std::size_t, int, const Idle&) override {}
    bool wakes_on_arrival() const override { return wakes_; }
    int sender_of_arrived(int, int) override { return -1; }
    [[noreturn]] void abort(int status) override { std::exit(status); }

  private:
    const bool wakes_;
    double& longest_sleep_s_;
};

// The longest sleep of a rank of a run with a watchdog, which probes its peer while it waits.
double longest_sleep_s(bool wakes, bool yielding, bool serves) {
    double longest_s = 0.0;
    RankGroup rank_group(wall_clock(), std::make_unique<FakeSlowChannel>(wakes, longest_s));
    rank_group.set_probe_after(1000.0);
    rank_group.set_yielding(yielding);
    if (serves) rank_group.set_progress([] { return false; });
    char message = 0;
    rank_group.receive_control(0, &message, 1);
    return longest_s;
}

}  // namespace

TEST_CASE("a rank sleeps where its message wakes it, and leaves the CPU to the access of its memory that is measured") {
    CHECK(longest_sleep_s(true, false, false) > 1e-3);
    CHECK(longest_sleep_s(true, true, false) > 1e-3);
}

TEST_CASE("a rank spins where it would see its message late, or executes remote accesses itself") {
    CHECK(longest_sleep_s(false, false, false) == 0.0);
    CHECK(longest_sleep_s(true, false, true) == 0.0);
    CHECK(longest_sleep_s(false, true, false) == doctest::Approx(500e-6));
    CHECK(longest_sleep_s(true, true, true) == doctest::Approx(500e-6));
}
