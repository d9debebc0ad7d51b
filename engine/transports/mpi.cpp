#include "base/errors.hpp"
#include "base/mpi_c.hpp"
#include "messaging/transport.hpp"
#include "ranks/mpi_communicator.hpp"
#include "ranks/mpi_control.hpp"

#ifdef FABLINT_WITHOUT_MPI

namespace fablint {

std::unique_ptr<Transport> make_mpi_transport(const TransportSettings&) { throw without_mpi(); }

}  // namespace fablint

#else

#include <dlfcn.h>

#include "gpu/gpu_runtime.hpp"
#include "transports/mpi_collective_calls.hpp"
#include "transports/mpi_count.hpp"
#include "transports/mpi_window.hpp"

namespace fablint {

namespace {

constexpr int payload_tag = 1;
constexpr int request_tag = 2;
constexpr int first_lane_tag = 16;

class MpiPreparedMessages : public PreparedMessages {
  public:
    ~MpiPreparedMessages() override {
        for (MPI_Request& request : requests_) MPI_Request_free(&request);
    }
    void add_send(int peer, const void* data, std::size_t bytes) override {
        MPI_Send_init(data, count_of(bytes), MPI_BYTE, peer, payload_tag, mpi_communicator(), fresh());
    }
    void add_receive(int peer, void* data, std::size_t bytes) override {
        MPI_Recv_init(data, count_of(bytes), MPI_BYTE, peer, payload_tag, mpi_communicator(), fresh());
    }
    void start() override { MPI_Startall(static_cast<int>(requests_.size()), requests_.data()); }
    void complete() override { MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE); }

  private:
    MPI_Request* fresh() { return &requests_.emplace_back(MPI_REQUEST_NULL); }

    std::vector<MPI_Request> requests_;
};

// Messages in flight in one direction.
class Posted {
  public:
    // The vector grows during the first window and is reused after it: no allocation in the timed path.
    MPI_Request* fresh(int count) {
        const std::size_t first = posted_;
        posted_ += static_cast<std::size_t>(count);
        if (posted_ > requests_.size()) requests_.resize(posted_, MPI_REQUEST_NULL);
        return requests_.data() + first;
    }
    void probe() {
        int done = 0;
        MPI_Testall(static_cast<int>(posted_), requests_.data(), &done, MPI_STATUSES_IGNORE);
    }
    void complete() {
        if (posted_ > 0) MPI_Waitall(static_cast<int>(posted_), requests_.data(), MPI_STATUSES_IGNORE);
        posted_ = 0;
    }

  private:
    std::vector<MPI_Request> requests_;
    std::size_t posted_ = 0;
};

using GpuQuery = int();
using GpuQueryOfMpich = int(int type, int* is_supported);

// Extensions that tell whether the library takes pointers to GPU memory: MPIX_Query_cuda_support and
// MPIX_Query_rocm_support of Open MPI, MPIX_GPU_query_support of MPICH.
bool library_takes_gpu_memory(GpuApi api) {
    const bool cuda = api == GpuApi::cuda;
    const char* const name = cuda ? "MPIX_Query_cuda_support" : "MPIX_Query_rocm_support";
    if (auto* const query = reinterpret_cast<GpuQuery*>(dlsym(RTLD_DEFAULT, name))) return query() == 1;
    constexpr int type_cuda = 0;
    constexpr int type_hip = 2;
    auto* const query = reinterpret_cast<GpuQueryOfMpich*>(dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support"));
    int is_supported = 0;
    return query != nullptr && query(cuda ? type_cuda : type_hip, &is_supported) == MPI_SUCCESS && is_supported != 0;
}

class MpiTransport : public Transport, Persistent, ThreadLanes, RequestQueue, Collectives, MpiCollectives, Rma {
  public:
    bool takes_gpu_memory(GpuApi api) const override { return library_takes_gpu_memory(api); }
    Persistent* persistent() override { return this; }
    ThreadLanes* thread_lanes() override { return this; }
    Rma* rma() override { return this; }
    RequestQueue* request_queue() override { return this; }
    Collectives* collectives() override { return this; }
    MpiCollectives* mpi_collectives() override { return this; }

    void send(int peer, const void* data, std::size_t bytes) override {
        MPI_Send(data, count_of(bytes), MPI_BYTE, peer, payload_tag, mpi_communicator());
    }
    void receive(int peer, void* data, std::size_t bytes) override {
        MPI_Recv(data, count_of(bytes), MPI_BYTE, peer, payload_tag, mpi_communicator(), MPI_STATUS_IGNORE);
    }
    void post_sends(int peer, const Buffers<const char>& buffers, std::size_t bytes) override {
        const int length = count_of(bytes);
        const char* data = buffers.first;
        MPI_Request* const end = sends_.fresh(buffers.count) + buffers.count;
        for (MPI_Request* request = end - buffers.count; request != end; ++request, data += buffers.stride)
            MPI_Isend(data, length, MPI_BYTE, peer, payload_tag, mpi_communicator(), request);
    }
    void post_receives(int peer, const Buffers<char>& buffers, std::size_t bytes) override {
        const int length = count_of(bytes);
        char* data = buffers.first;
        MPI_Request* const end = receives_.fresh(buffers.count) + buffers.count;
        for (MPI_Request* request = end - buffers.count; request != end; ++request, data += buffers.stride)
            MPI_Irecv(data, length, MPI_BYTE, peer, payload_tag, mpi_communicator(), request);
    }
    // One call each, the sends first, as osu_bibw: MPICH allocates memory in a call with more than 64 requests.
    void complete() override {
        sends_.complete();
        receives_.complete();
    }

    void send(int lane, int peer, const void* data, std::size_t bytes) override {
        MPI_Send(data, count_of(bytes), MPI_BYTE, peer, first_lane_tag + lane, mpi_communicator());
    }
    void receive(int lane, int peer, void* data, std::size_t bytes) override {
        MPI_Recv(data, count_of(bytes), MPI_BYTE, peer, first_lane_tag + lane, mpi_communicator(), MPI_STATUS_IGNORE);
    }

    std::unique_ptr<PreparedMessages> prepare() override { return std::make_unique<MpiPreparedMessages>(); }

    void request(int peer, int content) override {
        MPI_Send(&content, 1, MPI_INT, peer, request_tag, mpi_communicator());
    }
    int next_request(int& content) override {
        MPI_Status status;
        MPI_Recv(&content, 1, MPI_INT, MPI_ANY_SOURCE, request_tag, mpi_communicator(), &status);
        return status.MPI_SOURCE;
    }
    bool has_request() override {
        int arrived = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, request_tag, mpi_communicator(), &arrived, MPI_STATUS_IGNORE);
        return arrived != 0;
    }

    void barrier() override { MPI_Barrier(mpi_communicator()); }
    void broadcast(int root, const void* data, void* result, std::size_t bytes) override {
        MPI_Bcast(data != nullptr ? const_cast<void*>(data) : result, count_of(bytes), MPI_BYTE, root,
                  mpi_communicator());
    }
    void sum(const void* data, void* result, std::size_t floats) override {
        MPI_Allreduce(sent(data, result), result, count_of(floats), MPI_FLOAT, MPI_SUM, mpi_communicator());
    }
    void all_gather(const void* data, void* result, std::size_t bytes) override {
        MPI_Allgather(sent(data, result), count_of(bytes), MPI_BYTE, result, count_of(bytes), MPI_BYTE,
                      mpi_communicator());
    }
    void* reduce_scatter(const void* data, void* result, std::size_t floats) override {
        MPI_Reduce_scatter_block(sent(data, result), result, count_of(floats), MPI_FLOAT, MPI_SUM, mpi_communicator());
        return result;
    }
    void all_to_all(const void* data, void* result, std::size_t bytes) override {
        MPI_Alltoall(data, count_of(bytes), MPI_BYTE, result, count_of(bytes), MPI_BYTE, mpi_communicator());
    }

    void run(MpiCollective collective, const void* data, void* result, std::size_t bytes) override {
        calls_.run(collective, data, result, bytes);
    }

    void start(MpiCollective collective, const void* data, void* result, std::size_t bytes) override {
        calls_.start(collective, data, result, bytes, sends_.fresh(1));
    }
    void probe() override { sends_.probe(); }

    std::unique_ptr<Window> expose(Memory& memory, const WindowRequest& request) override {
        return make_mpi_window(memory, request);
    }

  private:
    static const void* sent(const void* data, const void* result) { return data == result ? MPI_IN_PLACE : data; }

    Posted sends_, receives_;
    MpiCollectiveCalls calls_;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(const TransportSettings&) {
    if (!is_mpi_started()) throw without_mpi();
    return std::make_unique<MpiTransport>();
}

}  // namespace fablint

#endif
