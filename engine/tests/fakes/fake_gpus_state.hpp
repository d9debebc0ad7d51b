// The devices, memory and streams of the fake driver library, and what it detects: fake_gpu_driver.cpp has the
// functions.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "fake_stream.hpp"

#ifdef FAKE_HIP
#define NAME(cuda, hip) hip
#define LIBRARY "libamdhip64"
#else
#define NAME(cuda, hip) cuda
#define LIBRARY "libcuda"
#endif

namespace {

enum Result {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    no_device = 100,
    invalid_device = 101,
    no_peer_access = 217,
    not_ready = 600
};

constexpr std::size_t page = 4096;

struct Handle {
    int pid;
    int file;
    int device;
    std::size_t bytes;
};

[[noreturn]] void misuse(const std::string& text) {
    std::fprintf(stderr, "fake " LIBRARY ": %s\n", text.c_str());
    std::abort();
}

long number(const char* variable, long otherwise) {
    const char* text = std::getenv(variable);
    return text != nullptr ? std::atol(text) : otherwise;
}

std::size_t pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

// Does the variable list the pair, as 0-1 or 1-0?
bool lists_pair(const char* variable, int one, int other) {
    const char* text = std::getenv(variable);
    const std::string list = text != nullptr ? std::string(",") + text + "," : "";
    const auto has = [&](int a, int b) {
        return list.find("," + std::to_string(a) + "-" + std::to_string(b) + ",") != std::string::npos;
    };
    return has(one, other) || has(other, one);
}

// How long a copy takes that these devices take part in, s.
double duration(std::size_t bytes, int one, int other) {
    const double rate = static_cast<double>(number("FAKE_GPU_RATE", 0));
    const long slow = number("FAKE_GPU_SLOW", -1);
    if (rate <= 0.0) return 0.0;
    return static_cast<double>(bytes) / rate * (one == slow || other == slow ? 4.0 : 1.0);
}

// A page behind the memory of an allocation, for all processes that map it: how many others these are.
std::atomic<int>& mappings(const Allocation& allocation) {
    return *reinterpret_cast<std::atomic<int>*>(allocation.view + pages(allocation.bytes));
}

thread_local int current = NAME(-1, 0);

struct Driver {
    std::mutex mutex;
    bool is_ready = false;
    std::set<int> retained;  // devices whose context exists
    std::map<char*, Allocation> memory;
    std::map<char*, std::size_t> pinned;
    std::map<void*, Stream> streams = {{nullptr, {-1, {}}}};
    std::map<int, std::size_t> used;  // bytes of a device

    ~Driver() {
        const std::string left = std::to_string(memory.size()) + " allocations, " + std::to_string(pinned.size()) +
                                 " pinned blocks, " + std::to_string(streams.size() - 1) + " streams";
        if (left != "0 allocations, 0 pinned blocks, 0 streams")
            std::fprintf(stderr, "fake " LIBRARY ": not released at the end: %s\n", left.c_str());
    }

    void require_ready() const {
        if (!is_ready) misuse("a call before init");
    }
    void require_device() const {
        require_ready();
        if (current < 0) misuse("a call in a thread without a current device");
    }
    bool has(int device) const { return device >= 0 && device < number("FAKE_GPU_DEVICES", 2); }

    int device_of(const void* data) {
        return std::prev(memory.upper_bound(static_cast<char*>(const_cast<void*>(data))))->second.device;
    }

    // The allocation that contains the range, and the address of the range in the mapping of the fake.
    char* view(const void* data, std::size_t bytes) {
        auto* const address = static_cast<char*>(const_cast<void*>(data));
        auto after = memory.upper_bound(address);
        if (after == memory.begin()) misuse("no device memory at this address");
        const auto& [base, allocation] = *std::prev(after);
        if (address + bytes > base + allocation.bytes) misuse("no device memory at this address, or a range beyond it");
        return allocation.view + (address - base);
    }
    void require_host(const void* data, std::size_t bytes, const void* stream) {
        auto* const address = static_cast<char*>(const_cast<void*>(data));
        auto after = memory.upper_bound(address);
        if (after != memory.begin() && address < std::prev(after)->first + std::prev(after)->second.bytes)
            misuse("device memory where host memory is expected");
        if (stream == nullptr) return;  // pageable memory is allowed: the driver copies it first
        auto next = pinned.upper_bound(address);
        if (next == pinned.begin() || address + bytes > std::prev(next)->first + std::prev(next)->second)
            misuse("a queued copy of host memory that is not pinned");
    }
    Stream& stream(void* handle) {
        const auto found = streams.find(handle);
        if (found == streams.end()) misuse("no such stream");
        if (handle != nullptr && found->second.device != current) misuse("a stream of another device");
        return found->second;
    }
    void require_idle(const char* begin, std::size_t bytes) {
        for (const auto& [handle, stream] : streams)
            for (const Task& copy : stream.queued)
                if ((copy.to >= begin && copy.to < begin + bytes) || (copy.from >= begin && copy.from < begin + bytes))
                    misuse("a release of memory while a copy is queued");
    }
    void* add(int file, std::size_t bytes, int device, bool is_foreign) {
        void* const address = mmap(nullptr, pages(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        void* const view = mmap(nullptr, pages(bytes) + page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (address == MAP_FAILED || view == MAP_FAILED) misuse("this machine has no memory for the fake");
        const Allocation allocation{bytes, static_cast<char*>(view), device, file, is_foreign};
        if (is_foreign) ++mappings(allocation);
        memory[static_cast<char*>(address)] = allocation;
        return address;
    }
    void remove(void* data, bool is_foreign) {
        const auto found = memory.find(static_cast<char*>(data));
        if (found == memory.end() || found->second.is_foreign != is_foreign)
            misuse("a release of what is not the beginning of an allocation");
        const Allocation allocation = found->second;
        require_idle(allocation.view, allocation.bytes);
        if (is_foreign) --mappings(allocation);
        if (!is_foreign && mappings(allocation) > 0) misuse("a release of memory that another process has mapped");
        munmap(allocation.view, pages(allocation.bytes) + page);
        munmap(data, pages(allocation.bytes));
        close(allocation.file);
        if (!is_foreign) used[allocation.device] -= allocation.bytes;
        memory.erase(found);
    }
};

Driver& driver() {
    static Driver only;
    return only;
}

struct Locked {
    Locked() : lock(driver().mutex) {}
    Driver* operator->() const { return &driver(); }
    std::lock_guard<std::mutex> lock;
};

}  // namespace
