// Requests to a server that moves the data itself, as net_sanitizer: a client, the leader, asks for the messages of a
// window at once; the server, which may have many clients, puts each into the client's window or gets it from there,
// and answers when it is there. Unlike net_sanitizer, gets are gets, and puts are at the client before the answer is.
#include <algorithm>

#include "kernels/kernel.hpp"
#include "spec/row.hpp"

namespace fablint {

namespace {

// `client` is an index into end.peers. A client's messages lie in its window as it numbers them.
struct PutToClient {
    static constexpr bool exposes_what_is_sent = false;
    static constexpr std::optional<Content> at_client = Content::message;
    static constexpr std::optional<Content> at_server = std::nullopt;
    static void start(const End& end, std::size_t client, int slot) {
        end.remote->put(end.peers[client], end.payload.offset_of(slot), end.payload.sends(end.slot_of(client, slot), 1),
                        end.bytes);
    }
};

struct GetFromClient {
    static constexpr bool exposes_what_is_sent = true;
    static constexpr std::optional<Content> at_client = std::nullopt;
    static constexpr std::optional<Content> at_server = Content::message;
    static void start(const End& end, std::size_t client, int slot) {
        end.remote->get(end.peers[client], end.payload.offset_of(slot),
                        end.payload.receives(end.slot_of(client, slot), 1), end.bytes);
    }
};

template <typename Transfer>
class Rpc : public Kernel {
  public:
    explicit Rpc(const RowOptions& row) : most_at_once_(static_cast<std::size_t>(row.server_flight)) {}
    int messages(int window) const override { return window; }
    std::optional<Content> at_leader() const override { return Transfer::at_client; }
    std::optional<Content> at_follower() const override { return Transfer::at_server; }
    bool exposes_what_is_sent() const override { return Transfer::exposes_what_is_sent; }

    void arm(const End& end, bool leads, std::int64_t) override {
        const std::size_t in_flight = static_cast<std::size_t>(end.window) * end.peers.size();
        answers_.assign(leads ? in_flight : 0, 0);
        if (leads) return;
        at_work_.resize(std::min(in_flight, most_at_once_));
        touched_.assign(end.peers.size(), false);
        index_of_rank_.assign(static_cast<std::size_t>(end.ranks), 0);
        for (std::size_t client = 0; client < end.peers.size(); ++client) {
            index_of_rank_[static_cast<std::size_t>(end.peers[client])] = client;
            end.remote->hold(end.peers[client]);
        }
    }
    void disarm(const End& end, bool leads) override {
        if (leads) return;
        for (const int client : end.peers) end.remote->release(client);
    }

    void lead(const End& end, std::int64_t repetitions) override {
        for (std::int64_t i = 0; i < repetitions; ++i) {
            end.transport.post_receives(end.peer(), {answers_.data(), 1, static_cast<int>(answers_.size())}, 1);
            for (int slot = 0; slot < end.window; ++slot) end.transport.request(end.peer(), slot);
            end.transport.complete();
        }
    }
    // A fast client may be ahead of a slow one, but together they ask so often.
    void follow(const End& end, std::int64_t repetitions) override {
        const auto clients = static_cast<std::int64_t>(end.peers.size());
        for (std::int64_t left = repetitions * end.window * clients; left > 0;) left -= serve(end, left);
    }

  private:
    // The requests that wait, in the order in which they came. Returns how many.
    std::int64_t serve(const End& end, std::int64_t most) {
        std::size_t taken = 0;
        do {
            int slot = 0;
            const std::size_t client = index_of_rank_[static_cast<std::size_t>(end.transport.next_request(slot))];
            Transfer::start(end, client, slot);
            touched_[client] = true;
            at_work_[taken++] = client;
        } while (taken < at_work_.size() && static_cast<std::int64_t>(taken) < most && end.transport.request_waits());
        for (std::size_t request = 0; request < taken; ++request) answer(end, at_work_[request]);
        end.transport.complete();
        return static_cast<std::int64_t>(taken);
    }

    void answer(const End& end, std::size_t client) {
        static constexpr char done = 0;
        if (touched_[client]) end.remote->flush(end.peers[client]);
        touched_[client] = false;
        end.transport.post_sends(end.peers[client], {&done, 1, 1}, 1);
    }

    std::size_t most_at_once_;
    std::vector<char> answers_;               // the client's, one for each request in flight
    std::vector<std::size_t> at_work_;        // whose requests the server works on
    std::vector<bool> touched_;               // by client: operations since the last flush
    std::vector<std::size_t> index_of_rank_;  // into end.peers
};

}  // namespace

std::unique_ptr<Kernel> make_rpc_put(const RowOptions& row) { return std::make_unique<Rpc<PutToClient>>(row); }

std::unique_ptr<Kernel> make_rpc_get(const RowOptions& row) { return std::make_unique<Rpc<GetFromClient>>(row); }

}  // namespace fablint
