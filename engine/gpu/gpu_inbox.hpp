// What two processes of one host share so that one of them copies messages into memory of the other one's GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gpu/gpu_runtime.hpp"

namespace fablint {

// Buffers on a GPU of the receiver, one for each of the next messages: the first, and the distance to each next one.
struct PostedWindow {
    GpuRuntime::SharedMemory memory;
    std::size_t stride;
    int count;
};

// The messages from one sender to one receiver, which owns the inbox: the receiver posts windows of buffers, the sender
// takes them in that order and counts the messages that it has copied into them. Only the addresses of buffers and
// the counts are in the inbox. It is memory of the owner without a name, which ends with it.
class GpuInbox {
  public:
    GpuInbox();  // of this process, the receiver
    // That of another process of this host, as its address() says. Throws an incomplete error.
    explicit GpuInbox(const std::string& address);
    ~GpuInbox();
    GpuInbox(const GpuInbox&) = delete;
    GpuInbox& operator=(const GpuInbox&) = delete;

    std::string address() const;
    bool has_owner() const;  // does the process of the receiver exist?

    // Of the receiver:
    bool post(const PostedWindow& window);  // false: no room, until the sender has removed a window
    std::uint64_t arrived() const;          // messages since the beginning

    // Of the sender:
    const PostedWindow* next() const;  // null: no window is posted
    void remove();                     // that window
    void add_arrived(std::uint64_t messages);

  private:
    struct Content;

    void map();

    int file_;
    Content* content_ = nullptr;
};

}  // namespace fablint
