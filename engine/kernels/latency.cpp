#include "kernels/kernel.hpp"

namespace fablint {

namespace {

// Ping-pong, as osu_latency: the leader sends, the follower answers with as many bytes.
class Latency : public Kernel {
  public:
    Latency() : Kernel(round_trip_traits()) {}
    void arm(const Endpoint& end, bool, std::int64_t repetitions) override { end.expect_windows(repetitions); }
    void lead(const Endpoint& end, std::int64_t repetitions) override {
        const Exchange with(end);
        for (std::int64_t i = 0; i < repetitions; ++i) {
            with.send();
            with.receive();
        }
    }
    void follow(const Endpoint& end, std::int64_t repetitions) override {
        const Exchange with(end);
        for (std::int64_t i = 0; i < repetitions; ++i) {
            with.receive();
            with.send();
        }
    }

  private:
    // The arguments of a message, read once: each read would add to the time between a message and its answer.
    class Exchange {
      public:
        explicit Exchange(const Endpoint& end)
            : transport_(end.transport),
              peer_(end.peer()),
              out_(end.payload.send_slot(0)),
              in_(end.payload.receive_slot(0)),
              bytes_(end.bytes) {}
        void send() const { transport_.send(peer_, out_, bytes_); }
        void receive() const { transport_.receive(peer_, in_, bytes_); }

      private:
        Transport& transport_;
        const int peer_;
        const void* const out_;
        void* const in_;
        const std::size_t bytes_;
    };
};

}  // namespace

std::unique_ptr<Kernel> make_latency(const KernelOptions&) { return std::make_unique<Latency>(); }

}  // namespace fablint
