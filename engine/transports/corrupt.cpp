#include <cstdint>

#include "../permutation.hpp"
#include "../transport.hpp"

namespace fablint {

namespace {

// MPI that flips one bit in every seventh payload it receives, at a place that changes. Acknowledgements (1 byte) are
// spared: their content means nothing.
class CorruptTransport : public Transport {
  public:
    void send(int peer, const void* data, std::size_t bytes) override { mpi_->send(peer, data, bytes); }
    void receive(int peer, void* data, std::size_t bytes) override {
        mpi_->receive(peer, data, bytes);
        damage(data, bytes);
    }
    void post_send(int peer, const void* data, std::size_t bytes) override { mpi_->post_send(peer, data, bytes); }
    void post_receive(int peer, void* data, std::size_t bytes) override {
        mpi_->post_receive(peer, data, bytes);
        posted_.push_back({data, bytes});
    }
    void complete() override {
        mpi_->complete();
        for (const Posted& message : posted_) damage(message.data, message.bytes);
        posted_.clear();
    }

  private:
    struct Posted {
        void* data;
        std::size_t bytes;
    };

    void damage(void* data, std::size_t bytes) {
        if (bytes < 2 || ++received_ % 7 != 0) return;
        const std::uint64_t place = mix(received_);
        static_cast<unsigned char*>(data)[place % bytes] ^= static_cast<unsigned char>(1U << (place >> 61));
    }

    std::unique_ptr<Transport> mpi_ = make_mpi_transport();
    std::vector<Posted> posted_;
    std::uint64_t received_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_corrupt_transport() { return std::make_unique<CorruptTransport>(); }

}  // namespace fablint
