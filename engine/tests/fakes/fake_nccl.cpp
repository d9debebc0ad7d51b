// A fake of NCCL, libnccl.so.2, or with -DFAKE_RCCL of RCCL, librccl.so.1, for machines without a GPU. Written from the
// documented signatures; works with the fake driver library of fake_gpu_driver.cpp. Processes of one host exchange the
// bytes through shared memory. Operations are queued in the stream, and executed while the caller polls it or waits for
// it: a missing wait leaves old data. A wrong use ends the process with a line `fake libnccl: ...`:
//
// * a communicator that was destroyed or aborted, a group that ends before it begins
// * pointers that are not device memory, a stream of another device, a rank that does not exist
// * buffers that overlap without being those of an operation in place
// * a receive whose operation, type or number of bytes is not that of the send
// * communicators or groups that are open at the end of the process
//
// FAKE_NCCL_INIT=RANK:RESULT: result of ncclCommInitRank on that rank. FAKE_NCCL_ASYNC=RANK:OPERATIONS:RESULT: after so
// many operations the next one of that rank stalls, and the communicator reports the error.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fake_channels.hpp"

#ifdef FAKE_RCCL
#define LIBRARY "librccl"
#define DRIVER "libamdhip64.so"
#else
#define LIBRARY "libnccl"
#define DRIVER "libcuda.so.1"
#endif

namespace {

enum Result { success = 0, invalid_argument = 4, invalid_usage = 5, remote_error = 6 };
enum Type { uint8 = 1, float32 = 7 };
enum Kind : int { message, broadcast, all_reduce, all_gather, reduce_scatter };

[[noreturn]] void misuse(const std::string& text) {
    std::fprintf(stderr, "fake " LIBRARY ": %s\n", text.c_str());
    std::abort();
}

std::size_t size_of(int type) {
    if (type != uint8 && type != float32) misuse("a type that the fake does not know");
    return type == float32 ? sizeof(float) : 1;
}

// The functions of the fake driver.
struct Driver {
    Driver() {
        void* const library = dlopen(DRIVER, RTLD_NOW | RTLD_NOLOAD);
        if (library == nullptr) misuse("the driver library " DRIVER " is not loaded");
        current = reinterpret_cast<int (*)()>(dlsym(library, "fake_gpu_current"));
        queue = reinterpret_cast<void (*)(void*, bool (*)(void*), void*)>(dlsym(library, "fake_gpu_queue"));
        view = reinterpret_cast<void* (*)(const void*, std::size_t)>(dlsym(library, "fake_gpu_view"));
        if (view == nullptr) misuse("the driver library " DRIVER " is not a fake");
    }
    int (*current)();
    void (*queue)(void* stream, bool (*run)(void*), void* work);
    void* (*view)(const void* data, std::size_t bytes);
};

const Driver& driver() {
    static const Driver only;
    return only;
}

char* view(const void* data, std::size_t bytes) { return static_cast<char*>(driver().view(data, bytes)); }

struct Communicator {
    Shared* shared;
    int ranks;
    int rank;
    int operations = 0;
    int error = success;  // that it reports
    bool is_open = true;
};

struct Work {
    Communicator* communicator;
    std::vector<Transfer> transfers;
    std::vector<std::function<void()>> last;  // when all have arrived
    bool stalls = false;

    bool advance() {
        if (!communicator->is_open) return true;  // aborted
        if (stalls) return false;
        std::set<std::pair<Channel*, bool>> busy;  // an earlier message takes this channel
        bool is_complete = true;
        for (Transfer& transfer : transfers) {
            if (transfer.is_complete() || !busy.insert({transfer.channel, transfer.sends}).second) continue;
            transfer.advance();
            if (transfer.mismatch) misuse("a receive that does not match the send");
            if (transfer.is_complete()) busy.erase({transfer.channel, transfer.sends});
        }
        for (const Transfer& transfer : transfers) is_complete = is_complete && transfer.is_complete();
        if (is_complete)
            for (const auto& step : last) step();
        return is_complete;
    }
};

bool run(void* work) {
    auto* const own = static_cast<Work*>(work);
    if (!own->advance()) return false;
    delete own;
    return true;
}

struct Library {
    std::vector<std::unique_ptr<Communicator>> communicators;
    int groups = 0;
    Work* pending = nullptr;  // of the open group
    void* stream = nullptr;

    ~Library() {
        const auto open = std::count_if(communicators.begin(), communicators.end(),
                                        [](const auto& communicator) { return communicator->is_open; });
        if (open > 0 || groups > 0) std::fprintf(stderr, "fake " LIBRARY ": not released at the end\n");
    }
    Communicator& open(void* handle) const {
        for (const auto& communicator : communicators)
            if (communicator.get() == handle && communicator->is_open) return *communicator;
        misuse("a communicator that is not open");
    }
    void add(Communicator& communicator, void* on_stream, Work&& work) {
        if (pending != nullptr && (pending->communicator != &communicator || stream != on_stream))
            misuse("a group of several communicators or streams");
        if (pending == nullptr) pending = new Work{&communicator, {}, {}};
        stream = on_stream;
        for (Transfer& transfer : work.transfers) pending->transfers.push_back(transfer);
        for (auto& step : work.last) pending->last.push_back(step);
        if (groups == 0) launch();
    }
    void launch() {
        if (pending == nullptr) return;
        Communicator& communicator = *pending->communicator;
        int rank = -1, operations = 0, error = 0;
        if (const char* text = std::getenv("FAKE_NCCL_ASYNC"))
            std::sscanf(text, "%d:%d:%d", &rank, &operations, &error);
        if (rank == communicator.rank && communicator.operations++ == operations) {
            communicator.error = error;
            pending->stalls = true;
        }
        driver().queue(stream, run, pending);
        pending = nullptr;
    }
};

Library& library() {
    static Library only;
    return only;
}

// One operation of a communicator.
class Operation {
  public:
    Operation(void* communicator, void* stream, Kind kind, int type, std::size_t bytes)
        : own_(library().open(communicator)), stream_(stream), header_{bytes, kind, type}, work_{&own_, {}, {}} {}

    int rank() const { return own_.rank; }
    int ranks() const { return own_.ranks; }
    void send(int peer, char* data) { add(true, own_.rank, peer, data); }
    void receive(int peer, char* data) { add(false, peer, own_.rank, data); }
    void at_the_end(std::function<void()> step) { work_.last.push_back(std::move(step)); }
    int launch() {
        library().add(own_, stream_, std::move(work_));
        return success;
    }

  private:
    void add(bool sends, int src, int dst, char* data) {
        if (src < 0 || dst < 0 || src >= own_.ranks || dst >= own_.ranks) misuse("a rank that does not exist");
        work_.transfers.push_back({sends, &own_.shared->channels[src][dst], header_, data});
    }

    Communicator& own_;
    void* stream_;
    Header header_;
    Work work_;
};

void require_apart(const char* data, std::size_t bytes, const char* result, std::size_t result_bytes,
                   const char* in_place) {
    if (data != in_place && data < result + result_bytes && result < data + bytes)
        misuse("buffers that overlap, and are not those of an operation in place");
}

// A sum over the ranks of `parts` parts of `count` floats; this rank keeps one part, or all of them.
int sum(Operation& operation, char* data, char* result, std::size_t count, int parts) {
    const std::size_t bytes = count * sizeof(float);
    auto arrived = std::make_shared<std::vector<std::vector<float>>>(operation.ranks(), std::vector<float>(count));
    for (int peer = 0; peer < operation.ranks(); ++peer) {
        operation.send(peer, data + (parts > 1 ? static_cast<std::size_t>(peer) * bytes : 0));
        operation.receive(peer, reinterpret_cast<char*>((*arrived)[static_cast<std::size_t>(peer)].data()));
    }
    operation.at_the_end([arrived, result, count] {
        auto* const sums = reinterpret_cast<float*>(result);
        for (std::size_t k = 0; k < count; ++k) {
            sums[k] = 0.0F;
            for (const auto& addend : *arrived) sums[k] += addend[k];
        }
    });
    return operation.launch();
}

}  // namespace

extern "C" {

struct Id {
    char bytes[128];
};

int ncclGetUniqueId(Id* id) {
    static int number = 0;
    *id = {};
    std::snprintf(id->bytes, sizeof id->bytes, "/dev/shm/fake-nccl-%d-%d", getpid(), number++);
    return success;
}

const char* ncclGetErrorString(int result) {
    switch (result) {
        case 2:
            return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
        case 3:
            return "internal error - please report this issue to the NCCL developers";
        case invalid_usage:
            return "invalid usage (run with NCCL_DEBUG=WARN for details)";
        case remote_error:
            return "remote process exited or there was a network error";
        default:
            return "unknown result code";
    }
}

int ncclCommInitRank(void** communicator, int ranks, Id id, int rank) {
    if (ranks > most_ranks || rank < 0 || rank >= ranks) return invalid_argument;
    const int file = open(id.bytes, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) misuse("no shared memory, or not the id of a communicator");
    auto* const shared =
        static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    close(file);
    int failing = -1, result = success;
    if (const char* text = std::getenv("FAKE_NCCL_INIT")) std::sscanf(text, "%d:%d", &failing, &result);
    if (rank == failing) shared->failed = 1;
    shared->devices[rank] = driver().current();
    ++shared->arrived;
    while (shared->arrived < ranks) usleep(100);
    unlink(id.bytes);
    if (rank == failing) return result;
    if (shared->failed != 0) return remote_error;
    if (std::count(shared->devices, shared->devices + ranks, driver().current()) > 1) return invalid_usage;
    library().communicators.emplace_back(new Communicator{shared, ranks, rank});
    *communicator = library().communicators.back().get();
    return success;
}

int ncclCommDestroy(void* communicator) {
    library().open(communicator).is_open = false;
    return success;
}

int ncclCommAbort(void* communicator) {
    library().open(communicator).is_open = false;
    library().groups = 0;
    return success;
}

int ncclCommGetAsyncError(void* communicator, int* result) {
    *result = library().open(communicator).error;
    return success;
}

int ncclGroupStart() {
    ++library().groups;
    return success;
}

int ncclGroupEnd() {
    if (library().groups == 0) misuse("the end of a group that did not begin");
    if (--library().groups == 0) library().launch();
    return success;
}

int ncclSend(const void* data, std::size_t count, int type, int peer, void* communicator, void* stream) {
    const std::size_t bytes = count * size_of(type);
    Operation operation(communicator, stream, message, type, bytes);
    operation.send(peer, view(data, bytes));
    return operation.launch();
}

int ncclRecv(void* data, std::size_t count, int type, int peer, void* communicator, void* stream) {
    const std::size_t bytes = count * size_of(type);
    Operation operation(communicator, stream, message, type, bytes);
    operation.receive(peer, view(data, bytes));
    return operation.launch();
}

int ncclBroadcast(const void* data, void* result, std::size_t count, int type, int root, void* communicator,
                  void* stream) {
    const std::size_t bytes = count * size_of(type);
    Operation operation(communicator, stream, broadcast, type, bytes);
    char* const out = view(result, bytes);
    if (operation.rank() == root) {
        char* const in = view(data, bytes);
        require_apart(in, bytes, out, bytes, out);
        for (int peer = 0; peer < operation.ranks(); ++peer)
            if (peer != root) operation.send(peer, in);
        operation.at_the_end([=] { std::memmove(out, in, bytes); });
    } else {
        operation.receive(root, out);
    }
    return operation.launch();
}

int ncclAllReduce(const void* data, void* result, std::size_t count, int type, int reduction, void* communicator,
                  void* stream) {
    if (type != float32 || reduction != 0) misuse("a reduction other than the sum of floats");
    const std::size_t bytes = count * sizeof(float);
    Operation operation(communicator, stream, all_reduce, type, bytes);
    char* const out = view(result, bytes);
    require_apart(view(data, bytes), bytes, out, bytes, out);
    return sum(operation, view(data, bytes), out, count, 1);
}

int ncclAllGather(const void* data, void* result, std::size_t count, int type, void* communicator, void* stream) {
    const std::size_t bytes = count * size_of(type);
    Operation operation(communicator, stream, all_gather, type, bytes);
    const auto ranks = static_cast<std::size_t>(operation.ranks());
    char* const out = view(result, ranks * bytes);
    char* const in = view(data, bytes);
    char* const own = out + static_cast<std::size_t>(operation.rank()) * bytes;
    require_apart(in, bytes, out, ranks * bytes, own);
    for (int peer = 0; peer < operation.ranks(); ++peer) {
        if (peer == operation.rank()) continue;
        operation.send(peer, in);
        operation.receive(peer, out + static_cast<std::size_t>(peer) * bytes);
    }
    operation.at_the_end([=] { std::memmove(own, in, bytes); });
    return operation.launch();
}

int ncclReduceScatter(const void* data, void* result, std::size_t count, int type, int reduction, void* communicator,
                      void* stream) {
    if (type != float32 || reduction != 0) misuse("a reduction other than the sum of floats");
    const std::size_t bytes = count * sizeof(float);
    Operation operation(communicator, stream, reduce_scatter, type, bytes);
    const auto ranks = static_cast<std::size_t>(operation.ranks());
    char* const in = view(data, ranks * bytes);
    char* const out = view(result, bytes);
    require_apart(out, bytes, in, ranks * bytes, in + static_cast<std::size_t>(operation.rank()) * bytes);
    return sum(operation, in, out, count, operation.ranks());
}

}  // extern "C"
