// Processes of the ranks of one host, for a run without MPI.
#pragma once

#include <string>
#include <vector>

namespace fablint {

// The ranks of `text`: a number, a range as 4-7, or the name of a variable that holds a number. Throws a usage error.
std::vector<int> parse_ranks(const std::string& text);

// What the front end writes to standard input: a line with the token, a line with the length of the plan, the plan. The
// end of standard input requests a stop. Replaces std::cin by the plan and returns the token; what follows the plan is
// not read. Throws a usage error.
std::string read_supervisor();

// Starts a process for each rank and returns in it, with its rank. The first process does not return: it passes on
// signals, ends the processes that remain 5 s after one of them has failed, and exits with the worst of their statuses.
// `supervised`: it requests a stop at the end of standard input, and ends with the program that reads its messages.
// `serves`: rank 0 reads what is on standard input, and its end.
int start_local_ranks(const std::vector<int>& ranks, bool supervised, bool serves);

}  // namespace fablint
