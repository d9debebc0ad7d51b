// What one pair does. A kernel is one file in kernels/ and one row of the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "payload.hpp"
#include "transport.hpp"

namespace fablint {

// One end of a pair at one message size.
struct End {
    Transport& transport;
    Payload& payload;
    int peer;
    std::size_t bytes;
    int window;
};

enum class Quantity { latency, bandwidth };

class Kernel {
  public:
    virtual ~Kernel() = default;
    virtual Quantity quantity() const = 0;
    // Both ends send, and take the time, at once. Otherwise the leader does, and the pair swaps roles for the other
    // direction.
    virtual bool mutual() const { return false; }
    virtual bool windowed() const { return false; }
    // Does the leader receive payload too?
    virtual bool answered() const { return false; }
    // Messages that one repetition puts one after another on the wire in one direction: its time is divided by this.
    virtual int messages(int window) const = 0;
    // The timed loop: no allocation, no clock, no branch on options.
    virtual void lead(const End& end, std::int64_t repetitions) const = 0;
    virtual void follow(const End& end, std::int64_t repetitions) const = 0;
};

struct KernelInfo {
    const char* name;
    const char* what;
    const char* osu_title;  // of OSU's table for the same measurement
    bool empty_messages;    // is 0 bytes a meaningful size?
    const Kernel& (*get)();
};

// The table of kernels, in the order in which --list prints them.
const std::vector<KernelInfo>& kernels();
const KernelInfo& kernel_named(const std::string& name);  // throws a usage error

// The rows of the table, one file each in kernels/.
const Kernel& latency_kernel();
const Kernel& bandwidth_kernel();
const Kernel& bibandwidth_kernel();
const Kernel& exchange_kernel();

}  // namespace fablint
