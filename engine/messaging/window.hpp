// Windows of remote memory access, and the tables of how they are created and synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "memories/memory.hpp"
#include "messaging/connectable.hpp"

namespace fablint {

// Synchronisation of accesses, for libraries that require the ends to open and close them. A window without it uses
// this class, which does nothing.
class Epochs {
  public:
    virtual ~Epochs() = default;
    // Around an order of a kernel, not timed: what the synchronisation keeps all the time, such as a lock.
    virtual void hold(int /*peer*/) {}
    virtual void release(int /*peer*/) {}
    // Start of the origin's access, timed; Window::complete() ends it.
    virtual void open(int /*peer*/) {}
    // The target's side, timed.
    virtual void expose(int /*peer*/) {}
    virtual void unexpose(int /*peer*/) {}
};

// Sums at the target, byte by byte (MPI_SUM on MPI_UINT8_T: sums of MPI_CHAR, as OSU's, are not legal MPI).
class Accumulation {
  public:
    virtual ~Accumulation() = default;
    virtual void accumulate(int peer, std::size_t offset, const void* data, std::size_t bytes) = 0;
    virtual void get_accumulate(int peer, std::size_t offset, const void* data, void* previous, std::size_t bytes) = 0;
};

// Operations on one 8-byte number of the target, which return its previous content.
class Atomics {
  public:
    virtual ~Atomics() = default;
    virtual void compare_and_swap(int peer, std::size_t offset, const void* value, const void* expected,
                                  void* previous) = 0;
    virtual void fetch_and_add(int peer, std::size_t offset, const void* value, void* previous) = 0;
};

// Memory of every rank that the other ranks read and write. One window per row, of all ranks: windows on disjoint
// communicators abort Open MPI 4.1 (issue 7393). `offset` counts bytes from the start of the target's window.
// The destructor is collective.
class Window : public Connectable {
  public:
    virtual void* base() const = 0;  // of this rank's window

    // One operation per buffer: the first at `offset`, the next one a stride further there as well.
    virtual void put(int peer, std::size_t offset, const Buffers<const char>& buffers, std::size_t bytes) = 0;
    virtual void get(int peer, std::size_t offset, const Buffers<char>& buffers, std::size_t bytes) = 0;
    // Ends an access, timed: its operations are complete as the synchronisation says, at the target or only here.
    virtual void complete(int peer) = 0;
    // Completes all operations at the target, whatever the synchronisation; requires Epochs::hold().
    virtual void flush(int peer) = 0;

    // Makes what others wrote visible to this rank's loads, and its own stores to the others.
    virtual void settle() {}
    virtual Epochs& epochs() { return no_epochs_; }
    // The capabilities of these names: null where the transport does not offer them.
    virtual Atomics* atomics() { return nullptr; }
    virtual Accumulation* accumulation() { return nullptr; }

    // A whole access in one call: within a host one put takes 30 ns, and a virtual call a thirtieth of it.
    virtual void access_put(int peer, std::size_t offset, const Buffers<const char>& buffers, std::size_t bytes) {
        epochs().open(peer);
        put(peer, offset, buffers, bytes);
        complete(peer);
    }
    virtual void access_get(int peer, std::size_t offset, const Buffers<char>& buffers, std::size_t bytes) {
        epochs().open(peer);
        get(peer, offset, buffers, bytes);
        complete(peer);
    }

  private:
    Epochs no_epochs_;
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
