#include "messaging/transport.hpp"

namespace fablint {

namespace {

// Moves nothing: what a kernel measures with it is the time of the instrument.
class NullTransport : public Transport {
  public:
    void post_sends(int, const Buffers<const char>&, std::size_t) override {}
    void post_receives(int, const Buffers<char>&, std::size_t) override {}
    void complete() override {}
    bool takes_gpu_memory(GpuApi) const override { return true; }
    void send(int, const void*, std::size_t) override {}
    void receive(int, void*, std::size_t) override {}
};

}  // namespace

std::unique_ptr<Transport> make_null_transport(const TransportSettings&) { return std::make_unique<NullTransport>(); }

}  // namespace fablint
