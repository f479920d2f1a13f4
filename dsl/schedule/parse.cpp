// Reads a schedule file line by line: its header, then the entries of its kernels.
#include <fmt/format.h>

#include <map>

#include "dsl/closest_word.h"
#include "dsl/error.h"
#include "dsl/schedule/directive_line.h"
#include "dsl/schedule/directive_table.h"
#include "dsl/schedule/schedule.h"

namespace tilewright {

namespace {

constexpr std::string_view key_words[] = {"kernel", "fuses", "covers", "when", "else", "end"};

class FileParser {
public:
    FileParser(std::string_view text, const std::string &file) : rest_(text) { location_.file = file; }

    ScheduleFile parse() {
        parse_header();
        while (next_line()) {
            parse_kernel();
        }
        return std::move(file_);
    }

private:
    /// Moves to the next line that is neither empty nor a comment; comments inside an entry become its notes.
    bool next_line(KernelSchedule *entry = nullptr) {
        while (!rest_.empty()) {
            const std::size_t end = rest_.find('\n');
            line_ = rest_.substr(0, end);
            rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
            ++location_.line;
            const std::size_t first = line_.find_first_not_of(" \t\r");
            if (first == std::string_view::npos) {
                continue;
            }
            if (line_[first] != '#') {
                location_.column = static_cast<int>(first) + 1;
                return true;
            }
            if (entry) {
                entry->notes.push_back(note(line_.substr(first + 1)));
            }
        }
        ++location_.line;
        location_.column = 1;
        line_ = {};
        return false;
    }

    static std::string note(std::string_view text) {
        if (!text.empty() && text.front() == ' ') {
            text.remove_prefix(1);
        }
        const std::size_t last = text.find_last_not_of(" \t\r");
        return std::string(text.substr(0, last == std::string_view::npos ? 0 : last + 1));
    }

    std::string first_word() const {
        const std::size_t begin = line_.find_first_not_of(" \t\r");
        return std::string(line_.substr(begin, line_.find_first_of(" \t\r", begin) - begin));
    }
    SourceLocation line_start() const { return {location_.file, location_.line, 1}; }
    TokenReader words() const { return {split_word_line(line_, line_start()), location_}; }

    [[noreturn]] void fail(const std::string &cause, const std::string &repair) const { schedule_error(location_, "", cause, repair); }

    void parse_header() {
        const std::string repair = "a schedule file begins with 'tilewright schedule 1'";
        constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";  // some editors write one
        if (rest_.starts_with(byte_order_mark)) {
            rest_.remove_prefix(byte_order_mark.size());
        }
        const bool is_archive = rest_.starts_with("PK\x03\x04");  // as where the model's name is given first
        if (!next_line()) {
            fail("the file is empty", repair);
        }
        if (is_archive) {
            fail("this is an archive, not a schedule file", repair);
        }
        if (first_word() != "tilewright") {  // before other files' characters are looked at
            fail("this is no schedule file", repair);
        }
        TokenReader first = words();
        first.expect("tilewright", repair);
        first.expect("schedule", repair);
        const Token version = first.expect_word("a version", repair);
        if (version.text != "1") {
            schedule_error({location_.file, location_.line, version.column}, "",
                           fmt::format("version {} of the format is unknown; this program reads version 1", version.text),
                           "use the program that wrote the file, or tune again");
        }
        first.expect_end(repair);
        header_line("model", "the second line is: model NAME  graph HASH", [this](TokenReader &tokens, const std::string &repair) {
            file_.model = tokens.expect_word("a model's name", repair).text;
            tokens.expect("graph", repair);
            file_.graph = tokens.expect_word("a hash", repair).text;
        });
        header_line("target", "the third line is: target cpu|cuda ARCHITECTURE \"DEVICE\"",
                    [this](TokenReader &tokens, const std::string &repair) { parse_target(tokens, repair); });
    }

    template<typename Read> void header_line(const char *key, const std::string &repair, Read read) {
        if (!next_line()) {
            fail(fmt::format("the file ends where its '{}' line should stand", key), repair);
        }
        TokenReader tokens = words();
        tokens.expect(key, repair);
        read(tokens, repair);
        tokens.expect_end(repair);
    }

    void parse_target(TokenReader &tokens, const std::string &repair) {
        if (!tokens.peek().is("cpu") && !tokens.peek().is("cuda")) {
            tokens.fail(fmt::format("{} is no target", describe(tokens.peek())), repair);
        }
        while (tokens.peek().kind == Token::Kind::word) {
            file_.target += (file_.target.empty() ? "" : " ") + tokens.take().text;
        }
        if (tokens.peek().kind == Token::Kind::text) {
            file_.device = tokens.take().text;
        }
    }

    void parse_kernel() {
        const std::string repair = "an entry is written: kernel NAME  algorithm HASH, then its lines, then end";
        if (first_word() != "kernel") {
            fail(fmt::format("'{}' stands outside a kernel's entry", first_word()), repair);
        }
        KernelSchedule kernel;
        kernel.location = location_;
        TokenReader tokens = words();
        tokens.take();
        const SourceLocation name_place = tokens.here();
        kernel.name = tokens.expect_word("a kernel's name", repair).text;
        tokens.expect("algorithm", repair);
        const SourceLocation hash_place = tokens.here();
        kernel.algorithm = tokens.expect_word("a hash", repair).text;
        check_hash(kernel.algorithm, hash_place);
        tokens.expect_end(repair);
        const auto [seen, is_new] = names_.emplace(kernel.name, location_.line);
        if (!is_new) {
            schedule_error(name_place, "", fmt::format("kernel '{}' has an entry on line {} already", kernel.name, seen->second),
                           "remove one of them");
        }
        parse_body(kernel);
        file_.kernels.push_back(std::move(kernel));
    }

    static void check_hash(const std::string &hash, const SourceLocation &place) {
        if (hash.size() != 16 || hash.find_first_not_of("0123456789abcdef") != std::string::npos) {
            schedule_error(place, "", fmt::format("'{}' is no hash of an algorithm", hash),
                           "a hash has 16 hexadecimal digits in lower case; 'tilewright print --stage groups' shows them");
        }
    }

    void parse_body(KernelSchedule &kernel) {
        for (;;) {
            if (!next_line(&kernel)) {
                fail(fmt::format("the entry of kernel '{}', begun on line {}, has no end", kernel.name, kernel.location.line),
                     "close it with a line 'end'");
            }
            const std::string key = first_word();
            if (key == "end") {
                words().take();
                break;
            }
            parse_body_line(kernel, key);
        }
        if (kernel.variants.empty()) {
            kernel.variants.emplace_back();
        }
    }

    void parse_body_line(KernelSchedule &kernel, const std::string &key) {
        if (key == "kernel") {
            fail(fmt::format("the entry of kernel '{}', begun on line {}, has no end", kernel.name, kernel.location.line),
                 "close it with a line 'end' before the next entry");
        } else if (key == "fuses") {
            read_words(kernel.fuses);
        } else if (key == "covers") {
            read_words(kernel.covers);
        } else if (key == "when" || key == "else") {
            begin_variant(kernel, key == "when");
        } else {
            const std::size_t after = line_.find_first_not_of(" \t\r", line_.find(key) + key.size());
            const bool is_directive =
                key.find_first_of(".(") != std::string::npos || (after != std::string_view::npos && line_[after] == '.');
            if (!is_directive) {
                fail(fmt::format("'{}' begins no line of an entry", key), key_repair(key));
            }
            if (kernel.variants.empty()) {
                kernel.variants.emplace_back();
            }
            parse_directive_line(line_, line_start(), kernel.variants.back().directives);
        }
    }

    static std::string key_repair(const std::string &key) {
        const std::string near = closest(key, {std::begin(key_words), std::end(key_words)});
        return near.empty() ? "lines are: fuses, covers, when, else, end, or STAGE.NAME(ARGUMENTS)" : fmt::format("did you mean {}?", near);
    }

    void read_words(std::vector<std::string> &into) {
        TokenReader tokens = words();
        tokens.take();
        while (!tokens.done()) {
            into.push_back(tokens.take().text);
        }
    }

    void begin_variant(KernelSchedule &kernel, bool conditional) {
        if (!kernel.variants.empty() && kernel.variants.back().conditions.empty()) {
            fail(in_variants_ == kernel.location.line ? "a variant stands after 'else'"
                                                      : "a variant stands after directives that hold always",
                 "'else' comes last; put the directives before it under a 'when'");
        }
        if (!conditional && kernel.variants.empty()) {
            fail("'else' without a 'when' before it", "begin with: when STAGE.AXIS <= NUMBER");
        }
        in_variants_ = kernel.location.line;
        TokenReader tokens(split_directive_line(line_, line_start()), location_);
        tokens.take();
        ScheduleVariant variant;
        if (conditional) {
            variant.conditions = parse_conditions(tokens);
        } else {
            tokens.expect_end("'else' stands alone on its line");
        }
        kernel.variants.push_back(std::move(variant));
    }

    std::string_view rest_;
    std::string_view line_;
    SourceLocation location_;
    ScheduleFile file_;
    std::map<std::string, int> names_;
    int in_variants_ = 0;  ///< the line of the entry that last began a variant
};

}  // namespace

ScheduleFile parse_schedule(std::string_view text, const std::string &file) { return FileParser(text, file).parse(); }

}  // namespace tilewright
