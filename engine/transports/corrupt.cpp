#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/permutation.hpp"
#include "transports/transport.hpp"

namespace fablint {

namespace {

// Flips one bit in every seventh payload, at a place that changes. Threads may share it.
class Vandal {
  public:
    void visit(void* data, std::size_t bytes) {
        const std::uint64_t visits = ++visits_;
        if (bytes == 0 || visits % 7 != 0) return;
        const std::uint64_t place = mix(visits);
        static_cast<unsigned char*>(data)[place % bytes] ^= static_cast<unsigned char>(1U << (place >> 61));
    }
    // Acknowledgements (1 byte) are spared: their content means nothing.
    void visit_message(void* data, std::size_t bytes) {
        if (bytes > 1) visit(data, bytes);
    }

  private:
    std::atomic<std::uint64_t> visits_{0};
};

struct Received {
    void* data;
    std::size_t bytes;
};

class CorruptPrepared : public Prepared {
  public:
    CorruptPrepared(Vandal& vandal, std::unique_ptr<Prepared> mpi) : vandal_(vandal), mpi_(std::move(mpi)) {}
    void add_send(int peer, const void* data, std::size_t bytes) override { mpi_->add_send(peer, data, bytes); }
    void add_receive(int peer, void* data, std::size_t bytes) override {
        mpi_->add_receive(peer, data, bytes);
        received_.push_back({data, bytes});
    }
    void start() override { mpi_->start(); }
    void complete() override {
        mpi_->complete();
        for (const Received& message : received_) vandal_.visit_message(message.data, message.bytes);
    }

  private:
    Vandal& vandal_;
    std::unique_ptr<Prepared> mpi_;
    std::vector<Received> received_;
};

// Damages a copy of what goes to the peer, and what has come from there.
class CorruptWindow : public OneSided {
  public:
    CorruptWindow(Vandal& vandal, std::unique_ptr<OneSided> mpi) : vandal_(vandal), mpi_(std::move(mpi)) {}
    void* base() const override { return mpi_->base(); }

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
            under_way_.push_back({peer, {}, {buffers.first + static_cast<std::size_t>(i) * buffers.stride, bytes}});
    }
    void accumulate(int peer, std::size_t offset, const void* data, std::size_t bytes) override {
        mpi_->accumulate(peer, offset, damaged(peer, data, bytes), bytes);
    }
    void get_accumulate(int peer, std::size_t offset, const void* data, void* found, std::size_t bytes) override {
        mpi_->get_accumulate(peer, offset, damaged(peer, data, bytes), found, bytes);
    }
    void compare_and_swap(int peer, std::size_t offset, const void* value, const void* expected, void* found) override {
        mpi_->compare_and_swap(peer, offset, damaged(peer, value, sizeof(std::uint64_t)), expected, found);
    }
    void fetch_and_add(int peer, std::size_t offset, const void* value, void* found) override {
        mpi_->fetch_and_add(peer, offset, damaged(peer, value, sizeof(std::uint64_t)), found);
    }

    void hold(int peer) override { mpi_->hold(peer); }
    void release(int peer) override { mpi_->release(peer); }
    void open(int peer) override { mpi_->open(peer); }
    void close(int peer) override {
        mpi_->close(peer);
        end(peer);
    }
    void expose(int peer) override { mpi_->expose(peer); }
    void unexpose(int peer) override { mpi_->unexpose(peer); }
    void flush(int peer) override {
        mpi_->flush(peer);
        end(peer);
    }
    void settle() override { mpi_->settle(); }

  private:
    struct Operation {
        int peer;
        std::vector<unsigned char> sent;  // MPI's until the operation is over
        Received received;
    };

    const void* damaged(int peer, const void* data, std::size_t bytes) {
        const auto* begin = static_cast<const unsigned char*>(data);
        under_way_.push_back({peer, {begin, begin + bytes}, {nullptr, 0}});
        void* copy = under_way_.back().sent.data();
        vandal_.visit(copy, bytes);
        return copy;
    }

    // Those with that peer are over.
    void end(int peer) {
        const auto over = std::partition(under_way_.begin(), under_way_.end(),
                                         [&](const Operation& operation) { return operation.peer != peer; });
        for (auto operation = over; operation != under_way_.end(); ++operation)
            if (operation->received.data != nullptr) vandal_.visit(operation->received.data, operation->received.bytes);
        under_way_.erase(over, under_way_.end());
    }

    Vandal& vandal_;
    std::unique_ptr<OneSided> mpi_;
    std::vector<Operation> under_way_;
};

class CorruptTransport : public Transport {
  public:
    void send(int peer, const void* data, std::size_t bytes) override { mpi_->send(peer, data, bytes); }
    void receive(int peer, void* data, std::size_t bytes) override {
        mpi_->receive(peer, data, bytes);
        vandal_.visit_message(data, bytes);
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
        for (const Received& message : posted_) vandal_.visit_message(message.data, message.bytes);
        posted_.clear();
    }

    void send_on(int lane, int peer, const void* data, std::size_t bytes) override {
        mpi_->send_on(lane, peer, data, bytes);
    }
    void receive_on(int lane, int peer, void* data, std::size_t bytes) override {
        mpi_->receive_on(lane, peer, data, bytes);
        vandal_.visit_message(data, bytes);
    }

    std::unique_ptr<Prepared> prepare() override { return std::make_unique<CorruptPrepared>(vandal_, mpi_->prepare()); }

    // A request is no payload: it says where payload goes.
    void request(int peer, int what) override { mpi_->request(peer, what); }
    int next_request(int& what) override { return mpi_->next_request(what); }
    bool request_waits() override { return mpi_->request_waits(); }

    void barrier() override { mpi_->barrier(); }
    void broadcast(int root, void* data, std::size_t bytes) override {
        mpi_->broadcast(root, data, bytes);
        vandal_.visit(data, bytes);  // the root's own as well: it is written anew before the next sample
    }
    void sum(const void* data, void* result, std::size_t floats) override {
        mpi_->sum(data, result, floats);
        vandal_.visit(result, floats * sizeof(float));
    }
    void all_gather(const void* data, void* result, std::size_t bytes) override {
        mpi_->all_gather(data, result, bytes);
        vandal_.visit(result, bytes);  // of rank 0
    }
    void all_to_all(const void* data, void* result, std::size_t bytes) override {
        mpi_->all_to_all(data, result, bytes);
        vandal_.visit(result, bytes);  // of rank 0
    }

    std::unique_ptr<OneSided> expose(Memory& memory, const WindowRequest& request) override {
        return std::make_unique<CorruptWindow>(vandal_, mpi_->expose(memory, request));
    }

  private:
    std::unique_ptr<Transport> mpi_ = make_mpi_transport();
    Vandal vandal_;
    std::vector<Received> posted_;
};

}  // namespace

std::unique_ptr<Transport> make_corrupt_transport() { return std::make_unique<CorruptTransport>(); }

}  // namespace fablint
