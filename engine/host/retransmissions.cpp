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
    for (std::size_t host = 0; host < hosts.size(); ++host) {
        std::istringstream text(addresses[host]);
        for (std::string interface, address; text >> interface >> address;)
            if (!ends.emplace(address, hosts[host] + "/" + interface).second) ambiguous.insert(address);
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

std::optional<TcpSegments> tcp_segments(const std::vector<std::string>& hosts,
                                        const std::vector<std::string>& addresses,
                                        const std::vector<std::string>& reports) {
    const Ends ends = ends_of(hosts, addresses);
    Totals totals;
    for (const std::string& report : reports) {
        std::istringstream text(report);
        for (std::string line; std::getline(text, line);) take_line(line, ends, totals);
    }
    if (totals.ends.empty()) return std::nullopt;
    for (const auto& [pair, traffic] : totals.pairs) totals.ends[pair.second];  // an end that sent nothing itself
    TcpSegments segments;
    std::map<std::string, std::int64_t> number;
    for (const auto& [end, traffic] : totals.ends) {
        number[end] = static_cast<std::int64_t>(segments.ends.size());
        segments.ends.push_back(end);
        segments.sent.push_back(traffic.sent);
        segments.received.push_back(traffic.received);
    }
    for (const auto& [pair, one] : totals.pairs)
        for (const std::int64_t figure :
             {number[pair.first], number[pair.second], one.sent, one.retransmitted, one.spurious})
            segments.pairs.push_back(figure);
    segments.omitted = totals.omitted;
    segments.knows_spurious = totals.knows_spurious;
    return segments;
}

Retransmissions::Retransmissions(RankGroup& rank_group) : rank_group_(rank_group) {
#ifndef SMPI_H  // simulated hosts have no sockets, and all ranks are one process
    own_ = local_addresses();
#endif
}

void Retransmissions::begin() {
    if (!own_.empty()) before_ = tcp_connections();
}

// Addresses are gathered where there was traffic only: those of a large system are megabytes.
std::optional<TcpSegments> Retransmissions::collect() {
    std::string own;
    if (!own_.empty()) own = tcp_report(tcp_traffic(before_, tcp_connections()), own_);
    if (rank_group_.maximum(own.empty() ? 0.0 : 1.0) == 0.0) return std::nullopt;
    const GatheredTexts reports = rank_group_.gather(own);
    const GatheredTexts addresses = rank_group_.gather(rank_group_.speaks_for_host() ? lines(own_) : "");
    if (rank_group_.rank() != 0) return std::nullopt;
    std::vector<std::string> of_hosts, of_ranks;
    for (const int rank : rank_group_.first_ranks()) of_hosts.push_back(addresses[static_cast<std::size_t>(rank)]);
    for (std::size_t rank = 0; rank < reports.size(); ++rank)
        if (!reports[rank].empty()) of_ranks.push_back(reports[rank]);
    return tcp_segments(rank_group_.hosts(), of_hosts, of_ranks);
}

}  // namespace fablint
