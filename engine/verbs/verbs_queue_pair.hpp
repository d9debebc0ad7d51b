// Reliable connections (RC) of verbs. Included only where the headers of libibverbs exist.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <istream>
#include <string>

#include "verbs/verbs_device.hpp"

namespace fablint {

// What an end of a connection needs to know about the port of the other end. `text()` and `parsed()` are inverse.
struct VerbsEnd {
    VerbsEnd() = default;
    VerbsEnd(const VerbsDevice& device, const TransportSettings& settings);  // throws a usage error for a wrong MTU
    std::string text() const;
    static VerbsEnd parsed(std::istream& text);

    unsigned lid = 0;
    std::string gid = "-";   // 32 hexadecimal digits, or - for a connection by LID
    int mtu = IBV_MTU_1024;  // an ibv_mtu
    std::size_t largest_message = 0;
    int reads = 0;  // RDMA reads and atomics of the other end that it accepts in flight
};

// Work requests of one kind: `count` buffers of `bytes` bytes, a `stride` apart at both ends.
struct VerbsWork {
    // message: a send, whose buffer is in use until it is acknowledged; deferred: one for which only finish() waits;
    // receive; expected: a receive that is posted before the kernel asks for its message; access: remote memory access;
    // probe: whether the other end still exists.
    enum class Kind : std::uint8_t { message, deferred, receive, expected, access, probe };
    Kind kind;
    ibv_wr_opcode opcode;
    char* data;
    std::size_t stride;
    int count;
    std::uint32_t bytes;
    std::uint32_t local_key;
    std::uint64_t remote = 0;
    std::uint32_t remote_key = 0;
    std::uint64_t operand = 0;   // of atomics: the number to add, or to compare with
    std::uint64_t exchange = 0;  // of a compare-and-swap

    bool is_receive() const { return kind == Kind::receive || kind == Kind::expected; }
};

// What the queue pairs of a transport share.
struct VerbsProgress {
    int room = 0;              // completions that the completion queue can still take
    std::size_t unposted = 0;  // work requests that wait for room
    std::size_t awaited = 0;   // posted ones for which complete() waits
};

// The id of a work request.
struct WorkId {
    VerbsWork::Kind kind;
    std::uint8_t awaited;  // work requests whose completion it reports
    std::uint16_t slots;   // of the send queue that its completion frees
    std::uint32_t index;   // of the queue pair

    std::uint64_t number() const {
        std::uint64_t id = 0;
        static_assert(sizeof *this == sizeof id);
        std::memcpy(&id, this, sizeof id);
        return id;
    }
    static WorkId of(const ibv_wc& completion) {
        WorkId id;
        std::memcpy(&id, &completion.wr_id, sizeof id);
        return id;
    }
};

class QueuePair {
  public:
    // Throws a PeerFailure if the device has no room for it.
    QueuePair(VerbsDevice& device, ibv_cq* completions, VerbsProgress& progress, std::size_t index, int peer);
    QueuePair(const QueuePair&) = delete;
    QueuePair& operator=(const QueuePair&) = delete;

    int peer() const { return peer_; }
    bool is_in_use() const { return sends_in_flight_ + receives_in_flight_ > 0; }
    // Does the device copy the data of this work when it is posted? The data need not be registered then.
    bool is_copied(const VerbsWork& work) const {
        return !work.is_receive() && copies(work.bytes) &&
               (work.opcode == IBV_WR_SEND || work.opcode == IBV_WR_RDMA_WRITE);
    }
    bool copies(std::size_t bytes) const { return bytes <= inline_limit_; }  // of a message
    std::string number_text() const;                                         // what the other end reads in connect()
    void connect(const VerbsEnd& local, const VerbsEnd& remote, std::istream& number_text, int service_level);

    // Posts what there is room for, and keeps the rest; `work` is used up.
    void add(VerbsWork& work);
    void post_waiting();
    // Posts a deferred message if there is room now, and returns whether there was: the short path of a latency.
    bool send_at_once(const void* data, std::uint32_t bytes, std::uint32_t local_key);
    // Asks for the completion of the deferred messages before: complete() then waits for it.
    void report_deferred();
    // Asks the other end for a sign of life if this end only receives: a sender learns from missing acknowledgements.
    void probe();
    // The index of the queue pair to which a completion belongs, whatever its status.
    static std::size_t index_of(const ibv_wc& completion) { return WorkId::of(completion).index; }
    // Returns the kind of the work that is complete.
    VerbsWork::Kind retire(const ibv_wc& completion) {
        const WorkId id = WorkId::of(completion);
        ++progress_.room;
        if (id.kind == VerbsWork::Kind::receive || id.kind == VerbsWork::Kind::expected) {
            --receives_in_flight_;
        } else {
            sends_in_flight_ -= static_cast<int>(id.slots);
            if (id.kind == VerbsWork::Kind::probe) is_probing_ = false;
        }
        progress_.awaited -= id.awaited;
        return id.kind;
    }
    int depth() const { return depth_; }  // work requests of a direction that can be in flight

  private:
    static constexpr int chain = 32;

    int unsignalled_limit() const { return depth_ / 4; }
    void signal(ibv_send_wr& request, VerbsWork::Kind kind, int awaited, int slots);
    void post(ibv_send_wr* requests) {
        ibv_send_wr* refused = nullptr;
        const int error = ibv_post_send(pair_.get(), requests, &refused);
        if (error != 0) fail("send", error);
    }
    [[noreturn]] void fail(const char* action, int error) const;
    void post_sends(VerbsWork& work);
    void post_receives(VerbsWork& work);
    void set_state(ibv_qp_attr& attributes, int mask, const std::string& action);

    VerbsProgress& progress_;
    const VerbsPort& port_;
    const std::size_t index_;
    const int peer_;
    const std::uint32_t first_packet_;
    VerbsObject<ibv_qp> pair_;
    int depth_ = 256;
    std::size_t inline_limit_ = 0;
    int sends_in_flight_ = 0, receives_in_flight_ = 0;
    int unsignalled_ = 0;  // sends since the last one that reports its completion
    bool is_probing_ = false;
    bool has_deferred_ = false;  // messages since the last report_deferred() whose buffers are in use
    ibv_sge message_piece_{};    // of send_at_once(): most of a request is the same each time
    ibv_send_wr message_{};
    std::deque<VerbsWork> sends_, receives_;  // those that wait for room
    std::array<ibv_send_wr, chain> send_requests_{};
    std::array<ibv_recv_wr, chain> receive_requests_{};
    std::array<ibv_sge, chain> pieces_{};
};

}  // namespace fablint
