#include "transports/staged.hpp"

#include <algorithm>
#include <vector>

namespace fablint {

namespace {

// Pinned host memory in blocks that keep their place: what is taken stays valid until take_back(). The first window
// allocates, further ones use the same blocks.
class StagingMemory {
  public:
    explicit StagingMemory(const GpuRuntime& runtime) : runtime_(runtime) {}
    ~StagingMemory() {
        for (const Block& block : blocks_) runtime_.release_host(block.data);
    }
    StagingMemory(const StagingMemory&) = delete;
    StagingMemory& operator=(const StagingMemory&) = delete;

    char* take(std::size_t bytes) {
        for (Block& block : blocks_)
            if (block.bytes - block.taken >= bytes) return taken_from(block, bytes);
        constexpr std::size_t least = std::size_t{1} << 20;
        const std::size_t size = std::max(bytes, least);
        blocks_.push_back({static_cast<char*>(runtime_.allocate_host(size)), size, 0});
        return taken_from(blocks_.back(), bytes);
    }
    void take_back() {
        for (Block& block : blocks_) block.taken = 0;
    }

  private:
    struct Block {
        char* data;
        std::size_t bytes;
        std::size_t taken;
    };

    static char* taken_from(Block& block, std::size_t bytes) {
        constexpr std::size_t cache_line = 64;
        char* const data = block.data + block.taken;
        block.taken = std::min(block.bytes, (block.taken + bytes + cache_line - 1) / cache_line * cache_line);
        return data;
    }

    const GpuRuntime& runtime_;
    std::vector<Block> blocks_;
};

class StagedTransport : public Transport {
  public:
    StagedTransport(std::unique_ptr<Transport> transport, const Memory& memory, const GpuRuntime& runtime)
        : transport_(std::move(transport)),
          memory_(memory),
          runtime_(runtime),
          stream_(runtime.create_stream()),
          staging_(runtime) {}
    ~StagedTransport() override { runtime_.destroy(stream_); }
    std::string devices() const override { return transport_->devices(); }

    std::string address() const override { return transport_->address(); }
    std::string open_connection(int peer) override { return transport_->open_connection(peer); }
    void connect(int peer, const std::string& address) override { transport_->connect(peer, address); }
    void disconnect() override { transport_->disconnect(); }
    void finish() override { transport_->finish(); }

    void post_sends(int peer, const Buffers<const char>& buffers, std::size_t bytes) override {
        if (!memory_.is_on_gpu(buffers.first)) return transport_->post_sends(peer, buffers, bytes);
        char* const staged = staging_.take(length(buffers, bytes));
        copy(GpuCopy::to_host, {staged, buffers.stride, buffers.count}, buffers, bytes);
        runtime_.synchronise(stream_);
        transport_->post_sends(peer, {staged, buffers.stride, buffers.count}, bytes);
    }
    void post_receives(int peer, const Buffers<char>& buffers, std::size_t bytes) override {
        if (!memory_.is_on_gpu(buffers.first)) return transport_->post_receives(peer, buffers, bytes);
        char* const staged = staging_.take(length(buffers, bytes));
        received_.push_back({buffers, {staged, buffers.stride, buffers.count}, bytes});
        transport_->post_receives(peer, {staged, buffers.stride, buffers.count}, bytes);
    }
    void complete() override {
        transport_->complete();
        for (const Received& window : received_) copy(GpuCopy::to_device, window.to, window.staged, window.bytes);
        if (!received_.empty()) runtime_.synchronise(stream_);
        received_.clear();
        staging_.take_back();
    }

    void send(int peer, const void* data, std::size_t bytes) override {
        if (!memory_.is_on_gpu(data)) return transport_->send(peer, data, bytes);
        char* const staged = staging_.take(bytes);
        runtime_.copy(GpuCopy::to_host, staged, data, bytes);
        transport_->send(peer, staged, bytes);
        staging_.take_back();
    }
    void receive(int peer, void* data, std::size_t bytes) override {
        if (!memory_.is_on_gpu(data)) return transport_->receive(peer, data, bytes);
        char* const staged = staging_.take(bytes);
        transport_->receive(peer, staged, bytes);
        runtime_.copy(GpuCopy::to_device, data, staged, bytes);
        staging_.take_back();
    }

  private:
    // A posted window: its place on the GPU, and the place of its messages until then.
    struct Received {
        Buffers<char> to;
        Buffers<const char> staged;
        std::size_t bytes;
    };

    template <typename Data>
    static std::size_t length(const Buffers<Data>& buffers, std::size_t bytes) {
        return buffers.stride * static_cast<std::size_t>(buffers.count - 1) + bytes;
    }

    void copy(GpuCopy kind, const Buffers<char>& to, const Buffers<const char>& from, std::size_t bytes) {
        for (std::size_t at = 0, i = 0; i < static_cast<std::size_t>(to.count); ++i, at += to.stride)
            runtime_.queue_copy(kind, to.first + at, from.first + at, bytes, stream_);
    }

    const std::unique_ptr<Transport> transport_;
    const Memory& memory_;
    const GpuRuntime& runtime_;
    const GpuStream stream_;
    StagingMemory staging_;
    std::vector<Received> received_;
};

}  // namespace

std::unique_ptr<Transport> make_staged_transport(std::unique_ptr<Transport> transport, const Memory& memory,
                                                 const GpuRuntime& runtime) {
    return std::make_unique<StagedTransport>(std::move(transport), memory, runtime);
}

}  // namespace fablint
