#include <climits>

#include "../errors.hpp"
#include "../mpi_c.hpp"
#include "../transport.hpp"

namespace fablint {

namespace {

constexpr int payload_tag = 1;

int count_of(std::size_t bytes) {
    if (bytes > INT_MAX) throw usage_error("messages of more than 2 GiB - 1 are not possible over MPI");
    return static_cast<int>(bytes);
}

class MpiTransport : public Transport {
  public:
    void send(int peer, const void* data, std::size_t bytes) override {
        MPI_Send(data, count_of(bytes), MPI_BYTE, peer, payload_tag, MPI_COMM_WORLD);
    }
    void receive(int peer, void* data, std::size_t bytes) override {
        MPI_Recv(data, count_of(bytes), MPI_BYTE, peer, payload_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    void post_send(int peer, const void* data, std::size_t bytes) override {
        MPI_Isend(data, count_of(bytes), MPI_BYTE, peer, payload_tag, MPI_COMM_WORLD, next_request());
    }
    void post_receive(int peer, void* data, std::size_t bytes) override {
        MPI_Irecv(data, count_of(bytes), MPI_BYTE, peer, payload_tag, MPI_COMM_WORLD, next_request());
    }
    void complete() override {
        MPI_Waitall(static_cast<int>(posted_), requests_.data(), MPI_STATUSES_IGNORE);
        posted_ = 0;
    }

  private:
    // The vector grows during the first window and is reused after it: no allocation in the timed path.
    MPI_Request* next_request() {
        if (posted_ == requests_.size()) requests_.push_back(MPI_REQUEST_NULL);
        return &requests_[posted_++];
    }

    std::vector<MPI_Request> requests_;
    std::size_t posted_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport() { return std::make_unique<MpiTransport>(); }

}  // namespace fablint
