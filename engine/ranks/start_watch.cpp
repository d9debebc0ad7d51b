#include "ranks/start_watch.hpp"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/mpi_c.hpp"  // SMPI_H
#include "sockets/addresses.hpp"
#include "sockets/connection_requests.hpp"

namespace fablint {

namespace {

constexpr auto interval = std::chrono::milliseconds(500);
constexpr double report_after_s = 10.0;  // the kernel has sent a request four times

// ` (NAME)`; empty for an address without a name. A name server is not asked: it may be what does not answer.
std::string name_of(const std::string& address) {
    std::ifstream hosts("/etc/hosts");
    const std::string name = name_in_hosts_file(hosts, address);
    return name.empty() ? "" : " (" + name + ")";
}

}  // namespace

StartWatch::StartWatch() {
#ifndef SMPI_H  // simulated hosts have no sockets, and all ranks are one process
    thread_ = std::thread([this] { watch(); });
#endif
}

void StartWatch::end() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        over_ = true;
    }
    ended_.notify_one();
    if (thread_.joinable()) thread_.join();
}

void StartWatch::watch() {
    VainRequests requests;
    std::unique_lock<std::mutex> lock(mutex_);
    while (!ended_.wait_for(lock, interval, [this] { return over_; })) {
        requests.look(VainRequests::Clock::now());
        if (requests.duration_s() < report_after_s || requests.address().empty()) continue;
        char host[256] = "";
        gethostname(host, sizeof host - 1);
        std::fprintf(stderr, "fablint-engine: unconnected: %s: no TCP connection to %s%s for %ld s\n", host,
                     requests.address().c_str(), name_of(requests.address()).c_str(),
                     std::lround(requests.duration_s()));
        return;
    }
}

}  // namespace fablint
