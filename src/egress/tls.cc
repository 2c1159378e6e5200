#include "egress/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>

#include "egress/heap.h"
#include "spec/errors.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kHostsMax = 256;  // of certificates and sessions that are kept
constexpr long kDaySeconds = 24L * 60 * 60;
constexpr long kLifeDays = 30;  // longer than any sandbox
constexpr const char* kCurve = "P-256";

using BioPointer = std::unique_ptr<BIO, OpensslFree<&BIO_free_all>>;
using ExtensionPointer = std::unique_ptr<X509_EXTENSION, OpensslFree<&X509_EXTENSION_free>>;

bool add_extension(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  ::X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPointer extension(::X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  return extension && ::X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool set_serial(X509* certificate) {
  std::array<unsigned char, 16> bytes;
  if (::RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return false;
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7F) | 0x40);  // positive, and of full length
  BIGNUM* const number = ::BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr);
  const bool is_set =
      number != nullptr && ::BN_to_ASN1_INTEGER(number, ::X509_get_serialNumber(certificate)) != nullptr;
  ::BN_free(number);
  return is_set;
}

bool set_name(X509_NAME* name, std::string_view text) {
  return ::X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(text.data()),
                                      static_cast<int>(text.size()), -1, 0) == 1;
}

// A certificate for `key` with all but its extensions and signature.
CertificatePointer begin_certificate(EVP_PKEY* key) {
  CertificatePointer certificate(::X509_new());
  const bool is_begun =
      certificate && ::X509_set_version(certificate.get(), X509_VERSION_3) == 1 && set_serial(certificate.get()) &&
      ::X509_gmtime_adj(::X509_getm_notBefore(certificate.get()), -kDaySeconds) != nullptr &&
      ::X509_gmtime_adj(::X509_getm_notAfter(certificate.get()), kLifeDays * kDaySeconds) != nullptr &&
      ::X509_set_pubkey(certificate.get(), key) == 1;
  return is_begun ? std::move(certificate) : nullptr;
}

// Chooses the protocol that was fixed before (SSL_set_app_data).
int choose_protocol(SSL* ssl, const unsigned char** out, unsigned char* out_size, const unsigned char* offered,
                    unsigned offered_size, void* /*context*/) {
  const auto* const wanted = static_cast<const std::string_view*>(SSL_get_app_data(ssl));
  for (unsigned at = 0; at < offered_size; at += 1U + offered[at]) {
    const unsigned char size = offered[at];
    if (wanted == nullptr || std::string_view(reinterpret_cast<const char*>(offered + at + 1), size) != *wanted)
      continue;
    *out = offered + at + 1;
    *out_size = size;
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_NOACK;
}

// The names outlive the connections.
const std::string_view* lasting(std::string_view protocol) {
  return protocol == kHttp2Protocol ? &kHttp2Protocol : &kHttp1Protocol;
}

}  // namespace

Tls::~Tls() = default;

Result<std::unique_ptr<Tls>> Tls::create(std::string trusted_pem) {
  constexpr std::uint64_t kOptions = OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT;
  std::unique_ptr<Tls> tls(new Tls);
  tls->trusted_pem_ = std::move(trusted_pem);
  const bool is_made = ::OPENSSL_init_ssl(kOptions, nullptr) == 1 && tls->make_authority() && tls->make_contexts();
  if (is_made) return tls;
  return fail(ErrorCode::internal, "no certificate authority could be made");
}

bool Tls::make_contexts() {
  program_context_.reset(::SSL_CTX_new(::TLS_server_method()));
  server_context_.reset(::SSL_CTX_new(::TLS_client_method()));
  if (!program_context_ || !server_context_) return false;
  SSL_CTX* const program = program_context_.get();
  ::SSL_CTX_set_alpn_select_cb(program, choose_protocol, nullptr);
  SSL_CTX_set_session_cache_mode(program, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_options(program, SSL_OP_NO_TICKET);
  ::SSL_CTX_set_num_tickets(program, 0);
  SSL_CTX* const server = server_context_.get();
  ::SSL_CTX_set_verify(server, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_session_cache_mode(server, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  ::SSL_CTX_sess_set_new_cb(server, &Tls::keep_session);
  SSL_CTX_set_app_data(server, this);
  for (SSL_CTX* const context : {program, server}) {
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    ::SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  }
  return true;
}

bool Tls::make_authority() {
  authority_key_.reset(EVP_EC_gen(kCurve));
  key_.reset(EVP_EC_gen(kCurve));
  if (!authority_key_ || !key_) return false;
  authority_ = begin_certificate(authority_key_.get());
  X509* const own = authority_.get();
  const bool is_signed = own != nullptr && set_name(::X509_get_subject_name(own), "Belljar sandbox authority") &&
                         ::X509_set_issuer_name(own, ::X509_get_subject_name(own)) == 1 &&
                         add_extension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                         add_extension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                         add_extension(own, own, NID_subject_key_identifier, "hash") &&
                         ::X509_sign(own, authority_key_.get(), ::EVP_sha256()) > 0;
  if (!is_signed) return false;
  const BioPointer text(::BIO_new(::BIO_s_mem()));
  if (!text || ::PEM_write_bio_X509(text.get(), own) != 1) return false;
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);
  authority_pem_.assign(data, static_cast<std::size_t>(size));
  return true;
}

// Null where it could not be made.
X509* Tls::certificate_for(const Host& host) {
  const auto known = certificates_.find(host.text);
  if (known != certificates_.end()) return known->second.get();
  if (certificates_.size() >= kHostsMax) certificates_.clear();
  CertificatePointer made = begin_certificate(key_.get());
  X509* const own = made.get();
  const std::string name = (host.is_literal() ? "IP:" : "DNS:") + host.text;
  constexpr std::size_t kCommonNameBytesMax = 64;  // RFC 5280; the name that counts is the other one
  const bool is_signed =
      own != nullptr && (host.text.size() > kCommonNameBytesMax || set_name(::X509_get_subject_name(own), host.text)) &&
      ::X509_set_issuer_name(own, ::X509_get_subject_name(authority_.get())) == 1 &&
      add_extension(own, authority_.get(), NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(own, authority_.get(), NID_key_usage, "critical,digitalSignature") &&
      add_extension(own, authority_.get(), NID_ext_key_usage, "serverAuth") &&
      add_extension(own, authority_.get(), NID_subject_key_identifier, "hash") &&
      add_extension(own, authority_.get(), NID_authority_key_identifier, "keyid") &&
      add_extension(own, authority_.get(), NID_subject_alt_name, name.c_str()) &&
      ::X509_sign(own, authority_key_.get(), ::EVP_sha256()) > 0;
  if (!is_signed) return nullptr;
  certificates_[host.text] = std::move(made);
  return own;
}

// Parsing some hundred certificates takes some ten milliseconds, so it waits for the first server.
bool Tls::load_trust() {
  if (is_trust_loaded_) return true;
  const std::ptrdiff_t before = heap_bytes;
  const BioPointer text(::BIO_new_mem_buf(trusted_pem_.data(), static_cast<int>(trusted_pem_.size())));
  X509_STORE* const store = ::SSL_CTX_get_cert_store(server_context_.get());
  while (true) {
    const CertificatePointer certificate(::PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
    if (!certificate) break;
    ::X509_STORE_add_cert(store, certificate.get());
  }
  ::ERR_clear_error();
  trusted_pem_ = {};
  is_trust_loaded_ = true;
  trust_bytes_ = heap_bytes - before;
  return true;
}

std::unique_ptr<TlsEnd> Tls::to_program(const Host& host, std::string_view protocol) {
  X509* const certificate = certificate_for(host);
  SslPointer ssl(::SSL_new(program_context_.get()));
  if (certificate == nullptr || !ssl) return nullptr;
  if (!protocol.empty()) SSL_set_app_data(ssl.get(), const_cast<std::string_view*>(lasting(protocol)));
  if (::SSL_use_certificate(ssl.get(), certificate) != 1 || ::SSL_use_PrivateKey(ssl.get(), key_.get()) != 1)
    return nullptr;
  ::SSL_set_accept_state(ssl.get());
  return std::make_unique<TlsEnd>(std::move(ssl));
}

std::unique_ptr<TlsEnd> Tls::to_server(const Host& host, const std::vector<std::string_view>& protocols) {
  SslPointer ssl(::SSL_new(server_context_.get()));
  if (!ssl || !load_trust()) return nullptr;
  std::string offered;
  for (const std::string_view protocol : protocols) {
    offered += static_cast<char>(protocol.size());
    offered += protocol;
  }
  bool is_ready =
      offered.empty() || ::SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(offered.data()),
                                               static_cast<unsigned>(offered.size())) == 0;
  X509_VERIFY_PARAM* const checks = ::SSL_get0_param(ssl.get());
  if (host.is_literal()) {
    is_ready = is_ready && ::X509_VERIFY_PARAM_set1_ip_asc(checks, host.text.c_str()) == 1;
  } else {
    ::X509_VERIFY_PARAM_set_hostflags(checks, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    is_ready = is_ready && ::X509_VERIFY_PARAM_set1_host(checks, host.text.c_str(), 0) == 1 &&
               SSL_set_tlsext_host_name(ssl.get(), host.text.c_str()) == 1;
  }
  if (!is_ready) return nullptr;
  const auto session = sessions_.find(host.text);
  if (session != sessions_.end()) ::SSL_set_session(ssl.get(), session->second.get());
  ::SSL_set_connect_state(ssl.get());
  return std::make_unique<TlsEnd>(std::move(ssl));
}

// Called by OpenSSL when a server has given a session; 1 takes it over.
int Tls::keep_session(SSL* ssl, SSL_SESSION* session) {
  auto* const self = static_cast<Tls*>(SSL_CTX_get_app_data(::SSL_get_SSL_CTX(ssl)));
  const char* const name = ::SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name == nullptr) return 0;
  if (self->sessions_.size() >= kHostsMax) self->sessions_.clear();
  self->sessions_[name].reset(session);
  return 1;
}

}  // namespace belljar::egress
