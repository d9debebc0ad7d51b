#include "host/retransmissions.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "base/mpi_c.hpp"  // SMPI_H

namespace fablint {

namespace {

// Of one rank: peers with the most retransmissions. The others are counted, so that rank 0 receives 4 KiB per rank.
constexpr std::size_t most_paths = 64;

std::int64_t grown(std::uint32_t before, std::uint32_t after) { return static_cast<std::uint32_t>(after - before); }

TcpTraffic since(const TcpCounts& before, const TcpCounts& after) {
    TcpTraffic traffic;
    traffic.sent = grown(before.sent, after.sent);
    traffic.retransmitted = grown(before.retransmitted, after.retransmitted);
    traffic.received = grown(before.received, after.received);
    traffic.spurious = std::min(traffic.retransmitted, grown(before.spurious, after.spurious));
    traffic.knows_spurious = after.knows_spurious;
    return traffic;
}

std::string lines(const std::vector<LocalAddress>& addresses) {
    std::string text;
    for (const LocalAddress& address : addresses) text += address.interface + " " + address.address + "\n";
    return text;
}

// Host and interface of an address; none for an address of several hosts, such as that of a container bridge.
using Ends = std::map<std::string, std::string>;

Ends ends_of(const std::vector<std::string>& hosts, const std::vector<std::string>& addresses) {
    Ends ends;
    std::set<std::string> ambiguous;
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
        std::istringstream text(addresses[rank]);
        for (std::string interface, address; text >> interface >> address;)
            if (!ends.emplace(address, hosts[rank] + "/" + interface).second) ambiguous.insert(address);
    }
    for (const std::string& address : ambiguous) ends.erase(address);
    return ends;
}

// The sums of all ranks' reports.
struct Totals {
    std::map<std::string, TcpTraffic> ends;
    std::map<std::pair<std::string, std::string>, TcpTraffic> pairs;
    std::int64_t omitted = 0;
    bool knows_spurious = true;
};

void take_line(const std::string& line, const Ends& ends, Totals& totals) {
    std::istringstream words(line);
    std::string kind, local, peer;
    TcpTraffic traffic;
    words >> kind >> local;
    const auto here = ends.find(local);
    if (here == ends.end()) return;
    if (kind == "end") {
        std::int64_t omitted = 0;
        words >> traffic.sent >> traffic.received >> omitted >> traffic.knows_spurious;
        totals.ends[here->second].add(traffic);
        totals.omitted += omitted;
        totals.knows_spurious = totals.knows_spurious && traffic.knows_spurious;
    } else {
        words >> peer >> traffic.sent >> traffic.retransmitted >> traffic.spurious;
        const auto there = ends.find(peer);
        if (there != ends.end()) totals.pairs[{here->second, there->second}].add(traffic);
    }
}

}  // namespace

void TcpTraffic::add(const TcpTraffic& other) {
    sent += other.sent;
    retransmitted += other.retransmitted;
    spurious += other.spurious;
    received += other.received;
    knows_spurious = knows_spurious && other.knows_spurious;
}

std::map<TcpPath, TcpTraffic> tcp_traffic(const std::vector<TcpConnection>& before,
                                          const std::vector<TcpConnection>& after) {
    std::map<std::uint64_t, const TcpConnection*> known;
    for (const TcpConnection& connection : before) known[connection.socket] = &connection;
    std::map<TcpPath, TcpTraffic> traffic;
    for (const TcpConnection& connection : after) {
        const auto earlier = known.find(connection.socket);
        const bool same = earlier != known.end() && earlier->second->local == connection.local &&
                          earlier->second->peer == connection.peer;
        traffic[{connection.local, connection.peer}].add(
            since(same ? earlier->second->counts : TcpCounts{}, connection.counts));
    }
    return traffic;
}

std::string tcp_report(const std::map<TcpPath, TcpTraffic>& traffic, const std::vector<LocalAddress>& own) {
    std::set<std::string> here;
    for (const LocalAddress& address : own) here.insert(address.address);
    std::map<std::string, TcpTraffic> totals;
    std::vector<std::pair<TcpPath, TcpTraffic>> lossy;
    for (const auto& [path, segments] : traffic) {
        const bool between_hosts = here.count(path.first) > 0 && here.count(path.second) == 0;
        if (!between_hosts || segments.sent + segments.received == 0) continue;
        totals[path.first].add(segments);
        if (segments.lost() > 0) lossy.emplace_back(path, segments);
    }
    std::stable_sort(lossy.begin(), lossy.end(),
                     [](const auto& a, const auto& b) { return a.second.lost() > b.second.lost(); });
    std::map<std::string, std::int64_t> omitted;
    for (std::size_t at = most_paths; at < lossy.size(); ++at) ++omitted[lossy[at].first.first];
    lossy.resize(std::min(lossy.size(), most_paths));
    std::ostringstream text;
    for (const auto& [local, segments] : totals)
        text << "end " << local << ' ' << segments.sent << ' ' << segments.received << ' ' << omitted[local] << ' '
             << segments.knows_spurious << '\n';
    for (const auto& [path, segments] : lossy)
        text << "path " << path.first << ' ' << path.second << ' ' << segments.sent << ' ' << segments.retransmitted
             << ' ' << segments.spurious << '\n';
    return text.str();
}

Json tcp_json(const std::vector<std::string>& hosts, const std::vector<std::string>& addresses,
              const std::vector<std::string>& reports) {
    const Ends ends = ends_of(hosts, addresses);
    Totals totals;
    for (const std::string& report : reports) {
        std::istringstream text(report);
        for (std::string line; std::getline(text, line);) take_line(line, ends, totals);
    }
    if (totals.ends.empty()) return Json::null();
    for (const auto& [pair, traffic] : totals.pairs) totals.ends[pair.second];  // an end that sent nothing itself
    std::map<std::string, std::int64_t> number;
    std::vector<std::string> names;
    std::vector<std::int64_t> sent, received;
    for (const auto& [end, traffic] : totals.ends) {
        number[end] = static_cast<std::int64_t>(names.size());
        names.push_back(end);
        sent.push_back(traffic.sent);
        received.push_back(traffic.received);
    }
    std::vector<Json> pairs;
    for (const auto& [pair, one] : totals.pairs)
        pairs.push_back(Json::list(std::vector<std::int64_t>{number[pair.first], number[pair.second], one.sent,
                                                             one.retransmitted, one.spurious}));
    return JsonObject()
        .add("ends", Json::list(names))
        .add("sent", Json::list(sent))
        .add("received", Json::list(received))
        .add("pairs", Json::list(pairs))
        .add("left_out", totals.omitted)
        .add("knows_spurious", totals.knows_spurious)
        .json();
}

Retransmissions::Retransmissions(RankGroup& rank_group) : rank_group_(rank_group) {
#ifndef SMPI_H  // simulated hosts have no sockets, and all ranks are one process
    own_ = local_addresses();
#endif
    const bool speaks_for_host = rank_group_.first_rank_on_my_host() == rank_group_.rank();
    addresses_ = rank_group_.gather(speaks_for_host ? lines(own_) : "");
}

void Retransmissions::begin() {
    if (!own_.empty()) before_ = tcp_connections();
}

Json Retransmissions::collect() {
    std::string mine;
    if (!own_.empty()) mine = tcp_report(tcp_traffic(before_, tcp_connections()), own_);
    const std::vector<std::string> reports = rank_group_.gather(mine);
    if (rank_group_.rank() != 0) return Json::null();
    std::vector<std::string> hosts;
    for (int rank = 0; rank < rank_group_.size(); ++rank) hosts.push_back(rank_group_.host_of(rank));
    return tcp_json(hosts, addresses_, reports);
}

}  // namespace fablint
