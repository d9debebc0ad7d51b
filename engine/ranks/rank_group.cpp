#include "ranks/rank_group.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <unordered_map>

namespace fablint {

namespace {
constexpr int barrier_tag = 1000;  // + stage
constexpr int control_tag = 1;
constexpr int clock_tag = 2;
constexpr int probe_tag = 3;
constexpr int reply_tag = 4;
}  // namespace

RankGroup::RankGroup(const Clock& clock) : clock_(clock) {
    MPI_Comm_dup(MPI_COMM_WORLD, &control_);
    MPI_Comm_rank(control_, &rank_);
    MPI_Comm_size(control_, &size_);
    probed_.resize(static_cast<std::size_t>(size_), false);
    find_hosts();
    synchronise_clocks();
}

RankGroup::~RankGroup() { MPI_Comm_free(&control_); }

void RankGroup::find_hosts() {
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    MPI_Get_processor_name(name, &length);
    const std::vector<std::string> names = gather(std::string(name, static_cast<std::size_t>(length)));
    rank_host_.resize(static_cast<std::size_t>(size_));
    std::string list;
    if (rank_ == 0) {
        std::unordered_map<std::string, int> index;
        for (std::size_t rank = 0; rank < names.size(); ++rank) {
            const auto [at, fresh] = index.emplace(names[rank], static_cast<int>(index.size()));
            if (fresh) list += names[rank] + '\n';
            rank_host_[rank] = at->second;
        }
    }
    list = broadcast(list);
    for (std::size_t begin = 0; begin < list.size();) {
        const std::size_t end = list.find('\n', begin);
        hosts_.push_back(list.substr(begin, end - begin));
        begin = end + 1;
    }
    MPI_Bcast(rank_host_.data(), size_, MPI_INT, 0, control_);
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
        MPI_Send(&begin, 1, MPI_DOUBLE, child, clock_tag, control_);
        MPI_Recv(&remote, 1, MPI_DOUBLE, child, clock_tag, control_, MPI_STATUS_IGNORE);
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
    MPI_Send(answer, 2, MPI_DOUBLE, child, clock_tag, control_);
}

void RankGroup::reply_offset(int parent) {
    constexpr int trips = 10;
    for (int trip = 0; trip < trips; ++trip) {
        double ignored = 0.0;
        MPI_Recv(&ignored, 1, MPI_DOUBLE, parent, clock_tag, control_, MPI_STATUS_IGNORE);
        const double own = clock_.now();
        MPI_Send(&own, 1, MPI_DOUBLE, parent, clock_tag, control_);
    }
    double answer[2] = {0.0, 0.0};
    MPI_Recv(answer, 2, MPI_DOUBLE, parent, clock_tag, control_, MPI_STATUS_IGNORE);
    offset_ = answer[0];
    uncertainty_ = answer[1];
}

void RankGroup::wait(MPI_Request& request, int peer) {
    const bool probes = std::isfinite(probe_after_s_);
    if (!yielding_ && !probes) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    }
    // A yielding rank spins for about the duration of a context switch, then sleeps for increasing times.
    constexpr int spins = 200;
    constexpr long longest_sleep_ns = 500'000;
    long sleep_ns = 20'000;
    int done = 0;
    bool probing = false;
    double next_probe = clock_.now() + probe_after_s_;
    for (int spin = 0;; ++spin) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done != 0) return;
        if (probes && clock_.now() > next_probe) {
            exchange_probes(peer, probing);
            next_probe = clock_.now() + 0.1 * probe_after_s_;
        }
        if (!yielding_ || spin < spins) continue;
        const timespec pause = {0, sleep_ns};
        nanosleep(&pause, nullptr);
        sleep_ns = std::min(longest_sleep_ns, sleep_ns + sleep_ns / 2);
    }
}

// Replies to the probes of ranks that wait for this rank, and probes the peer. Only one probe is open at a time: a peer
// that measures replies only when it waits. `probing`: a probe of the present wait is open, so that a reply belongs to
// it.
void RankGroup::exchange_probes(int peer, bool& probing) {
    char nothing = 0;
    int arrived = 0;
    MPI_Status status;
    for (;;) {
        MPI_Iprobe(MPI_ANY_SOURCE, probe_tag, control_, &arrived, &status);
        if (arrived == 0) break;
        MPI_Recv(&nothing, 1, MPI_CHAR, status.MPI_SOURCE, probe_tag, control_, MPI_STATUS_IGNORE);
        MPI_Send(&nothing, 1, MPI_CHAR, status.MPI_SOURCE, reply_tag, control_);
    }
    const auto index = static_cast<std::size_t>(peer);
    MPI_Iprobe(peer, reply_tag, control_, &arrived, MPI_STATUS_IGNORE);
    if (arrived != 0) {
        MPI_Recv(&nothing, 1, MPI_CHAR, peer, reply_tag, control_, MPI_STATUS_IGNORE);
        probed_[index] = false;
        if (probing) heartbeat_.peer_replied();
    }
    if (!probed_[index]) MPI_Send(&nothing, 1, MPI_CHAR, peer, probe_tag, control_);
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
        MPI_Request requests[2];
        MPI_Irecv(&received, sizeof received, MPI_BYTE, from, barrier_tag + stage, control_, &requests[0]);
        const Signal sent = all;
        MPI_Isend(&sent, sizeof sent, MPI_BYTE, to, barrier_tag + stage, control_, &requests[1]);
        wait(requests[0], from);
        wait(requests[1], to);
        all.flags |= received.flags;
        all.largest = std::max(all.largest, received.largest);
    }
    heartbeat_.busy();
    return all;
}

void RankGroup::throw_if_any_failed(const std::optional<Error>& own) {
    if ((barrier({own ? Signal::failed : 0U, 0.0}).flags & Signal::failed) == 0) return;
    int first = own ? rank_ : size_;
    int lowest = size_;
    MPI_Allreduce(&first, &lowest, 1, MPI_INT, MPI_MIN, control_);
    int status = own ? static_cast<int>(own->status()) : 0;
    MPI_Bcast(&status, 1, MPI_INT, lowest, control_);
    if (rank_ == lowest) std::fprintf(stderr, "fablint-engine: error: %s\n", own->what());
    throw Error(static_cast<Exit>(status), "");
}

std::string RankGroup::broadcast(std::string text) {
    auto length = static_cast<int>(text.size());
    MPI_Bcast(&length, 1, MPI_INT, 0, control_);
    text.resize(static_cast<std::size_t>(length));
    MPI_Bcast(text.data(), length, MPI_CHAR, 0, control_);
    return text;
}

std::vector<std::string> RankGroup::gather(const std::string& text) {
    barrier();  // the watchdog names a stalled rank here
    const auto length = static_cast<int>(text.size());
    const bool root = rank_ == 0;
    std::vector<int> lengths(root ? static_cast<std::size_t>(size_) : 0);
    MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, control_);
    std::vector<int> begins(lengths.size());
    std::exclusive_scan(lengths.begin(), lengths.end(), begins.begin(), 0);
    std::string all(root ? static_cast<std::size_t>(begins.back() + lengths.back()) : 0, '\0');
    MPI_Gatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), begins.data(), MPI_CHAR, 0, control_);
    std::vector<std::string> texts(lengths.size());
    for (std::size_t i = 0; i < texts.size(); ++i)
        texts[i] = all.substr(static_cast<std::size_t>(begins[i]), static_cast<std::size_t>(lengths[i]));
    return texts;
}

void RankGroup::send_control(int rank, const void* data, int bytes) {
    MPI_Send(data, bytes, MPI_BYTE, rank, control_tag, control_);
}

void RankGroup::receive_control(int rank, void* data, int bytes) {
    MPI_Request request;
    MPI_Irecv(data, bytes, MPI_BYTE, rank, control_tag, control_, &request);
    wait(request, rank);
}

std::vector<char> RankGroup::receive_control_of_any_length(int rank) {
    MPI_Status status;
    int bytes = 0;
    MPI_Probe(rank, control_tag, control_, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    std::vector<char> data(static_cast<std::size_t>(bytes));
    receive_control(rank, data.data(), bytes);
    return data;
}

bool RankGroup::has_control_from(int rank) {
    int arrived = 0;
    MPI_Iprobe(rank, control_tag, control_, &arrived, MPI_STATUS_IGNORE);
    return arrived != 0;
}

double RankGroup::maximum(double value) { return barrier({0U, value}).largest; }

double RankGroup::minimum(double value) { return -maximum(-value); }

}  // namespace fablint
