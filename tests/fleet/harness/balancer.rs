//! The address under which agents reach whichever server there is: connections go to one port, until told otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// See the module.
pub struct Balancer {
    target: Arc<AtomicU16>,
    port: u16,
    task: JoinHandle<()>,
}

impl Balancer {
    /// To the server on this port.
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let own = listener.local_addr().expect("an address").port();
        let target = Arc::new(AtomicU16::new(port));
        let task = tokio::spawn(pass_on(listener, Arc::clone(&target)));
        Self { target, port: own, task }
    }

    /// New connections go there from now on.
    pub fn turn_to(&self, port: u16) {
        self.target.store(port, Ordering::SeqCst);
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass_on(listener: TcpListener, target: Arc<AtomicU16>) {
    while let Ok((mut client, _)) = listener.accept().await {
        let port = target.load(Ordering::SeqCst);
        tokio::spawn(async move {
            if let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await {
                // Its end, good or bad, is both ends' end.
                let _ = copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}
