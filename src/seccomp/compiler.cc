#include "seccomp/compiler.h"

#include <fmt/format.h>
#include <linux/seccomp.h>

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <span>

#include "spec/errors.h"

namespace belljar {
namespace {

using Label = std::size_t;
constexpr std::size_t kUnplaced = std::numeric_limits<std::size_t>::max();
constexpr std::uint32_t kAllBits = 0xffffffff;

// What the accumulator holds: a word of seccomp_data, masked.
struct Loaded {
  std::uint32_t offset;
  std::uint32_t mask;
  bool operator==(const Loaded&) const = default;
};

// Writes instructions whose jumps name labels, and leaves out loads of what the accumulator holds already. Jumps go
// forwards only (classic BPF has no others), so all ways to a label are known when it is placed.
class Assembler {
 public:
  Label new_label() {
    labels_.push_back({});
    return labels_.size() - 1;
  }

  // The label of the instruction that answers `value`; such instructions stand at the end and are shared.
  Label answer(std::uint32_t value) {
    const auto [entry, added] = answers_.try_emplace(value, 0);
    if (added) entry->second = new_label();
    return entry->second;
  }

  void place(Label label) {
    labels_[label].position = code_.size();
    loaded_ = labels_[label].loaded;
  }

  void load(std::uint32_t offset, std::uint32_t mask) {
    if (loaded_ == Loaded{offset, mask}) return;
    if (loaded_ != Loaded{offset, kAllBits}) append(BPF_LD | BPF_W | BPF_ABS, offset);
    if (mask != kAllBits) append(BPF_ALU | BPF_AND | BPF_K, mask);
    loaded_ = {offset, mask};
  }

  // Ends a straight run of code: goes to `yes` or `no`. `test` is BPF_JEQ, BPF_JGE or BPF_JSET.
  void branch(std::uint16_t test, std::uint32_t operand, Label yes, Label no) {
    reach(yes);
    reach(no);
    code_.push_back({static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), operand, yes, no});
    loaded_.reset();
  }

  // Places the answers and turns labels into distances. nullopt: too long for the kernel.
  std::optional<std::vector<sock_filter>> finish();

 private:
  struct Instruction {
    std::uint16_t code;
    std::uint32_t operand;
    Label yes = kUnplaced;  // of a jump; BPF_JA has only this one
    Label no = kUnplaced;
  };
  struct Target {
    std::size_t position = kUnplaced;
    bool reached = false;
    std::optional<Loaded> loaded;  // what all ways here agree on
  };

  void append(int code, std::uint32_t operand) { code_.push_back({static_cast<std::uint16_t>(code), operand}); }

  void reach(Label label) {
    Target& target = labels_[label];
    if (!target.reached) target.loaded = loaded_;
    if (target.loaded != loaded_) target.loaded.reset();
    target.reached = true;
  }

  bool is_far(std::size_t position, Label label) const { return labels_[label].position - position - 1 > 255; }
  void bridge(std::size_t position, Label& label);

  std::vector<Instruction> code_;
  std::vector<Target> labels_;
  std::map<std::uint32_t, Label> answers_;
  std::optional<Loaded> loaded_;
};

// Puts a long jump (or, cheaper, a copy of the answer) right behind the branch at `position`, and makes it go there.
void Assembler::bridge(std::size_t position, Label& label) {
  const Label far_label = label;
  const Instruction& target = code_[labels_[far_label].position];
  const Instruction middle = target.code == (BPF_RET | BPF_K) ? target : Instruction{BPF_JMP | BPF_JA, 0, far_label};
  label = new_label();
  for (Target& other : labels_) {
    if (other.position != kUnplaced && other.position > position) ++other.position;
  }
  labels_[label].position = position + 1;
  code_.insert(code_.begin() + static_cast<std::ptrdiff_t>(position) + 1, middle);
}

std::optional<std::vector<sock_filter>> Assembler::finish() {
  for (const auto& [value, label] : answers_) {
    place(label);
    append(BPF_RET | BPF_K, value);
  }
  // From the end backwards: a bridge lengthens only the branches before it, which are still to come.
  for (std::size_t position = code_.size(); position-- > 0;) {
    if (code_[position].no == kUnplaced) continue;
    for (const auto side : {&Instruction::yes, &Instruction::no}) {
      Label label = code_[position].*side;
      if (!is_far(position, label)) continue;
      bridge(position, label);
      code_[position].*side = label;
    }
    // The second bridge may have pushed the other side's target one too far.
    if (is_far(position, code_[position].yes)) {
      Label label = code_[position].yes;
      bridge(position, label);
      code_[position].yes = label;
    }
    if (code_.size() > BPF_MAXINSNS) return std::nullopt;
  }
  std::vector<sock_filter> program;
  for (std::size_t position = 0; position < code_.size(); ++position) {
    const Instruction& from = code_[position];
    sock_filter to{from.code, 0, 0, from.operand};
    const auto distance = [&](Label label) { return labels_[label].position - position - 1; };
    if (from.no != kUnplaced) {
      to.jt = static_cast<std::uint8_t>(distance(from.yes));
      to.jf = static_cast<std::uint8_t>(distance(from.no));
    } else if (from.yes != kUnplaced) {
      to.k = static_cast<std::uint32_t>(distance(from.yes));
    }
    program.push_back(to);
  }
  return program;
}

// Neighbouring numbers with the same answer.
struct Range {
  std::uint32_t first;
  std::uint32_t answer;                    // where `rows` is empty
  std::span<const PolicyRow* const> rows;  // one number, whose arguments decide
};

class Compiler {
 public:
  explicit Compiler(const Policy& policy) : policy_(policy), rows_(rows_by_syscall(policy)) {}

  Result<std::vector<sock_filter>> compile();

 private:
  std::vector<Range> ranges() const;
  Label entry(const Range& range);
  void emit(std::span<const Range> ranges);
  void emit_rows(std::span<const PolicyRow* const> rows);
  void emit_condition(const Condition& condition, Label holds, Label fails);
  void emit_value(const Condition& condition, std::uint64_t value, Label equal, Label different);
  void emit_word(std::uint32_t offset, std::uint32_t mask, std::uint32_t value, Label equal, Label different);

  const Policy& policy_;
  std::vector<std::vector<const PolicyRow*>> rows_;
  Assembler assembler_;
};

std::vector<Range> Compiler::ranges() const {
  std::vector<Range> result;
  const auto add = [&result](const Range& range) {
    if (!result.empty() && result.back().rows.empty() && range.rows.empty() && result.back().answer == range.answer)
      return;
    result.push_back(range);
  };
  const std::uint32_t unknown = policy_.other_number.action.seccomp_value();
  std::uint32_t next = 0;
  for (std::size_t index = 0; index < rows_.size(); ++index) {
    const Syscall& syscall = policy_.table->syscalls[index];
    if (syscall.number > next) add({next, unknown, {}});
    next = syscall.number + 1;
    const auto& rows = rows_[index];
    if (rows.empty()) {
      add({syscall.number, policy_.other_known.action.seccomp_value(), {}});
    } else if (rows.front()->conditions.empty()) {
      add({syscall.number, rows.front()->action.seccomp_value(), {}});
    } else {
      add({syscall.number, 0, rows});
    }
  }
  add({next, unknown, {}});
  return result;
}

// Where the tree sends the numbers of a range; emit() writes what isn't a plain answer.
Label Compiler::entry(const Range& range) {
  return range.rows.empty() ? assembler_.answer(range.answer) : assembler_.new_label();
}

// Writes the tree for `ranges` (at least two, or one with rows). The accumulator holds the number.
void Compiler::emit(std::span<const Range> ranges) {
  if (ranges.size() == 1) return emit_rows(ranges.front().rows);
  const auto place_and_emit = [this](Label label, std::span<const Range> part) {
    if (part.size() == 1 && part.front().rows.empty()) return;
    assembler_.place(label);
    emit(part);
  };
  const auto label_of = [this](std::span<const Range> part) {
    return part.size() == 1 ? entry(part.front()) : assembler_.new_label();
  };
  // One number amid numbers with another answer needs one test, not two.
  if (ranges.size() == 3 && ranges[0].rows.empty() && ranges[2].rows.empty() && ranges[0].answer == ranges[2].answer &&
      ranges[2].first == ranges[1].first + 1) {
    const Label middle = entry(ranges[1]);
    assembler_.branch(BPF_JEQ, ranges[1].first, middle, entry(ranges[0]));
    return place_and_emit(middle, ranges.subspan(1, 1));
  }
  const std::size_t half = ranges.size() / 2;
  const auto low = ranges.first(half);
  const auto high = ranges.subspan(half);
  const Label low_label = label_of(low);
  const Label high_label = label_of(high);
  assembler_.branch(BPF_JGE, high.front().first, high_label, low_label);
  place_and_emit(low_label, low);
  place_and_emit(high_label, high);
}

void Compiler::emit_rows(std::span<const PolicyRow* const> rows) {
  for (std::size_t index = 0; index < rows.size() && !rows[index]->conditions.empty(); ++index) {
    const PolicyRow& row = *rows[index];
    const bool last = index + 1 == rows.size();
    const bool next_is_plain = !last && rows[index + 1]->conditions.empty();
    const Label next = last            ? assembler_.answer(policy_.other_known.action.seccomp_value())
                       : next_is_plain ? assembler_.answer(rows[index + 1]->action.seccomp_value())
                                       : assembler_.new_label();
    for (std::size_t i = 0; i < row.conditions.size(); ++i) {
      const bool decides = i + 1 == row.conditions.size();
      const Label holds = decides ? assembler_.answer(row.action.seccomp_value()) : assembler_.new_label();
      emit_condition(row.conditions[i], holds, next);
      if (!decides) assembler_.place(holds);
    }
    if (!last && !next_is_plain) assembler_.place(next);
  }
}

void Compiler::emit_condition(const Condition& condition, Label holds, Label fails) {
  const bool in = condition.membership == Membership::in;
  const Label found = in ? holds : fails;
  const Label absent = in ? fails : holds;
  for (std::size_t i = 0; i < condition.values.size(); ++i) {
    const bool last = i + 1 == condition.values.size();
    const Label different = last ? absent : assembler_.new_label();
    emit_value(condition, condition.values[i], found, different);
    if (!last) assembler_.place(different);
  }
}

void Compiler::emit_value(const Condition& condition, std::uint64_t value, Label equal, Label different) {
  // Words are little-endian here; a big-endian machine would swap the two offsets.
  const auto low = static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8u * condition.argument.position);
  const auto low_mask = static_cast<std::uint32_t>(condition.mask);
  const auto high_mask = static_cast<std::uint32_t>(condition.mask >> 32);
  if (high_mask == 0) return emit_word(low, low_mask, static_cast<std::uint32_t>(value), equal, different);
  if (low_mask == 0) return emit_word(low + 4, high_mask, static_cast<std::uint32_t>(value >> 32), equal, different);
  const Label high_equal = assembler_.new_label();
  emit_word(low + 4, high_mask, static_cast<std::uint32_t>(value >> 32), high_equal, different);
  assembler_.place(high_equal);
  emit_word(low, low_mask, static_cast<std::uint32_t>(value), equal, different);
}

void Compiler::emit_word(std::uint32_t offset, std::uint32_t mask, std::uint32_t value, Label equal, Label different) {
  if (value == 0 && mask != kAllBits) {  // no bit of the mask set: one instruction, and the word stays loaded
    assembler_.load(offset, kAllBits);
    return assembler_.branch(BPF_JSET, mask, different, equal);
  }
  assembler_.load(offset, mask);
  assembler_.branch(BPF_JEQ, value, equal, different);
}

Result<std::vector<sock_filter>> Compiler::compile() {
  const auto all = ranges();
  const Label same_machine = assembler_.new_label();
  assembler_.load(offsetof(seccomp_data, arch), kAllBits);
  assembler_.branch(BPF_JEQ, policy_.table->audit_arch, same_machine,
                    assembler_.answer(policy_.other_entry.action.seccomp_value()));
  assembler_.place(same_machine);
  assembler_.load(offsetof(seccomp_data, nr), kAllBits);
  if (all.size() == 1) {  // every number has the same answer
    const Label only = assembler_.answer(all.front().answer);
    assembler_.branch(BPF_JEQ, 0, only, only);
  } else {
    emit(all);
  }
  auto program = assembler_.finish();
  if (!program) {
    return fail(ErrorCode::bad_policy,
                fmt::format("the policy {} compiles to more than {} instructions; it needs fewer conditions",
                            policy_.name, BPF_MAXINSNS));
  }
  return std::move(*program);
}

}  // namespace

Result<std::vector<sock_filter>> compile_policy(const Policy& policy) {
  return Compiler(policy).compile();
}

}  // namespace belljar
