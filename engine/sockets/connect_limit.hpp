// Time limits of the answer to a request of a TCP connection.
#pragma once

#include <algorithm>

namespace fablint {

constexpr double connect_limit_s = 20.0;

// The limit beside a watchdog of `watchdog_s` (0: none): shorter, so that the rank that requests a connection reports
// it before the watchdog of its peer reports silence.
inline double connect_limit_beside(double watchdog_s) {
    constexpr double share = 0.8;
    return watchdog_s > 0.0 ? std::min(connect_limit_s, share * watchdog_s) : connect_limit_s;
}

}  // namespace fablint
