#include "kernel/terminal/line_discipline.h"

#include <cstring>

namespace belljar::kernel {
namespace {

constexpr char kDisabled = '\0';  // _POSIX_VDISABLE, and what stands for an end of file in a line
constexpr std::uint32_t kTab = 8;

bool is_control(char character) {
  const auto value = static_cast<unsigned char>(character);
  return value < 0x20 || value == 0x7f;
}

bool is_word(char character) {
  return (character >= '0' && character <= '9') || (character >= 'a' && character <= 'z') ||
         (character >= 'A' && character <= 'Z') || character == '_' || (character & 0x80) != 0;
}

}  // namespace

LineDiscipline::LineDiscipline() {
  std::memset(&settings, 0, sizeof settings);
  settings.c_iflag = ICRNL | IXON;
  settings.c_oflag = OPOST | ONLCR;
  settings.c_cflag = B38400 | CS8 | CREAD;
  settings.c_lflag = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN;
  constexpr char kKeys[] = "\003\034\177\025\004\0\1\0\021\023\032\0\022\017\027\026\0";
  std::memcpy(settings.c_cc, kKeys, sizeof kKeys - 1);
}

bool LineDiscipline::is_key(int which, char character) const {
  const auto key = static_cast<char>(settings.c_cc[which]);
  return key != kDisabled && key == character;
}

void LineDiscipline::mark(std::uint32_t index, bool value) {
  const auto bit = static_cast<std::uint8_t>(1U << (index % 8));
  std::uint8_t& byte = delimiters_[index % kInputSize / 8];
  byte = static_cast<std::uint8_t>(value ? byte | bit : byte & ~bit);
}

// ---- output ----

bool LineDiscipline::put_output(char character) {
  if (output.room() < kTab) return false;
  if ((settings.c_oflag & OPOST) == 0) {
    output.push(character);
    return true;
  }
  switch (character) {
    case '\n':
      if ((settings.c_oflag & ONLCR) != 0) output.push('\r');
      if ((settings.c_oflag & (ONLCR | ONLRET)) != 0) column_ = 0;
      break;
    case '\r':
      if ((settings.c_oflag & ONOCR) != 0 && column_ == 0) return true;
      column_ = 0;
      if ((settings.c_oflag & OCRNL) != 0) character = '\n';
      break;
    case '\t': {
      const std::uint32_t spaces = kTab - column_ % kTab;
      column_ += spaces;
      if ((settings.c_oflag & TABDLY) != XTABS) break;
      for (std::uint32_t i = 0; i < spaces; ++i) output.push(' ');
      return true;
    }
    case '\b':
      if (column_ > 0) --column_;
      break;
    default:
      // Of a character of several bytes (UTF-8) the first one counts.
      if (!is_control(character) && (character & 0xc0) != 0x80) ++column_;
  }
  output.push(character);
  return true;
}

// ---- echo ----

void LineDiscipline::echo_raw(char character) {
  static_cast<void>(put_output(character));
}

void LineDiscipline::put_echo(char character) {
  const bool shows_newline = character == '\n' && (settings.c_lflag & ECHONL) != 0 && is_canonical();
  if ((settings.c_lflag & ECHO) == 0 && !shows_newline) return;
  const bool as_caret =
      (settings.c_lflag & ECHOCTL) != 0 && is_control(character) && character != '\t' && character != '\n';
  if (!as_caret) return echo_raw(character);
  echo_raw('^');
  echo_raw(static_cast<char>(character ^ 0x40));
}

std::uint32_t LineDiscipline::width_of(char character) const {
  if (is_control(character)) return (settings.c_lflag & ECHOCTL) != 0 ? 2 : 0;
  return (character & 0xc0) == 0x80 ? 0 : 1;
}

void LineDiscipline::rub_out(char character) {
  std::uint32_t columns = width_of(character);
  if (character == '\t') {
    // Back to where the rest of the line ends.
    std::uint32_t before = line_column_;
    for (std::uint32_t i = lines_end_; i != input_.head(); ++i) {
      before = input_.at(i) == '\t' ? (before / kTab + 1) * kTab : before + width_of(input_.at(i));
    }
    columns = kTab - before % kTab;
  }
  for (; columns > 0; --columns) {
    echo_raw('\b');
    if (character != '\t') {
      echo_raw(' ');
      echo_raw('\b');
    }
  }
}

// ---- editing ----

void LineDiscipline::erase_one() {
  if (input_.head() == lines_end_) return;
  char character = 0;
  do {
    character = input_.at(input_.head() - 1);
    input_.drop_last();
    // A character of several bytes goes as a whole.
  } while ((settings.c_iflag & IUTF8) != 0 && (character & 0xc0) == 0x80 && input_.head() != lines_end_);
  if ((settings.c_lflag & ECHO) == 0) return;
  if ((settings.c_lflag & ECHOE) == 0) return put_echo(static_cast<char>(settings.c_cc[VERASE]));
  rub_out((character & 0xc0) == 0xc0 ? ' ' : character);
}

void LineDiscipline::erase_line() {
  const bool shows = (settings.c_lflag & ECHO) != 0;
  if (shows && (settings.c_lflag & (ECHOK | ECHOKE | ECHOE)) == (ECHOK | ECHOKE | ECHOE)) {
    while (input_.head() != lines_end_) erase_one();
    return;
  }
  while (input_.head() != lines_end_) input_.drop_last();
  if (!shows) return;
  put_echo(static_cast<char>(settings.c_cc[VKILL]));
  if ((settings.c_lflag & ECHOK) != 0) echo_raw('\n');
}

void LineDiscipline::erase_word() {
  while (input_.head() != lines_end_ && !is_word(input_.at(input_.head() - 1))) erase_one();
  while (input_.head() != lines_end_ && is_word(input_.at(input_.head() - 1))) erase_one();
}

void LineDiscipline::add_to_line(char character, bool is_delimiter) {
  mark(input_.head(), is_delimiter);
  input_.push(character);
  if (!is_delimiter) return;
  lines_end_ = input_.head();
  line_column_ = column_;
}

bool LineDiscipline::put_signal(char character, SignalSet& signals) {
  int signal = 0;
  if (is_key(VINTR, character)) signal = SIGINT;
  if (is_key(VQUIT, character)) signal = SIGQUIT;
  if (is_key(VSUSP, character)) signal = SIGTSTP;
  if (signal == 0) return false;
  signals |= signal_bit(signal);
  if ((settings.c_lflag & NOFLSH) == 0) {
    flush_input();
    output.clear();
  }
  is_output_stopped = false;
  put_echo(character);
  return true;
}

// The keys of canonical mode. False: an ordinary character.
bool LineDiscipline::put_edit(char character) {
  const bool is_extended = (settings.c_lflag & IEXTEN) != 0;
  if (is_key(VERASE, character)) {
    erase_one();
  } else if (is_key(VKILL, character)) {
    erase_line();
  } else if (is_extended && is_key(VWERASE, character)) {
    erase_word();
  } else if (is_extended && is_key(VREPRINT, character)) {
    put_echo(character);
    echo_raw('\n');
    for (std::uint32_t i = lines_end_; i != input_.head(); ++i) put_echo(input_.at(i));
  } else if (is_key(VEOF, character)) {
    add_to_line(kDisabled, true);
  } else if (character == '\n') {
    put_echo(character);
    add_to_line(character, true);
  } else if (is_key(VEOL, character) || (is_extended && is_key(VEOL2, character))) {
    put_echo(character);
    add_to_line(character, true);
  } else {
    return false;
  }
  return true;
}

bool LineDiscipline::put_input(char character, SignalSet& signals) {
  if ((settings.c_iflag & ISTRIP) != 0) character = static_cast<char>(character & 0x7f);
  if (is_literal_next_) {
    is_literal_next_ = false;
    put_echo(character);
    if (input_.room() > 1) add_to_line(character, false);
    return true;
  }
  if ((settings.c_iflag & IXON) != 0) {
    if (is_key(VSTART, character) || is_key(VSTOP, character)) {
      is_output_stopped = is_key(VSTOP, character);
      return true;
    }
    if ((settings.c_iflag & IXANY) != 0) is_output_stopped = false;
  }
  if ((settings.c_lflag & ISIG) != 0 && put_signal(character, signals)) return true;
  if (character == '\r') {
    if ((settings.c_iflag & IGNCR) != 0) return true;
    if ((settings.c_iflag & ICRNL) != 0) character = '\n';
  } else if (character == '\n' && (settings.c_iflag & INLCR) != 0) {
    character = '\r';
  }
  if (!is_canonical()) {
    if (input_.room() == 0) return false;
    put_echo(character);
    input_.push(character);
    return true;
  }
  if ((settings.c_lflag & IEXTEN) != 0 && is_key(VLNEXT, character)) {
    is_literal_next_ = true;
    if ((settings.c_lflag & ECHO) != 0 && (settings.c_lflag & ECHOCTL) != 0) {
      echo_raw('^');
      echo_raw('\b');
    }
    return true;
  }
  // Lines that nobody has read fill the buffer: the master waits. A line of its own that does so loses its end.
  if (input_.room() == 0) return lines_end_ == input_.tail();
  if (put_edit(character)) return true;
  if (input_.room() == 1) return lines_end_ == input_.tail();
  put_echo(character);
  add_to_line(character, false);
  return true;
}

// ---- reading ----

bool LineDiscipline::has_input(std::uint32_t least) const {
  if (is_canonical()) return lines_end_ != input_.tail();
  return input_.used() >= (least == 0 ? 1 : least);
}

std::uint32_t LineDiscipline::input_size() const {
  return is_canonical() ? lines_end_ - input_.tail() : input_.used();
}

std::uint32_t LineDiscipline::take_input(char* to, std::uint32_t size, bool& is_end) {
  is_end = false;
  std::uint32_t taken = 0;
  const std::uint32_t end = is_canonical() ? lines_end_ : input_.head();
  while (input_.tail() != end && !is_end) {
    const bool ends = is_canonical() && is_delimiter(input_.tail());
    const char character = input_.at(input_.tail());
    const bool is_eof = ends && character == kDisabled;
    // The mark of an end of file is taken with the characters before it, even where those fill the caller's room.
    if (taken == size && !is_eof) break;
    mark(input_.tail(), false);
    input_.pop();
    is_end = ends;
    if (!is_eof) to[taken++] = character;
  }
  return taken;
}

void LineDiscipline::flush_input() {
  input_.clear();
  lines_end_ = input_.head();
  std::memset(delimiters_, 0, sizeof delimiters_);
  is_literal_next_ = false;
  line_column_ = column_;
}

void LineDiscipline::set_mode(bool was_canonical) {
  if (was_canonical == is_canonical()) return;
  std::memset(delimiters_, 0, sizeof delimiters_);
  // What is there already can be read: in canonical mode as if it were a line.
  lines_end_ = is_canonical() ? input_.head() : input_.tail();
  if (is_canonical() && lines_end_ != input_.tail()) mark(lines_end_ - 1, true);
}

}  // namespace belljar::kernel
