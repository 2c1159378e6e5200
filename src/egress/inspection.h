// What a Connection has beside its sockets where its requests and answers are read: TLS ends, answers, HTTP/2.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "egress/http2_relay.h"
#include "egress/http_answers.h"
#include "egress/tls.h"

namespace belljar::egress {

struct Inspection {
  explicit Inspection(std::span<const std::string> values) : answers(values) {}

  bool is_open_to_program() const { return program && program->state() == TlsEnd::State::open; }
  bool is_all_said() const { return is_server_ended || (!http2 && answers.is_idle()); }

  bool is_tls = false;
  std::unique_ptr<TlsEnd> program;  // once the server has chosen the protocol
  std::unique_ptr<TlsEnd> server;
  std::vector<std::string_view> protocols;  // that the program can be answered with
  std::string failure;                      // why the server can't be used
  AnswerFilter answers;
  std::unique_ptr<Http2Relay> http2;
  std::string from_server;  // plain
  bool is_server_ended = false;
  bool is_cut_short = false;  // the program is not told of an end
};

}  // namespace belljar::egress
