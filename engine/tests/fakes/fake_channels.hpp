// Messages between processes of one host, through shared memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace {

constexpr int most_ranks = 16;

// Bytes from one rank to another, in order.
struct Channel {
    static constexpr std::size_t capacity = 16384;
    std::atomic<std::uint64_t> written;
    std::atomic<std::uint64_t> read;
    char ring[capacity];

    std::size_t write(const char* data, std::size_t bytes) {
        const std::uint64_t begin = written;
        const std::size_t count = std::min<std::size_t>(bytes, capacity - (begin - read));
        for (std::size_t i = 0; i < count; ++i) ring[(begin + i) % capacity] = data[i];
        written = begin + count;
        return count;
    }
    std::size_t take(char* data, std::size_t bytes) {
        const std::uint64_t begin = read;
        const std::size_t count = std::min<std::size_t>(bytes, written - begin);
        for (std::size_t i = 0; i < count; ++i) data[i] = ring[(begin + i) % capacity];
        read = begin + count;
        return count;
    }
};

struct Shared {
    std::atomic<int> arrived;
    std::atomic<int> failed;
    int devices[most_ranks];
    Channel channels[most_ranks][most_ranks];
};

struct Header {
    std::uint64_t bytes;
    int kind;
    int type;
    bool operator==(const Header& other) const {
        return bytes == other.bytes && kind == other.kind && type == other.type;
    }
};

// A message, header first.
struct Transfer {
    bool sends;
    Channel* channel;
    Header header;
    char* data;
    Header found{};
    std::size_t done = 0;
    bool mismatch = false;  // of the two headers

    bool is_complete() const { return done == sizeof header + header.bytes; }
    void advance() {
        if (done < sizeof header) {
            done += sends ? channel->write(reinterpret_cast<const char*>(&header) + done, sizeof header - done)
                          : channel->take(reinterpret_cast<char*>(&found) + done, sizeof header - done);
            if (done < sizeof header) return;
            mismatch = !sends && !(found == header);
        }
        char* const at = data + (done - sizeof header);
        const std::size_t left = sizeof header + header.bytes - done;
        done += sends ? channel->write(at, left) : channel->take(at, left);
    }
};

}  // namespace
