// The transport verbs over the fake of libibverbs, whose queue pairs are connected to themselves: rank 0 is its own
// peer.
#include <dlfcn.h>
#include <doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "messaging/transport.hpp"
#include "spec/row.hpp"
#include "tests/fake_gpus.hpp"

#if __has_include(<infiniband/verbs.h>)

#include "tests/fakes/fake_verbs_counts.hpp"

using namespace fablint;

namespace {

constexpr int copied = 8, registered = 4096;  // bytes of messages
constexpr std::int64_t messages = 1000;

// A connected transport; what the fake has counted since.
class Loopback {
  public:
    explicit Loopback(int streams = 1) {
        load_fake("libibverbs.so.1");
        TransportSettings settings;
        settings.streams = streams;
        transport_ = transport_named("verbs").make(settings);
        transport_->connect(0, transport_->address() + transport_->open_connection(0));
        void* const library = dlopen("libibverbs.so.1", RTLD_NOW);
        const auto get = reinterpret_cast<FakeVerbsCounts* (*)()>(dlsym(library, "fake_verbs_counts"));
        if (get == nullptr) FAIL(dlerror());
        counts_ = get();
        *counts_ = {};
    }
    Transport& transport() { return *transport_; }
    const FakeVerbsCounts& counts() const { return *counts_; }

    void run_latency(int bytes) {
        constexpr auto layout = Payload::Layout::spaced;
        const auto size = static_cast<std::size_t>(bytes);
        payload_ = std::make_unique<Payload>(*memory_, Payload::half_footprint(size, 1, layout), layout);
        payload_->set_size(size);
        const std::vector<int> peers = {0};
        const Endpoint end{*transport_, nullptr, *payload_, peers, 0, 1, size, 1};
        const auto kernel = make_latency(RowOptions{});
        kernel->arm(end, true, messages);
        kernel->lead(end, messages);
        transport_->finish();
        transport_.reset();
    }

  private:
    std::unique_ptr<Memory> memory_ = make_memory("host");
    std::unique_ptr<Transport> transport_;
    std::unique_ptr<Payload> payload_;
    FakeVerbsCounts* counts_ = nullptr;
};

}  // namespace

TEST_CASE("verbs: a ping-pong posts receives ahead, several in a call, and few sends report their completion") {
    for (const int bytes : {copied, registered}) {
        CAPTURE(bytes);
        Loopback loopback;
        loopback.run_latency(bytes);
        CHECK(loopback.counts().early_messages == 0);
        CHECK(loopback.counts().receive_calls < messages / 10);
        CHECK(loopback.counts().signalled_sends < messages / 50);
        CHECK(loopback.counts().send_calls >= messages);
    }
}

TEST_CASE("verbs: finish() waits for the messages whose buffers are in use, and for no other") {
    for (const int bytes : {copied, registered}) {
        CAPTURE(bytes);
        Loopback loopback;
        std::string sent(static_cast<std::size_t>(bytes), 'a'), received(sent.size(), ' ');
        loopback.transport().expect_receives(0, {received.data(), 0, 1}, sent.size(), 1);
        loopback.transport().send(0, sent.data(), sent.size());
        loopback.transport().receive(0, received.data(), received.size());
        CHECK(received == sent);
        CHECK(loopback.counts().signalled_sends == 0);
        loopback.transport().finish();
        CHECK(loopback.counts().signalled_sends == (bytes == registered ? 1 : 0));
    }
}

TEST_CASE("verbs: messages of several streams, and those that are not announced, arrive intact and in order") {
    for (const int streams : {1, 3}) {
        CAPTURE(streams);
        Loopback loopback(streams);
        Transport& transport = loopback.transport();
        std::string sent = "0123456789", received(sent.size(), ' ');
        transport.post_receives(0, {received.data(), 1, 5}, 1);
        for (std::size_t i = 0; i < 5; ++i) transport.send(0, &sent[i], 1);
        transport.complete();
        transport.post_sends(0, {&sent[5], 1, 5}, 1);
        for (std::size_t i = 5; i < sent.size(); ++i) transport.receive(0, &received[i], 1);
        transport.finish();
        CHECK(received == sent);
    }
}

#endif
