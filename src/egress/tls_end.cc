#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <array>

#include "egress/secrets.h"
#include "egress/tls.h"

namespace belljar::egress {

TlsEnd::TlsEnd(SslPointer ssl) : ssl_(std::move(ssl)) {
  BIO* const in = ::BIO_new(::BIO_s_mem());
  BIO* const out = ::BIO_new(::BIO_s_mem());
  ::BIO_set_mem_eof_return(in, -1);
  ::SSL_set_bio(ssl_.get(), in, out);  // which owns them now
}

void TlsEnd::feed(std::string_view bytes) {
  if (!bytes.empty()) ::BIO_write(::SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
}

void TlsEnd::collect() {
  BIO* const out = ::SSL_get_wbio(ssl_.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(out, &data);
  if (size <= 0) return;
  wire_.append(data, static_cast<std::size_t>(size));
  (void)BIO_reset(out);
}

TlsEnd::State TlsEnd::greet() {
  if (state_ != State::greeting) return state_;
  ::ERR_clear_error();
  const int result = ::SSL_do_handshake(ssl_.get());
  if (result == 1) {
    state_ = State::open;
  } else if (::SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) {
    state_ = State::failed;
  }
  collect();
  return state_;
}

bool TlsEnd::read(std::string* plain) {
  std::array<char, std::size_t{16} << 10> bytes;
  while (true) {
    ::ERR_clear_error();
    const int count = ::SSL_read(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
    if (count > 0) {
      plain->append(bytes.data(), static_cast<std::size_t>(count));
      const bool is_all = ::BIO_ctrl_pending(::SSL_get_rbio(ssl_.get())) == 0 && ::SSL_has_pending(ssl_.get()) == 0;
      if (!is_all) continue;
      collect();
      return true;
    }
    const int error = ::SSL_get_error(ssl_.get(), count);
    collect();
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_ZERO_RETURN;
  }
}

bool TlsEnd::write(std::string* plain) {
  if (plain->empty()) return true;
  ::ERR_clear_error();
  const int count = ::SSL_write(ssl_.get(), plain->data(), static_cast<int>(plain->size()));
  const bool is_all = count == static_cast<int>(plain->size());
  wipe(plain);
  collect();
  return is_all;
}

bool TlsEnd::is_ended() const {
  return (::SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0;
}

void TlsEnd::say_end() {
  if (state_ == State::open) ::SSL_shutdown(ssl_.get());
  collect();
}

std::string_view TlsEnd::protocol() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  ::SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

std::string TlsEnd::fault() const {
  const long verified = ::SSL_get_verify_result(ssl_.get());
  if (verified != X509_V_OK) return ::X509_verify_cert_error_string(verified);
  const unsigned long error = ::ERR_peek_error();
  const char* const reason = error != 0 ? ::ERR_reason_error_string(error) : nullptr;
  return reason != nullptr ? reason : "the TLS handshake failed";
}

}  // namespace belljar::egress
