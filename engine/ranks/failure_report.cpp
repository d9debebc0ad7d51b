#include "ranks/failure_report.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/errors.hpp"

namespace fablint {

namespace {

// Time for the other waiting ranks to report, before the launcher ends them.
constexpr auto exit_grace = std::chrono::seconds(2);

std::atomic_flag is_ending = ATOMIC_FLAG_INIT;

}  // namespace

void print_failure(const FailureReport& report) {
    std::fprintf(stderr, "fablint-engine: failed: rank %d (%s), round %lld, partner %s: %s\n", report.rank,
                 report.host.c_str(), static_cast<long long>(report.round), report.partner.c_str(),
                 report.reason.c_str());
}

void become_the_last_thread() {
    while (is_ending.test_and_set()) std::this_thread::sleep_for(exit_grace);
}

void end_incomplete() {
    std::fflush(stderr);
    std::this_thread::sleep_for(exit_grace);
    _exit(static_cast<int>(Exit::incomplete));
}

}  // namespace fablint
