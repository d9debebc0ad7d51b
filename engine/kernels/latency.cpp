#include "../kernel.hpp"

namespace fablint {

namespace {

// Ping-pong, as osu_latency: the leader sends, the follower answers with as many bytes.
class Latency : public Kernel {
  public:
    int messages(int) const override { return 2; }
    std::optional<Content> at_leader() const override { return Content::message; }
    void lead(const End& end, std::int64_t repetitions) override {
        for (std::int64_t i = 0; i < repetitions; ++i) {
            end.transport.send(end.peer(), end.payload.send_slot(0), end.bytes);
            end.transport.receive(end.peer(), end.payload.receive_slot(0), end.bytes);
        }
    }
    void follow(const End& end, std::int64_t repetitions) override {
        for (std::int64_t i = 0; i < repetitions; ++i) {
            end.transport.receive(end.peer(), end.payload.receive_slot(0), end.bytes);
            end.transport.send(end.peer(), end.payload.send_slot(0), end.bytes);
        }
    }
};

}  // namespace

std::unique_ptr<Kernel> make_latency(const RowOptions&) { return std::make_unique<Latency>(); }

}  // namespace fablint
