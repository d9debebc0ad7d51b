// Remote memory access: a window on every rank that the others read and write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "memories/memory.hpp"

namespace fablint {

// One window per row, of all ranks: windows on disjoint communicators abort Open MPI 4.1 (issue 7393).
// `offset` counts bytes from the start of the target's window. Operations complete at close() or flush().
class OneSided {
  public:
    virtual ~OneSided() = default;   // collective
    virtual void* base() const = 0;  // this rank's window

    // A window of them in one call, as Transport's: the first at `offset`, the next a stride further there as well.
    virtual void put(int peer, std::size_t offset, const Buffers<const char>& buffers, std::size_t bytes) = 0;
    virtual void get(int peer, std::size_t offset, const Buffers<char>& buffers, std::size_t bytes) = 0;
    // Adds byte by byte (MPI_SUM on MPI_UINT8_T: sums of MPI_CHAR, as OSU's, are not legal MPI).
    virtual void accumulate(int peer, std::size_t offset, const void* data, std::size_t bytes) = 0;
    virtual void get_accumulate(int peer, std::size_t offset, const void* data, void* found, std::size_t bytes) = 0;
    // One 8-byte number.
    virtual void compare_and_swap(int peer, std::size_t offset, const void* value, const void* expected,
                                  void* found) = 0;
    virtual void fetch_and_add(int peer, std::size_t offset, const void* value, void* found) = 0;

    // Around a kernel's order, not timed: what the synchronisation holds all the time (the lock that flushes need).
    virtual void hold(int peer) = 0;
    virtual void release(int peer) = 0;
    // The origin's side of the synchronisation, timed: after close() its operations are complete at the target (but
    // with flush_local, here only).
    virtual void open(int peer) = 0;
    virtual void close(int peer) = 0;
    // A whole access, open() to close(), in one call: within a host one put takes 30 ns, and a call a thirtieth of it.
    virtual void access_put(int peer, std::size_t offset, const Buffers<const char>& buffers, std::size_t bytes) {
        open(peer);
        put(peer, offset, buffers, bytes);
        close(peer);
    }
    virtual void access_get(int peer, std::size_t offset, const Buffers<char>& buffers, std::size_t bytes) {
        open(peer);
        get(peer, offset, buffers, bytes);
        close(peer);
    }
    // The target's side, timed: nothing but with pscw and fence.
    virtual void expose(int peer) = 0;
    virtual void unexpose(int peer) = 0;
    // Complete at the target whatever the synchronisation; requires hold().
    virtual void flush(int peer) = 0;
    // Makes what others wrote visible to this rank's loads, and its own stores to the others.
    virtual void settle() = 0;
};

struct SyncInfo {
    const char* name;
    const char* osu_name;  // OSU's header line: MPI_Win_flush
    const char* description;
    bool both_ends;  // the target takes part
};

struct WinInfo {
    const char* name;
    const char* osu_name;
    const char* description;
};

// The tables of registry/windows.inc.
const std::vector<SyncInfo>& syncs();
const SyncInfo& sync_named(const std::string& name);  // throws a usage error
const std::vector<WinInfo>& wins();
const WinInfo& win_named(const std::string& name);

struct WindowRequest {
    std::size_t bytes = 0;
    std::string win = "allocate";
    std::string sync = "flush";
};

}  // namespace fablint
