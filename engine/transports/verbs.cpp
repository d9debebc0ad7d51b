#include "messaging/transport.hpp"

#if __has_include(<infiniband/verbs.h>)

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <sstream>
#include <utility>

#include "base/errors.hpp"
#include "verbs/verbs_failure.hpp"
#include "verbs/verbs_window.hpp"

namespace fablint {

namespace {

using SteadyTime = std::chrono::steady_clock;

constexpr std::size_t most_polled = 16;  // completions
constexpr int most_completions = 8192;
constexpr int most_owed = 32;  // receives of a peer that are posted later
// While nothing arrives, the transport looks at the clock after so many polls, and at the peers after so long.
constexpr std::uint64_t polls_between_checks = 4096;
constexpr auto unreadable = "verbs: the completion queue cannot be read";
// For the completion that says why a queue pair has failed: a kernel thread writes it, which may wait for a CPU.
constexpr double reason_limit_s = 5.0;
constexpr auto quiet_limit = std::chrono::seconds(1);

// The messages that a peer will send. Receives are posted ahead, more than the peer sends before it waits for an
// answer. For the messages that arrive, others are posted while the rank waits for the next message, so that posting is
// not part of a latency, and several in one call.
struct Expectation {
    std::int64_t unclaimed = 0;  // messages that the kernel has not asked for yet
    std::int64_t surplus = 0;    // messages that have arrived before the kernel asked; below 0: that it waits for
    int owed = 0;                // messages that have arrived, for each of which a receive is to be posted
    int batch = 0;               // of receives that are posted while the rank waits
    int most_owed = 0;           // before they are posted at once
    int next = 0;                // buffer of the next receive
    std::int64_t unposted = 0;   // messages whose receive is not posted yet
    Buffers<char> buffers{};
    std::size_t bytes = 0;
    std::uint32_t local_key = 0;
};

// The streams of a pair. Both ends assign messages to them by turns, and count accesses, which only one end sees,
// apart.
struct Peer {
    std::vector<QueuePair*> streams;
    QueuePair* only_stream = nullptr;  // null if there are several
    std::size_t next_send = 0, next_receive = 0, next_access = 0;
    std::size_t largest_message = 0;
    Expectation expected;
};

// Messages of RC queue pairs, sent from and received into the buffers of the kernel.
//
// A message that arrives before its receive is posted has to be sent again, after a pause. Receives that the kernel
// announces are therefore posted ahead. For the others, send() returns before the other end has acknowledged the
// message: the answer could arrive earlier than that, and before its receive is posted. The kernels leave their buffers
// as they are until finish(), which waits for the acknowledgements. Of such messages only one in many reports its
// completion.
class VerbsTransport : public Transport, Rma, RemoteAccess {
  public:
    explicit VerbsTransport(const TransportSettings& settings)
        : settings_(settings), device_(settings), local_(device_, settings) {
        progress_.room = std::min(most_completions, device_.limits().max_cqe);
        completions_.reset(ibverbs().create_cq(device_.context(), progress_.room, nullptr, nullptr, 0));
        if (!completions_)
            throw usage_error("no completion queue on " + device_.port().name() + ": " + std::strerror(errno));
    }

    std::string address() const override { return local_.text(); }

    std::string devices() const override {
        const std::optional<Gid>& gid = device_.port().gid;
        if (!gid) return device_.port().name();
        return device_.port().name() + " GID " + std::to_string(gid->index) +
               (device_.port().attributes.link_layer != IBV_LINK_LAYER_ETHERNET ? ""
                : gid->is_routable                                              ? " RoCE v2"
                                                                                : " RoCE v1");
    }

    std::string open_connection(int peer) override {
        std::string text;
        for (int stream = 0; stream < settings_.streams; ++stream) {
            pairs_.push_back(std::make_unique<QueuePair>(device_, completions_.get(), progress_, pairs_.size(), peer));
            peers_[peer].streams.push_back(pairs_.back().get());
            text += ' ' + pairs_.back()->number_text();
        }
        if (settings_.streams == 1) peers_[peer].only_stream = pairs_.back().get();
        return text;
    }

    void connect(int peer, const std::string& address) override {
        std::istringstream text(address);
        const VerbsEnd remote = VerbsEnd::parsed(text);
        Peer& connection = connection_to(peer);
        connection.largest_message = std::min(local_.largest_message, remote.largest_message);
        for (QueuePair* pair : connection.streams) pair->connect(local_, remote, text, settings_.service_level);
    }

    void post_sends(int peer, const Buffers<const char>& buffers, std::size_t bytes) override {
        Peer& to = connection_to(peer);
        post(peer, to, to.next_send,
             message(VerbsWork::Kind::message, const_cast<char*>(buffers.first), buffers.stride, buffers.count, bytes));
    }
    // Posts ahead at most what the queue of a stream holds, and takes half of the room for completions.
    void expect_receives(int peer, const Buffers<char>& buffers, std::size_t bytes, std::int64_t times) override {
        Peer& from = connection_to(peer);
        const int most = std::min(from.streams.front()->depth(), progress_.room / 2);
        if (most == 0 || bytes > from.largest_message) return;
        const std::int64_t messages = times * buffers.count;
        const VerbsWork window =
            message(VerbsWork::Kind::expected, buffers.first, buffers.stride, buffers.count, bytes);
        // The peers of a hub share the room.
        const int spare = std::max(std::min(buffers.count, most_owed), progress_.room / (8 * settings_.ranks));
        const int ahead = std::min(buffers.count + std::min(spare, most_owed), most);
        Expectation& expected = from.expected = {};
        expected.buffers = buffers.count > 1 ? buffers : Buffers<char>{buffers.first, 0, most_owed};
        expected.bytes = bytes;
        expected.local_key = key_of(peer, *from.streams.front(), window);
        const int unneeded = ahead - buffers.count;  // before the peer waits for an answer
        expected.most_owed = unneeded > 0 ? unneeded : std::min(ahead / 8, most_owed);
        expected.batch = unneeded > 0 ? unneeded / 2 + 1 : 1;
        expected.unposted = expected.unclaimed = messages;
        post_expected(from, ahead);
    }
    void post_receives(int peer, const Buffers<char>& buffers, std::size_t bytes) override {
        Peer& from = connection_to(peer);
        if (from.expected.unclaimed > 0) return claim(from.expected, buffers.count);
        post(peer, from, from.next_receive,
             message(VerbsWork::Kind::receive, buffers.first, buffers.stride, buffers.count, bytes));
    }
    void send(int peer, const void* data, std::size_t bytes) override {
        Peer& to = connection_to(peer);
        if (to.only_stream != nullptr && bytes <= to.largest_message) {
            const std::uint32_t key = to.only_stream->copies(bytes) ? 0 : key_at(peer, data, bytes);
            if (to.only_stream->send_at_once(data, static_cast<std::uint32_t>(bytes), key)) return;
        }
        post(peer, to, to.next_send,
             message(VerbsWork::Kind::deferred, static_cast<char*>(const_cast<void*>(data)), 0, 1, bytes));
    }
    void receive(int peer, void* data, std::size_t bytes) override {
        Expectation& expected = connection_to(peer).expected;
        if (expected.unclaimed == 0) return Transport::receive(peer, data, bytes);
        --expected.unclaimed;
        if (expected.surplus-- <= 0) ++progress_.awaited;
        complete();
    }

    void complete() override {
        while (progress_.awaited + progress_.unposted > 0) progress();
    }
    void finish() override {
        for (const auto& pair : pairs_) pair->report_deferred();
        complete();
    }

    Rma* rma() override { return this; }
    std::unique_ptr<Window> expose(Memory& memory, const WindowRequest& request) override {
        return make_verbs_window(device_, *this, *this, memory, request, settings_.required);
    }
    void post_access(int peer, VerbsWork work) override {
        Peer& to = connection_to(peer);
        post(peer, to, to.next_access, work);
    }
    void complete_accesses() override { complete(); }

  private:
    // Mostly the same one again, and the search for it would be part of the latency.
    Peer& connection_to(int peer) {
        if (peer != recent_peer_) {
            recent_ = &peers_.at(peer);
            recent_peer_ = peer;
        }
        return *recent_;
    }

    static VerbsWork message(VerbsWork::Kind kind, char* data, std::size_t stride, int count, std::size_t bytes) {
        return {kind, IBV_WR_SEND, data, stride, count, static_cast<std::uint32_t>(bytes), 0};
    }

    static void post_expected(Peer& from, std::int64_t wanted) {
        Expectation& expected = from.expected;
        std::int64_t left = std::min(wanted, expected.unposted);
        expected.unposted -= left;
        while (left > 0) {
            const auto count = static_cast<int>(std::min<std::int64_t>(left, expected.buffers.count - expected.next));
            char* const data =
                expected.buffers.first + static_cast<std::size_t>(expected.next) * expected.buffers.stride;
            expected.next = (expected.next + count) % expected.buffers.count;
            left -= count;
            VerbsWork work = message(VerbsWork::Kind::expected, data, expected.buffers.stride, count, expected.bytes);
            work.local_key = expected.local_key;
            add(from, from.next_receive, work);
        }
    }
    void post_owed() {
        for (Peer* from : owed_) post_expected(*from, std::exchange(from->expected.owed, 0));
        owed_.clear();
    }
    void claim(Expectation& expected, std::int64_t count) {
        expected.unclaimed -= count;
        progress_.awaited += static_cast<std::size_t>(count - std::clamp<std::int64_t>(expected.surplus, 0, count));
        expected.surplus -= count;
    }
    void arrive(Peer& from) {
        Expectation& expected = from.expected;
        if (expected.surplus++ < 0) --progress_.awaited;
        if (++expected.owed == expected.batch) owed_.push_back(&from);
        if (expected.owed > expected.most_owed) post_owed();
    }

    void post(int peer, Peer& with, std::size_t& next, VerbsWork work) {
        if (work.bytes > with.largest_message) {
            post_pieces(peer, with, next, work);
            return;
        }
        work.local_key = key_of(peer, *with.streams.front(), work);
        add(with, next, work);
    }

    // Messages that are too large for a port: both ends divide them by the same rule.
    void post_pieces(int peer, Peer& with, std::size_t& next, const VerbsWork& work) {
        VerbsWork piece = work;
        piece.count = 1;
        for (int i = 0; i < work.count; ++i)
            for (std::uint32_t at = 0; at < work.bytes; at += piece.bytes) {
                const std::size_t begin = static_cast<std::size_t>(i) * work.stride + at;
                piece.data = work.data + begin;
                piece.remote = work.remote + begin;
                piece.bytes = static_cast<std::uint32_t>(std::min<std::size_t>(with.largest_message, work.bytes - at));
                post(peer, with, next, piece);
            }
    }

    // Divides work among the streams, from stream `next` on.
    static void add(Peer& with, std::size_t& next, VerbsWork& work) {
        if (with.only_stream != nullptr) return with.only_stream->add(work);
        const std::size_t streams = with.streams.size();
        const auto count = static_cast<std::size_t>(work.count);
        for (std::size_t i = 0; i < std::min(streams, count); ++i) {
            VerbsWork share = work;
            share.data += i * work.stride;
            share.remote += i * work.stride;
            share.stride = streams * work.stride;
            share.count = static_cast<int>((count - i + streams - 1) / streams);
            with.streams[(next + i) % streams]->add(share);
        }
        next = (next + count) % streams;
    }

    // Of the registered memory; messages that the device copies need none.
    std::uint32_t key_of(int peer, const QueuePair& pair, const VerbsWork& work) {
        if (work.bytes == 0 || work.count == 0 || pair.is_copied(work)) return 0;
        return key_at(peer, work.data, static_cast<std::size_t>(work.count - 1) * work.stride + work.bytes);
    }
    std::uint32_t key_at(int peer, const void* data, std::size_t bytes) {
        try {
            return device_.region_of(data, bytes).lkey;
        } catch (const Error& error) {
            throw PeerFailure(peer, error.what());
        }
    }

    // Polls for no more than is awaited: a further look at the queue would be part of a latency.
    void progress() {
        std::array<ibv_wc, most_polled> completions;
        const std::size_t most = std::clamp<std::size_t>(progress_.awaited, 1, most_polled);
        const int count = ibv_poll_cq(completions_.get(), static_cast<int>(most), completions.data());
        if (count <= 0) return count == 0 ? wait() : throw PeerFailure(peers_.begin()->first, unreadable);
        idle_polls_ = 0;
        const ibv_wc* const end = completions.data() + count;
        for (const ibv_wc* completion = completions.data(); completion != end; ++completion) {
            if (completion->status != IBV_WC_SUCCESS) fail(completion, end);
            QueuePair& pair = *pairs_[QueuePair::index_of(*completion)];
            if (pair.retire(*completion) == VerbsWork::Kind::expected) arrive(connection_to(pair.peer()));
        }
        if (progress_.unposted > 0)
            for (const auto& pair : pairs_) pair->post_waiting();
    }

    // With more ranks than CPUs, a rank that spins takes the CPU from its peer.
    void wait() {
        if (!owed_.empty()) post_owed();
        if (settings_.yielding) sched_yield();
        if (++idle_polls_ % polls_between_checks != 0) return;
        const auto now = SteadyTime::now();
        if (idle_polls_ == polls_between_checks) {
            quiet_since_ = now;
        } else if (now - quiet_since_ > quiet_limit) {
            quiet_since_ = now;
            const std::string failure = device_.port_failure();
            for (const auto& pair : pairs_) {
                if (!failure.empty() && pair->is_in_use()) throw PeerFailure(pair->peer(), "verbs: " + failure);
                pair->probe();
            }
        }
    }

    // `completion` reports a failure; others follow it up to `end`.
    [[noreturn]] void fail(const ibv_wc* completion, const ibv_wc* end) {
        const int peer = pairs_[QueuePair::index_of(*completion)]->peer();
        const auto is_of_peer = [this, peer](const ibv_wc& each) {
            return pairs_[QueuePair::index_of(each)]->peer() == peer;
        };
        const auto poll = [this] {
            std::vector<ibv_wc> more(most_polled);
            const int count = ibv_poll_cq(completions_.get(), static_cast<int>(more.size()), more.data());
            more.resize(static_cast<std::size_t>(std::max(0, count)));
            return more;
        };
        const ibv_wc cause = failure_of({completion, end}, is_of_peer, poll, reason_limit_s);
        std::string reason = std::string("verbs: ") + ibverbs().wc_status_str(cause.status);
        if (cause.status == IBV_WC_RETRY_EXC_ERR)
            reason = "verbs: no acknowledgement from its queue pair: it has ended, or there is no path to it";
        if (cause.vendor_err != 0) reason += " (vendor error " + std::to_string(cause.vendor_err) + ")";
        const std::string port = device_.port_failure();
        throw PeerFailure(peer, port.empty() ? reason : reason + "; " + port);
    }

    TransportSettings settings_;
    // Closed in the reverse order.
    VerbsDevice device_;
    VerbsEnd local_;
    VerbsObject<ibv_cq> completions_;
    VerbsProgress progress_;
    std::vector<std::unique_ptr<QueuePair>> pairs_;
    std::map<int, Peer> peers_;
    int recent_peer_ = -1;
    Peer* recent_ = nullptr;   // of peers_
    std::vector<Peer*> owed_;  // peers for whose messages a batch of receives is to be posted
    std::uint64_t idle_polls_ = 0;
    SteadyTime::time_point quiet_since_;
};

}  // namespace

std::unique_ptr<Transport> make_verbs_transport(const TransportSettings& settings) {
    return std::make_unique<VerbsTransport>(settings);
}

}  // namespace fablint

#else

#include "base/errors.hpp"

namespace fablint {

std::unique_ptr<Transport> make_verbs_transport(const TransportSettings&) {
    throw usage_error(
        "this engine was built without the headers of libibverbs: install them (Debian: libibverbs-dev, Red Hat: "
        "rdma-core-devel), then run 'fablint engine build'");
}

}  // namespace fablint

#endif
