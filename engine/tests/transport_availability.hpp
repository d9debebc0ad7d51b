// Transports whose library or headers this machine lacks are left out of tests, with a message.
#pragma once

#include <doctest.h>

#include <string>

#include "base/errors.hpp"
#include "messaging/transport.hpp"

inline bool is_available(const fablint::TransportInfo& info, const fablint::TransportSettings& settings = {}) {
    const auto error = fablint::attempt([&] { info.make(settings); });
    if (error) MESSAGE("skipped: transport " << std::string(info.name) << ": " << std::string(error->what()));
    return !error;
}
