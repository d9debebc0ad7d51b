#if __has_include(<infiniband/verbs.h>)

#include "verbs/verbs_queue_pair.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <utility>

#include "base/errors.hpp"

namespace fablint {

namespace {

constexpr unsigned wished_inline = 236;  // that of ib_send_lat
// An acknowledgement is awaited for 4.096 us x 2^16 = 0.27 s, then the packet is sent again, six times: rxe takes
// seven, the most that verbs allow, for unlimited.
constexpr std::uint8_t acknowledgement_timeout = 16;
constexpr std::uint8_t retries = 6;
constexpr std::uint8_t unlimited_retries = 7;   // of a message whose receive is not posted yet
constexpr std::uint8_t receiver_not_ready = 1;  // 10 us until such a message is sent again
constexpr std::uint8_t hop_limit = 64;
constexpr std::uint32_t packet_numbers = 1U << 24;

// It needs no memory at the other end, and no receive.
VerbsWork empty_write(VerbsWork::Kind kind) { return {kind, IBV_WR_RDMA_WRITE, nullptr, 0, 1, 0, 0}; }

std::uint32_t random_packet_number() { return std::random_device()() % packet_numbers; }

int mtu_of(int bytes) {
    int mtu = IBV_MTU_256;
    for (int size = 256; size < bytes; size *= 2) ++mtu;
    return mtu;
}

std::string hexadecimal(const ibv_gid& gid) {
    std::string text;
    char digits[3];
    for (const std::uint8_t byte : gid.raw) {
        std::snprintf(digits, sizeof digits, "%02x", byte);
        text += digits;
    }
    return text;
}

ibv_gid gid_from(const std::string& digits) {
    ibv_gid gid{};
    for (std::size_t i = 0; i < sizeof gid.raw; ++i)
        gid.raw[i] = static_cast<std::uint8_t>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
    return gid;
}

}  // namespace

VerbsEnd::VerbsEnd(const VerbsDevice& device, const TransportSettings& settings)
    : lid(device.port().attributes.lid),
      mtu(device.port().attributes.active_mtu),
      largest_message(device.port().attributes.max_msg_sz),
      reads(std::min(device.limits().max_qp_rd_atom, device.limits().max_qp_init_rd_atom)) {
    if (device.port().gid) gid = hexadecimal(device.port().gid->raw);
    if (settings.mtu == 0) return;
    if (mtu_of(settings.mtu) > mtu)
        throw usage_error("--mtu " + std::to_string(settings.mtu) + ": the MTU of port " + device.port().name() +
                          " is " + std::to_string(128 << mtu));
    mtu = mtu_of(settings.mtu);
}

std::string VerbsEnd::text() const {
    return gid + ' ' + std::to_string(lid) + ' ' + std::to_string(mtu) + ' ' + std::to_string(largest_message) + ' ' +
           std::to_string(reads);
}

VerbsEnd VerbsEnd::parsed(std::istream& text) {
    VerbsEnd end;
    text >> end.gid >> end.lid >> end.mtu >> end.largest_message >> end.reads;
    return end;
}

QueuePair::QueuePair(VerbsDevice& device, ibv_cq* completions, VerbsProgress& progress, std::size_t index, int peer)
    : progress_(progress), port_(device.port()), index_(index), peer_(peer), first_packet_(random_packet_number()) {
    depth_ = std::min(depth_, device.limits().max_qp_wr);
    ibv_qp_init_attr wishes{};
    wishes.qp_type = IBV_QPT_RC;
    wishes.send_cq = wishes.recv_cq = completions;
    for (const unsigned inline_bytes : {wished_inline, 0U}) {
        wishes.cap = {static_cast<std::uint32_t>(depth_), static_cast<std::uint32_t>(depth_), 1, 1, inline_bytes};
        pair_.reset(ibverbs().create_qp(device.domain(), &wishes));
        if (pair_) break;
    }
    if (!pair_) throw PeerFailure(peer, "no queue pair on " + device.port().name() + ": " + std::strerror(errno));
    inline_limit_ = wishes.cap.max_inline_data;
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = device.port().number;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    if (device.limits().atomic_cap != IBV_ATOMIC_NONE) attributes.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
    set_state(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "initialise");
    // A failure is reported also for a request that would not report its completion.
    const std::uint64_t unsignalled_id =
        WorkId{VerbsWork::Kind::deferred, 0, 0, static_cast<std::uint32_t>(index_)}.number();
    for (int i = 0; i < chain; ++i) {
        const auto at = static_cast<std::size_t>(i);
        send_requests_[at].sg_list = receive_requests_[at].sg_list = &pieces_[at];
        send_requests_[at].wr_id = unsignalled_id;
    }
    message_.sg_list = &message_piece_;
    message_.opcode = IBV_WR_SEND;
    message_.wr_id = unsignalled_id;
}

std::string QueuePair::number_text() const {
    return std::to_string(pair_->qp_num) + ' ' + std::to_string(first_packet_);
}

void QueuePair::connect(const VerbsEnd& local, const VerbsEnd& remote, std::istream& number_text, int service_level) {
    std::uint32_t number = 0, first_packet = 0;
    number_text >> number >> first_packet;
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = static_cast<ibv_mtu>(std::min(local.mtu, remote.mtu));
    attributes.dest_qp_num = number;
    attributes.rq_psn = first_packet;
    attributes.max_dest_rd_atomic = static_cast<std::uint8_t>(local.reads);
    attributes.min_rnr_timer = receiver_not_ready;
    attributes.ah_attr.port_num = port_.number;
    attributes.ah_attr.dlid = static_cast<std::uint16_t>(remote.lid);
    attributes.ah_attr.sl = static_cast<std::uint8_t>(service_level);
    if (port_.gid && remote.gid != "-") {
        attributes.ah_attr.is_global = 1;
        attributes.ah_attr.grh.dgid = gid_from(remote.gid);
        attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(port_.gid->index);
        attributes.ah_attr.grh.hop_limit = hop_limit;
    }
    set_state(attributes,
              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                  IBV_QP_MIN_RNR_TIMER,
              "connect to GID " + remote.gid + ", LID " + std::to_string(remote.lid));
    attributes = {};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = acknowledgement_timeout;
    attributes.retry_cnt = retries;
    attributes.rnr_retry = unlimited_retries;
    attributes.sq_psn = first_packet_;
    attributes.max_rd_atomic = static_cast<std::uint8_t>(std::min(local.reads, remote.reads));
    set_state(
        attributes,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
        "start");
}

void QueuePair::set_state(ibv_qp_attr& attributes, int mask, const std::string& action) {
    const int error = ibverbs().modify_qp(pair_.get(), &attributes, mask);
    if (error != 0)
        throw PeerFailure(peer_, "verbs: port " + port_.name() + " cannot " + action + ": " + std::strerror(error));
}

void QueuePair::add(VerbsWork& work) {
    std::deque<VerbsWork>& waiting = work.is_receive() ? receives_ : sends_;
    progress_.unposted += static_cast<std::size_t>(work.count);
    if (work.kind == VerbsWork::Kind::deferred && !is_copied(work)) has_deferred_ = true;
    if (waiting.empty()) work.is_receive() ? post_receives(work) : post_sends(work);
    if (work.count > 0) waiting.push_back(work);
}

void QueuePair::post_waiting() {
    while (!sends_.empty()) {
        post_sends(sends_.front());
        if (sends_.front().count > 0) break;
        sends_.pop_front();
    }
    while (!receives_.empty()) {
        post_receives(receives_.front());
        if (receives_.front().count > 0) break;
        receives_.pop_front();
    }
}

bool QueuePair::send_at_once(const void* data, std::uint32_t bytes, std::uint32_t local_key) {
    if (!sends_.empty() || sends_in_flight_ >= depth_ || progress_.room == 0) return false;
    const bool copied = copies(bytes);
    message_piece_ = {reinterpret_cast<std::uint64_t>(data), bytes, local_key};
    message_.num_sge = bytes > 0 ? 1 : 0;
    message_.send_flags = copied ? IBV_SEND_INLINE : 0;
    has_deferred_ = has_deferred_ || !copied;
    ++sends_in_flight_;
    if (++unsignalled_ >= unsignalled_limit())
        signal(message_, VerbsWork::Kind::deferred, 0, std::exchange(unsignalled_, 0));
    post(&message_);
    return true;
}

void QueuePair::report_deferred() {
    if (!std::exchange(has_deferred_, false)) return;
    VerbsWork write = empty_write(VerbsWork::Kind::access);
    add(write);
}

void QueuePair::signal(ibv_send_wr& request, VerbsWork::Kind kind, int awaited, int slots) {
    request.send_flags |= IBV_SEND_SIGNALED;
    request.wr_id = WorkId{kind, static_cast<std::uint8_t>(awaited), static_cast<std::uint16_t>(slots),
                           static_cast<std::uint32_t>(index_)}
                        .number();
    --progress_.room;
}

void QueuePair::fail(const char* action, int error) const {
    throw PeerFailure(peer_, std::string("verbs: ") + action + ": " + std::strerror(error));
}

// Posts as many as there is room for. Messages that are copied or deferred report their completion only now and then,
// to free their slots.
void QueuePair::post_sends(VerbsWork& work) {
    const bool copied = is_copied(work);
    const bool is_free = work.kind == VerbsWork::Kind::deferred || (copied && work.kind == VerbsWork::Kind::message);
    while (work.count > 0) {
        const int count = std::min({work.count, chain, depth_ - sends_in_flight_});
        if (count <= 0 || progress_.room == 0) return;
        const bool signals = !is_free || unsignalled_ + count >= unsignalled_limit();
        const auto last = static_cast<std::size_t>(count - 1);
        for (std::size_t i = 0; i <= last; ++i) {
            pieces_[i] = {reinterpret_cast<std::uint64_t>(work.data), work.bytes, work.local_key};
            ibv_send_wr& request = send_requests_[i];
            request.next = i == last ? nullptr : &send_requests_[i + 1];
            request.num_sge = work.bytes > 0 ? 1 : 0;
            request.opcode = work.opcode;
            request.send_flags = copied ? IBV_SEND_INLINE : 0;
            if (work.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || work.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
                request.wr.atomic = {work.remote, work.operand, work.exchange, work.remote_key};
            } else {
                request.wr.rdma = {work.remote, work.remote_key};
            }
            work.data += work.stride;
            work.remote += work.stride;
        }
        const auto posted = static_cast<unsigned>(count);
        if (signals) signal(send_requests_[last], work.kind, is_free ? 0 : count, unsignalled_ + count);
        post(send_requests_.data());
        unsignalled_ = signals ? 0 : unsignalled_ + count;
        sends_in_flight_ += count;
        work.count -= count;
        progress_.unposted -= posted;
        if (!is_free) progress_.awaited += posted;
    }
}

void QueuePair::post_receives(VerbsWork& work) {
    const bool is_awaited = work.kind == VerbsWork::Kind::receive;
    while (work.count > 0) {
        const int count = std::min({work.count, chain, depth_ - receives_in_flight_, progress_.room});
        if (count <= 0) return;
        const auto last = static_cast<std::size_t>(count - 1);
        const std::uint64_t id =
            WorkId{work.kind, static_cast<std::uint8_t>(is_awaited), 0, static_cast<std::uint32_t>(index_)}.number();
        for (std::size_t i = 0; i <= last; ++i) {
            pieces_[i] = {reinterpret_cast<std::uint64_t>(work.data), work.bytes, work.local_key};
            ibv_recv_wr& request = receive_requests_[i];
            request.wr_id = id;
            request.next = i == last ? nullptr : &receive_requests_[i + 1];
            request.num_sge = work.bytes > 0 ? 1 : 0;
            work.data += work.stride;
        }
        ibv_recv_wr* refused = nullptr;
        const int error = ibv_post_recv(pair_.get(), receive_requests_.data(), &refused);
        if (error != 0) fail("receive", error);
        progress_.room -= count;
        receives_in_flight_ += count;
        work.count -= count;
        progress_.unposted -= static_cast<std::size_t>(count);
        if (is_awaited) progress_.awaited += static_cast<std::size_t>(count);
    }
}

void QueuePair::probe() {
    if (receives_in_flight_ == 0 || is_probing_ || !sends_.empty()) return;
    is_probing_ = true;
    VerbsWork write = empty_write(VerbsWork::Kind::probe);
    add(write);
}

}  // namespace fablint

#endif
