#include "ranks/mpi_abi.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>

namespace fablint {

namespace {

constexpr const char* open_mpi = "Open MPI";

struct AbiName {
    const char* text;  // in the description
    const char* abi;
};

// https://www.mpich.org/abi: MPICH from 3.1 on and the libraries made of it have one interface.
constexpr AbiName abi_names[] = {
    {"MPICH", "MPICH"},     {"Intel(R) MPI", "MPICH"},  {"MVAPICH", "MPICH"},
    {"Open MPI", open_mpi}, {"Spectrum MPI", open_mpi}, {"FUJITSU MPI", open_mpi},
};

// Of `Open MPI v4.1.4`; 0 if the description does not give it.
int open_mpi_major(const std::string& description) {
    const std::string before = "Open MPI v";
    return description.compare(0, before.size(), before) == 0 ? std::atoi(description.c_str() + before.size()) : 0;
}

// Open MPI 3, 4 and 5 are libmpi.so.40; earlier ones have an interface each.
int open_mpi_generation(const std::string& description) { return std::min(open_mpi_major(description), 3); }

}  // namespace

std::string abi_of(const std::string& description) {
    // The name comes first: what follows may quote paths and compilers of the build.
    std::size_t first = std::string::npos;
    std::string abi;
    for (const AbiName& name : abi_names) {
        const std::size_t at = description.find(name.text);
        if (at >= first) continue;
        first = at;
        abi = name.abi;
    }
    return abi;
}

bool is_compatible(const std::string& compiled_for, const std::string& loaded) {
    const std::string compiled_abi = abi_of(compiled_for);
    const std::string loaded_abi = abi_of(loaded);
    if (compiled_abi.empty() || loaded_abi.empty()) return true;
    if (compiled_abi != loaded_abi) return false;
    const int compiled_generation = open_mpi_generation(compiled_for);
    const int loaded_generation = open_mpi_generation(loaded);
    return compiled_generation == loaded_generation || compiled_generation == 0 || loaded_generation == 0;
}

std::string name_and_version(const std::string& description) {
    std::string text;
    for (const char letter : description.substr(0, description.find_first_of(",\n"))) {
        const bool is_blank = std::isspace(static_cast<unsigned char>(letter)) != 0 || letter == '\0';
        if (!is_blank) text += letter;
        if (is_blank && !text.empty() && text.back() != ' ') text += ' ';
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
}

}  // namespace fablint
