#include <sched.h>

#include <algorithm>
#include <array>

#include "base/shared_library.hpp"
#include "gpu/gpu_runtime.hpp"
#include "messaging/transport.hpp"

namespace fablint {

namespace {

// Declarations of this project, from the documentation of NCCL 2.7 and later; RCCL has the same functions.
struct NcclId {
    std::array<char, 128> bytes;
};
using NcclCommunicator = void*;

enum NcclResult {
    nccl_success = 0,
    nccl_system_error = 2,
    nccl_invalid_usage = 5,
    nccl_remote_error = 6,
};
enum NcclType { nccl_uint8 = 1, nccl_float32 = 7 };
constexpr int nccl_sum = 0;

struct Nccl {
    explicit Nccl(GpuApi api) {
        const bool cuda = api == GpuApi::cuda;
        const SharedLibrary library(cuda ? "libnccl.so.2" : "librccl.so.1",
                                    cuda ? "load the NCCL module or install NCCL (Debian, Red Hat: libnccl2 or libnccl "
                                           "of NVIDIA's repository; pip: nvidia-nccl-cu12), or choose another "
                                           "--transport, or --memory hip for AMD GPUs"
                                         : "load the ROCm module or install RCCL (package rccl), or choose another "
                                           "--transport");
#define LOAD(member, name) library.load(member, "nccl" name)
        LOAD(unique_id, "GetUniqueId");
        LOAD(error_string, "GetErrorString");
        LOAD(init_rank, "CommInitRank");
        LOAD(destroy, "CommDestroy");
        LOAD(abort, "CommAbort");
        LOAD(async_error, "CommGetAsyncError");
        LOAD(group_start, "GroupStart");
        LOAD(group_end, "GroupEnd");
        LOAD(send, "Send");
        LOAD(receive, "Recv");
        LOAD(broadcast, "Broadcast");
        LOAD(all_reduce, "AllReduce");
        LOAD(all_gather, "AllGather");
        LOAD(reduce_scatter, "ReduceScatter");
#undef LOAD
    }

    int (*unique_id)(NcclId* id);
    const char* (*error_string)(int result);
    int (*init_rank)(NcclCommunicator* communicator, int ranks, NcclId id, int rank);
    int (*destroy)(NcclCommunicator communicator);
    int (*abort)(NcclCommunicator communicator);
    int (*async_error)(NcclCommunicator communicator, int* result);
    int (*group_start)();
    int (*group_end)();
    int (*send)(const void* data, std::size_t count, int type, int peer, NcclCommunicator, GpuStream);
    int (*receive)(void* data, std::size_t count, int type, int peer, NcclCommunicator, GpuStream);
    int (*broadcast)(const void* data, void* result, std::size_t count, int type, int root, NcclCommunicator,
                     GpuStream);
    int (*all_reduce)(const void* data, void* result, std::size_t count, int type, int operation, NcclCommunicator,
                      GpuStream);
    int (*all_gather)(const void* data, void* result, std::size_t count, int type, NcclCommunicator, GpuStream);
    int (*reduce_scatter)(const void* data, void* result, std::size_t count, int type, int operation, NcclCommunicator,
                          GpuStream);
};

const Nccl& library_of(GpuApi api) {
    if (api == GpuApi::hip) {
        static const Nccl rccl(GpuApi::hip);
        return rccl;
    }
    static const Nccl nccl(GpuApi::cuda);
    return nccl;
}

GpuApi gpus_of(const TransportSettings& settings) {
    if (!settings.gpu) throw usage_error("NCCL moves memory of GPUs only: use --memory cuda or --memory hip");
    return *settings.gpu;
}

// Floats where the size allows it, as nccl-tests; NCCL copies them as bytes.
struct Elements {
    explicit Elements(std::size_t bytes)
        : count(bytes % sizeof(float) == 0 ? bytes / sizeof(float) : bytes),
          type(bytes % sizeof(float) == 0 ? nccl_float32 : nccl_uint8) {}
    std::size_t count;
    int type;
};

// Operations of one communicator in one stream. Operations that are posted are one group of NCCL, which complete()
// closes: NCCL starts a group as a whole, so that sends and receives of a group do not wait for each other. The device
// executes the operations after the calls have returned; complete() waits for it.
class NcclTransport : public Transport, Collectives {
  public:
    explicit NcclTransport(const TransportSettings& settings)
        : nccl_(library_of(gpus_of(settings))),
          gpus_(GpuRuntime::of(*settings.gpu)),
          rank_(settings.rank),
          ranks_(settings.ranks),
          yielding_(settings.yielding) {
        if (rank_ == 0) check(nccl_.unique_id(&id_), "start");
    }

    ~NcclTransport() override {
        if (communicator_ != nullptr) nccl_.destroy(communicator_);
        if (stream_ != nullptr) gpus_.destroy(stream_);
        if (token_ != nullptr) gpus_.release(token_);
    }

    bool takes_gpu_memory(GpuApi) const override { return true; }
    Collectives* collectives() override { return this; }

    std::string address() const override {
        return rank_ == 0 ? std::string(id_.bytes.data(), id_.bytes.size()) : std::string();
    }

    void join(const std::vector<std::string>& addresses) override {
        if (communicator_ != nullptr) return;
        std::copy(addresses.front().begin(), addresses.front().end(), id_.bytes.begin());
        const int result = nccl_.init_rank(&communicator_, ranks_, id_, rank_);
        if (result != nccl_success) communicator_ = nullptr;
        check(result, result == nccl_invalid_usage ? "communicator of all ranks (every rank needs a GPU of its own)"
                                                   : "communicator of all ranks");
        stream_ = gpus_.create_stream();
        token_ = gpus_.allocate(sizeof(float));
    }

    void post_sends(int peer, const Buffers<const char>& buffers, std::size_t bytes) override {
        open_group(peer);
        const Elements elements(bytes);
        const char* data = buffers.first;
        for (int i = 0; i < buffers.count; ++i, data += buffers.stride)
            check(nccl_.send(data, elements.count, elements.type, peer, communicator_, stream_), "send");
    }
    void post_receives(int peer, const Buffers<char>& buffers, std::size_t bytes) override {
        open_group(peer);
        const Elements elements(bytes);
        char* data = buffers.first;
        for (int i = 0; i < buffers.count; ++i, data += buffers.stride)
            check(nccl_.receive(data, elements.count, elements.type, peer, communicator_, stream_), "receive");
    }

    // As nccl-tests: polls the stream, since a wait in the driver does not end when the communicator fails.
    void complete() override {
        if (in_group_) {
            in_group_ = false;
            check(nccl_.group_end(), "group of messages");
        }
        while (!gpus_.is_idle(stream_)) {
            int result = nccl_success;
            const int query = nccl_.async_error(communicator_, &result);
            check(query, "state of the communicator");
            check(result, "communicator");
            if (yielding_) sched_yield();
        }
    }

    void barrier() override {
        sum(token_, token_, 1);
        complete();
    }
    void broadcast(int root, const void* data, void* result, std::size_t bytes) override {
        const Elements elements(bytes);
        peer_ = root;
        check(nccl_.broadcast(data != nullptr ? data : result, result, elements.count, elements.type, root,
                              communicator_, stream_),
              "broadcast");
    }
    void sum(const void* data, void* result, std::size_t floats) override {
        peer_ = rank_;
        check(nccl_.all_reduce(data, result, floats, nccl_float32, nccl_sum, communicator_, stream_), "all-reduce");
    }
    void all_gather(const void* data, void* result, std::size_t bytes) override {
        const Elements elements(bytes);
        peer_ = rank_;
        check(nccl_.all_gather(data == result ? part(result, rank_, bytes) : data, result, elements.count,
                               elements.type, communicator_, stream_),
              "all-gather");
    }
    void* reduce_scatter(const void* data, void* result, std::size_t floats) override {
        peer_ = rank_;
        void* const own = data == result ? part(result, rank_, floats * sizeof(float)) : result;
        check(nccl_.reduce_scatter(data, own, floats, nccl_float32, nccl_sum, communicator_, stream_),
              "reduce-scatter");
        return own;
    }
    // NCCL's documentation of this operation: sends and receives of all ranks in a group.
    void all_to_all(const void* data, void* result, std::size_t bytes) override {
        const Elements elements(bytes);
        peer_ = rank_;
        check(nccl_.group_start(), "group");
        for (int peer = 0; peer < ranks_; ++peer) {
            const void* const out = part(const_cast<void*>(data), peer, bytes);
            check(nccl_.send(out, elements.count, elements.type, peer, communicator_, stream_), "send");
            check(nccl_.receive(part(result, peer, bytes), elements.count, elements.type, peer, communicator_, stream_),
                  "receive");
        }
        check(nccl_.group_end(), "group of messages");
    }

  private:
    static void* part(void* data, int rank, std::size_t bytes) {
        return static_cast<char*>(data) + static_cast<std::size_t>(rank) * bytes;
    }

    void open_group(int peer) {
        peer_ = peer;
        if (in_group_) return;
        check(nccl_.group_start(), "group");
        in_group_ = true;
    }

    // A communicator that failed is of no further use: it is aborted, so that its kernels on the device end.
    void check(int result, const std::string& action) {
        if (result == nccl_success) return;
        const std::string reason = nccl_.error_string(result);
        const std::string text = "NCCL: " + action + ": " + reason.substr(0, reason.find(" (run with NCCL_DEBUG")) +
                                 " (" + std::to_string(result) + "): NCCL_DEBUG=WARN shows the reason";
        const bool is_joined = communicator_ != nullptr;
        if (is_joined) nccl_.abort(communicator_);
        communicator_ = nullptr;
        if (is_joined && (result == nccl_remote_error || result == nccl_system_error)) throw PeerFailure(peer_, text);
        throw !is_joined && result == nccl_invalid_usage ? usage_error(text) : incomplete_error(text);
    }

    const Nccl& nccl_;
    const GpuRuntime& gpus_;
    const int rank_;
    const int ranks_;
    const bool yielding_;
    NcclId id_{};  // of the communicator; made by rank 0
    NcclCommunicator communicator_ = nullptr;
    GpuStream stream_ = nullptr;
    void* token_ = nullptr;  // memory of the device for barriers
    int peer_ = 0;           // of the last operation; this rank if all ranks are peers
    bool in_group_ = false;
};

}  // namespace

std::unique_ptr<Transport> make_nccl_transport(const TransportSettings& settings) {
    return std::make_unique<NcclTransport>(settings);
}

}  // namespace fablint
