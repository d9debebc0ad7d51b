#include "gpu/gpu_inbox.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/errors.hpp"

namespace fablint {

namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t room = 64;  // windows

}  // namespace

// The numbers that one side writes and the other one polls have a cache line each.
struct GpuInbox::Content {
    alignas(cache_line) std::atomic<std::uint64_t> posted;   // windows; written by the receiver
    alignas(cache_line) std::atomic<std::uint64_t> removed;  // windows; written by the sender
    alignas(cache_line) std::atomic<std::uint64_t> arrived;  // messages; written by the sender
    alignas(cache_line) std::array<PostedWindow, room> windows;
};

// The owner holds a lock on the file. The kernel releases it when the process ends, whatever the reason, and a process
// with the same number later does not have it.
GpuInbox::GpuInbox() : file_(memfd_create("fablint inbox", MFD_CLOEXEC)) {
    struct flock owned {};
    owned.l_type = F_WRLCK;
    if (file_ < 0 || ftruncate(file_, sizeof(Content)) != 0 || fcntl(file_, F_SETLK, &owned) != 0)
        throw incomplete_error(std::string("shared memory for messages between GPUs: ") + std::strerror(errno));
    map();
}

GpuInbox::GpuInbox(const std::string& address) : file_(open(address.c_str(), O_RDWR | O_CLOEXEC)) {
    if (file_ < 0)
        throw incomplete_error("shared memory of another rank, " + address + ": " + std::strerror(errno) +
                               ": start the ranks of a host as one user, and not in containers of their own");
    map();
}

void GpuInbox::map() {
    void* const data = mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (data == MAP_FAILED)
        throw incomplete_error(std::string("shared memory for messages between GPUs: ") + std::strerror(errno));
    content_ = static_cast<Content*>(data);
}

GpuInbox::~GpuInbox() {
    munmap(content_, sizeof(Content));
    close(file_);
}

std::string GpuInbox::address() const { return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_); }

bool GpuInbox::has_owner() const {
    struct flock held {};
    held.l_type = F_WRLCK;
    return fcntl(file_, F_GETLK, &held) != 0 || held.l_type != F_UNLCK;
}

bool GpuInbox::post(const PostedWindow& window) {
    const std::uint64_t posted = content_->posted.load(std::memory_order_relaxed);
    if (posted - content_->removed.load(std::memory_order_acquire) == room) return false;
    content_->windows[posted % room] = window;
    content_->posted.store(posted + 1, std::memory_order_release);
    return true;
}

std::uint64_t GpuInbox::arrived() const { return content_->arrived.load(std::memory_order_acquire); }

const PostedWindow* GpuInbox::next() const {
    const std::uint64_t removed = content_->removed.load(std::memory_order_relaxed);
    if (removed == content_->posted.load(std::memory_order_acquire)) return nullptr;
    return &content_->windows[removed % room];
}

void GpuInbox::remove() {
    content_->removed.store(content_->removed.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void GpuInbox::add_arrived(std::uint64_t messages) {
    content_->arrived.store(content_->arrived.load(std::memory_order_relaxed) + messages, std::memory_order_release);
}

}  // namespace fablint
