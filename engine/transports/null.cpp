#include "../transport.hpp"

namespace fablint {

namespace {

class NullTransport : public Transport {
  public:
    void send(int, const void*, std::size_t) override {}
    void receive(int, void*, std::size_t) override {}
    void post_send(int, const void*, std::size_t) override {}
    void post_receive(int, void*, std::size_t) override {}
    void complete() override {}
};

}  // namespace

std::unique_ptr<Transport> make_null_transport() { return std::make_unique<NullTransport>(); }

}  // namespace fablint
