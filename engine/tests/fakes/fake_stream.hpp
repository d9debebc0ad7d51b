// Memory and streams of the fake driver library.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>

namespace {

struct Allocation {
    std::size_t bytes;
    char* view;  // the mapping through which the fake reads and writes
    int device;
    int file;         // of the memory
    bool is_foreign;  // of another process
};

// A copy that takes at least that many seconds, or work of another fake: calls of `run` until it returns true.
struct Task {
    using Time = std::chrono::steady_clock::time_point;

    char* to;
    const char* from;
    std::size_t bytes;
    double seconds = 0.0;
    bool (*run)(void* work) = nullptr;
    void* work = nullptr;
    Time began = {};

    bool advance() {
        if (run != nullptr) return run(work);
        const Time now = std::chrono::steady_clock::now();
        if (began == Time()) {
            began = now;
            std::memmove(to, from, bytes);
        }
        return std::chrono::duration<double>(now - began).count() >= seconds;
    }
};

struct Stream {
    int device;
    std::deque<Task> queued;
};

}  // namespace
