// Remote memory access of MPI 3.1. A window combines a method of creation and a synchronisation, from two tables.
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/errors.hpp"
#include "base/mpi_c.hpp"
#include "base/table.hpp"
#include "messaging/transport.hpp"
#include "ranks/mpi_communicator.hpp"
#include "transports/mpi_count.hpp"
#include "transports/mpi_window.hpp"

namespace fablint {

// Open MPI before 5 passes an address of its own to the other process of the host, which crashes: issues 7967 and 9146
// of open-mpi/ompi. Only for 8 bytes, and only if the library has allocated the window.
void refuse_swaps_that_crash([[maybe_unused]] const std::string& win) {
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
    if (win == "allocate")
        throw usage_error("cas in a window of --win allocate crashes this Open MPI: choose --win create or dynamic");
#endif
}

// SimGrid sends a message in MPI_Win_post that waits for the peer's MPI_Win_start unless messages are buffered.
void refuse_posts_that_wait([[maybe_unused]] const std::string& sync) {
#ifdef SMPI_H
    if (sync == "pscw")
        throw usage_error("--sync pscw in both directions at once is a deadlock in SimGrid's MPI: choose --sync fence");
#endif
}

#ifndef FABLINT_WITHOUT_MPI

namespace {

int rank_of_world() {
    int rank = 0;
    MPI_Comm_rank(mpi_communicator(), &rank);
    return rank;
}

int size_of_world() {
    int size = 0;
    MPI_Comm_size(mpi_communicator(), &size);
    return size;
}

// ---- making a window

struct Release {
    Memory* memory = nullptr;
    void operator()(void* data) const { memory->release(data); }
};

using Block = std::unique_ptr<void, Release>;

// A window of all ranks without its synchronisation.
struct Region {
    MPI_Win window = MPI_WIN_NULL;
    void* base = nullptr;
    Block block;                      // memory that the engine has allocated, if any
    std::vector<MPI_Aint> starts{0};  // start addresses of the windows of all ranks, or one that all have in common
    int stride = 0;                   // from one rank to the next in `starts`
};

// A rank without memory must not leave the others waiting in a collective call.
Block allocate(Memory& memory, std::size_t bytes) {
    Block block(nullptr, Release{&memory});
    const std::optional<Error> error = attempt([&] { block.reset(memory.allocate(bytes)); });
    int failed = error ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, mpi_communicator());
    if (error) throw *error;
    if (failed != 0)
        throw incomplete_error(
            "another rank has no memory for its window: choose smaller --sizes or a smaller --window");
    return block;
}

Region create(Memory& memory, std::size_t bytes) {
    Region region;
    region.block = allocate(memory, bytes);
    region.base = region.block.get();
    MPI_Win_create(region.base, static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, mpi_communicator(), &region.window);
    return region;
}

Region allocate_by_mpi(Memory&, std::size_t bytes) {
    Region region;
    MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, mpi_communicator(), &region.base, &region.window);
    std::memset(region.base, 0, bytes);  // first touch: pages come from the NUMA node of this thread
    return region;
}

// Offsets into a dynamic window are addresses: every rank stores those of all other ranks, 8 bytes per rank.
Region create_dynamic(Memory& memory, std::size_t bytes) {
    Region region;
    region.block = allocate(memory, bytes);
    region.base = region.block.get();
    MPI_Win_create_dynamic(MPI_INFO_NULL, mpi_communicator(), &region.window);
    MPI_Win_attach(region.window, region.base, static_cast<MPI_Aint>(bytes));
    region.stride = 1;
    region.starts.resize(static_cast<std::size_t>(size_of_world()));
    MPI_Aint start = 0;
    MPI_Get_address(region.base, &start);
    MPI_Allgather(&start, 1, MPI_AINT, region.starts.data(), 1, MPI_AINT, mpi_communicator());
    return region;
}

struct WinMaker {
    const char* name;
    Region (*make)(Memory& memory, std::size_t bytes);
};

const std::vector<WinMaker>& win_makers() {
    static const std::vector<WinMaker> table = {
        {"create", create}, {"allocate", allocate_by_mpi}, {"dynamic", create_dynamic}};
    return table;
}

// ---- synchronising it

// Base of the synchronisations, with empty functions. The classes below hide those that they need. The functions are
// not virtual, since a window is compiled for each synchronisation: a put and a flush within one host take 30 ns.
class Sync {
  public:
    explicit Sync(MPI_Win window) : window_(window) {}
    void hold(int) {}
    void release(int) {}
    void open(int) {}
    void close(int) {}
    void expose(int) {}
    void unexpose(int) {}
    void flush(int) {}
    void settle() {}

  protected:
    MPI_Win window_;
};

class Passive : public Sync {
  public:
    using Sync::Sync;
    // MPI_Win_sync requires a lock. No other synchronisation holds a lock on this rank itself.
    void settle() {
        const int self = rank_of_world();
        MPI_Win_lock(MPI_LOCK_SHARED, self, 0, window_);
#ifndef SMPI_H  // SMPI does not implement it, and does not need it: its ranks share one process
        MPI_Win_sync(window_);
#endif
        MPI_Win_unlock(self, window_);
    }
};

class Lock : public Passive {
  public:
    using Passive::Passive;
    void open(int peer) { MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, window_); }
    void close(int peer) { MPI_Win_unlock(peer, window_); }
};

class LockAll : public Passive {
  public:
    using Passive::Passive;
    void open(int) { MPI_Win_lock_all(0, window_); }
    void close(int) { MPI_Win_unlock_all(window_); }
};

class Flush : public Passive {
  public:
    using Passive::Passive;
    void hold(int peer) { MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, window_); }
    void release(int peer) { MPI_Win_unlock(peer, window_); }
    void close(int peer) { flush(peer); }
    void flush(int peer) { MPI_Win_flush(peer, window_); }
};

class FlushLocal : public Flush {
  public:
    using Flush::Flush;
    void close(int peer) { MPI_Win_flush_local(peer, window_); }
};

// Only the two ends of a pair take part.
class Pscw : public Sync {
  public:
    using Sync::Sync;
    void hold(int peer) {
        MPI_Group all = MPI_GROUP_NULL;
        MPI_Win_get_group(window_, &all);
        MPI_Group_incl(all, 1, &peer, &peer_);
        MPI_Group_free(&all);
    }
    void release(int) { MPI_Group_free(&peer_); }
    void open(int) { MPI_Win_start(peer_, 0, window_); }
    void close(int) { MPI_Win_complete(window_); }
    void expose(int) { MPI_Win_post(peer_, 0, window_); }
    void unexpose(int) { MPI_Win_wait(window_); }

  private:
    MPI_Group peer_ = MPI_GROUP_NULL;
};

// Every fence ends an access and begins the next one. The two ends of a pair call it equally often: the origin to end
// its access, the target to take part; where both access each other at once, it is called before and after.
class Fence : public Sync {
  public:
    explicit Fence(MPI_Win window) : Sync(window) { fence(); }
    void close(int) { fence(); }
    void expose(int) { fence(); }
    void settle() { fence(); }

  private:
    void fence() { MPI_Win_fence(0, window_); }
};

template <typename Synchronisation>
class MpiWindow final : public Window, public Epochs, public Atomics, public Accumulation {
  public:
    explicit MpiWindow(Region region) : region_(std::move(region)), window_(region_.window), sync_(window_) {}
    ~MpiWindow() override { MPI_Win_free(&region_.window); }  // also detaches attached memory
    MpiWindow(const MpiWindow&) = delete;
    MpiWindow& operator=(const MpiWindow&) = delete;
    void* base() const override { return region_.base; }
    Epochs& epochs() override { return *this; }
    Atomics* atomics() override { return this; }
    Accumulation* accumulation() override { return this; }

    void put(int peer, std::size_t offset, const Buffers<const char>& buffers, std::size_t bytes) override {
        const int count = count_of(bytes);
        const MPI_Win window = window_;  // a local copy, since the compiler must assume that MPI changes members
        const char* data = buffers.first;
        MPI_Aint there = place(peer, offset);
        for (int left = buffers.count; left > 0; --left) {
            MPI_Put(data, count, MPI_BYTE, peer, there, count, MPI_BYTE, window);
            data += buffers.stride;
            there += static_cast<MPI_Aint>(buffers.stride);
        }
    }
    void get(int peer, std::size_t offset, const Buffers<char>& buffers, std::size_t bytes) override {
        const int count = count_of(bytes);
        const MPI_Win window = window_;
        char* data = buffers.first;
        MPI_Aint there = place(peer, offset);
        for (int left = buffers.count; left > 0; --left) {
            MPI_Get(data, count, MPI_BYTE, peer, there, count, MPI_BYTE, window);
            data += buffers.stride;
            there += static_cast<MPI_Aint>(buffers.stride);
        }
    }
    void accumulate(int peer, std::size_t offset, const void* data, std::size_t bytes) override {
        const int count = count_of(bytes);
        MPI_Accumulate(data, count, MPI_UINT8_T, peer, place(peer, offset), count, MPI_UINT8_T, MPI_SUM, window_);
    }
    void get_accumulate(int peer, std::size_t offset, const void* data, void* previous, std::size_t bytes) override {
        const int count = count_of(bytes);
        MPI_Get_accumulate(data, count, MPI_UINT8_T, previous, count, MPI_UINT8_T, peer, place(peer, offset), count,
                           MPI_UINT8_T, MPI_SUM, window_);
    }
    void compare_and_swap(int peer, std::size_t offset, const void* value, const void* expected,
                          void* previous) override {
        auto* comparand = const_cast<void*>(expected);  // SimGrid's declaration lacks the const
        MPI_Compare_and_swap(value, comparand, previous, MPI_UINT64_T, peer, place(peer, offset), window_);
    }
    void fetch_and_add(int peer, std::size_t offset, const void* value, void* previous) override {
        MPI_Fetch_and_op(value, previous, MPI_UINT64_T, peer, place(peer, offset), MPI_SUM, window_);
    }

    // As in Window, but without virtual calls.
    void access_put(int peer, std::size_t offset, const Buffers<const char>& buffers, std::size_t bytes) override {
        sync_.open(peer);
        put(peer, offset, buffers, bytes);
        sync_.close(peer);
    }
    void access_get(int peer, std::size_t offset, const Buffers<char>& buffers, std::size_t bytes) override {
        sync_.open(peer);
        get(peer, offset, buffers, bytes);
        sync_.close(peer);
    }

    void hold(int peer) override { sync_.hold(peer); }
    void release(int peer) override { sync_.release(peer); }
    void open(int peer) override { sync_.open(peer); }
    void complete(int peer) override { sync_.close(peer); }
    void expose(int peer) override { sync_.expose(peer); }
    void unexpose(int peer) override { sync_.unexpose(peer); }
    void flush(int peer) override { sync_.flush(peer); }
    void settle() override { sync_.settle(); }

  private:
    MPI_Aint place(int peer, std::size_t offset) const {
        return region_.starts[static_cast<std::size_t>(peer * region_.stride)] + static_cast<MPI_Aint>(offset);
    }

    Region region_;
    MPI_Win window_;
    Synchronisation sync_;
};

template <typename Synchronisation>
std::unique_ptr<Window> window_with(Region region) {
    return std::make_unique<MpiWindow<Synchronisation>>(std::move(region));
}

struct SyncMaker {
    const char* name;
    std::unique_ptr<Window> (*make)(Region region);
};

const std::vector<SyncMaker>& sync_makers() {
    static const std::vector<SyncMaker> table = {
        {"lock", window_with<Lock>},        {"flush", window_with<Flush>}, {"flush_local", window_with<FlushLocal>},
        {"lock_all", window_with<LockAll>}, {"pscw", window_with<Pscw>},   {"fence", window_with<Fence>}};
    return table;
}

}  // namespace

std::unique_ptr<Window> make_mpi_window(Memory& memory, const WindowRequest& request) {
    const SyncMaker& sync = row_named(sync_makers(), request.sync, "synchronisation");
    const WinMaker& win = row_named(win_makers(), request.win, "window creation");
    return sync.make(win.make(memory, request.bytes));
}

#endif

}  // namespace fablint
