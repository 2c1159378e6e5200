// TLS that ends at the relay: with an authority made for this sandbox towards its programs, and checked against the
// host's trust towards servers. OpenSSL works on memory only; sockets are the Connection's.
#pragma once

#include <openssl/ssl.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/host_name.h"

namespace belljar::egress {

template <auto kFree>
struct OpensslFree {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using SslPointer = std::unique_ptr<SSL, OpensslFree<&SSL_free>>;
using SslContextPointer = std::unique_ptr<SSL_CTX, OpensslFree<&SSL_CTX_free>>;
using CertificatePointer = std::unique_ptr<X509, OpensslFree<&X509_free>>;
using KeyPointer = std::unique_ptr<EVP_PKEY, OpensslFree<&EVP_PKEY_free>>;
using SessionPointer = std::unique_ptr<SSL_SESSION, OpensslFree<&SSL_SESSION_free>>;

// Names of protocols within TLS (RFC 7301).
inline constexpr std::string_view kHttp1Protocol = "http/1.1";
inline constexpr std::string_view kHttp2Protocol = "h2";

// One end of a TLS connection. What the peer sends goes in by feed(), what it is to get comes out in wire().
class TlsEnd {
 public:
  enum class State { greeting, open, failed };

  explicit TlsEnd(SslPointer ssl);

  void feed(std::string_view bytes);

  // Goes on with the handshake.
  State greet();
  State state() const { return state_; }

  // Appends what has come; false where the peer broke the protocol.
  bool read(std::string* plain);

  // Encrypts all of it, and wipes it.
  bool write(std::string* plain);

  // The peer said that it sends no more (close_notify).
  bool is_ended() const;

  void say_end();

  std::string& wire() { return wire_; }
  const std::string& wire() const { return wire_; }
  std::string_view protocol() const;

  // Why the handshake failed, in words.
  std::string fault() const;

 private:
  void collect();

  SslPointer ssl_;
  State state_ = State::greeting;
  std::string wire_;
};

class Tls {
 public:
  // Makes the authority. `trusted_pem` are the certificates that servers are checked by. To be called before the
  // process confines itself: later, OpenSSL opens no file.
  static Result<std::unique_ptr<Tls>> create(std::string trusted_pem);
  ~Tls();

  // The certificate of the authority.
  const std::string& authority_pem() const { return authority_pem_; }

  // What the certificates that servers are checked by take of the heap.
  std::ptrdiff_t trust_bytes() const { return trust_bytes_; }

  // Null where there is no memory. Towards a program that wants `host`. Of the protocols that it offers, it gets
  // `protocol` or none.
  std::unique_ptr<TlsEnd> to_program(const Host& host, std::string_view protocol);

  // Towards the server of `host`, which may choose one of the protocols.
  std::unique_ptr<TlsEnd> to_server(const Host& host, const std::vector<std::string_view>& protocols);

 private:
  Tls() = default;
  bool make_contexts();
  bool make_authority();
  X509* certificate_for(const Host& host);
  bool load_trust();
  static int keep_session(SSL* ssl, SSL_SESSION* session);

  std::string trusted_pem_;
  std::string authority_pem_;
  KeyPointer authority_key_;
  KeyPointer key_;  // of all certificates that the authority signs
  CertificatePointer authority_;
  SslContextPointer program_context_;
  SslContextPointer server_context_;
  bool is_trust_loaded_ = false;
  std::ptrdiff_t trust_bytes_ = 0;
  std::map<std::string, CertificatePointer> certificates_;  // by host
  std::map<std::string, SessionPointer> sessions_;          // by host, to be resumed
};

}  // namespace belljar::egress
