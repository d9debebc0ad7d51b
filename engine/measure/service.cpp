#include "measure/service.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/values.hpp"
#include "measure/requests.hpp"
#include "measure/session.hpp"
#include "ranks/mpi_control.hpp"
#include "ranks/rank_subset.hpp"

namespace fablint {

namespace {

// Lines of JSON on standard output of rank 0, one write each.
class Announcements : public RunReport {
  public:
    Announcements(bool prints, int request) : prints_(prints), request_(request) {}
    // `wake_s`: until the last rank had the request.
    void begin(double wake_s) const {
        if (prints_) print(event("begin").add("wake_s", wake_s));
    }
    void rounds(const std::string& row, std::size_t done, std::size_t all) override {
        if (prints_) print(event("rounds").add("row", row).add("done", done).add("of", all));
    }
    void row(const std::string& row, const char* state) override {
        if (prints_) print(event("row").add("row", row).add("state", state));
    }
    bool written() const { return written_; }
    void end(Exit status, bool written) override {
        written_ = written;
        if (prints_) print(event("end").add("status", static_cast<int>(status)).add("written", written));
    }

  private:
    JsonObject event(const char* name) const {
        JsonObject object;
        object.add("fablint-engine", name).add("request", request_);
        return object;
    }
    static void print(const JsonObject& object) {
        std::fputs((object.json().text() + "\n").c_str(), stdout);
        std::fflush(stdout);
    }

    bool prints_;
    int request_;
    bool written_ = true;
};

std::vector<int> parse_members(const std::string& list, int ranks) {
    std::vector<int> members;
    for (const auto& [first, last] : parse_ranges(list))
        for (std::int64_t rank = first; rank <= last && rank < ranks + 1; ++rank)
            members.push_back(static_cast<int>(rank));
    const bool ascends = std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) == members.end();
    if (members.empty() || members.front() != 0 || members.back() >= ranks || !ascends)
        throw usage_error("--only-ranks " + list + ": give ranks from 0 to " + std::to_string(ranks - 1) +
                          " in ascending order, with rank 0");
    return members;
}

// The ranks that measure a request. The group of some of them is kept for the next request.
class Members {
  public:
    explicit Members(RankGroup& all) : all_(all) {}

    // Collective over the ranks of the list. Null on other ranks. Throws a usage error on all ranks.
    RankGroup* choose(const std::string& list) {
        if (list == list_) return group_;
        std::vector<int> members;
        if (!list.empty()) members = parse_members(list, all_.size());
        const bool takes_part = list.empty() || std::binary_search(members.begin(), members.end(), all_.rank());
        subset_.reset();
        if (takes_part_) choose_mpi_ranks({});
        if (takes_part) choose_mpi_ranks(members);
        if (takes_part && !list.empty())
            subset_ = std::make_unique<RankGroup>(wall_clock(), std::make_unique<RankSubset>(all_, members));
        list_ = list;
        takes_part_ = takes_part;
        instrument_.reset();
        group_ = !takes_part ? nullptr : list.empty() ? &all_ : subset_.get();
        return group_;
    }
    // Of the chosen group, as its first request examines it.
    std::optional<Instrument>& instrument() { return instrument_; }

  private:
    RankGroup& all_;
    std::string list_;
    bool takes_part_ = true;
    std::unique_ptr<RankGroup> subset_;
    RankGroup* group_ = &all_;
    std::optional<Instrument> instrument_;
};

}  // namespace

Exit serve(RankGroup& rank_group, const Options& options, const std::vector<std::string>& command, RunReport& report) {
    const bool reads = rank_group.rank() == 0;
    const std::unique_ptr<Requests> requests = reads ? std::make_unique<Requests>() : nullptr;
    report.start();
    Members members(rank_group);
    Exit status = Exit::done;
    bool written = true;
    std::optional<Error> failure;
    for (int number = 1;; ++number) {
        const bool is_over = failure || (status != Exit::done && status != Exit::fault);
        double came = 0.0;
        const std::string text = rank_group.wait_for_text([&] {
            std::string next = is_over ? "" : requests->next(options.idle_limit_s);
            came = rank_group.now();
            return next;
        });
        if (text.empty()) break;
        const double wake_s = rank_group.maximum(rank_group.now()) - came;
        // An error is that of all ranks that measure. The others learn of it as of the end of the requests.
        failure = attempt([&] {
            const Request request = parse_request(options, text);
            RankGroup* const group = members.choose(request.options.only_ranks);
            if (group == nullptr) return;
            std::vector<std::string> words = command;
            words.insert(words.end(), request.words.begin(), request.words.end());
            Announcements announcements(reads, number);
            announcements.begin(wake_s);
            status = std::max(status, measure(*group, request.options, words, announcements, members.instrument()));
            written = announcements.written();
        });
    }
    if (failure) throw Error(*failure);
    report.end(status, written);
    return status;
}

}  // namespace fablint
