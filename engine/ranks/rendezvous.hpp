// Rendezvous of the ranks without MPI: rank 0 listens, and every other rank joins with the token of the run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sockets/socket.hpp"

namespace fablint {

struct RendezvousOptions {
    std::string host;  // where rank 0 listens
    int port = 0;
    int rank = 0;
    int ranks = 1;
    std::string token;  // that every rank must know
    double limit_s = 60.0;
};

// Checks the options of the command line and reads the token: from `token_file`, or from the variable FABLINT_TOKEN,
// which is removed. Throws a usage error.
RendezvousOptions rendezvous_options(const std::string& place, int rank, int ranks, double limit_s);
std::string read_token(const std::string& token_file);
void check_token(const std::string& token);  // throws a usage error if it could be guessed or not be sent

// What a rank sends to join: one line. `parsed` and `text` are inverse; none for any other line.
struct JoinRequest {
    std::string token;
    int rank = 0;
    int ranks = 1;
    std::string host;     // of the rank, for messages
    std::string address;  // where other ranks connect to it
    std::string text() const;
    static std::optional<JoinRequest> parsed(const std::string& line);
    static constexpr std::size_t longest = 4096;  // bytes of the line
};

// All ranks of the run, once they have joined.
struct JoinedRanks {
    std::vector<std::string> hosts;      // by rank
    std::vector<std::string> addresses;  // by rank
    std::vector<Socket> connections;     // of rank 0: to every other rank, by rank; of the others: to rank 0
};

// Returns when all ranks have joined. `host`, `address`: of this rank. Throws a usage error if the rendezvous refuses
// this rank, and another Error if ranks are missing after the time limit.
JoinedRanks join_ranks(const RendezvousOptions& options, const std::string& host, const std::string& address);

}  // namespace fablint
