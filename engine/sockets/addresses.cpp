#include "sockets/addresses.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <sstream>

namespace fablint {

namespace {

using Bytes = std::vector<unsigned char>;

// 4 bytes of IPv4, 16 of IPv6; none if the text is not a numeric address.
Bytes bytes_of(const std::string& address) {
    std::array<unsigned char, sizeof(in6_addr)> bytes{};
    if (inet_pton(AF_INET, address.c_str(), bytes.data()) == 1) return {bytes.begin(), bytes.begin() + 4};
    if (inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1) return {bytes.begin(), bytes.end()};
    return {};
}

// Number of bits that a netmask sets.
int prefix_of(const sockaddr* mask) {
    if (mask == nullptr) return 0;
    int bits = 0;
    for (const unsigned char byte : bytes_of(address_text(mask))) bits += __builtin_popcount(byte);
    return bits;
}

}  // namespace

std::string address_text(const sockaddr* address) {
    char text[INET6_ADDRSTRLEN] = "";
    if (address->sa_family == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, address, sizeof v4);
        inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    } else if (address->sa_family == AF_INET6) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, address, sizeof v6);
        if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
            inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
        } else {
            inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
        }
    }
    return text;
}

std::vector<LocalAddress> local_addresses() {
    std::vector<LocalAddress> addresses;
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) return addresses;
    for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
        const unsigned flags = entry->ifa_flags;
        if (entry->ifa_addr == nullptr || (flags & IFF_UP) == 0 || (flags & IFF_LOOPBACK) != 0) continue;
        const std::string address = address_text(entry->ifa_addr);
        if (!address.empty()) addresses.push_back({entry->ifa_name, address, prefix_of(entry->ifa_netmask)});
    }
    freeifaddrs(first);
    return addresses;
}

std::string name_in_hosts_file(std::istream& text, const std::string& address) {
    const Bytes wanted = bytes_of(address);
    for (std::string line; std::getline(text, line);) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string known, name;
        if (words >> known >> name && !wanted.empty() && bytes_of(known) == wanted) return name;
    }
    return "";
}

bool share_prefix(const std::string& address, const std::string& other, int prefix) {
    const Bytes a = bytes_of(address), b = bytes_of(other);
    if (a.empty() || a.size() != b.size()) return false;
    for (std::size_t i = 0; prefix > 0 && i < a.size(); ++i, prefix -= 8) {
        const unsigned mask = prefix >= 8 ? 0xFFU : 0xFFU << (8 - prefix);
        if (((static_cast<unsigned>(a[i]) ^ b[i]) & mask) != 0) return false;
    }
    return true;
}

bool is_ipv6(const std::string& address) { return address.find(':') != std::string::npos; }

bool is_link_local(const std::string& address) { return share_prefix(address, "fe80::", 10); }

}  // namespace fablint
