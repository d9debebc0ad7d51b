// Requests to a server that moves the data itself, as net_sanitizer: a client, the leader, requests the messages of a
// window at once; the server, which may have many clients, puts each into the client's window or gets it from there,
// and answers when the transfer is complete. In contrast to net_sanitizer, gets are gets, and puts have arrived at the
// client before the answer.
#include <algorithm>

#include "kernels/kernel.hpp"

namespace fablint {

namespace {

// `client` is an index into end.peers. The messages of a client are in its window, by their slot.
struct PutToClient {
    static constexpr bool exposes_sent = false;
    static constexpr std::optional<Content> at_client = Content::message;
    static constexpr std::optional<Content> at_server = std::nullopt;
    static void start(const Endpoint& end, std::size_t client, int slot) {
        end.remote->put(end.peers[client], end.payload.offset_of(slot), end.payload.sends(end.slot_of(client, slot), 1),
                        end.bytes);
    }
};

struct GetFromClient {
    static constexpr bool exposes_sent = true;
    static constexpr std::optional<Content> at_client = std::nullopt;
    static constexpr std::optional<Content> at_server = Content::message;
    static void start(const Endpoint& end, std::size_t client, int slot) {
        end.remote->get(end.peers[client], end.payload.offset_of(slot),
                        end.payload.receives(end.slot_of(client, slot), 1), end.bytes);
    }
};

template <typename Transfer>
class Rpc : public Kernel {
  public:
    explicit Rpc(const KernelOptions& options)
        : Kernel(transfer_traits()), most_at_once_(static_cast<std::size_t>(options.server_flight)) {}

    void arm(const Endpoint& end, bool leads, std::int64_t) override {
        const std::size_t in_flight = static_cast<std::size_t>(end.window) * end.peers.size();
        queue_ = end.transport.request_queue();
        answers_.assign(leads ? in_flight : 0, 0);
        if (leads) return;
        at_work_.resize(std::min(in_flight, most_at_once_));
        touched_.assign(end.peers.size(), false);
        index_of_rank_.assign(static_cast<std::size_t>(end.ranks), 0);
        for (std::size_t client = 0; client < end.peers.size(); ++client) {
            index_of_rank_[static_cast<std::size_t>(end.peers[client])] = client;
            end.remote->epochs().hold(end.peers[client]);
        }
    }
    void disarm(const Endpoint& end, bool leads) override {
        if (leads) return;
        for (const int client : end.peers) end.remote->epochs().release(client);
    }

    void lead(const Endpoint& end, std::int64_t repetitions) override {
        for (std::int64_t i = 0; i < repetitions; ++i) {
            end.transport.post_receives(end.peer(), {answers_.data(), 1, static_cast<int>(answers_.size())}, 1);
            for (int slot = 0; slot < end.window; ++slot) queue_->request(end.peer(), slot);
            end.transport.complete();
        }
    }
    // A fast client may be ahead of a slow one; the total number of requests is fixed.
    void follow(const Endpoint& end, std::int64_t repetitions) override {
        const auto clients = static_cast<std::int64_t>(end.peers.size());
        for (std::int64_t left = repetitions * end.window * clients; left > 0;) left -= serve(end, left);
    }

  private:
    static KernelTraits transfer_traits() {
        KernelTraits traits;
        traits.at_leader = Transfer::at_client;
        traits.at_follower = Transfer::at_server;
        traits.exposes_sent = Transfer::exposes_sent;
        return traits;
    }

    // Serves the requests that have arrived, in order of arrival. Returns their number.
    std::int64_t serve(const Endpoint& end, std::int64_t most) {
        std::size_t taken = 0;
        do {
            int slot = 0;
            const std::size_t client = index_of_rank_[static_cast<std::size_t>(queue_->next_request(slot))];
            Transfer::start(end, client, slot);
            touched_[client] = true;
            at_work_[taken++] = client;
        } while (taken < at_work_.size() && static_cast<std::int64_t>(taken) < most && queue_->has_request());
        for (std::size_t request = 0; request < taken; ++request) answer(end, at_work_[request]);
        end.transport.complete();
        return static_cast<std::int64_t>(taken);
    }

    void answer(const Endpoint& end, std::size_t client) {
        static constexpr char done = 0;
        if (touched_[client]) end.remote->flush(end.peers[client]);
        touched_[client] = false;
        end.transport.post_sends(end.peers[client], {&done, 1, 1}, 1);
    }

    RequestQueue* queue_ = nullptr;
    std::size_t most_at_once_;
    std::vector<char> answers_;               // on a client: one for each request in flight
    std::vector<std::size_t> at_work_;        // clients of the requests in progress
    std::vector<bool> touched_;               // by client: operations since the last flush
    std::vector<std::size_t> index_of_rank_;  // into end.peers
};

}  // namespace

std::unique_ptr<Kernel> make_rpc_put(const KernelOptions& options) {
    return std::make_unique<Rpc<PutToClient>>(options);
}

std::unique_ptr<Kernel> make_rpc_get(const KernelOptions& options) {
    return std::make_unique<Rpc<GetFromClient>>(options);
}

}  // namespace fablint
