// The last line of a rank that ends because another rank failed.
#pragma once

#include <cstdint>
#include <string>

namespace fablint {

struct FailureReport {
    int rank;  // that failed
    std::string host;
    std::int64_t round;   // of the rank that reports; -1: before the first
    std::string partner;  // the rank that waited; none: between rounds
    std::string reason;
};

// Prints the line `failed:` for the front end, which continues without the rank.
void print_failure(const FailureReport& report);

// Ends this process, after the time that other ranks need to print their lines. Only the first thread ends it: what
// other threads notice afterwards follows from the failure.
void become_the_last_thread();
[[noreturn]] void end_incomplete();

}  // namespace fablint
