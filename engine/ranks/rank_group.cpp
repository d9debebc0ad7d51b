#include "ranks/rank_group.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>

namespace fablint {

namespace {
constexpr int barrier_tag = 1000;  // + stage
constexpr int control_tag = 1;
constexpr int clock_tag = 2;
constexpr int probe_tag = 3;
constexpr int reply_tag = 4;
constexpr int tree_tag = 5;
constexpr int request_tag = 6;
}  // namespace

RankGroup::RankGroup(const Clock& clock, std::unique_ptr<ControlChannel> control)
    : clock_(clock), control_(std::move(control)), rank_(control_->rank()), size_(control_->size()) {
    probed_.resize(static_cast<std::size_t>(size_), false);
    find_hosts();
    synchronise_clocks();
}

void RankGroup::find_hosts() {
    const GatheredTexts names = gather(control_->host_name());
    std::string list;
    for (const std::string& name : names.values()) list += name + '\n';
    list = broadcast(list);
    for (std::size_t begin = 0; begin < list.size();) {
        const std::size_t end = list.find('\n', begin);
        hosts_.push_back(list.substr(begin, end - begin));
        begin = end + 1;
    }
    const std::string indices = broadcast(
        std::string(reinterpret_cast<const char*>(names.codes().data()), names.size() * sizeof(std::int32_t)));
    rank_host_.resize(static_cast<std::size_t>(size_));
    std::memcpy(rank_host_.data(), indices.data(), indices.size());
    const auto first = std::find(rank_host_.begin(), rank_host_.end(), host_index(rank_));
    first_rank_on_my_host_ = static_cast<int>(first - rank_host_.begin());
}

void RankGroup::synchronise_clocks() {
    for (int stage = 1; stage < size_; stage *= 2) {
        if (rank_ < stage && rank_ + stage < size_) measure_offset(rank_ + stage);
        if (rank_ >= stage && rank_ < 2 * stage) reply_offset(rank_ - stage);
    }
    uncertainty_ = maximum(uncertainty_);
}

// The parent's side: the shortest of ten round trips bounds the child's clock best.
void RankGroup::measure_offset(int child) {
    constexpr int trips = 10;
    double shortest = std::numeric_limits<double>::infinity();
    double child_behind = 0.0;
    for (int trip = 0; trip < trips; ++trip) {
        double remote = 0.0;
        const double begin = now();
        control_->send(child, clock_tag, &begin, sizeof begin);
        control_->receive(child, clock_tag, &remote, sizeof remote, {});
        const double end = now();
        if (end - begin < shortest) {
            shortest = end - begin;
            child_behind = 0.5 * (begin + end) - remote;
        }
    }
    double answer[2] = {child_behind, uncertainty_ + 0.5 * shortest};
    if (host_index(child) == host_index(rank_)) {
        answer[0] = offset_;
        answer[1] = uncertainty_;
    }
    control_->send(child, clock_tag, answer, sizeof answer);
}

void RankGroup::reply_offset(int parent) {
    constexpr int trips = 10;
    for (int trip = 0; trip < trips; ++trip) {
        double ignored = 0.0;
        control_->receive(parent, clock_tag, &ignored, sizeof ignored, {});
        const double own = clock_.now();
        control_->send(parent, clock_tag, &own, sizeof own);
    }
    double answer[2] = {0.0, 0.0};
    control_->receive(parent, clock_tag, answer, sizeof answer, {});
    offset_ = answer[0];
    uncertainty_ = answer[1];
}

// Several calls for each test of the message: a transport of remote accesses is as fast as if nothing else was tested.
bool RankGroup::serve_peers() {
    constexpr int calls = 16;
    bool served = false;
    for (int call = 0; progress_ && call < calls; ++call) served = progress_() || served;
    return served;
}

// What this rank does while it waits for `peer`; empty if it only waits.
ControlChannel::Idle RankGroup::waiting_for(int peer) {
    const bool probes = std::isfinite(probe_after_s_);
    if (!yielding_ && !probes && !progress_) return {};
    // A rank that may sleep spins for about the duration of a context switch, then sleeps for increasing times. Where
    // the message wakes it, it leaves the CPU to what its peer measures: the network stack that accesses its memory.
    constexpr int spins = 200;
    const bool wakes = !progress_ && control_->wakes_on_arrival();
    const bool may_sleep = yielding_ || wakes;
    const double longest_sleep_s = wakes ? 100e-3 : 500e-6;
    const double first_probe = clock_.now() + probe_after_s_;
    return [this, peer, probes, may_sleep, longest_sleep_s, spin = 0, sleep_s = 20e-6, next_probe = first_probe,
            probing = false]() mutable {
        if (probes && clock_.now() > next_probe) {
            exchange_probes(peer, probing);
            next_probe = clock_.now() + 0.1 * probe_after_s_;
        }
        if (serve_peers()) spin = 0;
        if (!may_sleep || spin++ < spins) return 0.0;
        const double pause_s = sleep_s;
        sleep_s = std::min(longest_sleep_s, 1.5 * sleep_s);
        return pause_s;
    };
}

// Replies to the probes of ranks that wait for this rank, and probes the peer. Only one probe is open at a time: a peer
// that measures replies only when it waits. `probing`: a probe of the present wait is open, so that a reply belongs to
// it.
void RankGroup::exchange_probes(int peer, bool& probing) {
    char nothing = 0;
    for (int other = -1; (other = control_->sender_of_arrived(ControlChannel::any_rank, probe_tag)) >= 0;) {
        control_->receive(other, probe_tag, &nothing, 1, {});
        control_->send(other, reply_tag, &nothing, 1);
    }
    const auto index = static_cast<std::size_t>(peer);
    if (control_->sender_of_arrived(peer, reply_tag) >= 0) {
        control_->receive(peer, reply_tag, &nothing, 1, {});
        probed_[index] = false;
        if (probing) heartbeat_.peer_replied();
    }
    if (!probed_[index]) control_->send(peer, probe_tag, &nothing, 1);
    probed_[index] = probing = true;
}

Signal RankGroup::barrier(Signal own) {
    Signal all = own;
    int stage = 0;
    for (long hop = 1; hop < size_; hop *= 2, ++stage) {
        const int to = static_cast<int>((rank_ + hop) % size_);
        const int from = static_cast<int>((rank_ - hop + size_) % size_);
        heartbeat_.waiting(from, stage);
        Signal received;
        const Signal sent = all;
        control_->exchange(to, &sent, from, &received, sizeof sent, barrier_tag + stage, waiting_for(from));
        all.flags |= received.flags;
        all.largest = std::max(all.largest, received.largest);
    }
    heartbeat_.busy();
    return all;
}

void RankGroup::throw_if_any_failed(const std::optional<Error>& own) {
    if ((barrier({own ? Signal::failed : 0U, 0.0}).flags & Signal::failed) == 0) return;
    const auto lowest = static_cast<int>(minimum(own ? rank_ : size_));
    const auto status = static_cast<int>(maximum(own && rank_ == lowest ? static_cast<double>(own->status()) : 0.0));
    const bool on_all = minimum(own ? 1.0 : 0.0) > 0.0;
    const std::string place = on_all || hosts().size() < 2 ? "" : host_of(rank_) + ": ";
    if (rank_ == lowest) std::fprintf(stderr, "fablint-engine: error: %s%s\n", place.c_str(), own->what());
    throw Error(static_cast<Exit>(status), "");
}

void RankGroup::send_text(int rank, int tag, std::string_view text) {
    const std::uint64_t length = text.size();
    control_->send(rank, tag, &length, sizeof length);
    if (length > 0) control_->send(rank, tag, text.data(), text.size());
}

std::string RankGroup::receive_text(int rank, int tag) { return receive_text(rank, tag, waiting_for(rank)); }

std::string RankGroup::receive_text(int rank, int tag, const ControlChannel::Idle& idle) {
    std::uint64_t length = 0;
    control_->receive(rank, tag, &length, sizeof length, idle);
    std::string text(length, '\0');
    if (length > 0) control_->receive(rank, tag, text.data(), text.size(), waiting_for(rank));
    return text;
}

// Along the binomial tree in which the parent of a rank is the rank without its lowest bit.
std::string RankGroup::broadcast(std::string text) {
    int bit = 1;
    while (bit < size_ && (rank_ & bit) == 0) bit *= 2;
    if (rank_ != 0) text = receive_text(rank_ - bit, tree_tag);
    for (bit /= 2; bit > 0; bit /= 2)
        if (rank_ + bit < size_) send_text(rank_ + bit, tree_tag, text);
    return text;
}

// Along the tree of broadcast(): a rank has the bytes of its whole branch, and sends those of each branch below it.
std::string RankGroup::scatter(std::string text, std::size_t bytes) {
    int bit = 1;
    while (bit < size_ && (rank_ & bit) == 0) bit *= 2;
    if (rank_ != 0) text = receive_text(rank_ - bit, tree_tag);
    for (bit /= 2; bit > 0; bit /= 2) {
        if (rank_ + bit >= size_) continue;
        const std::size_t begin = static_cast<std::size_t>(bit) * bytes;
        send_text(rank_ + bit, tree_tag, std::string_view(text).substr(begin));
        text.resize(begin);
    }
    return text;
}

// Along a flat tree: a rank that sleeps delays all ranks below it.
std::string RankGroup::wait_for_text(const std::function<std::string()>& next) {
    constexpr long children = 32;
    heartbeat_.busy();
    std::string text;
    if (rank_ == 0) {
        text = next();
    } else {
        text = receive_text(static_cast<int>((rank_ - 1) / children), request_tag, waiting_for_requests());
    }
    for (long child = children * rank_ + 1; child <= children * (rank_ + 1) && child < size_; ++child)
        send_text(static_cast<int>(child), request_tag, text);
    return text;
}

// Of a rank that only waits: it sleeps for increasing times. Where no message wakes it, the longest one is a compromise
// of the CPU time that it takes and of the time until it begins (benchmarks/waiting_ranks).
ControlChannel::Idle RankGroup::waiting_for_requests() const {
    const double longest_sleep_s = control_->wakes_on_arrival() ? 200e-3 : 1.5e-3;
    return [longest_sleep_s, sleep_s = 20e-6]() mutable {
        const double pause_s = sleep_s;
        sleep_s = std::min(longest_sleep_s, 1.1 * sleep_s);
        return pause_s;
    };
}

bool RankGroup::gather_branches(const std::function<std::string()>& packed,
                                const std::function<void(const std::string&)>& add_packed) {
    barrier();  // the watchdog names a stalled rank here
    for (int bit = 1; bit < size_; bit *= 2) {
        if ((rank_ & bit) != 0) {
            send_text(rank_ - bit, tree_tag, packed());
            return false;
        }
        if (rank_ + bit < size_) add_packed(receive_text(rank_ + bit, tree_tag));
    }
    return true;
}

// This rank and those that send to it in gather_branches().
std::size_t RankGroup::branch_size() const {
    const int ranks = size_ - rank_;
    return static_cast<std::size_t>(rank_ == 0 ? ranks : std::min(ranks, rank_ & -rank_));
}

GatheredTexts RankGroup::gather(const std::string& text) {
    GatheredTexts texts;
    texts.add(text);
    const bool arrived =
        gather_branches([&] { return texts.packed(); }, [&](const std::string& branch) { texts.add_packed(branch); });
    return arrived ? texts : GatheredTexts();
}

std::vector<int> RankGroup::first_ranks() const {
    std::vector<int> ranks;
    ranks.reserve(hosts_.size());
    for (int rank = 0; rank < size_; ++rank)
        if (host_index(rank) == static_cast<int>(ranks.size())) ranks.push_back(rank);
    return ranks;
}

void RankGroup::send_control(int rank, const void* data, std::size_t bytes) {
    control_->send(rank, control_tag, data, bytes);
}

void RankGroup::receive_control(int rank, void* data, std::size_t bytes) {
    control_->receive(rank, control_tag, data, bytes, waiting_for(rank));
}

void RankGroup::send_control_text(int rank, std::string_view text) { send_text(rank, control_tag, text); }

std::string RankGroup::receive_control_text(int rank) { return receive_text(rank, control_tag); }

bool RankGroup::has_control_from(int rank) { return control_->sender_of_arrived(rank, control_tag) >= 0; }

double RankGroup::maximum(double value) { return barrier({0U, value}).largest; }

double RankGroup::minimum(double value) { return -maximum(-value); }

}  // namespace fablint
