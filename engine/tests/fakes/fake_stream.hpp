// Memory and streams of the fake driver library.
#pragma once

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

// A copy, or work of another fake: calls of `run` until it returns true.
struct Task {
    char* to;
    const char* from;
    std::size_t bytes;
    bool (*run)(void* work);
    void* work;

    bool advance() const {
        if (run != nullptr) return run(work);
        std::memmove(to, from, bytes);
        return true;
    }
};

struct Stream {
    int device;
    std::deque<Task> queued;
};

}  // namespace
