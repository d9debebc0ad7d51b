// Main memory in mappings of its own, for memories that choose the pages.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "memories/memory.hpp"

namespace fablint {

class MappedMemory : public HostMemory {
  public:
    // `page`: size of the pages, bytes. `flags`: of mmap, in addition to those of an anonymous mapping.
    MappedMemory(std::size_t page, int flags) : page_(page), flags_(flags) {}

    void* allocate(std::size_t bytes) override {
        const std::size_t length = (bytes + page_ - 1) / page_ * page_;
        void* const data = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags_, -1, 0);
        if (data == MAP_FAILED) refuse(bytes, errno);
        lengths_[data] = length;
        place(data, length);
        std::memset(data, 0, length);
        return data;
    }
    void release(void* data) override {
        munmap(data, lengths_.at(data));
        lengths_.erase(data);
    }

  private:
    // Throws the error for a mapping that the kernel refuses.
    [[noreturn]] virtual void refuse(std::size_t bytes, int error) const = 0;
    // Before the first touch.
    virtual void place(void* /*data*/, std::size_t /*length*/) const {}

    std::size_t page_;
    int flags_;
    std::map<void*, std::size_t> lengths_;
};

}  // namespace fablint
