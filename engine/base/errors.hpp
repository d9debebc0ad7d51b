// Errors and exit statuses, which docs/reference/engine.md specifies.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>

namespace fablint {

enum class Exit { done = 0, fault = 1, usage = 2, incomplete = 3, internal = 5 };

// An error with its exit status. The message is one line: what, where, what to do.
class Error : public std::runtime_error {
  public:
    Error(Exit status, const std::string& message) : std::runtime_error(message), status_(status) {}
    Exit status() const { return status_; }

  private:
    Exit status_;
};

inline Error usage_error(const std::string& message) { return Error(Exit::usage, message); }
inline Error incomplete_error(const std::string& message) { return Error(Exit::incomplete, message); }

// Of whatever needs MPI while MPI is not started: the engine is built without it, or its ranks are those of
// --rendezvous.
inline Error without_mpi() {
    return usage_error(
        "MPI is not started: choose --transport tcp, ucx or ofi with --rendezvous, or start an engine that is built "
        "with "
        "MPI (fablint engine build) by an MPI launcher");
}

// Does the work and returns the error that it threw, if any, for RankGroup::throw_if_any_failed().
template <typename Work>
std::optional<Error> attempt(Work work) {
    try {
        work();
    } catch (const Error& error) {
        return error;
    }
    return std::nullopt;
}

}  // namespace fablint
