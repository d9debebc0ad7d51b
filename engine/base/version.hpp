#pragma once

namespace fablint {

inline constexpr const char* engine_version = "0.2.0";

}  // namespace fablint
