// What a run reports about itself while it is measured, beside its results.
#pragma once

#include <cstddef>
#include <string>

#include "base/errors.hpp"

namespace fablint {

// Called on all ranks.
class RunReport {
  public:
    virtual ~RunReport() = default;
    virtual void start() {}  // all ranks have described their hosts
    virtual void rounds(const std::string& /*row*/, std::size_t /*done*/, std::size_t /*all*/) {}  // are in the run
    virtual void row(const std::string& /*row*/, const char* /*state*/) {}                         // was written
    virtual void table(const std::string& /*text*/) {}                                             // of a row, rank 0
    virtual void end(Exit /*status*/, bool /*written*/) {}  // nothing more is written
};

}  // namespace fablint
