//! Servers that the proxy leads to: HTTP and HTTPS by axum, and sockets that note every byte.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig, crypto};
use tokio_rustls::server::TlsStream;

/// A server that ends with the test.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Origin {
    /// Plain HTTP.
    pub(crate) async fn http() -> Self {
        Self::http_files(Path::new("/nonexistent")).await
    }

    /// Plain HTTP, with the files of a folder.
    pub(crate) async fn http_files(files: &Path) -> Self {
        let (listener, address) = listen().await;
        let router = routes(files);
        Self { address, task: tokio::spawn(async move { axum::serve(listener, router).await.expect("served") }) }
    }

    /// HTTPS with a certificate of `authority`, and the files of a folder.
    pub(crate) async fn https(authority: &Authority, names: &[&str], files: &Path) -> Self {
        let (listener, address) = listen().await;
        let listener = TlsListener { listener, acceptor: authority.acceptor(names) };
        let router = routes(files);
        Self { address, task: tokio::spawn(async move { axum::serve(listener, router).await.expect("served") }) }
    }

    /// A server that `serve`s each client.
    pub(crate) async fn raw<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (listener, address) = listen().await;
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        Self { address, task }
    }

    /// A server that answers every connection with `answer` as soon as anything arrives, and notes what it got.
    pub(crate) async fn noting(answer: &'static str) -> (Self, Arc<Mutex<Vec<u8>>>) {
        let noted = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&noted);
        let origin = Self::raw(move |mut stream| {
            let sink = Arc::clone(&sink);
            async move {
                let mut buffer = vec![0; 64 * 1024];
                let mut answered = false;
                while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                    sink.lock().expect("notes").extend_from_slice(&buffer[..count]);
                    if !std::mem::replace(&mut answered, true) {
                        stream.write_all(answer.as_bytes()).await.ok();
                    }
                }
            }
        })
        .await;
        (origin, noted)
    }

    /// A server that sends everything back.
    pub(crate) async fn echo() -> Self {
        Self::raw(|mut stream| async move {
            let (mut from, mut to) = stream.split();
            tokio::io::copy(&mut from, &mut to).await.ok();
            to.shutdown().await.ok();
        })
        .await
    }
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("its address");
    (listener, address)
}

fn routes(files: &Path) -> Router {
    let hello = |request: Request| async move {
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        format!("hello from {host}\n")
    };
    let redirect = |request: Request| async move {
        let to = request.uri().query().unwrap_or_default().to_owned();
        (StatusCode::FOUND, [(header::LOCATION, to)], "elsewhere\n")
    };
    let fields = |request: Request| async move {
        let lines: Vec<String> = request.headers().iter().map(|(name, value)| format!("{name}: {value:?}\n")).collect();
        lines.concat()
    };
    Router::new()
        .route("/hello", get(hello))
        .route("/redirect", get(redirect))
        .route("/fields", any(fields))
        .route("/echo", post(|body: Bytes| async move { body }))
        .route("/big", get(|| async { Body::from(vec![b'x'; 8 << 20]) }))
        .layer(axum::extract::DefaultBodyLimit::disable())
        .fallback(get(file))
        .with_state(files.to_owned())
}

async fn file(State(files): State<PathBuf>, request: Request) -> Response {
    let path = files.join(request.uri().path().trim_start_matches('/'));
    let path = if path.is_dir() { path.join("index.html") } else { path };
    let kind = match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    };
    match fs::read(&path) {
        Ok(bytes) => ([(header::CONTENT_TYPE, kind)], bytes).into_response(),
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            // One handshake at a time is enough for these tests.
            if let Ok((stream, address)) = self.listener.accept().await
                && let Ok(stream) = self.acceptor.accept(stream).await
            {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A certificate authority of one test.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "loopback tests");
        params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::CrlSign];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a certificate"))
    }

    /// Its certificate, for programs that read a file.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn acceptor(&self, names: &[&str]) -> TlsAcceptor {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &self.0).expect("signed");
        let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
            )
            .expect("a server");
        TlsAcceptor::from(Arc::new(config))
    }

    /// A client that trusts it.
    pub(crate) fn client(&self) -> tokio_rustls::TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("a root");
        let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        tokio_rustls::TlsConnector::from(Arc::new(config))
    }
}
