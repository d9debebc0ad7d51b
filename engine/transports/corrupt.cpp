#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/permutation.hpp"
#include "messaging/transport.hpp"

namespace fablint {

namespace {

// Flips one bit in every seventh payload, at a position that changes. Threads may share it.
class BitFlipper {
  public:
    void flip(void* data, std::size_t bytes) {
        const std::uint64_t payloads = ++payloads_;
        if (bytes == 0 || payloads % 7 != 0) return;
        const std::uint64_t position = mix(payloads);
        static_cast<unsigned char*>(data)[position % bytes] ^= static_cast<unsigned char>(1U << (position >> 61));
    }
    // Acknowledgements (1 byte) stay intact: their content means nothing.
    void flip_message(void* data, std::size_t bytes) {
        if (bytes > 1) flip(data, bytes);
    }

  private:
    std::atomic<std::uint64_t> payloads_{0};
};

struct Received {
    void* data;
    std::size_t bytes;
};

class CorruptPreparedMessages : public PreparedMessages {
  public:
    CorruptPreparedMessages(BitFlipper& flipper, std::unique_ptr<PreparedMessages> mpi)
        : flipper_(flipper), mpi_(std::move(mpi)) {}
    void add_send(int peer, const void* data, std::size_t bytes) override { mpi_->add_send(peer, data, bytes); }
    void add_receive(int peer, void* data, std::size_t bytes) override {
        mpi_->add_receive(peer, data, bytes);
        received_.push_back({data, bytes});
    }
    void start() override { mpi_->start(); }
    void complete() override {
        mpi_->complete();
        for (const Received& message : received_) flipper_.flip_message(message.data, message.bytes);
    }

  private:
    BitFlipper& flipper_;
    std::unique_ptr<PreparedMessages> mpi_;
    std::vector<Received> received_;
};

// Damages a copy of the data that go to the peer, and the data that came from there.
class CorruptWindow : public Window, Atomics, Accumulation {
  public:
    CorruptWindow(BitFlipper& flipper, std::unique_ptr<Window> mpi) : flipper_(flipper), mpi_(std::move(mpi)) {}
    void* base() const override { return mpi_->base(); }
    Epochs& epochs() override { return mpi_->epochs(); }
    Atomics* atomics() override { return this; }
    Accumulation* accumulation() override { return this; }

    void put(int peer, std::size_t offset, const Buffers<const char>& buffers, std::size_t bytes) override {
        for (int i = 0; i < buffers.count; ++i) {
            const std::size_t at = static_cast<std::size_t>(i) * buffers.stride;
            const void* copy = damaged(peer, buffers.first + at, bytes);
            mpi_->put(peer, offset + at, {static_cast<const char*>(copy), 0, 1}, bytes);
        }
    }
    void get(int peer, std::size_t offset, const Buffers<char>& buffers, std::size_t bytes) override {
        mpi_->get(peer, offset, buffers, bytes);
        for (int i = 0; i < buffers.count; ++i)
            in_flight_.push_back({peer, {}, {buffers.first + static_cast<std::size_t>(i) * buffers.stride, bytes}});
    }
    void complete(int peer) override {
        mpi_->complete(peer);
        end(peer);
    }
    void flush(int peer) override {
        mpi_->flush(peer);
        end(peer);
    }
    void settle() override { mpi_->settle(); }

    void accumulate(int peer, std::size_t offset, const void* data, std::size_t bytes) override {
        mpi_->accumulation()->accumulate(peer, offset, damaged(peer, data, bytes), bytes);
    }
    void get_accumulate(int peer, std::size_t offset, const void* data, void* previous, std::size_t bytes) override {
        mpi_->accumulation()->get_accumulate(peer, offset, damaged(peer, data, bytes), previous, bytes);
    }
    void compare_and_swap(int peer, std::size_t offset, const void* value, const void* expected,
                          void* previous) override {
        const void* copy = damaged(peer, value, sizeof(std::uint64_t));
        mpi_->atomics()->compare_and_swap(peer, offset, copy, expected, previous);
    }
    void fetch_and_add(int peer, std::size_t offset, const void* value, void* previous) override {
        mpi_->atomics()->fetch_and_add(peer, offset, damaged(peer, value, sizeof(std::uint64_t)), previous);
    }

  private:
    struct Operation {
        int peer;
        std::vector<unsigned char> sent;  // belongs to MPI until the operation is complete
        Received received;
    };

    const void* damaged(int peer, const void* data, std::size_t bytes) {
        const auto* begin = static_cast<const unsigned char*>(data);
        in_flight_.push_back({peer, {begin, begin + bytes}, {nullptr, 0}});
        void* copy = in_flight_.back().sent.data();
        flipper_.flip(copy, bytes);
        return copy;
    }

    // The operations with that peer are complete.
    void end(int peer) {
        const auto complete = std::partition(in_flight_.begin(), in_flight_.end(),
                                             [&](const Operation& operation) { return operation.peer != peer; });
        for (auto operation = complete; operation != in_flight_.end(); ++operation)
            if (operation->received.data != nullptr) flipper_.flip(operation->received.data, operation->received.bytes);
        in_flight_.erase(complete, in_flight_.end());
    }

    BitFlipper& flipper_;
    std::unique_ptr<Window> mpi_;
    std::vector<Operation> in_flight_;
};

// Requests are not payload: the queue is that of MPI.
class CorruptTransport : public Transport, Persistent, ThreadLanes, Collectives, MpiCollectives, Rma {
  public:
    Persistent* persistent() override { return this; }
    ThreadLanes* thread_lanes() override { return this; }
    Rma* rma() override { return this; }
    RequestQueue* request_queue() override { return mpi_->request_queue(); }
    Collectives* collectives() override { return this; }
    MpiCollectives* mpi_collectives() override { return this; }

    void send(int peer, const void* data, std::size_t bytes) override { mpi_->send(peer, data, bytes); }
    void receive(int peer, void* data, std::size_t bytes) override {
        mpi_->receive(peer, data, bytes);
        flipper_.flip_message(data, bytes);
    }
    void post_sends(int peer, const Buffers<const char>& buffers, std::size_t bytes) override {
        mpi_->post_sends(peer, buffers, bytes);
    }
    void post_receives(int peer, const Buffers<char>& buffers, std::size_t bytes) override {
        mpi_->post_receives(peer, buffers, bytes);
        for (int i = 0; i < buffers.count; ++i)
            posted_.push_back({buffers.first + static_cast<std::size_t>(i) * buffers.stride, bytes});
    }
    void complete() override {
        mpi_->complete();
        for (const Received& message : posted_) flipper_.flip_message(message.data, message.bytes);
        posted_.clear();
    }

    void send(int lane, int peer, const void* data, std::size_t bytes) override {
        mpi_->thread_lanes()->send(lane, peer, data, bytes);
    }
    void receive(int lane, int peer, void* data, std::size_t bytes) override {
        mpi_->thread_lanes()->receive(lane, peer, data, bytes);
        flipper_.flip_message(data, bytes);
    }

    std::unique_ptr<PreparedMessages> prepare() override {
        return std::make_unique<CorruptPreparedMessages>(flipper_, mpi_->persistent()->prepare());
    }

    void barrier() override { mpi_->collectives()->barrier(); }
    void broadcast(int root, const void* data, void* result, std::size_t bytes) override {
        mpi_->collectives()->broadcast(root, data, result, bytes);
        flipper_.flip(result, bytes);
    }
    void sum(const void* data, void* result, std::size_t floats) override {
        mpi_->collectives()->sum(data, result, floats);
        flipper_.flip(result, floats * sizeof(float));
    }
    // The part of rank 0.
    void all_gather(const void* data, void* result, std::size_t bytes) override {
        mpi_->collectives()->all_gather(data, result, bytes);
        flipper_.flip(result, bytes);
    }
    void* reduce_scatter(const void* data, void* result, std::size_t floats) override {
        void* part = mpi_->collectives()->reduce_scatter(data, result, floats);
        flipper_.flip(part, floats * sizeof(float));
        return part;
    }
    void all_to_all(const void* data, void* result, std::size_t bytes) override {
        mpi_->collectives()->all_to_all(data, result, bytes);
        flipper_.flip(result, bytes);
    }

    // The part of rank 0, or the first bytes of a sum.
    void run(MpiCollective collective, const void* data, void* result, std::size_t bytes) override {
        mpi_->mpi_collectives()->run(collective, data, result, bytes);
        flipper_.flip(result, arriving(collective, bytes));
    }

    void start(MpiCollective collective, const void* data, void* result, std::size_t bytes) override {
        mpi_->mpi_collectives()->start(collective, data, result, bytes);
        posted_.push_back({result, arriving(collective, bytes)});
    }
    void probe() override { mpi_->mpi_collectives()->probe(); }

    std::unique_ptr<Window> expose(Memory& memory, const WindowRequest& request) override {
        return std::make_unique<CorruptWindow>(flipper_, mpi_->rma()->expose(memory, request));
    }

  private:
    // Bytes that every rank receives: of parts of a sum at least one element.
    static std::size_t arriving(MpiCollective collective, std::size_t bytes) {
        const bool is_divided =
            collective == MpiCollective::reduce_scatter || collective == MpiCollective::reduce_scatter_block;
        return is_divided ? sizeof(float) : bytes;
    }

    std::unique_ptr<Transport> mpi_ = make_mpi_transport({});
    BitFlipper flipper_;
    std::vector<Received> posted_;
};

}  // namespace

std::unique_ptr<Transport> make_corrupt_transport(const TransportSettings&) {
    return std::make_unique<CorruptTransport>();
}

}  // namespace fablint
