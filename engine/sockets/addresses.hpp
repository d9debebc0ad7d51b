// IP addresses of this host.
#pragma once

#include <sys/socket.h>

#include <istream>
#include <string>
#include <vector>

namespace fablint {

struct LocalAddress {
    std::string interface;
    std::string address;  // numeric: 10.0.0.1 or fd00::1
    int prefix = 0;       // length of the network's prefix, bits
};

// Addresses of the interfaces of this host that are up, without the loopback.
std::vector<LocalAddress> local_addresses();

// The numeric address, an IPv4-mapped IPv6 address as IPv4. Empty if it is not an IPv4 or IPv6 address.
std::string address_text(const sockaddr* address);

// Are both numeric addresses of one family and equal in the first `prefix` bits?
bool share_prefix(const std::string& address, const std::string& other, int prefix);

// The first name of an address in the text of /etc/hosts; empty if it has none.
std::string name_in_hosts_file(std::istream& text, const std::string& address);

bool is_ipv6(const std::string& address);
bool is_link_local(const std::string& address);  // valid on one link only

}  // namespace fablint
