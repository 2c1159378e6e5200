// What a terminal does to the characters that pass it (termios(3)): editing of lines, echo, signals, and newlines. No
// locks of its own: its Terminal's holds it.
#pragma once

#include <asm/termbits.h>

#include <cstdint>
#include <string_view>

#include "kernel/task/process.h"

namespace belljar::kernel {

// Bytes between the two sides.
template <std::uint32_t kSize>
class ByteRing {
 public:
  std::uint32_t used() const { return head_ - tail_; }
  std::uint32_t room() const { return kSize - used(); }
  void push(char byte) { bytes_[head_++ % kSize] = byte; }
  char pop() { return bytes_[tail_++ % kSize]; }
  void drop_last() { --head_; }
  void clear() { tail_ = head_; }
  std::uint32_t head() const { return head_; }
  std::uint32_t tail() const { return tail_; }
  void set_tail(std::uint32_t tail) { tail_ = tail; }
  char at(std::uint32_t index) const { return bytes_[index % kSize]; }
  const char* contiguous(std::uint32_t* size) const {
    const std::uint32_t at = tail_ % kSize;
    *size = used() < kSize - at ? used() : kSize - at;
    return bytes_ + at;
  }

 private:
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
  char bytes_[kSize];
};

class LineDiscipline {
 public:
  static constexpr std::uint32_t kInputSize = 4096;  // N_TTY_BUF_SIZE: no line is longer
  static constexpr std::uint32_t kOutputSize = 16384;

  LineDiscipline();

  termios settings;
  ByteRing<kOutputSize> output;    // to the master
  bool is_output_stopped = false;  // ^S

  // From the master. False: there is no room for the character now. Signals that it stands for are added to `signals`.
  bool put_input(char character, SignalSet& signals);
  // From a program. False: no room.
  bool put_output(char character);

  bool is_canonical() const { return (settings.c_lflag & ICANON) != 0; }
  // Whether a read finds something; of raw mode: at least `least` characters.
  bool has_input(std::uint32_t least) const;
  std::uint32_t input_size() const;
  // The next part of a line, or of raw input: at most `size` bytes to `to`. `is_end`: the line is done.
  std::uint32_t take_input(char* to, std::uint32_t size, bool& is_end);
  void flush_input();
  // After the mode changed between canonical and raw.
  void set_mode(bool was_canonical);

 private:
  bool is_key(int which, char character) const;
  bool put_signal(char character, SignalSet& signals);
  bool put_edit(char character);
  void put_echo(char character);
  void echo_raw(char character);
  void erase_one();
  void erase_line();
  void erase_word();
  void rub_out(char character);
  void add_to_line(char character, bool is_delimiter);
  std::uint32_t width_of(char character) const;
  bool is_delimiter(std::uint32_t index) const { return (delimiters_[index % kInputSize / 8] >> (index % 8) & 1) != 0; }
  void mark(std::uint32_t index, bool value);

  ByteRing<kInputSize> input_;
  std::uint32_t lines_end_ = 0;  // of the whole lines in input_
  std::uint8_t delimiters_[kInputSize / 8] = {};
  bool is_literal_next_ = false;
  std::uint32_t column_ = 0;
  std::uint32_t line_column_ = 0;  // where the line that is being edited began
};

}  // namespace belljar::kernel
