// A fake of libibverbs, libibverbs.so.1, for machines without an RDMA device: one device `fake0` with an InfiniBand
// port. Every queue pair is connected to itself, so that one process measures its own work between a message and its
// answer: with callgrind, instructions that no
// noise changes. A wrong use ends the process with a line `fake libibverbs: ...`:
//
// * a send or a receive for which the queue has no room, or a completion for which its queue has none
// * a buffer that is not registered, unless it is copied
// * a message that is longer than the buffer of its receive
//
// A message that arrives before its receive is posted waits, and is counted. A message arrives at the second poll after
// its send. FAKE_VERBS_MESSAGE=1: every queue pair has received a message when it is connected, as a program expects
// that answers first. fake_verbs_counts() returns what was counted.
#if __has_include(<infiniband/verbs.h>)

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "fake_verbs_counts.hpp"

#undef ibv_query_port
#undef ibv_reg_mr

namespace {

constexpr std::uint32_t inline_bytes = 236;

[[noreturn]] void wrong_use(const char* reason) {
    std::fprintf(stderr, "fake libibverbs: %s\n", reason);
    std::_Exit(1);
}

FakeVerbsCounts counts;

struct Queue : ibv_cq {
    std::vector<ibv_wc> entries;  // a ring
    std::size_t first = 0, used = 0, hidden_polls = 0;

    void add(const ibv_wc& completion) {
        if (used == entries.size()) wrong_use("a completion queue is full");
        entries[(first + used++) % entries.size()] = completion;
    }
    int poll(int most, ibv_wc* completions) {
        if (hidden_polls > 0) return --hidden_polls, 0;
        int polled = 0;
        for (; polled < most && used > 0; ++polled, --used) {
            completions[polled] = entries[first];
            first = (first + 1) % entries.size();
        }
        return polled;
    }
};

struct Receive {
    std::uint64_t id;
    ibv_sge piece;
};

struct Pair : ibv_qp {
    ibv_qp_init_attr attributes;
    std::vector<Receive> receives;               // a ring
    std::size_t first = 0, used = 0, sends = 0;  // sends: in flight since the last completion
    std::deque<std::vector<char>> waiting;       // messages whose receive is not posted yet

    Queue& sent() { return *static_cast<Queue*>(send_cq); }
    Queue& received() { return *static_cast<Queue*>(recv_cq); }
    void deliver(const char* data, std::uint32_t bytes) {
        const Receive& to = receives[first];
        if (bytes > to.piece.length) wrong_use("a message is longer than the buffer of its receive");
        if (bytes > 0) std::memcpy(reinterpret_cast<void*>(to.piece.addr), data, bytes);
        ibv_wc completion{};
        completion.wr_id = to.id;
        completion.opcode = IBV_WC_RECV;
        completion.byte_len = bytes;
        completion.qp_num = qp_num;
        received().add(completion);
        first = (first + 1) % receives.size();
        --used;
    }
    void arrive(const char* data, std::uint32_t bytes) {
        if (used > 0) return deliver(data, bytes);
        ++counts.early_messages;
        waiting.emplace_back(data, data + bytes);
    }
};

std::vector<ibv_mr*> regions = {nullptr};  // by key

void require_registered(const ibv_sge& piece) {
    const ibv_mr* region = piece.lkey < regions.size() ? regions[piece.lkey] : nullptr;
    if (region == nullptr) wrong_use("a buffer is not registered");
    const auto begin = reinterpret_cast<std::uintptr_t>(region->addr);
    if (piece.addr < begin || piece.addr + piece.length > begin + region->length)
        wrong_use("a buffer is outside of its region");
}

ibv_device* the_device() {
    static ibv_device device = [] {
        ibv_device made{};
        made.node_type = IBV_NODE_CA;
        made.transport_type = IBV_TRANSPORT_IB;
        std::strcpy(made.name, "fake0");
        return made;
    }();
    return &device;
}

}  // namespace

extern "C" {

int fake_verbs_poll(ibv_cq* queue, int most, ibv_wc* completions) {
    ++counts.polls;
    return static_cast<Queue*>(queue)->poll(most, completions);
}

int fake_verbs_post_send(ibv_qp* pair, ibv_send_wr* request, ibv_send_wr** /*refused*/) {
    ++counts.send_calls;
    Pair& with = *static_cast<Pair*>(pair);
    for (; request != nullptr; request = request->next) {
        if (++with.sends > with.attributes.cap.max_send_wr) wrong_use("a send queue is full");
        const bool is_inline = (request->send_flags & IBV_SEND_INLINE) != 0;
        const ibv_sge none{};
        const ibv_sge& piece = request->num_sge > 0 ? *request->sg_list : none;
        if (is_inline && piece.length > with.attributes.cap.max_inline_data)
            wrong_use("a message is too long to be copied");
        if (!is_inline && piece.length > 0) require_registered(piece);
        auto* const data = reinterpret_cast<char*>(piece.addr);
        if (request->opcode == IBV_WR_SEND) {
            with.arrive(data, piece.length);
        } else if (piece.length > 0) {
            auto* const remote = reinterpret_cast<char*>(request->wr.rdma.remote_addr);
            const bool writes = request->opcode == IBV_WR_RDMA_WRITE;
            std::memcpy(writes ? remote : data, writes ? data : remote, piece.length);
        }
        if ((request->send_flags & IBV_SEND_SIGNALED) == 0) continue;
        ++counts.signalled_sends;
        with.sends = 0;
        ibv_wc completion{};
        completion.wr_id = request->wr_id;
        completion.opcode = IBV_WC_SEND;
        completion.qp_num = pair->qp_num;
        with.sent().add(completion);
    }
    with.received().hidden_polls = 1;
    return 0;
}

int fake_verbs_post_receive(ibv_qp* pair, ibv_recv_wr* request, ibv_recv_wr** /*refused*/) {
    ++counts.receive_calls;
    Pair& with = *static_cast<Pair*>(pair);
    for (; request != nullptr; request = request->next) {
        if (with.used == with.receives.size()) wrong_use("a receive queue is full");
        const ibv_sge piece = request->num_sge > 0 ? *request->sg_list : ibv_sge{};
        if (piece.length > 0) require_registered(piece);
        with.receives[(with.first + with.used++) % with.receives.size()] = {request->wr_id, piece};
        if (with.waiting.empty()) continue;
        with.deliver(with.waiting.front().data(), static_cast<std::uint32_t>(with.waiting.front().size()));
        with.waiting.pop_front();
    }
    return 0;
}

FakeVerbsCounts* fake_verbs_counts() { return &counts; }

ibv_device** ibv_get_device_list(int* number) {
    static ibv_device* list[] = {nullptr, nullptr};
    list[0] = the_device();
    if (number != nullptr) *number = 1;
    return list;
}
void ibv_free_device_list(ibv_device**) {}
const char* ibv_get_device_name(ibv_device* device) { return device->name; }
ibv_context* ibv_open_device(ibv_device* device) {
    auto* context = new ibv_context{};
    context->device = device;
    context->ops.poll_cq = fake_verbs_poll;
    context->ops.post_send = fake_verbs_post_send;
    context->ops.post_recv = fake_verbs_post_receive;
    return context;
}
int ibv_close_device(ibv_context* context) { return delete context, 0; }
int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
    *attributes = {};
    attributes->max_qp = attributes->max_cq = attributes->max_mr = attributes->max_pd = 1 << 16;
    attributes->max_qp_wr = 1 << 14;
    attributes->max_sge = 32;
    attributes->max_cqe = 1 << 15;
    attributes->max_mr_size = ~0ULL;
    attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 16;
    attributes->atomic_cap = IBV_ATOMIC_NONE;
    attributes->phys_port_cnt = 1;
    return 0;
}
int ibv_query_port(ibv_context*, std::uint8_t, _compat_ibv_port_attr* attributes) {
    auto& port = *reinterpret_cast<ibv_port_attr*>(attributes);
    port.state = IBV_PORT_ACTIVE;
    port.max_mtu = port.active_mtu = IBV_MTU_4096;
    port.max_msg_sz = 1U << 31;
    port.lid = 1;
    port.link_layer = IBV_LINK_LAYER_INFINIBAND;
    return 0;
}
int ibv_query_gid(ibv_context*, std::uint8_t, int, ibv_gid* gid) { return *gid = {}, 0; }
ibv_pd* ibv_alloc_pd(ibv_context* context) {
    auto* domain = new ibv_pd{};
    domain->context = context;
    return domain;
}
int ibv_dealloc_pd(ibv_pd* domain) { return delete domain, 0; }
ibv_mr* ibv_reg_mr(ibv_pd* domain, void* data, std::size_t bytes, int) {
    auto* region = new ibv_mr{};
    region->context = domain->context;
    region->pd = domain;
    region->addr = data;
    region->length = bytes;
    region->lkey = region->rkey = static_cast<std::uint32_t>(regions.size());
    regions.push_back(region);
    return region;
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* data, std::size_t bytes, std::uint64_t, unsigned) {
    return ibv_reg_mr(domain, data, bytes, 0);
}
int ibv_dereg_mr(ibv_mr* region) {
    regions[region->lkey] = nullptr;
    return delete region, 0;
}
ibv_cq* ibv_create_cq(ibv_context* context, int entries, void*, ibv_comp_channel*, int) {
    auto* queue = new Queue{};
    queue->context = context;
    queue->cqe = entries;
    queue->entries.resize(static_cast<std::size_t>(entries));
    return queue;
}
int ibv_destroy_cq(ibv_cq* queue) { return delete static_cast<Queue*>(queue), 0; }
ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* attributes) {
    if (attributes->cap.max_inline_data > inline_bytes) return nullptr;
    static std::uint32_t number = 0;
    auto* pair = new Pair{};
    pair->context = domain->context;
    pair->pd = domain;
    pair->send_cq = attributes->send_cq;
    pair->recv_cq = attributes->recv_cq;
    pair->qp_num = ++number;
    pair->qp_type = attributes->qp_type;
    pair->attributes = *attributes;
    pair->receives.resize(attributes->cap.max_recv_wr);
    return pair;
}
int ibv_modify_qp(ibv_qp* pair, ibv_qp_attr* attributes, int) {
    const char* message = std::getenv("FAKE_VERBS_MESSAGE");
    if (attributes->qp_state == IBV_QPS_RTS && message != nullptr) static_cast<Pair*>(pair)->arrive("", 1);
    return 0;
}
int ibv_destroy_qp(ibv_qp* pair) { return delete static_cast<Pair*>(pair), 0; }
int ibv_fork_init() { return 0; }
const char* ibv_wc_status_str(ibv_wc_status) { return "fake status"; }
const char* ibv_port_state_str(ibv_port_state) { return "fake state"; }
}

#endif
