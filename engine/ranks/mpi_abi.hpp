// Which MPI libraries may replace each other, by what they and their headers say of themselves.
#pragma once

#include <string>

namespace fablint {

// Binary interface of the library with this description; empty if it is not known.
std::string abi_of(const std::string& description);

// Does a program that is compiled for one library work with the other? So does one of which an interface is not known.
bool is_compatible(const std::string& compiled_for, const std::string& loaded);

// Name and version: the first line of a description without the details of the build.
std::string name_and_version(const std::string& description);

}  // namespace fablint
